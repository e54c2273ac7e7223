"""Core numbers: the largest k such that a node belongs to a subgraph whose nodes all have k neighbours inside it."""

from __future__ import annotations

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, csr, sets
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.kernels.induced import induced_csr
from subgnn.ragged import Ragged


@compiled
def _peel(offsets: Array, neighbors: Array, core: Array) -> None:
    """Remove nodes by rising degree, in time linear in the edges (Batagelj and Zaversnik, 2003)."""
    n = len(offsets) - 1
    highest = 0
    for v in range(n):
        core[v] = offsets[v + 1] - offsets[v]
        highest = max(highest, core[v])
    first = np.zeros(highest + 2, np.int64)  # first[d]: where nodes of degree d begin in `order`
    for v in range(n):
        first[core[v] + 1] += 1
    for d in range(highest + 1):
        first[d + 1] += first[d]
    order, place = np.empty(n, np.int32), np.empty(n, np.int64)
    fill = first.copy()
    for v in range(n):
        place[v] = fill[core[v]]
        order[place[v]] = v
        fill[core[v]] += 1
    for i in range(n):
        v = order[i]
        for e in range(offsets[v], offsets[v + 1]):
            u = neighbors[e]
            if core[u] > core[v]:
                # Swap u with the first node of its degree, then shrink that degree's block by one.
                d = core[u]
                w = order[first[d]]
                if u != w:
                    order[place[u]], order[first[d]] = w, u
                    place[w], place[u] = place[u], first[d]
                first[d] += 1
                core[u] -= 1


@compiled_parallel
def _induced_core_numbers(offsets: Array, neighbors: Array, values: Array, rows: Array, out: Array) -> None:
    for s in prange(len(rows) - 1):
        local_offsets, local_neighbors = induced_csr(offsets, neighbors, values[rows[s] : rows[s + 1]])
        _peel(local_offsets, local_neighbors, out[rows[s] : rows[s + 1]])


def core_numbers(offsets: Array, neighbors: Array) -> Array:
    """Core number of every node.

    Shapes:
        returns: (N,) int64.

    Example:
        A triangle 0, 1, 2 with a tail 2 - 3.

        >>> core_numbers(np.array([0, 2, 4, 7, 8]), np.array([1, 2, 0, 2, 0, 1, 3, 2])).tolist()
        [2, 2, 2, 1]
    """
    core = np.zeros(len(offsets) - 1, np.int64)
    _peel(*csr(offsets, neighbors), core)
    return core


def induced_core_numbers(offsets: Array, neighbors: Array, subgraphs: Ragged) -> Ragged:
    """Core numbers inside every induced subgraph, laid out as its nodes, int64."""
    values, rows = sets(subgraphs)
    out = np.zeros(len(values), np.int64)
    _induced_core_numbers(*csr(offsets, neighbors), values, rows, out)
    return Ragged(out, subgraphs.offsets)
