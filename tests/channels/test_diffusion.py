"""Diffusion against dense linear algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import Graph, Ragged
from subgnn.channels.diffusion import Walks, diffuse, diffuse_nearby, push_bound, walks_of
from subgnn.parallel.memory import memory_limit


def dense_walk(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """P and pi, a node without edges having a loop of the mean weight."""
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes))
    for node in range(graph.num_nodes):
        row = slice(graph.offsets[node], graph.offsets[node + 1])
        adjacency[node, graph.neighbors[row]] = 1 if graph.weights is None else np.abs(graph.weights[row])
    loop = 1.0 if graph.weights is None or not graph.weights.any() else np.abs(graph.weights).mean()
    alone = adjacency.sum(axis=1) == 0
    adjacency[alone, alone] = loop
    degrees = adjacency.sum(axis=1)
    return adjacency / degrees[:, None], degrees / degrees.sum()


def dense_ratios(graph: Graph, sets: Ragged, damping: float) -> np.ndarray:
    """p / pi, with p = (1 - a) s (I - a P)^-1."""
    walk, chance = dense_walk(graph)
    start = np.zeros((len(sets), graph.num_nodes))
    for i, row in enumerate(sets):
        start[i, row] = 1 / len(row)
    inverse = np.linalg.inv(np.eye(graph.num_nodes) - damping * walk)
    return (1 - damping) * start @ inverse / chance


@st.composite
def cases(draw) -> tuple[Graph, Ragged]:
    """A graph, possibly disconnected, weighted or without edges; node sets, the whole graph among them."""
    n = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = rng.integers(0, n, (draw(st.integers(0, 30)), 2))
    ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0).reshape(-1, 2)
    weights = rng.choice([-2.0, 0.0, 0.5, 1.0, 3.0], len(ends)) if draw(st.booleans()) else None
    graph = Graph.from_edges(ends[:, 0], ends[:, 1], num_nodes=n, weights=weights)
    rows = [np.sort(rng.choice(n, rng.integers(1, n + 1), replace=False)) for _ in range(3)]
    return graph, Ragged.from_rows([*rows, np.arange(n)])


@settings(max_examples=60)
@given(cases(), st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_exact_equals_dense_linear_algebra(case, damping):
    graph, sets = case
    found = diffuse(Walks.of(graph), sets, damping)
    np.testing.assert_allclose(np.log1p(found), np.log1p(dense_ratios(graph, sets, damping)), atol=1e-4)


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(), st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([3, 30, 1000]))
def test_push_is_within_its_bound(case, damping, edges):
    graph, sets = case
    walks = Walks.of(graph)
    expected = dense_ratios(graph, sets, damping)
    nodes, values = diffuse_nearby(walks, sets, damping, edges=edges, most=graph.num_nodes)
    bound = push_bound(walks, damping, edges)
    for i, row in enumerate(nodes):
        estimate = np.zeros(graph.num_nodes)
        estimate[row] = values[nodes.offsets[i] : nodes.offsets[i + 1]]
        missing = expected[i] - estimate
        assert (missing >= -1e-5 * (1 + expected[i])).all()
        assert (missing <= bound + 1e-5 * (1 + expected[i])).all()


def test_the_rest_of_the_batch_and_the_memory_change_nothing():
    rng = np.random.default_rng(0)
    tails, heads = rng.integers(0, 200, (2, 800))
    keep = tails != heads
    ends = np.unique(np.sort(np.stack([tails[keep], heads[keep]], axis=1), axis=1), axis=0)
    graph = Graph.from_edges(ends[:, 0], ends[:, 1], num_nodes=200)
    sets = Ragged.from_rows([np.sort(rng.choice(200, 5, replace=False)) for _ in range(70)])
    walks = Walks.of(graph)
    together = diffuse(walks, sets, 0.6)
    for i in (0, 31, 69):
        np.testing.assert_array_equal(diffuse(walks, sets.take([i]), 0.6)[0], together[i])
    whole = diffuse_nearby(walks, sets, 0.6, edges=10**4, most=20)
    with memory_limit("1GB"):
        again = diffuse_nearby(walks, sets, 0.6, edges=10**4, most=20)
    np.testing.assert_array_equal(whole[0].values, again[0].values)
    np.testing.assert_array_equal(whole[1], again[1])
    assert (whole[0].lengths == 20).all()


def test_a_walk_over_a_hub_changes_nothing_for_the_sets_after_it():
    leaves, path = np.arange(1, 3000), np.arange(3000, 3050)
    tails, heads = np.append(np.zeros_like(leaves), path - 1), np.append(leaves, path)
    walks = Walks.of(Graph.from_edges(tails, heads, num_nodes=3050))
    sets = Ragged.from_rows([[0], [3020, 3021], [1], [3049], [0, 3010], [3040]] * 4)
    nodes, values = diffuse_nearby(walks, sets, 0.6, edges=10**4, most=100)
    for i in range(6):
        alone, ratios = diffuse_nearby(walks, sets.take([i]), 0.6, edges=10**4, most=100)
        for j in range(i, 24, 6):
            np.testing.assert_array_equal(nodes[j], alone.values)
            np.testing.assert_array_equal(values[nodes.offsets[j] : nodes.offsets[j + 1]], ratios)


@pytest.mark.parametrize("damping", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("directed", [False, True])
def test_errors_of_a_walk_sum_to_the_tolerance_on_a_long_path(damping, directed):
    n = 300
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n), directed=directed)
    walks = walks_of(graph.undirected(), "out" if directed else "")
    sets = Ragged.from_rows([[0], [n - 1], np.arange(0, n, 7)])
    step = np.diag(np.ones(n - 1), 1)
    if not directed:
        step += step.T
    step[-1, -1] += directed
    start = np.zeros((3, n))
    start[sets.row_ids, sets.values] = 1 / sets.lengths[sets.row_ids]
    expected = (1 - damping) * start @ np.linalg.inv(np.eye(n) - damping * step / step.sum(axis=1)[:, None])
    found = diffuse(walks, sets, damping) * walks.chance(damping)
    assert np.abs(found - expected).sum(axis=1).max() < 3e-6
