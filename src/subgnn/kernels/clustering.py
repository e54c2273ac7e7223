"""Local clustering: the fraction of a node's pairs of neighbours that are joined, 0 where it has fewer than two."""

from __future__ import annotations

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, csr, sets
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.kernels.induced import induced_csr
from subgnn.ragged import Ragged


@compiled
def _common(neighbors: Array, a: int, a_end: int, b: int, b_end: int) -> int:
    """How many values two sorted stretches share."""
    count = 0
    while a < a_end and b < b_end:
        if neighbors[a] < neighbors[b]:
            a += 1
        elif neighbors[a] > neighbors[b]:
            b += 1
        else:
            count += 1
            a += 1
            b += 1
    return count


@compiled
def _node_clustering(offsets: Array, neighbors: Array, v: int) -> float:
    degree = offsets[v + 1] - offsets[v]
    if degree < 2:
        return 0.0
    links = 0  # each joined pair is met from both of its ends
    for e in range(offsets[v], offsets[v + 1]):
        u = neighbors[e]
        links += _common(neighbors, offsets[v], offsets[v + 1], offsets[u], offsets[u + 1])
    return links / (degree * (degree - 1))


@compiled_parallel
def _clustering(offsets: Array, neighbors: Array, out: Array) -> None:
    for v in prange(len(out)):
        out[v] = _node_clustering(offsets, neighbors, v)


@compiled_parallel
def _induced_clustering(offsets: Array, neighbors: Array, values: Array, rows: Array, out: Array) -> None:
    for s in prange(len(rows) - 1):
        local_offsets, local_neighbors = induced_csr(offsets, neighbors, values[rows[s] : rows[s + 1]])
        for i in range(rows[s + 1] - rows[s]):
            out[rows[s] + i] = _node_clustering(local_offsets, local_neighbors, i)


def clustering(offsets: Array, neighbors: Array) -> Array:
    """Clustering of every node of an undirected graph.

    Shapes:
        returns: (N,) float64.

    Example:
        A triangle 0, 1, 2 with a tail 2 - 3.

        >>> clustering(np.array([0, 2, 4, 7, 8]), np.array([1, 2, 0, 2, 0, 1, 3, 2])).round(3).tolist()
        [1.0, 1.0, 0.333, 0.0]
    """
    out = np.zeros(len(offsets) - 1, np.float64)
    _clustering(*csr(offsets, neighbors), out)
    return out


def induced_clustering(offsets: Array, neighbors: Array, subgraphs: Ragged) -> Ragged:
    """Clustering inside every induced subgraph, laid out as its nodes, float64."""
    values, rows = sets(subgraphs)
    out = np.zeros(len(values), np.float64)
    _induced_clustering(*csr(offsets, neighbors), values, rows, out)
    return Ragged(out, subgraphs.offsets)
