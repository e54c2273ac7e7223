"""The border nodes that most of a node set leads to, each with its weight.

A node u of the 1-hop border of c has the weight

    w_cu = d_u^-b  sum over v in c with v ~ u of d_v^-a

d the degrees in G: with a = 1, b = 0 it is what arrives at u when every node of c hands out one unit, in equal shares,
to its neighbours. So a neighbour of many nodes of c counts more than one of few, and one of a hub next to nothing.

Weights are ranked in single precision, relative to the heaviest: sums that are equal but for the order of their terms
are ties, whatever that order was.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from subgnn.kernels.arrays import Array, csr, sets
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.kernels.induced import contains
from subgnn.ragged import Ragged

BYTES_AN_EDGE = 48
"""What a thread takes for each edge of the nodes of the set it has, at the most."""


def heaviest_borders(
    offsets: NDArray[np.int64], neighbors: NDArray[np.int32], rows: Ragged, *, most: int, giving: float, taking: float
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The heaviest nodes of every set's 1-hop border, heaviest first, of equal ones that with the lower number first.

    Args:
        offsets, neighbors: of an undirected graph.
        rows: node sets, sorted.
        most: how many to keep, 1 at least.
        giving, taking: the powers a and b, from 0 to 4: beyond, all weights of a border could vanish.

    Shapes:
        returns: (C, most) nodes, and their weights with rows of length one; where a border has fewer, the last of them
        stands again with weight 0, and where it has none, node 0.

    Example:
        On the path 0 - 1 - 2 - 3, the border of {1} is {0, 2}, of one neighbour and of two.

        >>> path = np.array([0, 1, 3, 5, 6]), np.array([1, 0, 2, 1, 3, 2])
        >>> nodes, weights = heaviest_borders(*path, Ragged.from_rows([[1]]), most=3, giving=1, taking=1)
        >>> nodes.tolist(), weights.astype(float).round(3).tolist()
        ([[0, 2, 2]], [[0.894, 0.447, 0.0]])
    """
    nodes = np.zeros((len(rows), most), np.int32)
    weights = np.zeros((len(rows), most), np.float32)
    _heaviest(*csr(offsets, neighbors), *sets(rows), float(giving), float(taking), nodes, weights)
    return nodes, weights


@compiled
def _weigh(offsets: Array, neighbors: Array, members: Array, giving: float, taking: float) -> tuple[Array, Array]:
    """The nodes of a border, in rising order, and their weights."""
    room = 0
    for v in members:
        room += offsets[v + 1] - offsets[v]
    found, shares = np.empty(room, np.int32), np.empty(room, np.float64)
    count = 0
    for v in members:
        share = float(offsets[v + 1] - offsets[v]) ** -giving
        for e in range(offsets[v], offsets[v + 1]):
            if not contains(members, 0, len(members), neighbors[e]):
                found[count], shares[count] = neighbors[e], share
                count += 1
    order = np.argsort(found[:count], kind="mergesort")
    nodes, weights = np.empty(count, np.int32), np.empty(count, np.float64)
    distinct = 0
    for i in order:
        if distinct == 0 or nodes[distinct - 1] != found[i]:
            nodes[distinct], weights[distinct] = found[i], 0.0
            distinct += 1
        weights[distinct - 1] += shares[i]
    for i in range(distinct):
        weights[i] *= float(offsets[nodes[i] + 1] - offsets[nodes[i]]) ** -taking
    return nodes[:distinct], weights[:distinct]


@compiled
def _keep(nodes: Array, weights: Array, out_nodes: Array, out_weights: Array) -> None:
    """Put the heaviest first, and fill what is left with the last of them."""
    relative = (weights / weights.max()).astype(np.float32).astype(np.float64)
    order = np.argsort(-relative, kind="mergesort")[: len(out_nodes)]
    length = np.sqrt(np.sum(relative[order] ** 2))
    out_nodes[:] = nodes[order[-1]]
    for k in range(len(order)):
        out_nodes[k], out_weights[k] = nodes[order[k]], relative[order[k]] / length


@compiled_parallel
def _heaviest(
    offsets: Array,
    neighbors: Array,
    values: Array,
    rows: Array,
    giving: float,
    taking: float,
    out_nodes: Array,
    out_weights: Array,
) -> None:
    for c in prange(len(rows) - 1):
        nodes, weights = _weigh(offsets, neighbors, values[rows[c] : rows[c + 1]], giving, taking)
        if len(nodes) > 0:
            _keep(nodes, weights, out_nodes[c], out_weights[c])
