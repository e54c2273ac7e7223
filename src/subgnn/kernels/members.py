"""Draws from node sets."""

from __future__ import annotations

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, sets
from subgnn.kernels.compile import compiled_parallel
from subgnn.kernels.draws import item_keys, open_stream, uniform_below
from subgnn.ragged import Ragged


@compiled_parallel
def _sample_members(values: Array, rows: Array, keys: Array, out: Array) -> None:
    for r in prange(len(rows) - 1):
        state = open_stream(keys[r], 0)
        for i in range(out.shape[1]):
            out[r, i] = values[rows[r] + uniform_below(state, rows[r + 1] - rows[r])]


def sample_members(rows: Ragged, *, draws: int, key: int | Array) -> Array:
    """Draw ``draws`` nodes uniformly, with replacement, from every set; no set may be empty.

    Args:
        key: a stream key, or one key per set (:func:`~subgnn.kernels.draws.node_set_keys`).

    Shapes:
        returns: (sets, draws) int32.
    """
    out = np.empty((len(rows), draws), np.int32)
    _sample_members(*sets(rows), item_keys(key, len(rows)), out)
    return out
