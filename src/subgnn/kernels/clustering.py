"""Local clustering: the fraction of a node's pairs of neighbours that are joined, 0 where it has fewer than two.

Each triangle is found once, from its end of lowest degree, so a hub is never compared with a hub.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, csr, frozen, sets
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.kernels.induced import induced_csr
from subgnn.ragged import Ragged


@compiled
def _orient(offsets: Array, neighbors: Array) -> tuple[Array, Array]:
    """Every edge once, from the end of lower degree, ties by id: no row is then longer than sqrt(2 |E|)."""
    n = len(offsets) - 1
    starts, heads = np.zeros(n + 1, np.int64), np.empty(len(neighbors) // 2, np.int32)
    count = 0
    for v in range(n):
        degree = offsets[v + 1] - offsets[v]
        for e in range(offsets[v], offsets[v + 1]):
            u = neighbors[e]
            other = offsets[u + 1] - offsets[u]
            if degree < other or (degree == other and v < u):
                heads[count] = u
                count += 1
        starts[v + 1] = count
    return starts, heads


@compiled
def _count_triangles(starts: Array, heads: Array, begin: int, end: int, triangles: Array) -> None:
    """Add the triangles whose lowest node is in ``begin..end-1`` to the counts of their three nodes."""
    mark = np.full(len(starts) - 1, -1, np.int32)
    for v in range(begin, end):
        for e in range(starts[v], starts[v + 1]):
            mark[heads[e]] = v
        for e in range(starts[v], starts[v + 1]):
            u = heads[e]
            for f in range(starts[u], starts[u + 1]):
                if mark[heads[f]] == v:
                    triangles[v] += 1
                    triangles[u] += 1
                    triangles[heads[f]] += 1


@compiled
def _fractions(offsets: Array, triangles: Array, out: Array) -> None:
    for v in range(len(out)):
        degree = offsets[v + 1] - offsets[v]
        if degree > 1:
            out[v] = 2 * triangles[v] / (degree * (degree - 1))


@compiled_parallel
def _clustering(offsets: Array, neighbors: Array, bounds: Array, triangles: Array, out: Array) -> None:
    starts, heads = _orient(offsets, neighbors)
    for chunk in prange(len(bounds) - 1):
        _count_triangles(starts, heads, bounds[chunk], bounds[chunk + 1], triangles[chunk])
    _fractions(offsets, triangles.sum(axis=0), out)


@compiled_parallel
def _induced_clustering(offsets: Array, neighbors: Array, values: Array, rows: Array, out: Array) -> None:
    for s in prange(len(rows) - 1):
        local_offsets, local_neighbors = induced_csr(offsets, neighbors, values[rows[s] : rows[s + 1]])
        starts, heads = _orient(local_offsets, local_neighbors)
        triangles = np.zeros(len(local_offsets) - 1, np.int64)
        _count_triangles(starts, heads, 0, len(triangles), triangles)
        _fractions(local_offsets, triangles, out[rows[s] : rows[s + 1]])


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
    chunks = numba.get_num_threads()
    bounds = frozen(np.linspace(0, len(out), chunks + 1).round(), np.int64)
    _clustering(*csr(offsets, neighbors), bounds, np.zeros((chunks, len(out)), np.int64), out)
    return out


def induced_clustering(offsets: Array, neighbors: Array, subgraphs: Ragged) -> Ragged:
    """Clustering inside every induced subgraph, laid out as its nodes, float64."""
    values, rows = sets(subgraphs)
    out = np.zeros(len(values), np.float64)
    _induced_clustering(*csr(offsets, neighbors), values, rows, out)
    return Ragged(out, subgraphs.offsets)
