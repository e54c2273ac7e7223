"""Files of checkpoints: named arrays, and everything else as JSON; nothing in them is pickled code.

A run's folder has a checkpoint of its own, and an exported run holds one among other parts; :func:`unpack` reads both.
A checkpoint that is built of others holds them as parts: an object of names in the JSON, and the arrays of part i under
``parts.i.``.

Whether a checkpoint fits its settings and its graph is checked before it is opened (:func:`check_checkpoint`): compiled
code trusts its node ids and offsets, and a network is as large as its settings say. The network is laid out without
memory for its weights, and their names, shapes and types must be those of the checkpoint.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import OwnAnchors, SharedAnchors, named_arrays
from subgnn.channels.table import channel_of
from subgnn.config.settings import PORTFOLIO, ChannelSettings
from subgnn.data.graph import Graph
from subgnn.errors import DataError, UserError, excerpt
from subgnn.metrics.coverage import HeldOutScores
from subgnn.metrics.thresholds import Decision
from subgnn.models.interface import ChannelModel, Model
from subgnn.models.novelty import Novelty
from subgnn.models.recipes import parse_recipe
from subgnn.models.registry import baseline_of, find_model, model_of
from subgnn.models.spec import BASELINE, Checkpoint, ModelSpec, Weights, settings_of
from subgnn.ragged import Ragged
from subgnn.result import plain_values
from subgnn.storage.arrays import Arrays, Format, encode_arrays, read_arrays, write_parts
from subgnn.task import TASKS, Standard, TaskName, task_of

_CHECKPOINT = Format(
    "subgnn-checkpoint", "checkpoint", "is this a file of a run? subgnn train writes one", "train again"
)
_MAX_PARTS, _MAX_DEPTH = 64, 3
_STANDARDS = ("component", "subgraph", "target", "feature")
_HELD_OUT = ("scores", "labels", "offsets")
_COPIED = {"seed": int, "task": str, "graph_hash": str, "names_hash": str, "vectors_hash": str}
_PLAIN = (*_COPIED, "recipe", "classes", "layers", "parts", "decision")
_MAX_SHOWN = 120

WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading raises where a part is missing or of a wrong kind."""


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint, atomically."""
    arrays, content = pack(checkpoint)
    write_parts(path, encode_arrays(arrays, _CHECKPOINT, content), overwrite=True)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint."""
    file = read_arrays(path, _CHECKPOINT)
    return unpack(file.arrays, file.content(), where=str(path), noun="the checkpoint", again=_CHECKPOINT.again)


def broken(noun: str, error: Exception, *, where: str, again: str) -> DataError:
    """The error for a checkpoint, in either form, that is incomplete or malformed."""
    why = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
    why = why.encode("unicode_escape").decode()[:_MAX_SHOWN]
    return DataError(f"{noun} is incomplete or malformed ({why})", where=where, hint=again)


def pack(checkpoint: Checkpoint) -> tuple[Arrays, dict[str, Any]]:
    """Arrays by name, and everything else as values that JSON can hold."""
    spec = checkpoint.spec
    # Keys are written as int64, which the layout knows.
    arrays: Arrays = {"table_nodes": spec.table_nodes, "component_keys": spec.component_keys.view(np.int64)}
    arrays |= {f"weights.{name}": np.asarray(value) for name, value in checkpoint.weights.items()}
    parts: dict[str, Any] = {"standards": spec.standards, "held_out": spec.held_out, "novelty": spec.novelty}
    for name, part in (parts | {"anchors": spec.shared}).items():
        arrays |= named_arrays(part, name)
    content: dict[str, Any] = {
        "recipe": spec.recipe(),
        "classes": list(spec.classes),
        "layers": len(spec.shared),
        "parts": {},
        **{name: getattr(spec, name) for name in _COPIED},
    } | ({} if spec.decision is None else {"decision": plain_values(spec.decision)})
    for i, (name, part) in enumerate(checkpoint.parts.items()):
        of_part, content["parts"][name] = pack(part)
        arrays |= {f"parts.{i}.{of}": array for of, array in of_part.items()}
    return arrays, content


def unpack(arrays: Mapping[str, NDArray[Any]], content: Any, *, where: str, noun: str, again: str) -> Checkpoint:
    """The checkpoint that :func:`pack` packed; ``noun`` and ``again`` are the kind of file and a repair, for errors."""
    try:
        return _unpack(dict(arrays), content, where)
    except WRONG as error:
        raise broken(noun, error, where=where, again=again) from None
    except UserError as error:
        raise _refused(error, where, again) from None


def _refused(error: UserError, where: str, again: str) -> DataError:
    return DataError(error.what, where=where, hint=f"{again}; {error.hint}" if error.hint else again)


def _unpack(arrays: Arrays, content: Mapping[str, Any], where: str, *, depth: int = 0) -> Checkpoint:
    """As :func:`unpack`; takes what it reads out of ``arrays``."""
    if depth == _MAX_DEPTH:
        raise ValueError(f"parts are nested {depth} deep")
    recipe = parse_recipe(_of_type(content, "recipe", dict), where)
    copied = {name: _of_type(content, name, kind) for name, kind in _COPIED.items()}
    task, classes = copied["task"], _of_type(content, "classes", list)
    if task not in TASKS:
        raise ValueError(f"task is {task!r}")
    if not all(isinstance(name, str) for name in classes) or len(set(classes)) < len(classes):
        raise ValueError("class names are not distinct")
    layers = _of_type(content, "layers", int)
    # Before lists of them are made; which of the two a model has is its own to check.
    if layers not in (0, recipe.model.layers):
        raise ValueError(f"layers is {layers}")

    def anchors(prefix: str, channel: ChannelSettings) -> SharedAnchors | None:
        def take(name: str, dtype: Any) -> NDArray[Any]:
            return _vector(arrays, prefix + name, dtype)

        kind = channel_of(channel).anchors
        return None if issubclass(kind, OwnAnchors) else kind.from_arrays(take, channel.num_anchors)

    table_nodes = _vector(arrays, "table_nodes", np.int32)
    component_keys = _vector(arrays, "component_keys", np.int64).view(np.uint64)
    shared = [[anchors(f"anchors.{i}.{c}.", one) for c, one in enumerate(recipe.channels)] for i in range(layers)]
    standards = {}
    for name in _STANDARDS:
        if f"standards.{name}.mean" in arrays:
            pair = [_vector(arrays, f"standards.{name}.{part}", np.float64) for part in ("mean", "deviation")]
            standards[name] = Standard(*pair)
    held_out = novelty = decision = None
    if "held_out.scores" in arrays:
        held_out = HeldOutScores(*(arrays.pop(f"held_out.{name}") for name in _HELD_OUT))
    if "novelty.distances" in arrays:
        rows = Ragged(*(arrays.pop(f"novelty.references.{name}") for name in ("values", "offsets")))
        novelty = Novelty(rows, arrays.pop("novelty.distances"))
    parts, packed_parts = {}, _of_type(content, "parts", dict)
    if len(packed_parts) > _MAX_PARTS:
        raise ValueError(f"it has {len(packed_parts)} parts; at most {_MAX_PARTS} are allowed")
    for i, (name, packed) in enumerate(packed_parts.items()):
        prefix = f"parts.{i}."
        part = {of.removeprefix(prefix): arrays.pop(of) for of in list(arrays) if of.startswith(prefix)}
        parts[name] = _unpack(part, packed, where, depth=depth + 1)
    names = [name for name in arrays if name.startswith("weights.")]
    weights: Weights = {name.removeprefix("weights."): np.array(arrays.pop(name)) for name in names}
    if find_model(recipe.method).uses_tensors(recipe):
        import torch

        weights = {name: torch.from_numpy(array) for name, array in weights.items()}
    unknown = sorted([*arrays, *(name for name in content if name not in _PLAIN)])
    if unknown:
        raise ValueError(f"unknown part {unknown[0]!r}")
    if "decision" in content:
        decision = Decision.from_json(content["decision"], tuple(classes), cast(TaskName, task))
    spec = ModelSpec(
        classes=tuple(classes),
        table_nodes=table_nodes,
        shared=shared,
        component_keys=component_keys,
        standards=standards,
        members=recipe.training.members,
        decision=decision,
        held_out=held_out,
        novelty=novelty,
        **copied,
        **settings_of(recipe),
    )
    return Checkpoint(spec, weights, parts)


def _vector(arrays: Arrays, name: str, dtype: Any) -> NDArray[Any]:
    array = arrays.pop(name)
    if array.dtype != dtype or array.ndim != 1:
        raise TypeError(f"{name} is {array.dtype} of {array.ndim} dimensions")
    return array


def _of_type(content: Mapping[str, Any], name: str, kind: type) -> Any:
    value = content[name]
    if type(value) is not kind:
        raise TypeError(f"{name} is {type(value).__name__}")
    return value


_OF_RUN = "give the original graph; to answer on this one, give it with --graph"


def check_checkpoint(checkpoint: Checkpoint, graph: Graph, *, where: str, again: str) -> Model:
    """The model of a checkpoint, if it and all its parts fit their settings and the undirected graph.

    ``where`` is what the checkpoint was read from, and ``again`` what to do about one that does not fit.
    """
    if graph.content_hash != checkpoint.spec.graph_hash:
        hashes = f"hash {graph.content_hash[:12]}, expected {checkpoint.spec.graph_hash[:12]}"
        what = f"this is not the graph that the run was trained on ({hashes})"
        raise DataError(what, where="graph", hint=_OF_RUN)
    if graph.names_hash != checkpoint.spec.names_hash:
        missing = "" if graph.names_hash and checkpoint.spec.names_hash else "graph" if not graph.names_hash else "run"
        what = "the names of the nodes differ from those the run was trained with"
        what += f" (the {missing} has none)" if missing else ""
        raise DataError(what, where="graph", hint=_OF_RUN)
    try:
        problem = next(_problems(checkpoint, graph), None)
    except UserError as error:
        raise _refused(error, where, again) from None
    if problem is not None:
        raise DataError(problem, where=where, hint=again)
    for part in checkpoint.parts.values():
        check_checkpoint(part, graph, where=where, again=again)
    return model_of(checkpoint.spec)


def _problems(checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
    """Descriptions of anything wrong; a check may rely on those before it."""
    spec = checkpoint.spec
    model = model_of(spec)
    methods = {name: part.spec.method for name, part in checkpoint.parts.items()}
    if spec.method == PORTFOLIO:
        if not methods:
            yield "it should consist of other models, but holds none"
        for name, method in methods.items():
            if method == PORTFOLIO or not find_model(method).predicts_new_subgraphs:
                yield f"its member {excerpt(name)} is a model of the kind {method}, which is not accepted"
    elif methods != ({} if baseline_of(spec) is None else {BASELINE: spec.model.baseline}):
        yield "the baseline that it corrects is missing, wrong or not needed"
    for name, part in checkpoint.parts.items():
        if (part.spec.task, part.spec.classes) != (spec.task, spec.classes):
            yield f"its part {excerpt(name)} has a different task or different classes"
    sizes = [len(spec.shared), len(spec.table_nodes), len(spec.component_keys)]
    if not isinstance(model, ChannelModel) and any(sizes):
        yield "it has anchors or tables, but its model has none"
    anchors = [array for name, array in named_arrays(spec.shared, "").items() if not name.endswith("offsets")]
    for nodes in (spec.table_nodes, *anchors):
        outside = nodes[(nodes < 0) | (nodes >= graph.num_nodes)]
        if len(outside):
            yield f"it holds a node that is not in the graph ({outside[0]}; ids run 0..{graph.num_nodes - 1})"
    if bool((spec.table_nodes[1:] <= spec.table_nodes[:-1]).any()):
        yield "the nodes of its table are not in order"
    widths = model.standards(spec, graph) | ({"target": 1} if task_of(spec.task).real else {})
    for name in sorted(widths.keys() ^ spec.standards.keys()):
        yield f"the mean and deviation {name!r} are " + ("missing" if name in widths else "unknown")
    for name, standard in spec.standards.items():
        mean, deviation, shape = standard.mean, standard.deviation, (widths[name],)
        if (mean.shape, deviation.shape) != (shape, shape):
            yield f"the mean and deviation {name!r} are not {widths[name]} numbers"
        if not np.isfinite(mean).all() or not ((deviation > 0) & np.isfinite(deviation)).all():
            yield f"the mean and deviation {name!r} are not finite, or not above 0"
    given = model.uses_embeddings(spec) and spec.embeddings.source != "random"
    if bool(spec.vectors_hash) != given:
        yield "it names node embeddings that its recipe does not use, or none where its recipe does"
    labelled = spec.task != "unlabelled" or model.vectors_need_labels
    if spec.num_outputs < labelled or (task_of(spec.task).real and spec.classes):
        yield f"it has {len(spec.classes)} classes, but its task is {spec.task}"
    if checkpoint.held_members != spec.members:
        yield f"it holds {checkpoint.held_members} networks, but its recipe says {spec.members}"
    for name, weight in checkpoint.weights.items():
        if not np.isfinite(np.asarray(weight)).all():
            yield f"its weights {name!r} are not finite"
    yield from () if spec.held_out is None else spec.held_out.problems(spec.num_outputs)
    yield from () if spec.novelty is None else spec.novelty.problems(graph.num_nodes)
    for i in range(spec.members):
        yield from _wrong_weights(checkpoint, model, graph, i)
    yield from model.problems(checkpoint, graph)


def _wrong_weights(checkpoint: Checkpoint, model: Model, graph: Graph, i: int) -> Iterator[str]:
    """Weights of one network with other names, shapes or types than the settings make."""
    try:
        member = checkpoint.member(i)
        weights, expected = member.weights, model.expected_weights(member, graph)
    except (ArithmeticError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
        # PyTorch refuses sizes that no memory could have.
        yield "its weights do not fit its recipe"
        return
    for name in sorted(expected.keys() ^ weights.keys()):
        yield f"its weights do not fit its recipe ({name!r} is {'missing' if name in expected else 'unknown'})"
    for name, own in weights.items():
        if (own.shape, own.dtype) != (expected[name].shape, expected[name].dtype):
            found, needed = (f"{str(w.dtype).removeprefix('torch.')} {tuple(w.shape)}" for w in (own, expected[name]))
            yield f"its weights do not fit its recipe ({name!r} is {found}, not {needed})"
