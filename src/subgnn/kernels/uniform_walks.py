"""Simple random walks from the nodes of sets: every step is uniform over the neighbours of the last node."""

from __future__ import annotations

import numpy as np

from subgnn.kernels.arrays import Array, Csr, Sets, compiled_parallel, csr, frozen, sets
from subgnn.kernels.draws import open_stream, uniform_below
from subgnn.ragged import Ragged


@compiled_parallel
def _walk_from_members(begin: int, end: int, graph: Csr, family: Sets, keys: Array, out: Array) -> None:
    offsets, neighbors = graph
    values, rows = family
    for r in range(begin, end):
        for i in range(rows[r], rows[r + 1]):
            for w in range(out.shape[1]):
                state = open_stream(keys[r], (i - rows[r]) * out.shape[1] + w)
                node = values[i]
                for t in range(out.shape[2]):
                    lo, hi = offsets[node], offsets[node + 1]
                    if lo < hi:
                        node = neighbors[lo + uniform_below(state, hi - lo)]
                    out[i, w, t] = node


def walk_from_members(offsets: Array, neighbors: Array, rows: Ragged, *, walks: int, length: int, keys: Array) -> Array:
    """Walks of ``length`` steps from each node of every set; a walk that cannot go on stays where it is.

    Args:
        rows: node sets.
        keys: one for each set (:func:`~subgnn.kernels.draws.node_set_keys`).

    Shapes:
        keys: (sets,) uint64. returns: (total, walks, length) int32, the nodes after each step.
    """
    out = np.empty((len(rows.values), walks, length), np.int32)
    _walk_from_members(len(rows), csr(offsets, neighbors), sets(rows), frozen(keys, np.uint64), out)
    return out
