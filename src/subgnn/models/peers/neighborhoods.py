"""Neighbourhoods of subgraphs, side by side, and the edges between their parts.

B_k(S) are the nodes within k hops of S. The neighbourhoods of several subgraphs are kept apart: a node that two of them
share stands in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """B_k(S) of each subgraph.

    Shapes:
        entries: (part,) places in the neighbourhoods, rising. places: (total,) the inverse, -1 for entries beyond k.
    """

    entries: NDArray[np.int64]
    places: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Neighborhoods:
    """B_r(S) of each subgraph, one after the other, nodes rising.

    Shapes:
        keys: (total,) int64, subgraph x N + node, rising. hops: (total,) int64, from the subgraph.
    """

    graph: Graph
    keys: NDArray[np.int64]
    hops: NDArray[np.int64]

    @classmethod
    def of(cls, graph: Graph, subgraphs: Ragged, radius: int) -> Neighborhoods:
        """The neighbourhoods of sorted node sets.

        Example:
            On the path 0 - 1 - 2 - 3:

            >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
            >>> found = Neighborhoods.of(path, Ragged.from_rows([[0], [2]]), 1)
            >>> found.nodes.tolist(), found.hops.tolist()
            ([0, 1, 1, 2, 3], [0, 1, 1, 0, 1])
        """
        keys = subgraphs.row_ids * graph.num_nodes + subgraphs.values
        hops, last = np.zeros(len(keys), np.int64), keys
        for hop in range(1, radius + 1):
            met = np.unique(_neighbor_keys(graph, last)[0])
            last = met[~_contains(keys, met)]
            joined = np.concatenate([keys, last])
            order = np.argsort(joined, kind="stable")
            keys, hops = joined[order], np.concatenate([hops, np.full(len(last), hop)])[order]
        return cls(graph, keys, hops)

    @property
    def nodes(self) -> NDArray[np.int64]:
        """The node of each entry."""
        return self.keys % self.graph.num_nodes

    def within(self, radius: int) -> Part:
        """The entries within a smaller radius."""
        inside = self.hops <= radius
        return Part(np.flatnonzero(inside), np.where(inside, np.cumsum(inside) - 1, -1))

    def edges(self, rows: Part, columns: Part) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """The edges from entries of one part to those of another, none between subgraphs, as CSR arrays.

        Shapes:
            returns: offsets (rows + 1,), places in ``columns``, and places in the neighbours of the graph.
        """
        ends, lengths = _neighbor_keys(self.graph, self.keys[rows.entries])
        at = np.minimum(np.searchsorted(self.keys, ends), max(0, len(self.keys) - 1))
        place = np.where(self.keys[at] == ends, columns.places[at], -1) if len(ends) else at
        there = place >= 0
        counts = np.bincount(np.repeat(np.arange(len(lengths)), lengths), there, len(lengths)).astype(np.int64)
        starts = self.graph.offsets[self.nodes[rows.entries]] - np.cumsum(lengths) + lengths
        entries = np.flatnonzero(there) + np.repeat(starts, lengths)[there]
        return np.concatenate([[0], np.cumsum(counts)]), place[there].astype(np.int32), entries


def _neighbor_keys(graph: Graph, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The neighbours of entries, as keys of the same subgraph, and how many each has."""
    subgraph, nodes = np.divmod(keys, graph.num_nodes)
    found = Ragged(graph.neighbors, graph.offsets).take(nodes)
    return np.repeat(subgraph, found.lengths) * graph.num_nodes + found.values, found.lengths


def _contains(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each of the wanted keys is among sorted ones."""
    at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
    return keys[at] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)
