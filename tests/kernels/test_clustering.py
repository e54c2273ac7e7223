"""Local clustering against networkx, to the last bit."""

from __future__ import annotations

import networkx as nx
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
