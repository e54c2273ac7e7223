"""The random numbers of the kernels: the published generator, uniform draws, and keys of node sets."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.draws import (
    item_keys,
    node_set_keys,
    open_stream,
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
