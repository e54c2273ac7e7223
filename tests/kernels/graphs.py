"""Small random graphs of every awkward kind, and node sets of them, for the oracles to agree with."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from subgnn.ragged import Ragged

Edge = tuple[int, int]

# The first example of a test waits for the compiler, so there is no deadline.
many = settings(max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=False)


@dataclass(frozen=True)
class SmallGraph:
    """Nodes 0..num_nodes - 1 and edges written once each; for a directed graph, from tail to head."""

    num_nodes: int
    edges: tuple[Edge, ...]
    directed: bool = False

    @cached_property
    def networkx(self) -> Any:
        graph = nx.DiGraph() if self.directed else nx.Graph()
        graph.add_nodes_from(range(self.num_nodes))
        graph.add_edges_from(self.edges)
        return graph

    @cached_property
    def csr(self) -> tuple[np.ndarray, np.ndarray]:
        return self._rows(self.edges if self.directed else [*self.edges, *((v, u) for u, v in self.edges)])

    @cached_property
    def reverse(self) -> tuple[np.ndarray, np.ndarray]:
        """The in-edges of a directed graph."""
        return self._rows((v, u) for u, v in self.edges)

    def _rows(self, edges: Iterable[Edge]) -> tuple[np.ndarray, np.ndarray]:
        rows: list[set[int]] = [set() for _ in range(self.num_nodes)]
        for u, v in edges:
            rows[u].add(v)
        ragged = Ragged.from_rows([sorted(row) for row in rows])
        return ragged.offsets, ragged.values


def _random(n: int, p: float, rng: np.random.Generator) -> list[Edge]:
    tails, heads = np.triu_indices(n, k=1)
    kept = rng.random(len(tails)) < p
    return list(zip(tails[kept].tolist(), heads[kept].tolist(), strict=True))


def _cliques(n: int, rng: np.random.Generator) -> list[Edge]:
    """Disjoint cliques; those of one node are isolated."""
    group = rng.integers(0, max(1, n // 3), n).tolist()
    return [(u, v) for u, v in combinations(range(n), 2) if group[u] == group[v]]


def _hub(n: int, rng: np.random.Generator) -> list[Edge]:
    """A node joined to most of a sparse graph."""
    return [*((0, v) for v in range(1, n) if rng.random() < 0.8), *_random(n, 1.0 / n, rng)]


FAMILIES: dict[str, Callable[[int, np.random.Generator], list[Edge]]] = {
    "empty": lambda n, _: [],
    "path": lambda n, _: [(v, v + 1) for v in range(n - 1)],
    "cycle": lambda n, _: [(v, (v + 1) % n) for v in range(n)] if n > 2 else [],
    "star": lambda n, _: [(0, v) for v in range(1, n)],
    "complete": lambda n, _: list(combinations(range(n), 2)),
    "cliques": _cliques,
    "hub": _hub,
    "sparse": lambda n, rng: _random(n, 1.3 / n, rng),
    "dense": lambda n, rng: _random(n, 0.4, rng),
}


def make_graph(family: str, num_nodes: int, seed: int, *, directed: bool = False) -> SmallGraph:
    """A graph of a family, its nodes renamed at random; a directed one has each edge one way, the other, or both."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(num_nodes).tolist()
    edges = {tuple(sorted((names[u], names[v]))) for u, v in FAMILIES[family](num_nodes, rng)}
    if directed:
        ways = {edge: int(rng.integers(0, 3)) for edge in sorted(edges)}
        edges = {e for e, way in ways.items() if way != 1} | {e[::-1] for e, way in ways.items() if way != 0}
    return SmallGraph(num_nodes, tuple(sorted(edges)), directed)


def make_sets(graph: SmallGraph, seed: int) -> list[list[int]]:
    """Node sets in a random order: all nodes, none, one node, a component of the graph, a ball, and random ones."""
    rng = np.random.default_rng(seed)
    nodes = np.arange(graph.num_nodes)
    root, centre = (int(v) for v in rng.integers(graph.num_nodes, size=2))
    sets = [
        nodes.tolist(),
        [],
        [int(rng.integers(graph.num_nodes))],
        nx.node_connected_component(graph.networkx, root),
        nx.single_source_shortest_path_length(graph.networkx, centre, cutoff=int(rng.integers(1, 3))),
        *(nodes[rng.random(graph.num_nodes) < p] for p in (0.1, 0.3, 0.6, 0.9)),
    ]
    return [sorted(int(v) for v in sets[i]) for i in rng.permutation(len(sets))]


_seeds = st.integers(0, 2**32 - 1)


@st.composite
def graphs(draw: st.DrawFn, *, max_nodes: int = 48, directed: bool = False) -> SmallGraph:
    """A graph of any family, of one node at least."""
    family, num_nodes = draw(st.sampled_from(sorted(FAMILIES))), draw(st.integers(1, max_nodes))
    return make_graph(family, num_nodes, draw(_seeds), directed=directed)


@st.composite
def graphs_with_sets(draw: st.DrawFn, *, max_nodes: int = 48) -> tuple[SmallGraph, list[list[int]]]:
    """An undirected graph and some of its node sets."""
    graph = draw(graphs(max_nodes=max_nodes))
    sets = make_sets(graph, draw(_seeds))
    return graph, sets[: draw(st.integers(0, len(sets)))]


def lists(ragged: Ragged) -> list[list[Any]]:
    """Rows as lists, to be compared and printed."""
    return [row.tolist() for row in ragged]


def ragged(rows: Sequence[Sequence[Any]], dtype: Any = np.int32) -> Ragged:
    """Lists as rows."""
    return Ragged.from_rows(rows, dtype)
