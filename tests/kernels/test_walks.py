"""Walks against the transition probabilities of their definition: uniform, by weight, along edges, over a part."""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn import Ragged
from subgnn.kernels.draws import node_set_keys
from subgnn.kernels.walks import border_walks, graph_walks, inside_walks, walk_from_members
from tests.kernels.chance import LEAST_P, p_value, uniform
from tests.kernels.graphs import SmallGraph, graphs_with_sets, lists, make_graph, many, ragged

BETAS = [0.0, 0.3, 0.65, 1.0]
WALKS = 40_000


def shares(weights: dict[int, float], part: float = 1.0) -> dict[int, float]:
    return {node: part * weight / sum(weights.values()) for node, weight in weights.items() if part}


@dataclass(frozen=True)
class Law:
    """How a triangular walk moves over the allowed nodes of a graph, from a uniform one of its starts.

    ``near`` has the weights of each node's edges, or of its out-edges; an edge of weight 0 is not there.
    """

    near: list[dict[int, float]]
    allowed: frozenset[int]
    starts: frozenset[int]
    beta: float

    def step(self, before: tuple[int, ...]) -> dict[int, float]:
        """The distribution of the node after all those before; empty where the walk ends."""
        if not before:
            return uniform(self.starts)
        next_ones = {node: weight for node, weight in self.near[before[-1]].items() if node in self.allowed}
        if len(before) == 1:
            return shares(next_ones)
        closing = {node: weight for node, weight in next_ones.items() if node in self.near[before[-2]]}
        opening = {node: weight for node, weight in next_ones.items() if node not in closing}
        if not closing or not opening:
            return shares(next_ones)
        return shares(closing, self.beta) | shares(opening, 1 - self.beta)

    def permits(self, walk: list[int], length: int) -> bool:
        """Whether every step has a chance, and the walk ends at ``length`` nodes or where it must."""
        steps = all(node in self.step(tuple(walk[:t])) for t, node in enumerate(walk))
        return steps and (len(walk) == length or not self.step(tuple(walk)))


def neighbors_of(graph: SmallGraph) -> list[dict[int, float]]:
    return [dict.fromkeys(graph.networkx.adj[v], 1.0) for v in range(graph.num_nodes)]


def graph_law(graph: SmallGraph, beta: float) -> Law:
    everyone = frozenset(range(graph.num_nodes))
    return Law(neighbors_of(graph), everyone, everyone, beta)


def inside_law(graph: SmallGraph, patch: list[int], beta: float) -> Law:
    return Law(neighbors_of(graph), frozenset(patch), frozenset(patch), beta)


def border_law(graph: SmallGraph, patch: list[int], hops: int, beta: float) -> Law:
    """From the patch's border nodes, over them and the nodes outside within ``hops`` of the patch."""
    starts = frozenset(v for v in patch if set(graph.networkx.adj[v]) - set(patch))
    around = nx.multi_source_dijkstra_path_length(graph.networkx, patch, cutoff=hops) if patch else {}
    return Law(neighbors_of(graph), starts | (set(around) - set(patch)), starts, beta)


def assert_follows(law: Law, drawn: Ragged, length: int) -> None:
    """Compare where walks start, and every step after the two nodes before it, with the law."""
    counts: dict[tuple[int, ...], Counter] = {}
    walks = Counter(tuple(walk) for walk in lists(drawn))
    for walk, times in walks.items():
        assert len(walk) == length or not law.step(walk)
        for t, node in enumerate(walk):
            counts.setdefault(walk[max(0, t - 2) : t], Counter())[node] += times
    for steps in range(3):
        groups = [(found, law.step(before)) for before, found in counts.items() if len(before) == steps]
        assert p_value(groups) > LEAST_P


def windmill(blades: int) -> SmallGraph:
    """Triangles around node 0: a neighbour of the hub has one neighbour in common with it, of 2 * blades."""
    pairs = [(2 * i + 1, 2 * i + 2) for i in range(blades)]
    return SmallGraph(2 * blades + 1, tuple([(0, v) for pair in pairs for v in pair] + pairs))


DENSE = make_graph("dense", 14, seed=3)
GRID = SmallGraph(16, tuple([(v, v + 1) for v in range(16) if v % 4 < 3] + [(v, v + 4) for v in range(12)]))
# Node 1 and the hub have node 2 in common, and the hub 198 neighbours more.
HUB = SmallGraph(201, tuple([(0, v) for v in range(1, 201)] + [(1, 2)]))
# From the middle of a star two nodes lead out of it.
STAR = SmallGraph(203, tuple([(0, v) for v in range(1, 203)] + [(201, 202)]))
GRAPHS = {"many common": DENSE, "one common": windmill(30), "none common": GRID}
BORDERS = {
    "many common": (make_graph("dense", 20, seed=3), [1, 4, 5, 9, 16], 1),
    "many common, two hops": (make_graph("dense", 20, seed=3), [4, 9], 2),
    "one common of many": (HUB, [1], 2),
    "one common, few allowed": (HUB, [1], 1),
    "few of many lead out": (STAR, list(range(201)), 1),
    "none common, two hops": (GRID, [0, 1, 4], 2),
}


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", GRAPHS)
def test_walks_over_a_graph_and_inside_a_part_of_a_larger_one(name, beta):
    graph = GRAPHS[name]
    drawn = graph_walks(*graph.csr, walks=WALKS, length=8, beta=beta, key=1)
    assert_follows(graph_law(graph, beta), drawn, 8)
    n = graph.num_nodes
    tailed, patch = SmallGraph(2 * n, graph.edges + tuple((v, n + v) for v in range(n))), list(range(n))
    drawn = inside_walks(*tailed.csr, ragged([patch]), walks=WALKS, length=8, beta=beta, key=3)
    assert_follows(inside_law(tailed, patch, beta), drawn, 8)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", BORDERS)
def test_walks_over_a_border(name, beta):
    graph, patch, hops = BORDERS[name]
    drawn = border_walks(*graph.csr, ragged([patch]), hops=hops, walks=WALKS, length=6, beta=beta, key=4)
    assert_follows(border_law(graph, patch, hops, beta), drawn, 6)


@many
@given(case=graphs_with_sets(max_nodes=20), data=st.data())
def test_walks_are_a_function_of_the_key_and_the_patch_alone(case, data):
    graph, sets = case
    chosen = data.draw(st.permutations(range(len(sets))))[: len(sets) // 2]

    def walks(patches: Ragged, walks: int) -> list[list[list[int]]]:
        keys = node_set_keys(8, patches)
        inside = inside_walks(*graph.csr, patches, walks=walks, length=6, beta=0.5, key=keys)
        border = border_walks(*graph.csr, patches, hops=2, walks=walks, length=6, beta=0.5, key=keys)
        begins = range(0, len(keys) * walks, walks)
        return [lists(family.take(range(at, at + 3))) for family in (inside, border) for at in begins]

    together, alone = walks(ragged(sets), 5), walks(ragged([sets[i] for i in chosen]), 3)
    assert alone == [together[i] for i in [*chosen, *(len(sets) + i for i in chosen)]]


def test_walks_that_end_at_once():
    graph = SmallGraph(6, ((0, 1), (1, 2), (3, 4)))
    drawn = lists(graph_walks(*graph.csr, walks=40, length=5, beta=0.5, key=0))
    assert [walk for walk in drawn if len(walk) < 5] == [[5]] * sum(walk[0] == 5 for walk in drawn)
    assert lists(inside_walks(*graph.csr, ragged([[2], [5]]), walks=1, length=5, beta=0.5, key=0)) == [[2], [5]]
    patches = ragged([[0, 1, 2], [5], [0, 1], range(6)])
    walks = border_walks(*graph.csr, patches, hops=2, walks=2, length=3, beta=0.5, key=0)
    assert lists(walks) == [[], [], [], [], [1, 2, 1], [1, 2, 1], [], []]
    nothing = np.zeros(1, np.int64), np.empty(0, np.int32)
    assert lists(graph_walks(*nothing, walks=2, length=4, beta=0.5, key=0)) == [[], []]


def test_simple_walks_from_members():
    # A square with both diagonals but one, a tail, and a node on its own.
    graph = SmallGraph(6, ((0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (3, 4)))
    near = [dict.fromkeys(row.tolist(), 1.0) for row in Ragged(graph.csr[1], graph.csr[0])]
    keys = np.array([1, 2], np.uint64)
    found = walk_from_members(*graph.csr, ragged([[0, 1], [5]]), walks=9_000, length=3, keys=keys)
    counts: dict[int, Counter] = {}
    for start, walks in zip((0, 1), found[:2], strict=True):
        for walk in walks.tolist():
            for one, two in pairwise([start, *walk]):
                counts.setdefault(one, Counter())[two] += 1
    assert p_value([(seen, shares(near[node])) for node, seen in counts.items()]) > LEAST_P
    assert (found[2] == 5).all()
    alone = walk_from_members(*graph.csr, ragged([[0, 1]]), walks=9_000, length=3, keys=keys[:1])
    np.testing.assert_array_equal(alone, found[:2])
