"""Check that a checkpoint fits its settings and its graph, whichever file it was read from.

Compiled code trusts the node ids and offsets of a checkpoint, and a network is as large as its settings say. So all of
it is compared first: the network is laid out without memory for its weights, and their names, shapes and types must be
those of the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.config.settings import PORTFOLIO
from subgnn.data.graph import Graph
from subgnn.errors import DataError, UserError, excerpt
from subgnn.models.interface import ChannelModel, Model
from subgnn.models.registry import baseline_of, find_model, model_of
from subgnn.models.spec import BASELINE, Checkpoint, ModelSpec
from subgnn.prepare.measure import seen_hash
from subgnn.task import task_of

_OF_RUN = "give the graph the run was trained on"


def check_checkpoint(checkpoint: Checkpoint, graph: Graph, *, where: str, again: str) -> Model:
    """The model of a checkpoint that fits its settings and the graph, as do all the parts it is built of.

    Args:
        graph: undirected.
        where: what the checkpoint was read from.
        again: what to do about one that does not fit.

    Raises:
        DataError: if it does not.
    """
    seen = seen_hash(graph, checkpoint.spec.prepare)
    if seen != checkpoint.spec.graph_hash:
        what = f"the graph is another one ({seen[:12]}, not {checkpoint.spec.graph_hash[:12]})"
        raise DataError(what, where="graph", hint=_OF_RUN)
    if graph.names_hash != checkpoint.spec.names_hash:
        missing = "" if graph.names_hash and checkpoint.spec.names_hash else "graph" if not graph.names_hash else "run"
        what = "the names of the nodes differ from those the run was trained with"
        what += f" (the {missing} has none)" if missing else ""
        raise DataError(what, where="graph", hint=_OF_RUN)
    try:
        problem = next(_problems(checkpoint, graph), None)
    except UserError as error:
        raise DataError(error.what, where=where, hint=f"{again}; {error.hint}" if error.hint else again) from None
    if problem is not None:
        raise DataError(problem, where=where, hint=again)
    for part in checkpoint.parts.values():
        check_checkpoint(part, graph, where=where, again=again)
    return model_of(checkpoint.spec)


def _problems(checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
    """Descriptions of anything wrong; a check may rely on those before it."""
    spec = checkpoint.spec
    model = model_of(spec)
    yield from _wrong_parts(checkpoint)
    sizes = [len(spec.shared), len(spec.redrawn), len(spec.table_nodes), len(spec.component_keys)]
    if not isinstance(model, ChannelModel) and any(sizes):
        yield "it has anchors or tables, and its model has none"
    yield from _wrong_nodes(spec, graph.num_nodes)
    yield from _wrong_standards(spec, model.standards(spec, graph))
    given = model.uses_embeddings(spec) and spec.embeddings.source != "random"
    if bool(spec.vectors_hash) != given:
        yield "it names node embeddings that its recipe does not use, or none where its recipe does"
    labelled = spec.task != "unlabelled" or model.vectors_need_labels
    if spec.num_outputs < labelled or (task_of(spec.task).real and spec.classes):
        yield f"it has {len(spec.classes)} classes, and its task is {spec.task}"
    if checkpoint.held_members != spec.members:
        yield f"it holds {checkpoint.held_members} networks, and its recipe says {spec.members}"
    for name, weight in checkpoint.weights.items():
        if weight.is_floating_point() and not bool(torch.isfinite(weight).all()):
            yield f"its weights {name!r} are not finite"
    for i in range(spec.members):
        yield from _wrong_weights(checkpoint, model, graph, i)
    yield from model.problems(checkpoint, graph)


def _wrong_parts(checkpoint: Checkpoint) -> Iterator[str]:
    """Parts other than those that the settings need."""
    spec, parts = checkpoint.spec, checkpoint.parts
    methods = {name: part.spec.method for name, part in parts.items()}
    if spec.method == PORTFOLIO:
        if not parts:
            yield "it is built of other models, and holds none"
        for name, method in methods.items():
            if method == PORTFOLIO or not find_model(method).predicts_new_subgraphs:
                yield f"its member {excerpt(name)} is a model of the kind {method}, which is not accepted"
    elif methods != ({} if baseline_of(spec) is None else {BASELINE: spec.model.baseline}):
        yield "the baseline that it corrects is missing or another one, or one that is not needed is there"
    for name, part in parts.items():
        if (part.spec.task, part.spec.classes) != (spec.task, spec.classes):
            yield f"its part {excerpt(name)} has another task or other classes"


def _wrong_nodes(spec: ModelSpec, num_nodes: int) -> Iterator[str]:
    """Nodes that the graph does not have."""
    parts: list[NDArray[Any]] = [spec.table_nodes]
    for draw in (spec.shared, *spec.redrawn):
        for anchors in (anchors for row in draw for anchors in row if anchors is not None):
            parts += [array for name, array in anchors.arrays.items() if not name.endswith("offsets")]
    for nodes in parts:
        outside = nodes[(nodes < 0) | (nodes >= num_nodes)]
        if len(outside):
            yield f"it holds a node that is not in the graph ({outside[0]}; ids run 0..{num_nodes - 1})"
    if bool((spec.table_nodes[1:] <= spec.table_nodes[:-1]).any()):
        yield "the nodes of its table are not in order"


def _wrong_standards(spec: ModelSpec, widths: dict[str, int]) -> Iterator[str]:
    """Means and deviations other than those that the settings need."""
    if task_of(spec.task).real:
        widths = widths | {"target": 1}
    for name in sorted(widths.keys() ^ spec.standards.keys()):
        yield f"the mean and deviation {name!r} are " + ("missing" if name in widths else "unknown")
    for name, standard in spec.standards.items():
        mean, deviation, shape = standard.mean, standard.deviation, (widths[name],)
        if (mean.shape, deviation.shape) != (shape, shape):
            yield f"the mean and deviation {name!r} are not {widths[name]} numbers"
        if not np.isfinite(mean).all() or not ((deviation > 0) & np.isfinite(deviation)).all():
            yield f"the mean and deviation {name!r} are not finite, or not above 0"


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
    for name, weight in weights.items():
        if (weight.shape, weight.dtype) != (expected[name].shape, expected[name].dtype):
            found, needed = (
                f"{str(w.dtype).removeprefix('torch.')} {tuple(w.shape)}" for w in (weight, expected[name])
            )
            yield f"its weights do not fit its recipe ({name!r} is {found}, not {needed})"
