"""Degrees, clustering and core numbers against counts of edges and networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from subgnn.kernels.induced import (
    clustering,
    core_numbers,
    induced_clustering,
    induced_core_numbers,
    inside_degrees,
    shapes,
)
from tests.kernels.graphs import SmallGraph, graphs, graphs_with_sets, lists, many, ragged


@many
@given(case=graphs_with_sets())
def test_degrees_inside_and_across_the_border(case: tuple[SmallGraph, list[list[int]]]) -> None:
    graph, sets = case
    inside, border = inside_degrees(*graph.csr, ragged(sets))
    near = graph.networkx.adj
    assert lists(inside) == [[sum(u in nodes for u in near[v]) for v in nodes] for nodes in sets]
    assert lists(border) == [[sum(u not in nodes for u in near[v]) for v in nodes] for nodes in sets]


@many
@given(case=graphs_with_sets())
def test_shapes_count_edges(case: tuple[SmallGraph, list[list[int]]]) -> None:
    graph, sets = case
    found = shapes(*graph.csr, ragged(sets))
    for s, nodes in enumerate(sets):
        size, others = len(nodes), graph.num_nodes - len(nodes)
        ends = [(u in nodes) + (v in nodes) for u, v in graph.edges]
        within, leaving = ends.count(2), ends.count(1)
        assert (found.nodes[s], found.edges[s], found.cut_edges[s]) == (size, within, leaving)
        assert found.density[s] == (2 * within / (size * (size - 1)) if size > 1 else 0.0)
        assert found.cut_ratio[s] == (leaving / (size * others) if size and others else 0.0)


def test_shapes_known_by_hand() -> None:
    square = SmallGraph(5, ((0, 1), (1, 2), (2, 3), (0, 3), (0, 2)))
    found = shapes(*square.csr, ragged([[0], [4], [0, 1, 2], [0, 1, 2, 3, 4], [1, 3]]))
    assert found.density.tolist() == pytest.approx([0.0, 0.0, 1.0, 0.5, 0.0])
    assert found.cut_ratio.tolist() == pytest.approx([3 / 4, 0.0, 2 / 6, 0.0, 4 / 6])


@many
@given(graph=graphs())
def test_clustering_of_a_graph(graph: SmallGraph) -> None:
    wanted = nx.clustering(graph.networkx)
    assert clustering(*graph.csr).tolist() == [wanted[v] for v in range(graph.num_nodes)]


@many
@given(case=graphs_with_sets())
def test_clustering_inside_sets(case: tuple[SmallGraph, list[list[int]]]) -> None:
    graph, sets = case
    found = induced_clustering(*graph.csr, ragged(sets))
    wanted = [nx.clustering(graph.networkx.subgraph(nodes)) for nodes in sets]
    assert lists(found) == [[values[v] for v in nodes] for values, nodes in zip(wanted, sets, strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_clustering_of_a_larger_graph_with_hubs(seed: int) -> None:
    random = nx.powerlaw_cluster_graph(400, 6, 0.5, seed=seed)
    graph = SmallGraph(400, tuple(random.edges))
    wanted = nx.clustering(random)
    assert clustering(*graph.csr).tolist() == [wanted[v] for v in range(400)]


@many
@given(graph=graphs())
def test_core_numbers_of_a_graph(graph: SmallGraph) -> None:
    wanted = nx.core_number(graph.networkx)
    assert core_numbers(*graph.csr).tolist() == [wanted[v] for v in range(graph.num_nodes)]


@many
@given(case=graphs_with_sets())
def test_core_numbers_inside_sets(case: tuple[SmallGraph, list[list[int]]]) -> None:
    graph, sets = case
    found = induced_core_numbers(*graph.csr, ragged(sets))
    wanted = [nx.core_number(graph.networkx.subgraph(nodes)) for nodes in sets]
    assert lists(found) == [[cores[v] for v in nodes] for cores, nodes in zip(wanted, sets, strict=True)]


@pytest.mark.parametrize("seed", range(5))
def test_a_graph_of_many_cores(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nearness = np.arange(1, 201) / 200
    chosen = rng.random((200, 200)) < 0.8 * np.outer(nearness, nearness) ** 2
    graph = SmallGraph(200, tuple((u, v) for u, v in np.argwhere(chosen).tolist() if u < v))
    wanted = nx.core_number(graph.networkx)
    found = core_numbers(*graph.csr)
    assert found.tolist() == [wanted[v] for v in range(200)]
    assert len(np.unique(found)) > 5
