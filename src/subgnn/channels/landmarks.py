"""Upper bounds of hop distances by landmarks.

For landmarks L, d(u, a) <= min over l in L of d(u, l) + d(l, a): exact where a shortest path passes a landmark. The
landmarks are the nodes with most neighbours, which in graphs with hubs many shortest paths do pass (Potamias et al.,
2009). They are a function of the graph alone.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.kernels import hop_distances
from subgnn.kernels.arrays import Array, compiled_parallel, frozen
from subgnn.kernels.nearby_distances import UNBOUNDED


def landmark_nodes(graph: Graph, count: int) -> NDArray[np.int32]:
    """The nodes with most neighbours, of equals those with smaller ids.

    Example:
        >>> landmark_nodes(Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 3]), 2).tolist()
        [2, 0]
    """
    degrees = np.diff(graph.offsets)
    count = min(count, len(degrees))
    if not count:
        return np.empty(0, np.int32)
    least = np.partition(degrees, len(degrees) - count)[len(degrees) - count]
    some = np.flatnonzero(degrees >= least)
    return some[np.argsort(-degrees[some], kind="stable")][:count].astype(np.int32)


@compiled_parallel
def _least_detour(table: Array, left: Array, right: Array, out: Array) -> None:
    for i in prange(len(left)):
        for k in range(table.shape[1]):
            there, back = table[left[i], k], table[right[i], k]
            if there >= 0 and back >= 0 and there + back < out[i]:
                out[i] = there + back


def landmark_hops(
    graph: Graph, left: NDArray[np.int32], right: NDArray[np.int32], landmarks: NDArray[np.int32]
) -> NDArray[np.int32]:
    """An upper bound of the distance of each pair of nodes; ``UNBOUNDED`` where no landmark reaches both.

    Shapes:
        left, right: (pairs,). returns: (pairs,) int32.
    """
    nodes, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    table = hop_distances(*graph.csr, landmarks, nodes).T  # (nodes, landmarks), contiguous
    out = np.full(len(left), UNBOUNDED, np.int32)
    split = np.split(places.reshape(-1), 2)
    _least_detour(frozen(table, np.int32), frozen(split[0], np.int64), frozen(split[1], np.int64), out)
    return out
