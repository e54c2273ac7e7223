"""The random numbers of the kernels: the published generator, uniform and normal draws, and keys of node sets."""

import math
from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from subgnn.kernels.draws import (
    induced_block,
    node_set_keys,
    normal_rows,
    open_stream,
    sample_members,
    sample_neighbors,
    sample_non_edges,
    uniform_below,
    uniform_unit,
    uniform_word,
    walk_nodes,
)
from tests.kernels.chance import LEAST_P, p_value, uniform
from tests.kernels.graphs import SmallGraph, graphs, graphs_with_sets, many, ragged

WORD = 2**64
words = st.integers(0, WORD - 1)
node_sets = st.lists(st.sets(st.integers(0, 30), max_size=8).map(sorted), max_size=12)


def splitmix(seed: int, count: int) -> list[int]:
    """SplitMix64 in unbounded integers (Steele, Lea and Flood, 2014)."""
    out = []
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) % WORD
        x = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 % WORD
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
        out.append(x ^ (x >> 31))
    return out


@many
@given(seed=words)
def test_words_are_those_of_splitmix64(seed):
    state = np.array([seed], np.uint64)
    assert [int(uniform_word(state)) for _ in range(4)] == splitmix(seed, 4)


@many
@given(seed=words, n=st.integers(1, 2**31 - 1))
def test_draws_below_n_reject_what_would_favour_some(seed, n):
    state = np.array([seed], np.uint64)
    drawn = [int(uniform_below(state, n)) for _ in range(4)]
    halves = [(word >> 32) * n for word in splitmix(seed, 400)]
    assert drawn == [half >> 32 for half in halves if half % 2**32 >= 2**32 % n][:4]


@pytest.mark.parametrize("vary", ["key", "index"])
def test_first_draws_of_neighbouring_streams_are_uniform(vary):
    pairs = [(np.uint64(i), 0) if vary == "key" else (np.uint64(9), i) for i in range(30_000)]
    drawn = [int(uniform_below(open_stream(*pair), 60)) for pair in pairs]
    assert p_value([(Counter(drawn), uniform(range(60)))]) > LEAST_P
    steps = Counter((b - a) % 60 for a, b in zip(drawn[::2], drawn[1::2], strict=True))
    assert p_value([(steps, uniform(range(60)))]) > LEAST_P


@many
@given(key=words, sets=node_sets)
def test_keys_agree_for_equal_sets_and_differ_for_others(key, sets):
    keys = node_set_keys(key, ragged(sets)).tolist()
    for a, first in zip(sets, keys, strict=True):
        assert [second == first for second in keys] == [b == a for b in sets]


def test_draws_are_uniform():
    sets = [[5], [0, 9], list(range(7)), list(range(3, 90, 2))]
    drawn = sample_members(ragged(sets), draws=30_000, key=12).tolist()
    assert p_value((Counter(row), uniform(nodes)) for row, nodes in zip(drawn, sets, strict=True)) > LEAST_P
    firsts = sample_members(ragged([list(range(40))] * 30_000), draws=1, key=13)[:, 0].tolist()
    assert p_value([(Counter(firsts), uniform(range(40)))]) > LEAST_P


nodes = st.lists(st.integers(0, 2**31 - 2), max_size=8)


def box_muller(key: int, node: int, dim: int) -> list[float]:
    """The vector of one node, two numbers at a time."""
    state, out = open_stream(np.uint64(key), node), []
    while len(out) < dim:
        radius = math.sqrt(-2.0 * math.log(1.0 - uniform_unit(state)))
        angle = 2.0 * math.pi * uniform_unit(state)
        out += [radius * math.cos(angle), radius * math.sin(angle)]
    return out[:dim]


@many
@given(key=st.integers(0, 2**64 - 1), nodes=nodes, dim=st.integers(0, 9))
def test_rows_are_those_of_each_node_alone(key, nodes, dim):
    found = normal_rows(key, np.array(nodes, np.int64), dim)
    assert found.dtype == np.float32
    assert found.shape == (len(nodes), dim)
    for node, row in zip(nodes, found, strict=True):
        assert row.tolist() == pytest.approx(box_muller(key, node, dim), rel=1e-6, abs=1e-6)
        assert row.tobytes() == normal_rows(key, np.array([node]), dim)[0].tobytes()


def test_numbers_are_normal_and_columns_and_rows_independent():
    found = normal_rows(3, np.arange(20_000), 6).astype(np.float64)
    for column in found.T:
        assert kstest(column, "norm").pvalue > LEAST_P
    correlations = np.corrcoef(found.T) - np.eye(6)
    assert np.abs(correlations).max() < 4.5 / math.sqrt(20_000)
    assert abs(np.corrcoef(found[:-1, 0], found[1:, 0])[0, 1]) < 4.5 / math.sqrt(20_000)


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
    blocks = (sample_neighbors(*star.csr, [0], fraction=0.4, key=key) for key in range(4000))
    draws = Counter(frozenset(rows_of(block)[0]) for block in blocks)
    assert p_value([(draws, uniform(map(frozenset, combinations(range(1, 6), 2))))]) > LEAST_P


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


def test_pairs_without_an_edge_are_uniform():
    nodes = [3, 0, 2, 1]
    pairs = sample_non_edges(*PATH.csr, nodes, pairs=8000, key=3)
    free = [(a, b) for a, b in permutations(range(4), 2) if not PATH.networkx.has_edge(nodes[a], nodes[b])]
    assert p_value([(Counter(zip(*pairs.tolist(), strict=True)), uniform(free))]) > LEAST_P


@pytest.mark.parametrize("num_nodes", [1, 2, 5])
def test_a_complete_graph_has_no_such_pair(num_nodes):
    complete = SmallGraph(num_nodes, tuple(combinations(range(num_nodes), 2)))
    assert sample_non_edges(*complete.csr, np.arange(num_nodes), pairs=10, key=0).shape == (2, 0)
