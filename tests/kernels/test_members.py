"""Draws from node sets against the uniform distribution."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.draws import node_set_keys, sample_members
from tests.kernels.chance import LEAST_P, p_value, uniform
from tests.kernels.graphs import many, ragged

node_sets = st.lists(st.sets(st.integers(0, 99), min_size=1, max_size=20).map(sorted), max_size=10)


@many
@given(sets=node_sets, draws=st.integers(0, 20), key=st.integers(0, 2**64 - 1))
def test_draws_are_members(sets: list[list[int]], draws: int, key: int) -> None:
    drawn = sample_members(ragged(sets), draws=draws, key=key)
    assert drawn.shape == (len(sets), draws)
    assert drawn.dtype == np.int32
    assert all(set(row) <= set(nodes) for row, nodes in zip(drawn.tolist(), sets, strict=True))


@many
@given(sets=node_sets, data=st.data())
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
