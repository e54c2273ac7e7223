"""Triangular walks against their transition probabilities."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.draws import node_set_keys
from subgnn.kernels.walks import border_walks, graph_walks, inside_walks
from subgnn.ragged import Ragged
from tests.kernels.chance import LEAST_P, p_value, uniform
from tests.kernels.graphs import SmallGraph, graphs, graphs_with_sets, lists, make_graph, many, ragged


@dataclass(frozen=True)
class Law:
    """How a triangular walk moves over the allowed nodes of a graph, from a uniform one of its starts."""

    graph: SmallGraph
    allowed: frozenset[int]
    starts: frozenset[int]
    beta: float

    @cached_property
    def near(self) -> dict[int, set[int]]:
        """Allowed neighbours; for a directed graph, where its edges lead."""
        return {v: set(self.graph.networkx.adj[v]) & self.allowed for v in range(self.graph.num_nodes)}

    def second(self, x: int) -> dict[int, float]:
        """The distribution of X_1 after X_0 = x; empty where the walk ends."""
        return uniform(self.near[x])

    def after(self, x: int, y: int) -> dict[int, float]:
        """The distribution of the node after x and y; empty where the walk ends."""
        closing, opening = self.near[y] & self.near[x], self.near[y] - self.near[x]
        if not closing or not opening:
            return uniform(closing | opening)
        chances = {z: self.beta / len(closing) for z in closing} | {z: (1 - self.beta) / len(opening) for z in opening}
        return {z: chance for z, chance in chances.items() if chance > 0}

    def step(self, before: list[int]) -> dict[int, float]:
        """The distribution of the node after all those before."""
        if not before:
            return uniform(self.starts)
        return self.second(before[0]) if len(before) == 1 else self.after(*before[-2:])

    def permits(self, walk: list[int], length: int) -> bool:
        """Whether every step has a chance, and the walk ends at ``length`` nodes or where it must."""
        steps = all(node in self.step(walk[:t]) for t, node in enumerate(walk))
        return steps and (len(walk) == length or not self.step(walk))


def graph_law(graph: SmallGraph, beta: float) -> Law:
    """Over the whole graph."""
    everyone = frozenset(range(graph.num_nodes))
    return Law(graph, everyone, everyone, beta)


def inside_law(graph: SmallGraph, patch: list[int], beta: float) -> Law:
    """Inside a patch."""
    return Law(graph, frozenset(patch), frozenset(patch), beta)


def border_law(graph: SmallGraph, patch: list[int], hops: int, beta: float) -> Law:
    """From the patch's border nodes, over them and the nodes outside within ``hops`` of the patch."""
    starts = frozenset(v for v in patch if set(graph.networkx.adj[v]) - set(patch))
    near = nx.multi_source_dijkstra_path_length(graph.networkx, patch, cutoff=hops) if patch else {}
    return Law(graph, starts | (set(near) - set(patch)), starts, beta)


BETAS = [0.0, 0.3, 0.65, 1.0]
WALKS = 40_000


def windmill(blades: int) -> SmallGraph:
    """Triangles around node 0: a neighbour of the hub has one neighbour in common with it, of 2 * blades."""
    pairs = [(2 * i + 1, 2 * i + 2) for i in range(blades)]
    return SmallGraph(2 * blades + 1, tuple([(0, v) for pair in pairs for v in pair] + pairs))


def with_tails(graph: SmallGraph) -> SmallGraph:
    """Every node gets a neighbour of degree one, numbered after all nodes."""
    n = graph.num_nodes
    return SmallGraph(2 * n, graph.edges + tuple((v, n + v) for v in range(n)))


DENSE = make_graph("dense", 14, seed=3)
GRID = SmallGraph(16, tuple([(v, v + 1) for v in range(16) if v % 4 < 3] + [(v, v + 4) for v in range(12)]))
# Node 1 and the hub have node 2 in common, and the hub 198 neighbours more.
HUB = SmallGraph(201, tuple([(0, v) for v in range(1, 201)] + [(1, 2)]))
# From the middle of a star two nodes lead out of it.
STAR = SmallGraph(203, tuple([(0, v) for v in range(1, 203)] + [(201, 202)]))


def assert_follows(law: Law, drawn: Ragged, length: int) -> None:
    """Compare where walks start, their second nodes and every later step with the law."""
    assert set(drawn.lengths.tolist()) == {length}
    walks = drawn.values.reshape(-1, length)
    starts = Counter(walks[:, 0].tolist())
    assert p_value([(starts, law.step([]))]) > LEAST_P
    assert p_value(_by_prefix(law, walks[:, :2])) > LEAST_P
    triples = np.concatenate([walks[:, t : t + 3] for t in range(length - 2)])
    assert p_value(_by_prefix(law, triples)) > LEAST_P


def _by_prefix(law: Law, steps: np.ndarray) -> list[tuple[Counter[int], dict[int, float]]]:
    """Counts of the last node for each run of nodes before it, beside its distribution."""
    counts: dict[tuple[int, ...], Counter[int]] = {}
    shape = (law.graph.num_nodes,) * steps.shape[1]
    numbers, times = np.unique(
        np.ravel_multi_index(tuple(steps.T), shape), return_counts=True
    )  # sorts numbers, not rows
    rows = np.stack(np.unravel_index(numbers, shape), axis=1).tolist()
    for (*prefix, last), count in zip(rows, times.tolist(), strict=True):
        counts.setdefault(tuple(prefix), Counter())[last] = count
    return [(seen, law.step(list(prefix))) for prefix, seen in counts.items()]


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("graph", [DENSE, windmill(30), GRID], ids=["many common", "one common", "none common"])
def test_walks_over_the_graph(graph, beta):
    drawn = graph_walks(*graph.csr, walks=WALKS, length=8, beta=beta, key=1)
    assert_follows(graph_law(graph, beta), drawn, 8)


@pytest.mark.parametrize("beta", BETAS)
def test_walks_from_given_starts_to_a_hub(beta):
    drawn = graph_walks(*HUB.csr, walks=WALKS, length=3, beta=beta, key=2, starts=np.ones(WALKS, np.int32))
    law = graph_law(HUB, beta)
    assert_follows(Law(HUB, law.allowed, frozenset([1]), beta), drawn, 3)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("graph", [DENSE, windmill(30), GRID], ids=["many common", "one common", "none common"])
def test_walks_inside_a_set(graph, beta):
    larger = with_tails(graph)
    patch = list(range(graph.num_nodes))
    drawn = inside_walks(*larger.csr, ragged([patch]), walks=WALKS, length=8, beta=beta, key=3)
    assert_follows(inside_law(larger, patch, beta), drawn, 8)


BORDERS = {
    "many common": (make_graph("dense", 20, seed=3), [1, 4, 5, 9, 16], 1),
    "many common, two hops": (make_graph("dense", 20, seed=3), [4, 9], 2),
    "one common of many": (HUB, [1], 2),
    "one common, few allowed": (HUB, [1], 1),
    "few of many lead out": (STAR, list(range(201)), 1),
    "none common": (GRID, [5, 6], 1),
    "none common, two hops": (GRID, [0, 1, 4], 2),
}


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", BORDERS)
def test_walks_over_a_border(name, beta):
    graph, patch, hops = BORDERS[name]
    drawn = border_walks(*graph.csr, ragged([patch]), hops=hops, walks=WALKS, length=6, beta=beta, key=4)
    assert_follows(border_law(graph, patch, hops, beta), drawn, 6)


betas = st.sampled_from(BETAS)
lengths = st.integers(1, 8)


@many
@given(graph=st.one_of(graphs(max_nodes=20), graphs(max_nodes=20, directed=True)), beta=betas, length=lengths)
def test_every_step_over_a_graph_is_possible(graph, beta, length):
    law = graph_law(graph, beta)
    walks = lists(graph_walks(*graph.csr, walks=20, length=length, beta=beta, key=5))
    assert len(walks) == 20
    assert all(law.permits(walk, length) for walk in walks)


@many
@given(case=graphs_with_sets(max_nodes=20), beta=betas, length=lengths)
def test_every_step_inside_a_set_is_possible(case, beta, length):
    graph, sets = case
    walks = lists(inside_walks(*graph.csr, ragged(sets), walks=6, length=length, beta=beta, key=6))
    assert len(walks) == 6 * len(sets)
    for i, walk in enumerate(walks):
        law = inside_law(graph, sets[i // 6], beta)
        assert bool(walk) == bool(law.starts)
        assert law.permits(walk, length)


@many
@given(case=graphs_with_sets(max_nodes=20), beta=betas, length=lengths, hops=st.integers(1, 3))
def test_every_step_over_a_border_is_possible(case, beta, length, hops):
    graph, sets = case
    walks = lists(border_walks(*graph.csr, ragged(sets), hops=hops, walks=6, length=length, beta=beta, key=7))
    assert len(walks) == 6 * len(sets)
    for i, walk in enumerate(walks):
        law = border_law(graph, sets[i // 6], hops, beta)
        assert len(walk) == (length if law.starts else 0)
        assert law.permits(walk, length)


@many
@given(case=graphs_with_sets(max_nodes=20), data=st.data())
def test_walks_are_a_function_of_the_key_and_the_patch_alone(case, data):
    graph, sets = case
    chosen = data.draw(st.permutations(range(len(sets))))[: len(sets) // 2]

    def walks(patches: Ragged, walks: int) -> list[list[list[int]]]:
        keys = node_set_keys(8, patches)
        inside = inside_walks(*graph.csr, patches, walks=walks, length=6, beta=0.5, key=keys)
        border = border_walks(*graph.csr, patches, hops=2, walks=walks, length=6, beta=0.5, key=keys)
        return [
            lists(family.take(range(p * walks, p * walks + 3))) for family in (inside, border) for p in range(len(keys))
        ]

    together, alone = walks(ragged(sets), 5), walks(ragged([sets[i] for i in chosen]), 3)
    assert alone == [together[i] for i in [*chosen, *(len(sets) + i for i in chosen)]]


def test_an_isolated_start_is_a_walk_of_one_node():
    graph = SmallGraph(4, ((1, 2),))
    assert lists(graph_walks(*graph.csr, walks=2, length=5, beta=0.5, key=0, starts=np.array([0, 3]))) == [[0], [3]]
    assert lists(inside_walks(*graph.csr, ragged([[2], [0]]), walks=1, length=5, beta=0.5, key=0)) == [[2], [0]]


def test_a_patch_that_is_a_component_has_no_border_walks():
    graph = SmallGraph(6, ((0, 1), (1, 2), (3, 4)))
    patches = ragged([[0, 1, 2], [5], [0, 1], range(6)])
    walks = border_walks(*graph.csr, patches, hops=2, walks=2, length=3, beta=0.5, key=0)
    assert walks.lengths.tolist() == [0, 0, 0, 0, 3, 3, 0, 0]
    assert lists(walks)[4] == [1, 2, 1]


def test_a_graph_without_nodes_has_empty_walks():
    walks = graph_walks(np.zeros(1, np.int64), np.empty(0, np.int32), walks=3, length=4, beta=0.5, key=0)
    assert lists(walks) == [[], [], []]
