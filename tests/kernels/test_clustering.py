"""Local clustering against networkx, to the last bit."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given

from subgnn.kernels import clustering, induced_clustering
from tests.kernels.graphs import SmallGraph, graphs, graphs_with_sets, lists, many, ragged


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
