"""Contributions of nodes and components: predictions of the subgraph without each of them.

The smaller subgraph is prepared anew, with its own anchors drawn by their own rule, so a contribution is exactly the
difference of two predictions. That holds for every model that predicts new subgraphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.explain.explanation import ComponentContribution, NodeContribution, Values, names_of, to_values
from subgnn.inference.predictor import Predictor
from subgnn.kernels import induced_components
from subgnn.ragged import Ragged
from subgnn.task import task_of

_BATCH_NODES = 100_000  # nodes of the smaller subgraphs that are prepared together

Nodes = NDArray[np.int32]
Outputs = NDArray[np.float32]
Compare = Callable[[Outputs, Outputs], list[dict[str, Values]]]
"""Contributions from the output of a subgraph (outputs,) and those without each item (items, outputs)."""


def components_of(graph: Graph, subgraphs: Ragged) -> list[list[Nodes]]:
    """The components of each subgraph, ordered by their smallest node."""
    found = induced_components(*graph.csr, subgraphs)
    rows = iter(found.nodes)
    return [[next(rows) for _ in range(count)] for count in found.counts]


def target_scale(predictor: Predictor) -> float:
    """Factor that turns differences of outputs into the labels' unit: the deviation of real-valued targets, else 1."""
    target = predictor.checkpoint.spec.standards.get("target")
    return 1.0 if target is None else float(target.deviation[0])


def differences(predictor: Predictor, whole: Outputs, without: Outputs) -> list[dict[str, Values]]:
    """``contributions`` and ``probability_changes`` of each item that was left out or masked.

    Shapes:
        whole: (outputs,). without: (items, outputs).
    """
    logits = (whole - without) * target_scale(predictor)
    if task_of(predictor.checkpoint.spec.task).real:
        return [{"contributions": to_values(row)} for row in logits]
    changes = predictor.scores(whole[None]) - predictor.scores(without)
    return [
        {"contributions": to_values(row), "probability_changes": to_values(change)}
        for row, change in zip(logits, changes, strict=True)
    ]


def leave_one_out(
    predictor: Predictor, subgraphs: Ragged, components: Sequence[Sequence[Nodes]], *, whole: Outputs, max_nodes: int
) -> list[tuple[tuple[NodeContribution, ...], tuple[ComponentContribution, ...]]]:
    """Contributions of the nodes (by id) and components of each subgraph; all smaller subgraphs are predicted together.

    Args:
        max_nodes: subgraphs with more nodes have no contributions of nodes, and those with more components have none
            of components. Nor has a subgraph of one node or component.

    Shapes:
        whole: (subgraphs, outputs).
    """
    smaller: list[Nodes] = []
    counts = []
    for row, parts in zip(subgraphs, components, strict=True):
        nodes = [np.delete(row, i) for i in range(len(row))] if 1 < len(row) <= max_nodes else []
        rest = [np.setdiff1d(row, part, assume_unique=True) for part in parts] if 1 < len(parts) <= max_nodes else []
        smaller += nodes + rest
        counts.append((len(nodes), len(rest)))
    outputs = iter(_outputs(predictor, smaller))
    graph, found = predictor.graph, []
    for parts, output, (num_nodes, num_components) in zip(components, whole, counts, strict=True):
        without = np.array([next(outputs) for _ in range(num_nodes + num_components)]).reshape(-1, len(output))
        numbers = differences(predictor, output, without)
        component = {int(node): c for c, nodes in enumerate(parts) for node in nodes}
        by_node = tuple(
            NodeContribution(node, names_of(graph, [node])[0], component[node], **n)
            for node, n in zip(sorted(component), numbers[:num_nodes], strict=False)
        )
        by_component = tuple(
            ComponentContribution(c, tuple(nodes.tolist()), names_of(graph, nodes.tolist()), **n)
            for c, (nodes, n) in enumerate(zip(parts, numbers[num_nodes:], strict=False))
        )
        found.append((by_node, by_component))
    return found


def _outputs(predictor: Predictor, rows: list[Nodes]) -> Outputs:
    """Outputs of subgraphs, each computed once: a node alone and its component leave the same subgraph behind."""
    first: dict[bytes, int] = {}
    place = [first.setdefault(row.tobytes(), len(first)) for row in rows]
    distinct = Ragged.from_rows(np.frombuffer(key, np.int32) for key in first)
    parts = [predictor.outputs(batch) for batch in distinct.batches(_BATCH_NODES)]
    joined = np.concatenate([np.empty((0, predictor.checkpoint.spec.num_outputs), np.float32), *parts])
    return joined[place] if place else joined
