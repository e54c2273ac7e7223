"""Induced subgraphs and their components, against Python's sets and networkx."""

from __future__ import annotations

from bisect import bisect_left

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.arrays import csr, frozen
from subgnn.kernels.induced import contains, induced_components, induced_csr, inside_row, lower_bound
from tests.kernels.graphs import SmallGraph, graphs, graphs_with_sets, lists, many, ragged

sorted_rows = st.lists(st.integers(0, 60), unique=True, max_size=30).map(sorted)


@many
@given(row=sorted_rows, wanted=st.integers(-1, 61), data=st.data())
def test_a_stretch_of_a_sorted_row_is_searched(row: list[int], wanted: int, data: st.DataObject) -> None:
    lo = data.draw(st.integers(0, len(row)))
    hi = data.draw(st.integers(lo, len(row)))
    array = frozen(row, np.int32)
    assert lower_bound(array, lo, hi, wanted) == bisect_left(row, wanted, lo, hi)
    assert contains(array, lo, hi, wanted) == (wanted in row[lo:hi])


@many
@given(case=graphs_with_sets())
def test_induced_subgraphs_are_numbered_by_place(case: tuple[SmallGraph, list[list[int]]]) -> None:
    graph, sets = case
    base = csr(*graph.csr)
    near = graph.networkx.adj
    for nodes in sets:
        wanted = [[place for place, u in enumerate(nodes) if u in near[v]] for v in nodes]
        members = frozen(nodes, np.int32)
        local_offsets, local_neighbors = induced_csr(base, members)
        assert np.diff(local_offsets).tolist() == [len(row) for row in wanted]
        assert local_neighbors.tolist() == [place for row in wanted for place in row]
        scratch = np.empty(len(nodes), np.int32)
        for v in range(graph.num_nodes):
            found = inside_row(base, members, v, scratch)
            assert scratch[:found].tolist() == [place for place, u in enumerate(nodes) if u in near[v]]


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
