"""Edges to CSR rows against dictionaries of edges."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.build_csr import directed_csr, transpose, undirected_csr
from tests.kernels.graphs import Edge, SmallGraph, graphs, many


@st.composite
def edge_lists(draw: st.DrawFn, *, loops: bool) -> tuple[int, list[Edge]]:
    """A number of nodes and edges in any order, with repeats in both orientations; the last nodes may be isolated."""
    n = draw(st.integers(0, 20))
    if n < 2:
        return n, []
    node = st.integers(0, draw(st.integers(1, n - 1)))
    edges = draw(st.lists(st.tuples(node, node), max_size=60))
    return n, edges if loops else [(u, v) for u, v in edges if u != v]


def columns(edges: list[Edge]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(edges, np.int32).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def first_places(n: int, entries: list[tuple[Edge, int]]) -> tuple[list[int], list[int], list[int]]:
    """Offsets, neighbours and places of entries, the earliest place counting where one is repeated."""
    first: dict[Edge, int] = {}
    for entry, place in entries:
        first[entry] = min(place, first.get(entry, place))
    ordered = sorted(first)
    offsets = [sum(u < v for u, _ in ordered) for v in range(n + 1)]
    return offsets, [v for _, v in ordered], [first[entry] for entry in ordered]


@many
@given(case=edge_lists(loops=True))
def test_directed_rows_are_sorted_and_keep_the_first_of_repeats(case: tuple[int, list[Edge]]) -> None:
    n, edges = case
    offsets, neighbors, places = directed_csr(*columns(edges), n)
    found = offsets.tolist(), neighbors.tolist(), places.tolist()
    assert found == first_places(n, [(edge, i) for i, edge in enumerate(edges)])


@many
@given(case=edge_lists(loops=False))
def test_undirected_rows_hold_every_edge_twice(case: tuple[int, list[Edge]]) -> None:
    n, edges = case
    offsets, neighbors, places, mirrored = undirected_csr(*columns(edges), n)
    found = offsets.tolist(), neighbors.tolist(), places.tolist()
    assert found == first_places(n, [(way, i) for i, (u, v) in enumerate(edges) for way in ((u, v), (v, u))])
    assert mirrored == sum((v, u) in set(edges) for u, v in set(edges)) // 2
    assert (offsets.dtype, neighbors.dtype, places.dtype) == (np.int64, np.int32, np.int64)


@many
@given(graph=graphs(directed=True))
def test_the_transpose_knows_where_each_edge_stood(graph: SmallGraph) -> None:
    offsets, neighbors, places = transpose(*graph.csr)
    wanted_offsets, wanted_neighbors = graph.reverse
    assert offsets.tolist() == wanted_offsets.tolist()
    assert neighbors.tolist() == wanted_neighbors.tolist()
    tails = np.repeat(np.arange(graph.num_nodes), np.diff(graph.csr[0]))
    heads = np.repeat(np.arange(graph.num_nodes), np.diff(offsets))
    assert sorted(places.tolist()) == list(range(len(graph.edges)))
    assert tails[places].tolist() == neighbors.tolist()
    assert graph.csr[1][places].tolist() == heads.tolist()


def test_a_repeated_edge_stands_for_its_first_line() -> None:
    _, neighbors, places, mirrored = undirected_csr(np.array([2, 0, 1, 2]), np.array([1, 1, 2, 1]), 4)
    assert neighbors.tolist() == [1, 0, 2, 1]
    assert places.tolist() == [1, 1, 0, 0]
    assert mirrored == 1
