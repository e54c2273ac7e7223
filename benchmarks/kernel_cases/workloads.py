"""The graphs and node sets that everything is timed on, drawn from a seed, and the graphs as other packages hold them.

Graphs are drawn as Chung and Lu do: each end of an edge is node i with probability proportional to (i + 10)^(-2/3), so
degrees follow a power law of exponent 2.5 and there are hubs; ids are then shuffled, so that hubs stand anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.kernels.walks import graph_walks
from subgnn.ragged import Ragged
from subgnn.rng import stream, stream_key

SMALL, LARGE = (17_000, 317_000), (1_000_000, 5_000_000)
NUM_SOURCES, NUM_TARGETS = 200, 300
NUM_SUBGRAPHS, SUBGRAPH_SIZE, STRAYS = 2_000, 20, 8
NUM_PATCHES, PATCH_WALK = 200, 50
_SHIFT = 10.0
_TRIES = 20


def draw_edges(num_nodes: int, num_edges: int, seed: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Exactly ``num_edges`` different edges without self loops, in random order."""
    rng = stream(seed, f"benchmark/graph/{num_nodes}")
    low, high = _SHIFT ** (1 / 3), (num_nodes + _SHIFT) ** (1 / 3)
    pairs = np.empty(0, np.int64)
    while len(pairs) < num_edges:
        # The cube inverts the cumulative distribution, so no table is searched.
        ends = ((low + (high - low) * rng.random((2, num_edges + num_edges // 8))) ** 3 - _SHIFT).astype(np.int64)
        np.clip(ends, 0, num_nodes - 1, out=ends)
        tails, heads = ends.min(axis=0), ends.max(axis=0)
        pairs = np.concatenate([pairs, (tails * num_nodes + heads)[tails != heads]])
        pairs.sort()
        pairs = pairs[np.concatenate([[True], pairs[1:] != pairs[:-1]])]
    pairs = rng.permutation(pairs)[:num_edges]
    ids = rng.permutation(num_nodes).astype(np.int32)
    return ids[pairs // num_nodes], ids[pairs % num_nodes]


def draw_graph(num_nodes: int, num_edges: int, seed: int) -> Graph:
    return Graph.from_edges(*draw_edges(num_nodes, num_edges, seed), num_nodes=num_nodes)


@dataclass(slots=True, eq=False)
class Rivals:
    """The same graph in the forms other packages want, each made on first use."""

    graph: Graph
    _made: dict[str, Any] = field(default_factory=dict)

    def networkx(self) -> Any:
        """A ``networkx.Graph``."""
        if "networkx" not in self._made:
            import networkx

            made = networkx.empty_graph(self.graph.num_nodes)
            tails, heads, _ = self.graph.edges()
            made.add_edges_from(zip(tails.tolist(), heads.tolist(), strict=True))
            self._made["networkx"] = made
        return self._made["networkx"]

    def scipy(self) -> Any:
        """The adjacency matrix, with the 32-bit indices that scipy's graph routines work on."""
        if "scipy" not in self._made:
            from scipy.sparse import csr_array

            ones = np.ones(len(self.graph.neighbors))
            index = self.graph.neighbors, self.graph.offsets.astype(np.int32)
            self._made["scipy"] = csr_array((ones, *index), shape=(self.graph.num_nodes,) * 2)
        return self._made["scipy"]

    def igraph(self) -> Any:
        """An ``igraph.Graph``."""
        if "igraph" not in self._made:
            import igraph

            tails, heads, _ = self.graph.edges()
            self._made["igraph"] = igraph.Graph(self.graph.num_nodes, np.stack([tails, heads], axis=1))
        return self._made["igraph"]


@dataclass(eq=False)
class Workload:
    """A graph and the node sets of the tasks."""

    name: str
    graph: Graph
    seed: int

    @cached_property
    def rivals(self) -> Rivals:
        """The graph as other packages hold it."""
        return Rivals(self.graph)

    @property
    def is_large(self) -> bool:
        """Whether slow rivals are timed on a few items alone."""
        return self.graph.num_nodes > SMALL[0]

    def part(self, small: int, large: int) -> int:
        """How many items a slow rival is timed on."""
        return large if self.is_large else small

    @cached_property
    def sources(self) -> NDArray[np.int64]:
        """200 different nodes to search from."""
        return self.draw("sources", NUM_SOURCES)

    @cached_property
    def targets(self) -> NDArray[np.int64]:
        """300 different nodes to read off."""
        return self.draw("targets", NUM_TARGETS)

    @cached_property
    def components(self) -> Ragged:
        """Sets of 20 nodes, each grown from a random node along random edges."""
        rng = self._stream("components")
        return Ragged.from_rows([self._grow(rng) for _ in range(NUM_SUBGRAPHS)])

    @cached_property
    def subgraphs(self) -> Ragged:
        """The same sets, but eight nodes of every other one moved to random places."""
        rng = self._stream("subgraphs")
        rows = list(self.components)
        for i in range(0, len(rows), 2):
            kept = rng.choice(rows[i], SUBGRAPH_SIZE - STRAYS, replace=False).tolist()
            rows[i] = self._fill(set(kept), rng)
        return Ragged.from_rows(rows)

    @cached_property
    def patches(self) -> Ragged:
        """The different nodes of triangular walks of 50."""
        walks = graph_walks(
            *self.graph.csr, walks=NUM_PATCHES, length=PATCH_WALK, beta=0.5, key=stream_key(self.seed, "patches")
        )
        return Ragged.from_rows([np.unique(walk) for walk in walks])

    def draw(self, name: str, count: int, *, among: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Different nodes, or different members of ``among``, where there are that many."""
        pool = np.arange(self.graph.num_nodes) if among is None else among
        return self._stream(name).choice(pool, count, replace=count > len(pool))

    def _stream(self, name: str) -> np.random.Generator:
        return stream(self.seed, f"benchmark/{self.name}/{name}")

    def _grow(self, rng: np.random.Generator) -> list[int]:
        start = int(rng.integers(self.graph.num_nodes))
        nodes = [start]
        for _ in range(_TRIES * SUBGRAPH_SIZE):
            neighbors = self.graph.neighbors_of(nodes[int(rng.integers(len(nodes)))])
            if len(neighbors):
                candidate = int(neighbors[int(rng.integers(len(neighbors)))])
                if candidate not in nodes:
                    nodes.append(candidate)
            if len(nodes) == SUBGRAPH_SIZE:
                break
        return self._fill(set(nodes), rng)

    def _fill(self, nodes: set[int], rng: np.random.Generator) -> list[int]:
        while len(nodes) < SUBGRAPH_SIZE:
            nodes.add(int(rng.integers(self.graph.num_nodes)))
        return sorted(nodes)
