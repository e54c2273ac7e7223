"""Edges inside subgraphs, set to a wanted number."""

from __future__ import annotations

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.synthetic.base_graphs import stream_word
from subgnn.data.synthetic.edits import with_edges
from subgnn.data.synthetic.labels import spread_targets
from subgnn.kernels import shapes
from subgnn.kernels.arrays import Array, csr, frozen, sets
from subgnn.kernels.compile import compiled
from subgnn.kernels.draws import open_stream, uniform_below
from subgnn.kernels.induced import contains
from subgnn.ragged import Ragged


@compiled
def _choose(
    offsets: Array, neighbors: Array, values: Array, rows: Array, wanted: Array, key: np.uint64, room: int
) -> tuple[Array, Array, Array]:
    """Pairs of nodes whose edge is to be added (sign 1) or removed (sign -1)."""
    tails, heads, signs = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int8)
    count = 0
    for s in range(len(rows) - 1):
        state = open_stream(key, s)
        members = values[rows[s] : rows[s + 1]]
        size = len(members)
        pairs = size * (size - 1) // 2
        # Pairs with an edge are gathered from the front, those without from the back.
        first, second = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
        present, absent = 0, 0
        for i in range(size):
            for j in range(i + 1, size):
                u, v = members[i], members[j]
                if contains(neighbors, offsets[u], offsets[u + 1], v):
                    at = present
                    present += 1
                else:
                    absent += 1
                    at = pairs - absent
                first[at], second[at] = u, v
        sign = 1 if present < wanted[s] else -1
        lo = present if sign == 1 else 0
        left = absent if sign == 1 else present
        for _ in range(abs(wanted[s] - present)):
            j = lo + uniform_below(state, left)
            left -= 1
            tails[count], heads[count], signs[count] = first[j], second[j], sign
            first[j], second[j] = first[lo + left], second[lo + left]
            count += 1
    return tails[:count], heads[:count], signs[:count]


def set_inside_edges(graph: Graph, subgraphs: Ragged, wanted: Array, rng: np.random.Generator) -> Graph:
    """The graph in which subgraph i has ``wanted[i]`` edges inside: pairs drawn at random gain or lose their edge.

    Any two subgraphs may share one node at most.

    Example:
        >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> g = set_inside_edges(path, Ragged.from_rows([[0, 1, 2]]), np.array([3]), np.random.default_rng(0))
        >>> g.neighbors_of(0).tolist(), g.num_edges
        ([1, 2], 4)
    """
    room = int(np.abs(wanted - shapes(*graph.csr, subgraphs).edges).sum())
    tails, heads, signs = _choose(*csr(*graph.csr), *sets(subgraphs), frozen(wanted, np.int64), stream_word(rng), room)
    gains, loses = signs > 0, signs < 0
    return with_edges(graph, tails[gains], heads[gains], removed=(tails[loses], heads[loses]))


def density_targets(size: int, low: float, high: float, *, count: int, bins: int) -> Array:
    """Edges inside subgraphs of ``size`` nodes for densities spread evenly over a range; rising, no bins share one.

    Example:
        >>> density_targets(5, 0.2, 0.9, count=4, bins=2).tolist()
        [2, 5, 6, 9]
    """
    pairs = size * (size - 1) // 2
    return spread_targets(round(low * pairs), round(high * pairs), count=count, bins=bins, where="density")
