"""The random numbers of the kernels: the published generator, uniform and normal draws, and keys of node sets."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from subgnn.kernels.draws import (
    item_keys,
    node_set_keys,
    normal_rows,
    open_stream,
    sample_members,
    scramble,
    uniform_below,
    uniform_unit,
    uniform_word,
)
from tests.kernels.chance import LEAST_P, p_value, uniform
from tests.kernels.graphs import many, ragged

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
def test_words_are_those_of_splitmix64(seed: int) -> None:
    state = np.array([seed], np.uint64)
    assert [int(uniform_word(state)) for _ in range(4)] == splitmix(seed, 4)


@many
@given(seed=words)
def test_units_are_the_upper_53_bits(seed: int) -> None:
    state = np.array([seed], np.uint64)
    assert [uniform_unit(state) for _ in range(4)] == [(word >> 11) / 2**53 for word in splitmix(seed, 4)]


@many
@given(keys=st.sets(words, min_size=2, max_size=30))
def test_scrambling_loses_nothing(keys: set[int]) -> None:
    assert len({int(scramble(np.uint64(key))) for key in keys}) == len(keys)


@many
@given(seed=words, n=st.integers(1, 2**31 - 1))
def test_draws_below_n_reject_what_would_favour_some(seed: int, n: int) -> None:
    """Of the 2^32 upper halves of a word, 2^32 mod n are refused, so each result is left with as many as any other."""
    state = np.array([seed], np.uint64)
    drawn = [int(uniform_below(state, n)) for _ in range(4)]
    halves = [(word >> 32) * n for word in splitmix(seed, 400)]
    assert drawn == [half >> 32 for half in halves if half % 2**32 >= 2**32 % n][:4]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 64, 97, 100, 255])
def test_draws_below_a_small_n_are_uniform(n: int) -> None:
    state = open_stream(np.uint64(17), n)
    counts = Counter(int(uniform_below(state, n)) for _ in range(40_000))
    assert p_value([(counts, uniform(range(n)))]) > LEAST_P


@pytest.mark.parametrize(("n", "modulus"), [(3 * 2**29, 3), (5 * 2**28, 5), (7 * 2**28, 7), (2**31 - 1, 8)])
def test_draws_below_a_large_n_are_uniform(n: int, modulus: int) -> None:
    """Without rejection, residues of draws below 3 * 2^29 would come out as 3 : 3 : 2."""
    state = open_stream(np.uint64(23), 0)
    drawn = [int(uniform_below(state, n)) for _ in range(40_000)]
    assert min(drawn) >= 0
    assert max(drawn) < n
    assert p_value([(Counter(value % modulus for value in drawn), uniform(range(modulus)))]) > LEAST_P


@pytest.mark.parametrize("vary", ["key", "index"])
def test_first_draws_of_neighbouring_streams_are_uniform(vary: str) -> None:
    pairs = [(np.uint64(i), 0) if vary == "key" else (np.uint64(9), i) for i in range(30_000)]
    drawn = [int(uniform_below(open_stream(*pair), 60)) for pair in pairs]
    assert p_value([(Counter(drawn), uniform(range(60)))]) > LEAST_P
    steps = Counter((b - a) % 60 for a, b in zip(drawn[::2], drawn[1::2], strict=True))
    assert p_value([(steps, uniform(range(60)))]) > LEAST_P


@many
@given(key=words, sets=node_sets)
def test_keys_agree_for_equal_sets_and_differ_for_others(key: int, sets: list[list[int]]) -> None:
    keys = node_set_keys(key, ragged(sets)).tolist()
    for a, first in zip(sets, keys, strict=True):
        assert [second == first for second in keys] == [b == a for b in sets]


@many
@given(key=words, sets=node_sets, data=st.data())
def test_keys_do_not_depend_on_the_other_sets(key: int, sets: list[list[int]], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(sets))))[: len(sets) // 2 + 1]
    together = node_set_keys(key, ragged(sets)).tolist()
    assert node_set_keys(key, ragged([sets[i] for i in order])).tolist() == [together[i] for i in order]


def test_keys_of_many_sets_under_many_keys_are_all_different() -> None:
    sets = ragged([[], *([v] for v in range(500)), *([v, v + 1] for v in range(500)), range(1000)])
    keys = np.concatenate([node_set_keys(key, sets) for key in range(20)])
    assert keys.dtype == np.uint64
    assert len(np.unique(keys)) == 20 * len(sets)


def test_one_key_is_spread_over_items_and_given_keys_are_kept() -> None:
    spread = np.concatenate([item_keys(key, 2000) for key in range(5)])
    assert len(np.unique(spread)) == 10_000
    assert item_keys(3, 10).tolist() == item_keys(3, 2000)[:10].tolist()
    given_keys = np.array([5, 2**64 - 1, 5], np.uint64)
    assert item_keys(given_keys, 3).tolist() == given_keys.tolist()


node_sets_of_members = st.lists(st.sets(st.integers(0, 99), min_size=1, max_size=20).map(sorted), max_size=10)


@many
@given(sets=node_sets_of_members, draws=st.integers(0, 20), key=st.integers(0, 2**64 - 1))
def test_draws_are_members(sets: list[list[int]], draws: int, key: int) -> None:
    drawn = sample_members(ragged(sets), draws=draws, key=key)
    assert drawn.shape == (len(sets), draws)
    assert drawn.dtype == np.int32
    assert all(set(row) <= set(nodes) for row, nodes in zip(drawn.tolist(), sets, strict=True))


@many
@given(sets=node_sets_of_members, data=st.data())
def test_draws_are_a_function_of_the_key_and_the_set_alone(sets: list[list[int]], data: st.DataObject) -> None:
    together = sample_members(ragged(sets), draws=8, key=node_set_keys(4, ragged(sets))).tolist()
    chosen = data.draw(st.permutations(range(len(sets))))[: len(sets) // 2]
    apart = ragged([sets[i] for i in chosen])
    assert sample_members(apart, draws=8, key=node_set_keys(4, apart)).tolist() == [together[i] for i in chosen]


def test_draws_are_uniform() -> None:
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
def test_rows_are_those_of_each_node_alone(key: int, nodes: list[int], dim: int) -> None:
    found = normal_rows(key, np.array(nodes, np.int64), dim)
    assert found.dtype == np.float32
    assert found.shape == (len(nodes), dim)
    for node, row in zip(nodes, found, strict=True):
        assert row.tolist() == pytest.approx(box_muller(key, node, dim), rel=1e-6, abs=1e-6)
        assert row.tobytes() == normal_rows(key, np.array([node]), dim)[0].tobytes()


def test_numbers_are_normal_and_columns_and_rows_independent() -> None:
    found = normal_rows(3, np.arange(20_000), 6).astype(np.float64)
    for column in found.T:
        assert kstest(column, "norm").pvalue > LEAST_P
    correlations = np.corrcoef(found.T) - np.eye(6)
    assert np.abs(correlations).max() < 4.5 / math.sqrt(20_000)
    assert abs(np.corrcoef(found[:-1, 0], found[1:, 0])[0, 1]) < 4.5 / math.sqrt(20_000)


def test_another_key_gives_other_rows() -> None:
    first, second = (normal_rows(key, np.arange(100), 4) for key in (0, 1))
    assert not (first == second).any()
