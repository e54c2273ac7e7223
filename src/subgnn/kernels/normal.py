"""Random vectors of nodes, a function of the node and a key alone."""

from __future__ import annotations

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, frozen
from subgnn.kernels.compile import compiled_parallel
from subgnn.kernels.draws import open_stream, uniform_unit


@compiled_parallel
def _normal_rows(key: np.uint64, nodes: Array, out: Array) -> None:
    for i in prange(len(nodes)):
        state = open_stream(key, nodes[i])
        for j in range(0, out.shape[1], 2):
            # Box and Muller: two uniform numbers give two normal ones.
            radius = np.sqrt(-2.0 * np.log(1.0 - uniform_unit(state)))
            angle = 2.0 * np.pi * uniform_unit(state)
            out[i, j] = radius * np.cos(angle)
            if j + 1 < out.shape[1]:
                out[i, j + 1] = radius * np.sin(angle)


def normal_rows(key: int, nodes: Array, dim: int) -> Array:
    """Standard normal vectors; a node has the same one in whatever company it is asked for.

    Shapes:
        nodes: (n,). returns: (n, dim) float32.
    """
    out = np.empty((len(nodes), dim), np.float32)
    _normal_rows(np.uint64(key), frozen(nodes, np.int64), out)
    return out
