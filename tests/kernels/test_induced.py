"""Induced subgraphs and their components, against Python's sets and networkx."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from subgnn.kernels.arrays import csr, frozen
from subgnn.kernels.induced import (
    clustering,
    core_numbers,
    induced_components,
    induced_csr,
    induced_graph,
    inside_degrees,
    inside_row,
    shapes,
)
from tests.kernels.graphs import SmallGraph, graphs_with_sets, lists, many, ragged


@many
@given(case=graphs_with_sets())
def test_induced_subgraphs_are_numbered_by_place(case):
    graph, sets = case
    base = csr(*graph.csr)
    near = graph.networkx.adj
    whole_offsets, whole_neighbors = induced_graph(*graph.csr, ragged(sets))
    begin = 0
    for nodes in sets:
        wanted = [[place for place, u in enumerate(nodes) if u in near[v]] for v in nodes]
        members = frozen(nodes, np.int32)
        local_offsets, local_neighbors = induced_csr(base, members)
        assert np.diff(local_offsets).tolist() == [len(row) for row in wanted]
        assert local_neighbors.tolist() == [place for row in wanted for place in row]
        entries = slice(whole_offsets[begin], whole_offsets[begin + len(nodes)])
        assert whole_neighbors[entries].tolist() == [begin + place for row in wanted for place in row]
        begin += len(nodes)
        scratch = np.empty(len(nodes), np.int32)
        for v in range(graph.num_nodes):
            found = inside_row(base, members, v, scratch)
            assert scratch[:found].tolist() == [place for place, u in enumerate(nodes) if u in near[v]]


def components(graph: SmallGraph, nodes: list[int]) -> list[list[int]]:
    """Sorted components, ordered by their smallest node."""
    return sorted(sorted(part) for part in nx.connected_components(graph.networkx.subgraph(nodes)))


@many
@given(case=graphs_with_sets())
def test_components_owners_and_counts(case):
    graph, sets = case
    found = induced_components(*graph.csr, ragged(sets))
    wanted = [components(graph, nodes) for nodes in sets]
    assert lists(found.nodes) == [part for parts in wanted for part in parts]
    assert found.counts.tolist() == [len(parts) for parts in wanted]
    assert found.subgraph.tolist() == [s for s, parts in enumerate(wanted) for _ in parts]
    assert found.nodes.values.dtype == np.int32


@many
@given(case=graphs_with_sets())
def test_degrees_inside_and_across_the_border(case):
    graph, sets = case
    inside, border = inside_degrees(*graph.csr, ragged(sets))
    near = graph.networkx.adj
    assert lists(inside) == [[sum(u in nodes for u in near[v]) for v in nodes] for nodes in sets]
    assert lists(border) == [[sum(u not in nodes for u in near[v]) for v in nodes] for nodes in sets]


@many
@given(case=graphs_with_sets())
def test_shapes_count_edges(case):
    graph, sets = case
    found = shapes(*graph.csr, ragged(sets))
    for s, nodes in enumerate(sets):
        size, others = len(nodes), graph.num_nodes - len(nodes)
        ends = [(u in nodes) + (v in nodes) for u, v in graph.edges]
        within, leaving = ends.count(2), ends.count(1)
        assert (found.nodes[s], found.cut_edges[s]) == (size, leaving)
        assert found.density[s] == (2 * within / (size * (size - 1)) if size > 1 else 0.0)
        assert found.cut_ratio[s] == (leaving / (size * others) if size and others else 0.0)


NODE_STATISTICS = {"clustering": (clustering, nx.clustering), "cores": (core_numbers, nx.core_number)}


@pytest.mark.parametrize("name", NODE_STATISTICS)
@many
@given(case=graphs_with_sets())
def test_statistics_of_nodes_in_a_graph_and_inside_sets(name, case):
    measure, oracle = NODE_STATISTICS[name]
    graph, sets = case
    wanted = oracle(graph.networkx)
    assert measure(*graph.csr).tolist() == [wanted[v] for v in range(graph.num_nodes)]
    by_set = [oracle(graph.networkx.subgraph(nodes)) for nodes in sets]
    found = measure(*induced_graph(*graph.csr, ragged(sets))).tolist()
    assert found == [values[v] for values, nodes in zip(by_set, sets, strict=True) for v in nodes]


@pytest.mark.parametrize("seed", range(2))
def test_a_larger_graph_with_hubs_and_many_cores(seed):
    nearness, rng = np.arange(1, 201) / 200, np.random.default_rng(seed)
    chosen = rng.random((200, 200)) < 0.8 * np.outer(nearness, nearness) ** 2
    graph = SmallGraph(200, tuple((u, v) for u, v in np.argwhere(chosen).tolist() if u < v))
    for measure, oracle in NODE_STATISTICS.values():
        wanted = oracle(graph.networkx)
        assert measure(*graph.csr).tolist() == [wanted[v] for v in range(200)]
