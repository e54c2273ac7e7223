"""Nodes and components left out: what is predicted of the subgraph without them.

The smaller subgraph is prepared anew, with its own anchors drawn by their own rule, so a contribution is exactly the
difference of two predictions. That holds for every method that predicts new subgraphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.inference.predictor import Predictor
from subgnn.kernels import Components, induced_components
from subgnn.ragged import Ragged

_AT_ONCE = 100_000  # nodes of all smaller subgraphs that are prepared together


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """The outputs of a subgraph without each of its nodes and components.

    Shapes:
        nodes: (size, outputs), or None where nothing is left or there is too much to do. components: (C, outputs),
            likewise.
    """

    nodes: NDArray[np.float32] | None
    components: NDArray[np.float32] | None


def components_of(graph: Graph, subgraphs: Ragged) -> list[list[NDArray[np.int32]]]:
    """The components of each subgraph, ordered by their smallest node."""
    found: Components = induced_components(*graph.csr, subgraphs)
    rows = iter(found.nodes)
    return [[next(rows) for _ in range(count)] for count in found.counts]


def left_out(
    predictor: Predictor, subgraphs: Ragged, components: list[list[NDArray[np.int32]]], *, max_nodes: int
) -> list[LeftOut]:
    """Outputs without each node and component, all of them prepared and asked together.

    Args:
        max_nodes: subgraphs with more nodes are asked about without their components alone, and not even that where
            there are more components than this.
    """
    smaller: list[NDArray[np.int32]] = []
    counts = []
    for row, parts in zip(subgraphs, components, strict=True):
        nodes = [np.delete(row, i) for i in range(len(row))] if 1 < len(row) <= max_nodes else []
        wholes = [np.setdiff1d(row, part, assume_unique=True) for part in parts] if 1 < len(parts) <= max_nodes else []
        smaller += nodes + wholes
        counts.append((len(nodes), len(wholes)))
    answers = _outputs(predictor, smaller)
    found = []
    begin = 0
    for nodes_count, components_count in counts:
        middle, end = begin + nodes_count, begin + nodes_count + components_count
        found.append(
            LeftOut(
                answers[begin:middle] if nodes_count else None,
                answers[middle:end] if components_count else None,
            )
        )
        begin = end
    return found


def _outputs(predictor: Predictor, rows: list[NDArray[np.int32]]) -> NDArray[np.float32]:
    """Outputs of many subgraphs; a component of one node and that node leave the same behind, asked about once."""
    first: dict[bytes, int] = {}
    place = [first.setdefault(row.tobytes(), len(first)) for row in rows]
    distinct = [np.frombuffer(key, np.int32) for key in first]
    parts = [predictor.outputs(Ragged.from_rows(some)) for some in _pieces(distinct)]
    joined = np.concatenate([np.empty((0, predictor.checkpoint.num_outputs), np.float32), *parts])
    return joined[place] if place else joined


def _pieces(rows: list[NDArray[np.int32]]) -> Iterator[list[NDArray[np.int32]]]:
    """Consecutive rows, a bounded number of nodes at a time."""
    some: list[NDArray[np.int32]] = []
    total = 0
    for row in rows:
        if some and total + len(row) > _AT_ONCE:
            yield some
            some, total = [], 0
        some.append(row)
        total += len(row)
    if some:
        yield some
