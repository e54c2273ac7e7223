"""What a run keeps: settings, class names, anchors, the graph's hash and the weights; no pickled code."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.anchors import NodeAnchors, PatchAnchors, SharedAnchors
from subgnn.config import Recipe
from subgnn.data.formats.text import appearing
from subgnn.data.subgraphs import Task
from subgnn.errors import DataError
from subgnn.ragged import Ragged
from subgnn.rng import stream_key
from subgnn.settings_file import parse_recipe
from subgnn.topology import Standard

_FORMAT, _VERSION = "subgnn-run", 3
_READ_VERSIONS = (2, 3)  # 2 knows of no baseline to correct
_MEMBER = "member"  # with a number and a dot, before the names of weights of all networks but the first
_PROGRESS_FORMAT, _PROGRESS_VERSION = "subgnn-progress", 2  # 1 has one group of parameters
_DAMAGE = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    zlib.error,
    RuntimeError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
)


class Damaged(DataError):
    """A file that is no checkpoint, or not as it was written."""

    def __init__(self, path: Path) -> None:
        super().__init__("this is no checkpoint, or a damaged one", where=str(path), hint="train again")


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


def save(value: Any, path: Path) -> None:
    """Write tensors and plain values; the file appears whole, and on the disk, or not at all."""
    with appearing(path, overwrite=True) as temporary, temporary.open("wb") as file:
        try:
            torch.save(value, file)
        except RuntimeError as error:
            # PyTorch's writer hides what the disk said behind a complaint of its own.
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            file.flush()
            raise
        file.flush()
        os.fsync(file.fileno())


def load(path: Path) -> Any:
    """Read what :func:`save` wrote; anything but tensors and plain values is refused.

    Raises:
        Damaged: where the file is no checkpoint, or not as it was written.
    """
    try:
        # PyTorch writes a checksum of each part, but does not look at it.
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:
                raise Damaged(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise DataError("no such file", where=str(path), hint="is this the folder of a run?") from None
    except PermissionError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=str(path)) from None
    except (*_DAMAGE, OSError):
        raise Damaged(path) from None


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint."""
    save({"format": _FORMAT, "version": _VERSION, **_pack_checkpoint(checkpoint)}, path)


def _pack_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
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
        "baseline": None if checkpoint.baseline is None else _pack_checkpoint(checkpoint.baseline),
    }


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint."""
    content = _checked(load(path), path, _FORMAT, _READ_VERSIONS, "a checkpoint", "train again")
    return _unpack_checkpoint(content, path)


def _unpack_checkpoint(content: dict[str, Any], path: Path) -> Checkpoint:
    baseline = content.get("baseline")
    return Checkpoint(
        recipe=parse_recipe(json.loads(content["recipe"]), str(path)),
        seed=content["seed"],
        task=cast(Task, content["task"]),
        classes=tuple(content["classes"]),
        graph_hash=content["graph_hash"],
        table_nodes=content["table_nodes"].numpy(),
        shared=_unpack_draw(content["shared"]),
        redrawn=[_unpack_draw(draw) for draw in content["redrawn"]],
        component_keys=content["component_keys"].numpy().view(np.uint64),
        weights=content["weights"],
        standards={name: Standard(a.numpy(), b.numpy()) for name, (a, b) in content["standards"].items()},
        vectors_hash=content["vectors_hash"],
        baseline=None if baseline is None else _unpack_checkpoint(baseline, path),
    )


def _pack_draw(shared: list[list[SharedAnchors | None]]) -> list[list[list[torch.Tensor]]]:
    return [[_pack(anchors) for anchors in layer] for layer in shared]


def _unpack_draw(packed: list[list[list[torch.Tensor]]]) -> list[list[SharedAnchors | None]]:
    return [[_unpack(anchors) for anchors in layer] for layer in packed]


def save_progress(state: dict[str, Any], path: Path) -> None:
    """Write what ``--resume`` needs."""
    save({"format": _PROGRESS_FORMAT, "version": _PROGRESS_VERSION} | state, path)


def load_progress(path: Path) -> dict[str, Any]:
    """Read what :func:`save_progress` wrote."""
    hint = "go on with the release that wrote it, or remove the file to start from the beginning"
    return _checked(load(path), path, _PROGRESS_FORMAT, (_PROGRESS_VERSION,), "saved progress", hint)


def _checked(content: Any, path: Path, name: str, versions: tuple[int, ...], noun: str, hint: str) -> dict[str, Any]:
    if not isinstance(content, dict) or content.get("format") != name:
        raise Damaged(path)
    if content.get("version") not in versions:
        what = f"{noun} of version {content.get('version')}"
        read = " and ".join(map(str, versions))
        raise DataError(what, where=str(path), hint=f"this release reads version {read}; {hint}")
    return content


def _pack(anchors: SharedAnchors | None) -> list[torch.Tensor]:
    if anchors is None:
        return []
    if isinstance(anchors, NodeAnchors):
        return [torch.from_numpy(np.array(anchors.nodes))]
    arrays = (anchors.patches.values, anchors.patches.offsets, anchors.walks.values, anchors.walks.offsets)
    return [torch.from_numpy(np.array(array)) for array in arrays]


def _unpack(tensors: list[torch.Tensor]) -> SharedAnchors | None:
    arrays = [tensor.numpy() for tensor in tensors]
    if not arrays:
        return None
    if len(arrays) == 1:
        return NodeAnchors(arrays[0])
    return PatchAnchors(Ragged(arrays[0], arrays[1]), Ragged(arrays[2], arrays[3]))
