"""Disjoint sites to plant on, of nodes of like degree.

The paper's table gives CORENESS a cut ratio that spreads as wide as its mean: subgraphs differ in the degree of their
nodes, and the nodes of one are alike.
"""

from __future__ import annotations

import numpy as np

from subgnn.data.graph import Graph
from subgnn.kernels.arrays import Array


class DegreeBlocks:
    """Nodes in rows of like degree; a row becomes a site once it holds both ends of an edge.

    Args:
        graph: the base graph, without isolated nodes.
        size: nodes of a row; nodes beyond the last full row are only exchanged.
        rng: where the draws come from.
        mixing: spread of the noise on the logarithm of the degree, by which nodes are ordered.
    """

    def __init__(self, graph: Graph, size: int, rng: np.random.Generator, *, mixing: float) -> None:
        degree = np.log(np.diff(graph.offsets))
        order = np.argsort(degree + mixing * rng.standard_normal(len(degree)), kind="stable")
        self._graph, self._rng, self._size = graph, rng, size
        self._order = order
        self._place = np.empty(len(order), np.int64)
        self._place[order] = np.arange(len(order))
        self._used = np.zeros(len(order) // self._size + 1, np.bool_)

    def __len__(self) -> int:
        return len(self._order) // self._size

    def site(self, block: int) -> Array | None:
        """The nodes of a row, the first two joined by an edge; one node is exchanged with another row if need be."""
        begin = block * self._size
        members = self._order[begin : begin + self._size]
        for node in self._rng.permutation(members):
            near = self._rng.permutation(self._graph.neighbors_of(int(node)))
            rows = self._place[near] // self._size
            here, elsewhere = near[rows == block], near[(rows != block) & ~self._used[rows]]
            if len(here):
                return self._ordered(members, int(node), int(here[0]))
            if len(elsewhere):
                partner = int(elsewhere[0])
                self._exchange(int(self._rng.choice(members[members != node])), partner)
                return self._ordered(members, int(node), partner)
        return None

    def settle(self, block: int) -> None:
        """Keep the nodes of a row where they are from now on."""
        self._used[block] = True

    def _exchange(self, first: int, second: int) -> None:
        a, b = self._place[first], self._place[second]
        self._order[a], self._order[b] = second, first
        self._place[first], self._place[second] = b, a

    def _ordered(self, members: Array, first: int, second: int) -> Array:
        rest = self._rng.permutation(members[(members != first) & (members != second)])
        return np.concatenate([[first, second], rest])
