"""Edges to CSR rows, in memory and by buckets, against dictionaries and Python's sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.build_csr import (
    bucket_rows,
    check_neighbors,
    directed_csr,
    first_bad_set,
    other_weights,
    transpose,
    undirected_csr,
)
from subgnn.ragged import Ragged
from tests.kernels.graphs import Edge, graphs, many


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
def test_directed_rows_are_sorted_and_keep_the_first_of_repeats(case):
    n, edges = case
    offsets, neighbors, places = directed_csr(*columns(edges), n)
    found = offsets.tolist(), neighbors.tolist(), places.tolist()
    assert found == first_places(n, [(edge, i) for i, edge in enumerate(edges)])


@many
@given(case=edge_lists(loops=False))
def test_undirected_rows_hold_every_edge_twice(case):
    n, edges = case
    offsets, neighbors, places, mirrored = undirected_csr(*columns(edges), n)
    found = offsets.tolist(), neighbors.tolist(), places.tolist()
    assert found == first_places(n, [(way, i) for i, (u, v) in enumerate(edges) for way in ((u, v), (v, u))])
    assert mirrored == sum((v, u) in set(edges) for u, v in set(edges)) // 2
    assert (offsets.dtype, neighbors.dtype, places.dtype) == (np.int64, np.int32, np.int64)


@many
@given(graph=graphs(directed=True))
def test_the_transpose_knows_where_each_edge_stood(graph):
    offsets, neighbors, places = transpose(*graph.csr)
    wanted_offsets, wanted_neighbors = graph.reverse
    assert offsets.tolist() == wanted_offsets.tolist()
    assert neighbors.tolist() == wanted_neighbors.tolist()
    tails = np.repeat(np.arange(graph.num_nodes), np.diff(graph.csr[0]))
    heads = np.repeat(np.arange(graph.num_nodes), np.diff(offsets))
    assert sorted(places.tolist()) == list(range(len(graph.edges)))
    assert tails[places].tolist() == neighbors.tolist()
    assert graph.csr[1][places].tolist() == heads.tolist()


FLIPPED = 1 << 31


def oracle(records, first, num_rows):
    """Rows, weights of the first of equal entries, and pairs (row < neighbour) given from both ends."""
    rows = [{} for _ in range(num_rows)]
    flips = [{} for _ in range(num_rows)]
    for row, coded, weight in records.tolist():
        neighbor = coded & (FLIPPED - 1)
        rows[row - first].setdefault(neighbor, weight)
        flips[row - first].setdefault(neighbor, set()).add(coded >= FLIPPED)
    both = sum(len(f) == 2 and first + i < v for i, row in enumerate(flips) for v, f in row.items())
    return [sorted(row.items()) for row in rows], both


@pytest.mark.parametrize("num_nodes", [300, 70_000, 2**31 - 1])
@pytest.mark.parametrize("width", [2, 3])
def test_rows(num_nodes, width):
    rng = np.random.default_rng(num_nodes + width)
    first, num_rows = 120, 6
    # Row 121 is long enough for the other way of sorting, and row 123 is empty.
    rows = rng.choice([120, 121, 121, 121, 122, 124, 125], 2000)
    few = rng.integers(0, num_nodes, 200)
    neighbors = np.where(rng.random(2000) < 0.5, rng.choice(few, 2000), rng.integers(0, num_nodes, 2000))
    flips = FLIPPED * rng.integers(0, 2, 2000)
    weights = rng.normal(size=2000).astype(np.float32).view(np.uint32)
    records = np.stack([rows, neighbors + flips, weights], axis=1).astype(np.uint32)
    expected, both = oracle(records, first, num_rows)
    offsets, found, found_weights, mirrored = bucket_rows(records[:, :width], first, num_rows)
    assert mirrored == both > 0
    assert found.dtype == np.int32
    assert np.diff(offsets).tolist() == [len(row) for row in expected]
    assert found.tolist() == [v for row in expected for v, _ in row]
    assert found_weights.view(np.uint32).tolist() == ([w for row in expected for _, w in row] if width == 3 else [])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(5, 9), st.integers(0, 2)), min_size=1, max_size=12))
def test_other_weights_equal_their_definition(edges):
    tails, heads, weights = np.array(edges).T
    offsets, neighbors, places = directed_csr(tails, heads, 10)
    first = {}
    differ = [i for i, (u, v, w) in enumerate(edges) if first.setdefault((u, v), w) != w]
    count, edge = other_weights((offsets, neighbors, weights[places]), tails, heads, weights)
    assert count == len(differ)
    if differ:
        u, v, w = edges[differ[0]]
        assert edge == (u, v, first[u, v], w)


rows_of_ids = st.lists(st.lists(st.integers(-1, 6), max_size=4), max_size=7)
sorted_rows = st.lists(st.sets(st.integers(0, 4), max_size=3).map(sorted), min_size=5, max_size=5)


def _is_set(row: list[int], limit: int) -> bool:
    return row == sorted(set(row)) and all(0 <= value < limit for value in row)


@many
@given(rows=rows_of_ids, limit=st.integers(0, 7))
def test_the_first_bad_set(rows, limit):
    bad = [i for i, row in enumerate(rows) if not _is_set(row, limit)]
    assert first_bad_set(Ragged.from_rows(rows), limit) == (bad[0] if bad else None)


@many
@given(rows=rows_of_ids | sorted_rows, weighted=st.booleans())
def test_neighbors(rows, weighted):
    ragged = Ragged.from_rows(rows)
    bad = [i for i, row in enumerate(rows) if not _is_set(row, len(rows)) or i in row]
    edges = {(u, v) for u, row in enumerate(rows) for v in row}
    weights = (ragged.row_ids * ragged.values).astype(np.float32) if weighted else None
    node, symmetric = check_neighbors(ragged, weights)
    assert node == (bad[0] if bad else None)
    assert symmetric == (not bad and edges == {(v, u) for u, v in edges})


def test_weights_that_differ_by_direction():
    rows = Ragged.from_rows([[1, 2], [0], [0]])
    assert check_neighbors(rows, np.array([1, 2, 1, 2], np.float32)) == (None, True)
    assert check_neighbors(rows, np.array([1, 2, 2, 1], np.float32)) == (None, False)
