"""Components of induced subgraphs against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given

from subgnn.kernels import induced_components
from tests.kernels.graphs import SmallGraph, graphs, graphs_with_sets, lists, many, ragged


def components(graph: SmallGraph, nodes: list[int]) -> list[list[int]]:
    """Sorted components, ordered by their smallest node."""
    return sorted(sorted(part) for part in nx.connected_components(graph.networkx.subgraph(nodes)))


@many
@given(case=graphs_with_sets())
def test_components_owners_and_counts(case: tuple[SmallGraph, list[list[int]]]) -> None:
    graph, sets = case
    found = induced_components(*graph.csr, ragged(sets))
    wanted = [components(graph, nodes) for nodes in sets]
    assert lists(found.nodes) == [part for parts in wanted for part in parts]
    assert found.counts.tolist() == [len(parts) for parts in wanted]
    assert found.subgraph.tolist() == [s for s, parts in enumerate(wanted) for _ in parts]
    assert found.nodes.values.dtype == np.int32


@many
@given(graph=graphs())
def test_a_subgraph_equal_to_the_graph(graph: SmallGraph) -> None:
    found = induced_components(*graph.csr, ragged([range(graph.num_nodes)]))
    assert lists(found.nodes) == components(graph, list(range(graph.num_nodes)))


def test_edges_outside_the_subgraph_join_nothing() -> None:
    star = SmallGraph(5, ((0, 1), (0, 2), (0, 3), (3, 4)))
    found = induced_components(*star.csr, ragged([[1, 2, 3, 4], [0, 1, 4]]))
    assert lists(found.nodes) == [[1], [2], [3, 4], [0, 1], [4]]
