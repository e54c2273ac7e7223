"""Samples of neighbours, of walks and of non-edges, against obvious ones."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.build_csr import transpose
from subgnn.kernels.draws import induced_block, sample_neighbors, sample_non_edges, walk_nodes
from tests.kernels.chance import LEAST_P, p_value, uniform
from tests.kernels.graphs import SmallGraph, graphs, graphs_with_sets, many

PATH = SmallGraph(4, ((0, 1), (1, 2)))


def rows_of(block):
    """The neighbours of each row, by their ids in the graph."""
    ends = block.offsets
    return [block.nodes[block.columns[ends[i] : ends[i + 1]]].tolist() for i in range(len(ends) - 1)]


@many
@given(graphs(), st.floats(0.01, 1.0), st.integers(0, 2**32 - 1))
def test_a_sample_has_the_right_number_of_different_neighbours(graph, fraction, seed):
    rows = np.random.default_rng(seed).permutation(graph.num_nodes)[: 1 + seed % graph.num_nodes]
    block = sample_neighbors(*graph.csr, rows, fraction=fraction, key=seed)
    assert block.nodes[: len(rows)].tolist() == rows.tolist()
    assert len(set(block.nodes.tolist())) == len(block.nodes)
    assert set(block.columns.tolist()) | set(range(len(rows))) == set(range(len(block.nodes)))
    for row, found in zip(rows, rows_of(block), strict=True):
        around = set(graph.networkx[int(row)])
        assert len(found) == len(set(found)) == min(len(around), math.ceil(fraction * len(around)))
        assert set(found) <= around


def test_every_subset_of_neighbours_is_equally_likely():
    star = SmallGraph(6, tuple((0, v) for v in range(1, 6)))
    draws = Counter(
        frozenset(rows_of(sample_neighbors(*star.csr, [0], fraction=0.4, key=key))[0]) for key in range(4000)
    )
    assert p_value([(draws, uniform(map(frozenset, combinations(range(1, 6), 2))))]) > LEAST_P


def test_what_is_drawn_for_a_node_does_not_depend_on_its_company():
    dense = SmallGraph(12, tuple(combinations(range(12), 2)))
    alone = rows_of(sample_neighbors(*dense.csr, [7], fraction=0.3, key=5))[0]
    among = rows_of(sample_neighbors(*dense.csr, [3, 7, 1], fraction=0.3, key=5))[1]
    assert sorted(alone) == sorted(among)


@many
@given(graphs_with_sets())
def test_an_induced_block_is_the_induced_subgraph(case):
    graph, sets = case
    for members in sets:
        block, entries = induced_block(*graph.csr, members)
        assert block.nodes.tolist() == members
        for row, found in zip(members, rows_of(block), strict=True):
            assert found == sorted(set(graph.networkx[row]) & set(members))
        assert graph.csr[1][entries].tolist() == block.nodes[block.columns].tolist()


def test_walks_meet_nodes_with_the_probability_of_their_steps():
    expected = Counter()
    for root in range(4):
        first = sorted(PATH.networkx[root]) or [root]
        for one in first:
            second = sorted(PATH.networkx[one]) or [one]
            for two in second:
                expected[frozenset((root, one, two))] += 1 / (4 * len(first) * len(second))
    seen = Counter(frozenset(walk_nodes(*PATH.csr, roots=1, length=2, key=key).tolist()) for key in range(4000))
    assert p_value([(seen, expected)]) > LEAST_P


def test_walks_from_many_roots_are_drawn_apart():
    assert walk_nodes(*PATH.csr, roots=200, length=0, key=1).tolist() == [0, 1, 2, 3]


def test_pairs_without_an_edge_are_uniform():
    nodes = [3, 0, 2, 1]
    pairs = sample_non_edges(*PATH.csr, nodes, pairs=8000, key=3)
    free = [(a, b) for a, b in permutations(range(4), 2) if not PATH.networkx.has_edge(nodes[a], nodes[b])]
    assert p_value([(Counter(zip(*pairs.tolist(), strict=True)), uniform(free))]) > LEAST_P


@pytest.mark.parametrize("num_nodes", [1, 2, 5])
def test_a_complete_graph_has_no_such_pair(num_nodes):
    complete = SmallGraph(num_nodes, tuple(combinations(range(num_nodes), 2)))
    assert sample_non_edges(*complete.csr, np.arange(num_nodes), pairs=10, key=0).shape == (2, 0)


def test_a_rectangular_matrix_is_transposed():
    offsets, heads, places = transpose(np.array([0, 2, 3]), np.array([0, 4, 2], np.int32), 5)
    assert offsets.tolist() == [0, 1, 1, 2, 2, 3]
    assert heads.tolist() == [0, 1, 0]
    assert places.tolist() == [0, 2, 1]
