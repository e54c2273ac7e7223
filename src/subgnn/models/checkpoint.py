"""What a run keeps: settings, class names, anchors, the graph's hash and the weights; no pickled code.

A checkpoint has two forms on disk, the file of a run's folder (:func:`save_checkpoint`) and the named arrays of an
exported run (:func:`pack`). Both are read by one function, :func:`unpack`, which believes neither; whether the result
fits its settings and its graph is checked by :mod:`subgnn.models.integrity`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.channels.anchors import NodeAnchors, PatchAnchors, SharedAnchors
from subgnn.channels.topology import Standard
from subgnn.config.files import parse_recipe
from subgnn.config.settings import ChannelSettings, Recipe
from subgnn.data.subgraphs import TASKS, Task
from subgnn.errors import DataError, UserError
from subgnn.ragged import Ragged
from subgnn.rng import stream_key
from subgnn.storage.tensor_file import CHECKSUM, Damaged, load, save

_FORMAT, _VERSION = "subgnn-run", 4
_READ_VERSIONS = (2, 3, 4)  # 2 knows of no baseline to correct, 3 has no checksum
_MEMBER = "member"  # with a number and a dot, before the names of weights of all networks but the first
_PROGRESS_FORMAT, _PROGRESS_VERSION = "subgnn-progress", 3
_READ_PROGRESS = (3,)  # 1 has one group of parameters, 2 no checksum
_BASELINE = "baseline."
_PATCHES = ("patches.values", "patches.offsets", "walks.values", "walks.offsets")
_STANDARDS = ("component", "subgraph", "target", "feature")
_PLAIN = ("recipe", "seed", "task", "classes", "graph_hash", "vectors_hash", "draws", "layers", "baseline")
_MAX_SHOWN = 120

WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading raises where a part is missing or of a wrong kind."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A trained network and all that is needed to ask it about new subgraphs.

    ``standards`` holds what was standardised with: component, subgraph, target and feature, where there are any.
    ``redrawn`` holds the shared anchors of further draws where predictions are means over draws. ``component_keys``
    are the sorted keys of the components that have a learned offset. ``vectors_hash`` is that of the table of node
    embeddings the run started from; empty for random ones. ``baseline`` is the checkpoint of the baseline that the
    network corrects, where it does. Of several networks, ``weights`` has those of all (:func:`joined_weights`).
    """

    recipe: Recipe
    seed: int
    task: Task
    classes: tuple[str, ...]
    graph_hash: str
    table_nodes: NDArray[np.int32]
    shared: list[list[SharedAnchors | None]]
    weights: dict[str, torch.Tensor]
    standards: dict[str, Standard]
    redrawn: list[list[list[SharedAnchors | None]]] = field(default_factory=list)
    component_keys: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    vectors_hash: str = ""
    baseline: Checkpoint | None = None

    @property
    def members(self) -> int:
        """How many networks the answer is the mean of."""
        return self.recipe.training.members if self.recipe.method == "subgnn" else 1

    @property
    def held(self) -> int:
        """Of how many networks the weights are."""
        return 1 + len({name.partition(".")[0] for name in self.weights if name.startswith(_MEMBER)})

    def member(self, i: int) -> Checkpoint:
        """The checkpoint of one of several networks alone; the first is known by the run's own seed.

        It is for building the network: anchors of subgraphs follow the seed of the run.

        Raises:
            KeyError: where it has not the weights that the first has.
        """
        own = f"{_MEMBER}{i}."
        weights = first = {name: value for name, value in self.weights.items() if not name.startswith(_MEMBER)}
        if i:
            weights = {n.removeprefix(own): value for n, value in self.weights.items() if n.startswith(own)}
        if weights.keys() != first.keys():
            raise KeyError(f"weights of network {i}")
        return replace(self, seed=member_seed(self.seed, i), weights=weights)

    @property
    def num_outputs(self) -> int:
        """Classes, or 1 for regression."""
        return 1 if self.task == "regression" else len(self.classes)


def member_seed(seed: int, i: int) -> int:
    """The seed of one of several networks; the first has that of the run."""
    return stream_key(seed, f"member/{i}") if i else seed


def joined_weights(members: Sequence[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """The weights of several networks under one roof: the first as they are, the others with their number in front."""
    numbered = ((f"{_MEMBER}{i}." if i else "", weights) for i, weights in enumerate(members))
    return {prefix + name: value for prefix, weights in numbered for name, value in weights.items()}


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint."""
    save({"format": _FORMAT, "version": _VERSION, **_nested(checkpoint)}, path)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        DataError: where it is damaged, of another version, or does not hold together.
    """
    content = _checked(load(path), path, _FORMAT, _READ_VERSIONS, "a checkpoint", "train again")
    if content["version"] == _VERSION and CHECKSUM not in content:
        raise Damaged(path, "its checksum is missing")
    known = {"format", "version", CHECKSUM}
    try:
        arrays, plain = _flat({name: value for name, value in content.items() if name not in known})
    except WRONG as error:
        raise broken("the checkpoint", error, where=str(path), again="train again") from None
    return unpack(arrays, plain, where=str(path), noun="the checkpoint", again="train again")


def broken(noun: str, error: Exception, *, where: str, again: str) -> DataError:
    """The error for a checkpoint, in either form, that lacks a part or has a wrong one."""
    why = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
    why = why.encode("unicode_escape").decode()[:_MAX_SHOWN]
    what = f"{noun} lacks a part, or has one of a wrong kind ({why})"
    return DataError(what, where=where, hint=again)


def _nested(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint as the file of a run's folder has it."""
    return {
        "recipe": json.dumps(asdict(checkpoint.recipe)),
        "seed": checkpoint.seed,
        "task": checkpoint.task,
        "classes": list(checkpoint.classes),
        "graph_hash": checkpoint.graph_hash,
        "table_nodes": torch.from_numpy(np.array(checkpoint.table_nodes)),
        "shared": _pack_draw(checkpoint.shared),
        "redrawn": [_pack_draw(draw) for draw in checkpoint.redrawn],
        # As int64, which every part of torch knows.
        "component_keys": torch.from_numpy(checkpoint.component_keys.view(np.int64)),
        "weights": checkpoint.weights,
        "standards": {
            name: [torch.from_numpy(np.array(s.mean)), torch.from_numpy(np.array(s.deviation))]
            for name, s in checkpoint.standards.items()
        },
        "vectors_hash": checkpoint.vectors_hash,
        "baseline": None if checkpoint.baseline is None else _nested(checkpoint.baseline),
    }


def _pack_draw(shared: list[list[SharedAnchors | None]]) -> list[list[list[torch.Tensor]]]:
    return [[[torch.from_numpy(np.array(part)) for part in _parts(anchors)] for anchors in row] for row in shared]


def _parts(anchors: SharedAnchors | None) -> tuple[NDArray[Any], ...]:
    if anchors is None:
        return ()
    if isinstance(anchors, NodeAnchors):
        return (anchors.nodes,)
    return anchors.patches.values, anchors.patches.offsets, anchors.walks.values, anchors.walks.offsets


def _flat(nested: Mapping[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    """What :func:`_nested` gave, in the form of :func:`pack`."""
    draws = [nested["shared"], *nested["redrawn"]]
    tensors = {"table_nodes": nested["table_nodes"], "component_keys": nested["component_keys"]}
    tensors |= {f"weights.{name}": value for name, value in nested["weights"].items()}
    for name, (mean, deviation) in nested["standards"].items():
        tensors |= {f"standards.{name}.mean": mean, f"standards.{name}.deviation": deviation}
    for d, draw in enumerate(draws):
        for layer, row in enumerate(draw):
            for channel, parts in enumerate(row):
                names = {0: (), 1: ("nodes",), 4: _PATCHES}[len(parts)]
                prefix = f"anchors.{d}.{layer}.{channel}."
                tensors |= {prefix + name: part for name, part in zip(names, parts, strict=True)}
    arrays = {name: np.asarray(tensor.numpy(), order="C") for name, tensor in tensors.items()}
    plain = {name: value for name, value in nested.items() if name not in ("shared", "redrawn", "weights", "standards")}
    del plain["table_nodes"], plain["component_keys"]
    plain |= {"recipe": json.loads(nested["recipe"]), "draws": len(draws), "layers": len(draws[0])}
    plain["baseline"] = None
    if nested.get("baseline") is not None:
        of_baseline, plain["baseline"] = _flat(nested["baseline"])
        arrays |= {_BASELINE + name: array for name, array in of_baseline.items()}
    return arrays, plain


def pack(checkpoint: Checkpoint) -> tuple[Arrays, dict[str, Any]]:
    """Arrays by name, and what is no array, as JSON takes it."""
    arrays: Arrays = {
        "table_nodes": checkpoint.table_nodes,
        # As int64, which the layout knows.
        "component_keys": checkpoint.component_keys.view(np.int64),
    }
    arrays |= {f"weights.{name}": value.numpy() for name, value in checkpoint.weights.items()}
    for name, standard in checkpoint.standards.items():
        arrays[f"standards.{name}.mean"], arrays[f"standards.{name}.deviation"] = standard.mean, standard.deviation
    draws = [checkpoint.shared, *checkpoint.redrawn]
    for d, draw in enumerate(draws):
        for layer, row in enumerate(draw):
            for channel, anchors in enumerate(row):
                names = ("nodes",) if isinstance(anchors, NodeAnchors) else _PATCHES
                parts = _parts(anchors)
                arrays |= {f"anchors.{d}.{layer}.{channel}.{n}": part for n, part in zip(names, parts, strict=False)}
    content = {
        "recipe": asdict(checkpoint.recipe),
        "seed": checkpoint.seed,
        "task": checkpoint.task,
        "classes": list(checkpoint.classes),
        "graph_hash": checkpoint.graph_hash,
        "vectors_hash": checkpoint.vectors_hash,
        "draws": len(draws),
        "layers": len(checkpoint.shared),
        "baseline": None,
    }
    if checkpoint.baseline is not None:
        of_baseline, content["baseline"] = pack(checkpoint.baseline)
        arrays |= {_BASELINE + name: array for name, array in of_baseline.items()}
    return arrays, content


def unpack(arrays: Mapping[str, NDArray[Any]], content: Any, *, where: str, noun: str, again: str) -> Checkpoint:
    """What :func:`pack` packed.

    Args:
        noun: what it was read from, as people call it.
        again: what to do where it is not that.

    Raises:
        DataError: where a part is missing, is of a wrong kind, or is one that nobody asked for.
    """
    try:
        return _unpack(dict(arrays), content, where)
    except WRONG as error:
        raise broken(noun, error, where=where, again=again) from None
    except UserError as error:
        raise DataError(error.what, where=where, hint=f"{again}; {error.hint}" if error.hint else again) from None


def _unpack(arrays: Arrays, content: Mapping[str, Any], where: str) -> Checkpoint:
    """As :func:`unpack`; takes what it reads out of ``arrays``."""
    recipe = parse_recipe(_of_type(content, "recipe", dict), where)
    task, classes = _of_type(content, "task", str), _of_type(content, "classes", list)
    if task not in TASKS:
        raise ValueError(f"task is {task!r}")
    if not all(isinstance(name, str) for name in classes) or len(set(classes)) < len(classes):
        raise ValueError("classes are not different names")
    layers, draws = _of_type(content, "layers", int), _of_type(content, "draws", int)
    _check_sizes(recipe, layers, draws)
    table_nodes = _vector(arrays, "table_nodes", np.int32)
    component_keys = _vector(arrays, "component_keys", np.int64).view(np.uint64)
    shared = [
        [
            [_unpack_anchors(arrays, f"anchors.{d}.{layer}.{c}.", channel) for c, channel in enumerate(recipe.channels)]
            for layer in range(layers)
        ]
        for d in range(draws)
    ]
    standards = {}
    for name in _STANDARDS:
        if f"standards.{name}.mean" in arrays:
            pair = [_vector(arrays, f"standards.{name}.{part}", np.float64) for part in ("mean", "deviation")]
            standards[name] = Standard(*pair)
    baseline = _unpack_baseline(arrays, content, recipe, where)
    weights = {
        name.removeprefix("weights."): torch.from_numpy(np.array(arrays.pop(name)))
        for name in list(arrays)
        if name.startswith("weights.")
    }
    unknown = sorted([*arrays, *(name for name in content if name not in _PLAIN)])
    if unknown:
        raise ValueError(f"unknown part {unknown[0]!r}")
    return Checkpoint(
        recipe=recipe,
        seed=_of_type(content, "seed", int),
        task=cast(Task, task),
        classes=tuple(classes),
        graph_hash=_of_type(content, "graph_hash", str),
        table_nodes=table_nodes,
        shared=shared[0],
        redrawn=shared[1:],
        component_keys=component_keys,
        weights=weights,
        standards=standards,
        vectors_hash=_of_type(content, "vectors_hash", str),
        baseline=baseline,
    )


def _check_sizes(recipe: Recipe, layers: int, draws: int) -> None:
    """Refuse numbers of layers and draws that the recipe does not have, before lists of them are made."""
    network = recipe.method == "subgnn"
    if layers != 0 and not (network and layers == recipe.model.layers):
        raise ValueError(f"layers is {layers}")
    if draws != (recipe.prepare.draws if network and recipe.prepare.ensemble else 1):
        raise ValueError(f"draws is {draws}")


def _unpack_baseline(arrays: Arrays, content: Mapping[str, Any], recipe: Recipe, where: str) -> Checkpoint | None:
    """The baseline that a network corrects, where it does; a baseline has none itself."""
    expected = recipe.model.baseline if recipe.method == "subgnn" else "none"
    packed = content["baseline"]
    if (packed is None) != (expected == "none"):
        raise ValueError("baseline")
    if packed is None:
        return None
    if packed["recipe"]["method"] != expected or packed["task"] != content["task"]:
        raise ValueError("baseline")
    own = {name.removeprefix(_BASELINE): arrays.pop(name) for name in list(arrays) if name.startswith(_BASELINE)}
    return _unpack(own, packed, where)


def _unpack_anchors(arrays: Arrays, prefix: str, channel: ChannelSettings) -> SharedAnchors | None:
    if not channel.shared:
        return None
    if channel.kind == "position":
        anchors = NodeAnchors(_vector(arrays, prefix + "nodes", np.int32))
        if len(anchors.nodes) != channel.num_anchors:
            raise ValueError(f"{prefix}nodes: {len(anchors.nodes)} anchors")
        return anchors
    values = [_vector(arrays, prefix + name, np.int64 if "offsets" in name else np.int32) for name in _PATCHES]
    patches, walks = Ragged(values[0], values[1]), Ragged(values[2], values[3])
    for rows in (patches, walks):
        rows.validate(prefix.rstrip("."))
    if len(patches) != channel.num_anchors or not len(walks) or len(walks) % channel.num_anchors:
        raise ValueError(f"{prefix}: {len(patches)} patches, {len(walks)} walks")
    return PatchAnchors(patches, walks)


def _vector(arrays: Arrays, name: str, dtype: Any) -> NDArray[Any]:
    """Take a vector out of the arrays."""
    array = arrays.pop(name)
    if array.dtype != dtype or array.ndim != 1:
        raise TypeError(f"{name} is {array.dtype} of {array.ndim} dimensions")
    return array


def _of_type(content: Mapping[str, Any], name: str, kind: type) -> Any:
    value = content[name]
    if type(value) is not kind:
        raise TypeError(f"{name} is {type(value).__name__}")
    return value


def save_progress(state: dict[str, Any], path: Path) -> None:
    """Write what ``--resume`` needs."""
    save({"format": _PROGRESS_FORMAT, "version": _PROGRESS_VERSION} | state, path)


def load_progress(path: Path) -> dict[str, Any]:
    """Read what :func:`save_progress` wrote.

    Raises:
        Damaged: where it is no saved progress, or not as it was written.
    """
    hint = "go on with the release that wrote it, or remove the file to start from the beginning"
    content = _checked(load(path), path, _PROGRESS_FORMAT, _READ_PROGRESS, "saved progress", hint)
    if CHECKSUM not in content:
        raise Damaged(path, "its checksum is missing")
    kinds = {"metrics": str, "fitted": list, "progress": dict}
    for name, kind in kinds.items():
        if not isinstance(content.get(name), kind):
            raise Damaged(path, f"'{name}' is missing, or of a wrong kind")
    return content


def _checked(content: Any, path: Path, name: str, versions: tuple[int, ...], noun: str, hint: str) -> dict[str, Any]:
    if not isinstance(content, dict) or content.get("format") != name:
        raise Damaged(path)
    if content.get("version") not in versions:
        what = f"{noun} of version {content.get('version')}"
        read = ", ".join(map(str, versions))
        raise DataError(what, where=str(path), hint=f"this release reads version {read}; {hint}")
    return content
