"""Distances by the lengths of shortest paths, where the weight of an edge says how long it is; beyond the paper.

The length of an edge is its weight or one over it (``prepare.edge_length``), in units of the mean over the graph, so
that a distance is comparable to a number of hops. An edge of weight 0 is not there. Paths are found by Dijkstra's
algorithm from the anchors, some at a time: a search takes O(E log N), whereas hops of 64 anchors take one search.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.channels.channel import Work
from subgnn.config.settings import PrepareSettings
from subgnn.data.graph import Graph
from subgnn.errors import UserError
from subgnn.parallel.memory import share
from subgnn.ragged import Ragged

_NUMBERS_AT_ONCE = 32_000_000


def check_lengths(graph: Graph, settings: PrepareSettings) -> None:
    """Raise :class:`UserError` where edges cannot have lengths: without weights, or with one below 0."""
    where, what = "prepare.edge_length", f"it is {settings.edge_length!r}"
    if graph.weights is None:
        hint = "set it to one, or give edges weights"
        raise UserError(f"{what}, and the edges have no weights", where=where, hint=hint)
    if settings.own_hops == "bounded":
        hint = "bounds hold for hops alone: set prepare.own_hops=exact or prepare.edge_length=one"
        raise UserError(f"{what}, and prepare.own_hops is bounded", where=where, hint=hint)
    lowest = float(graph.weights.min(initial=0))
    if lowest < 0:
        hint = "no path is shorter than its parts: make all weights 0 or more, or set it to one"
        raise UserError(f"{what}, and an edge has the weight {lowest:g}", where=where, hint=hint)


@lru_cache(maxsize=2)
def length_matrix(graph: Graph, edge_length: str, directed: bool) -> Any:
    """Edges as they are followed from anchors back to components, with their lengths; a scipy CSR array (N, N)."""
    there = graph.oriented.reverse() if directed and graph.oriented is not None else graph
    weights = np.asarray(there.weights, np.float64)
    kept = weights > 0
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[there.offsets]
    lengths = weights[kept] if edge_length == "weight" else 1 / weights[kept]
    lengths /= lengths.mean() if len(lengths) else 1.0
    # A length that is too small for a float would be an edge that is not there.
    lengths = np.maximum(lengths, np.finfo(np.float64).tiny)
    return scipy.sparse.csr_array((lengths, there.neighbors[kept], offsets), shape=(there.num_nodes,) * 2)


def shared_lengths(
    work: Work, components: Ragged, sources: NDArray[np.int32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Distance of each component to each source, and the fraction of its nodes that reach it.

    Shapes:
        sources: (S,). returns: both (C, S) float32.
    """
    distance, reached = (np.empty((len(components), len(sources)), np.float32) for _ in range(2))
    for anchor, lengths in _searches(work, np.unique(sources)):
        found = _reduced(lengths[components.values], components)
        for column in np.flatnonzero(sources == anchor):
            distance[:, column], reached[:, column] = found
    return distance, reached


def own_lengths(work: Work, components: Ragged, wanted: Ragged) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Distance of each component to its wanted nodes, and the fraction of its nodes that reach them.

    Args:
        wanted: a row for each component.

    Shapes:
        returns: both (wanted nodes in all,) float32.
    """
    distance, reached = (np.zeros(len(wanted.values), np.float32) for _ in range(2))
    order, owner = np.argsort(wanted.values, kind="stable"), wanted.row_ids
    anchors, first = np.unique(wanted.values[order], return_index=True)
    ends = np.append(first, len(order))
    for i, (_, lengths) in enumerate(_searches(work, anchors)):
        slots = order[ends[i] : ends[i + 1]]
        rows = components.take(owner[slots])
        found = _reduced(lengths[rows.values], rows)
        distance[slots], reached[slots] = found
    return distance, reached


def _searches(work: Work, anchors: NDArray[np.int32]) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Each anchor, and the lengths of the shortest paths to it from all nodes (N,); infinite where there is none."""
    matrix = length_matrix(work.graph, work.settings.edge_length, work.settings.directed)
    most = max(1, min(_NUMBERS_AT_ONCE, share(0.1) // 8) // max(1, work.graph.num_nodes))
    for part in work.pieces(len(anchors), step=1, most=most, what="lengths of paths to anchors"):
        yield from zip(
            anchors[part].tolist(),
            scipy.sparse.csgraph.dijkstra(matrix, directed=True, indices=anchors[part]),
            strict=True,
        )


def _reduced(lengths: NDArray[np.float64], rows: Ragged) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean length of each row over the nodes that reach the anchor, and their fraction; 0 if none does."""
    finite = np.isfinite(lengths)
    counts = np.bincount(rows.row_ids[finite], minlength=len(rows))
    found = np.bincount(rows.row_ids[finite], lengths[finite], len(rows)) / np.maximum(counts, 1)
    return np.where(counts > 0, found, 0.0), counts / np.maximum(rows.lengths, 1)
