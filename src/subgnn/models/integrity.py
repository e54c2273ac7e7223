"""Check that a checkpoint fits its settings and its graph, whichever file it was read from.

Compiled code trusts the node ids and offsets of a checkpoint, and a network is as large as its settings say. So all of
it is compared first: the network is laid out without memory for its weights, and their names, shapes and types must be
those of the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.channels.topology import NODE_SET_STATISTICS
from subgnn.data.graph import Graph
from subgnn.embeddings.sources import require_features
from subgnn.errors import DataError
from subgnn.models.registry import METHODS
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn.streaming import build_streamed_model
from subgnn.prepare.measure import seen_hash


def check_checkpoint(checkpoint: Checkpoint, graph: Graph, *, where: str, again: str) -> None:
    """Raise :class:`DataError` unless a checkpoint fits its settings and the graph.

    Args:
        graph: undirected.
        where: what it was read from.
        again: what to do about one that does not fit.
    """
    seen = seen_hash(graph, checkpoint.spec.prepare)
    if seen != checkpoint.spec.graph_hash:
        what = f"the graph is another one ({seen[:12]}, not {checkpoint.spec.graph_hash[:12]})"
        raise DataError(what, where="graph", hint="give the graph the run was trained on")
    for part in (checkpoint, checkpoint.baseline):
        problem = None if part is None else next(_problems(part, graph), None)
        if problem is not None:
            raise DataError(problem, where=where, hint=again)


def _problems(checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
    """What is wrong; a check may rely on those before it."""
    recipe = checkpoint.spec
    network = recipe.method == "subgnn"
    if len(recipe.shared) != (recipe.model.layers if network else 0):
        yield f"its number of layers is {len(recipe.shared)}"
    if 1 + len(recipe.redrawn) != (recipe.prepare.draws if network and recipe.prepare.ensemble else 1):
        yield f"its number of draws is {1 + len(recipe.redrawn)}"
    if (checkpoint.baseline is None) != (not network or recipe.model.baseline == "none"):
        yield "the baseline that it corrects is missing, or one that is not needed is there"
    yield from _wrong_nodes(checkpoint, graph.num_nodes)
    yield from _wrong_standards(checkpoint, graph)
    keys = checkpoint.spec.component_keys
    if bool((keys[1:] <= keys[:-1]).any()):
        yield "the keys of its components are not in order"
    if len(keys) and not (recipe.method == "subgnn" and recipe.model.trainable_components):
        yield "it has offsets of components, and its recipe none"
    if checkpoint.spec.vectors_hash and recipe.embeddings.source == "random":
        yield "it names node embeddings, and its recipe random ones"
    if (checkpoint.spec.num_outputs < 1) or (checkpoint.spec.task == "regression" and checkpoint.spec.classes):
        yield f"it has {len(checkpoint.spec.classes)} classes, and its task is {checkpoint.spec.task}"
    if checkpoint.held_members != checkpoint.spec.members:
        yield f"it holds {checkpoint.held_members} networks, and its recipe says {checkpoint.spec.members}"
    for name, weight in checkpoint.weights.items():
        if weight.is_floating_point() and not bool(torch.isfinite(weight).all()):
            yield f"its weights {name!r} are not finite"
    for i in range(checkpoint.spec.members):
        yield from _wrong_weights(checkpoint, i)
    if recipe.method != "subgnn":
        yield from METHODS[recipe.method].problems(checkpoint, graph.num_nodes)


def _wrong_nodes(checkpoint: Checkpoint, num_nodes: int) -> Iterator[str]:
    """Nodes that the graph does not have."""
    parts: list[NDArray[Any]] = [checkpoint.spec.table_nodes]
    for draw in (checkpoint.spec.shared, *checkpoint.spec.redrawn):
        for anchors in (anchors for row in draw for anchors in row if anchors is not None):
            parts += anchors.nodes_used
    for nodes in parts:
        outside = nodes[(nodes < 0) | (nodes >= num_nodes)]
        if len(outside):
            yield f"it holds a node that is not in the graph ({outside[0]}; ids run 0..{num_nodes - 1})"
    table = checkpoint.spec.table_nodes
    if bool((table[1:] <= table[:-1]).any()):
        yield "the nodes of its table are not in order"


def _wrong_standards(checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
    """Means and deviations other than those that the settings ask for."""
    recipe = checkpoint.spec
    widths: dict[str, int] = {}
    if recipe.method == "subgnn" and recipe.model.topology:
        widths |= {"component": NODE_SET_STATISTICS, "subgraph": NODE_SET_STATISTICS}
    if recipe.method == "subgnn" and recipe.embeddings.features != "none":
        require_features(graph)
        widths["feature"] = np.asarray(graph.features).shape[1]
    if checkpoint.spec.task == "regression":
        widths["target"] = 1
    for name in sorted(widths.keys() ^ checkpoint.spec.standards.keys()):
        yield f"the mean and deviation {name!r} are " + ("missing" if name in widths else "unknown")
    for name, standard in checkpoint.spec.standards.items():
        shape = (widths[name],)
        if (standard.mean.shape, standard.deviation.shape) != (shape, shape):
            yield f"the mean and deviation {name!r} are not {widths[name]} numbers"
        if (
            not np.isfinite(standard.mean).all()
            or not ((standard.deviation > 0) & np.isfinite(standard.deviation)).all()
        ):
            yield f"the mean and deviation {name!r} are not finite, or not above 0"


def _wrong_weights(checkpoint: Checkpoint, i: int) -> Iterator[str]:
    """Weights of one network with other names, shapes or types than the settings make."""
    try:
        weights = checkpoint.member(i).weights
        expected = _expected(checkpoint, weights)
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


def _expected(checkpoint: Checkpoint, weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights as the settings make them, without memory for their numbers."""
    recipe = checkpoint.spec
    with torch.device("meta"):
        if recipe.method != "subgnn":
            # What a baseline knew before training makes part of its shapes; its own check is for that.
            empty = {name: weight.to("meta") for name, weight in weights.items()}
            return METHODS[recipe.method].module(replace(checkpoint, weights=empty)).state_dict()
        nothing: list[Any] = [[None for _ in row] for row in checkpoint.spec.shared]
        found = build_streamed_model(
            replace(checkpoint, spec=replace(recipe, shared=nothing, redrawn=[]), weights={}), None
        ).state_dict()
        embedded = recipe.embeddings.features != "instead"
        # Frozen embeddings of many nodes are drawn or read again, and not kept.
        if embedded and (recipe.embeddings.trainable or "table" in weights):
            found["table"] = torch.empty(len(checkpoint.spec.table_nodes), recipe.embeddings.dim)
    return {name: value for name, value in found.items() if not name.startswith("anchors.")}
