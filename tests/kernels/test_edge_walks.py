"""Walks over edges with weights or direction against their transition probabilities."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from subgnn import Graph, Ragged
from subgnn.kernels.walks import Steps, triangular_walks, walk_from_members
from tests.kernels.chance import LEAST_P, p_value
from tests.kernels.graphs import SmallGraph, ragged

# A square with both diagonals but one, a tail, an edge of weight 0, and a node on its own.
EDGES = {(0, 1): 1.0, (1, 2): 3.0, (2, 3): 0.5, (0, 3): 2.0, (0, 2): 5.0, (3, 4): 1.5, (1, 4): 0.0}
N = 6
# A triangle 0 1 2 with a tail 2 - 3, and 4 on its own.
KITE = SmallGraph(5, ((0, 1), (1, 2), (0, 2), (2, 3)))
KITE_STEPS = Steps.of(*KITE.csr)


def built(*, directed: bool, weighted: bool = True) -> Graph:
    tails, heads = (list(ends) for ends in zip(*EDGES, strict=True))
    weights = list(EDGES.values()) if weighted else None
    return Graph.from_edges(tails, heads, num_nodes=N, weights=weights, directed=directed)


def near(graph: Graph, allowed: set[int]) -> list[dict[int, float]]:
    """The weights of the edges of each node that lead to allowed ones."""
    found = []
    for node in range(graph.num_nodes):
        row = slice(graph.offsets[node], graph.offsets[node + 1])
        weights = np.ones(row.stop - row.start) if graph.weights is None else graph.weights[row]
        pairs = zip(graph.neighbors[row].tolist(), weights.tolist(), strict=True)
        found.append({other: weight for other, weight in pairs if weight and other in allowed})
    return found


def shares(weights: dict[int, float], part: float = 1.0) -> dict[int, float]:
    return {node: part * weight / sum(weights.values()) for node, weight in weights.items()}


def law(rows: list[dict[int, float]], whole: list[dict[int, float]], before: tuple[int, ...], beta: float):
    """The distribution of the node after those before."""
    if len(before) == 1:
        return shares(rows[before[0]])
    x, y = before[-2:]
    closed = {node: weight for node, weight in rows[y].items() if node in whole[x]}
    opened = {node: weight for node, weight in rows[y].items() if node not in whole[x]}
    if not closed or not opened:
        return shares(closed | opened)
    return {**shares(closed, beta), **shares(opened, 1 - beta)}


def fits(walks: list[tuple[int, ...]], graph: Graph, allowed: set[int], beta: float, length: int) -> float:
    """The p-value of all steps, each after the two nodes before it; a walk ends only where it must."""
    rows, whole = near(graph, allowed), near(graph, set(range(N)))
    counts: dict[tuple[int, ...], Counter] = {}
    for walk in walks:
        for t in range(1, len(walk)):
            counts.setdefault(walk[max(0, t - 2) : t], Counter())[walk[t]] += 1
        if len(walk) < length:
            assert law(rows, whole, walk[-2:], beta) == {}
    return p_value([(found, law(rows, whole, before, beta)) for before, found in counts.items()])


@pytest.mark.parametrize("beta", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_triangular_walks_over_the_graph(beta, directed, weighted):
    graph = built(directed=directed, weighted=weighted)
    steps = Steps.of(*graph.csr, graph.weights)
    drawn = triangular_walks(steps, walks=20_000, length=4, beta=beta, key=3)
    walks = [tuple(row.tolist()) for row in drawn]
    assert p_value([(Counter(walk[0] for walk in walks), dict.fromkeys(range(N), 1 / N))]) > LEAST_P
    assert fits(walks, graph, set(range(N)), beta, 4) > LEAST_P


@pytest.mark.parametrize("directed", [False, True])
def test_walks_stay_on_allowed_nodes(directed):
    graph = built(directed=directed)
    allowed, starts = Ragged.from_rows([[0, 2, 3], [1, 4]]), Ragged.from_rows([[0, 3], []])
    steps = Steps.of(*graph.csr, graph.weights)
    keys = np.array([4, 5], np.uint64)
    drawn = triangular_walks(steps, walks=8_000, length=5, beta=0.5, key=keys, starts=starts, allowed=allowed)
    walks = [tuple(row.tolist()) for row in drawn]
    assert {len(walk) for walk in walks[8_000:]} == {0}
    assert {walk[0] for walk in walks[:8_000]} == {0, 3}
    assert fits(walks[:8_000], graph, {0, 2, 3}, 0.5, 5) > LEAST_P


def test_simple_walks_by_weight():
    graph = built(directed=False)
    steps = Steps.of(*graph.csr, graph.weights)
    found = walk_from_members(
        steps, Ragged.from_rows([[0, 1], [5]]), walks=9_000, length=3, keys=np.array([1, 2], np.uint64)
    )
    rows, counts = near(graph, set(range(N))), {}
    for start, walks in zip((0, 1), found[:2], strict=True):
        for walk in walks.tolist():
            for one, two in pairwise([start, *walk]):
                counts.setdefault(one, Counter())[two] += 1
    assert p_value([(found, shares(rows[node])) for node, found in counts.items()]) > LEAST_P
    assert (found[2] == 5).all()


def test_an_empty_graph_has_no_walks():
    steps = Steps.of(np.zeros(1, np.int64), np.empty(0, np.int32))
    assert [len(row) for row in triangular_walks(steps, walks=2, length=3, beta=0.5, key=0)] == [0, 0]


def test_two_uniform_steps_have_the_probability_of_their_steps():
    keys = np.arange(3, dtype=np.uint64)
    found = walk_from_members(KITE_STEPS, ragged([[0, 2], [4], [1]]), walks=6000, length=2, keys=keys)
    groups = []
    for start, walks in zip((0, 2, 4, 1), found, strict=True):
        expected = Counter()
        for one in KITE.networkx[start] or [start]:
            for two in KITE.networkx[one] or [one]:
                expected[one, two] += 1 / len(KITE.networkx[start] or [start]) / len(KITE.networkx[one] or [one])
        groups.append((Counter(map(tuple, walks.tolist())), expected))
    assert p_value(groups) > LEAST_P
    assert (found[2] == 4).all()


def test_walks_of_a_set_depend_on_its_key_alone():
    together = walk_from_members(KITE_STEPS, ragged([[0, 2], [1]]), walks=9, length=4, keys=np.array([5, 6], np.uint64))
    alone = walk_from_members(KITE_STEPS, ragged([[1]]), walks=9, length=4, keys=np.array([6], np.uint64))
    np.testing.assert_array_equal(together[2], alone[0])
    assert not np.array_equal(together[0], together[1])
