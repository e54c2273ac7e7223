"""Core numbers against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from subgnn.kernels import core_numbers, induced_core_numbers
from tests.kernels.graphs import SmallGraph, graphs, graphs_with_sets, lists, many, ragged


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
