"""Dynamic time warping against the textbook table, and for tiny sequences against all warping paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels import dtw
from tests.kernels.graphs import many, ragged

Sequence = list[float]
COSTS: dict[str, Callable[[float, float], float]] = {
    "absolute": lambda x, y: abs(x - y),
    "ratio": lambda x, y: (max(x, y) + 1.0) / (min(x, y) + 1.0) - 1.0,
}
settings_of_dtw = pytest.mark.parametrize(
    ("cost", "normalize"), [(cost, normalize) for cost in COSTS for normalize in (False, True)]
)


def table_dtw(a: Sequence, b: Sequence, cost: str, normalize: bool) -> float:
    """The O(nm) table of (cost, steps), smallest first: of several cheapest paths the shortest counts."""
    best: dict[tuple[int, int], tuple[float, int]] = {(-1, -1): (0.0, 0)}
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            before = [best[p] for p in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if p in best]
            total, steps = min(before)
            best[i, j] = total + COSTS[cost](x, y), steps + 1
    total, steps = best[len(a) - 1, len(b) - 1]
    return total / steps if normalize else total


def warping_paths(n: int, m: int) -> Iterator[list[tuple[int, int]]]:
    """Every monotone chain of pairs from (0, 0) to (n - 1, m - 1)."""
    if n == 1 and m == 1:
        yield [(0, 0)]
    for dn, dm in ((1, 0), (0, 1), (1, 1)):
        if n > dn and m > dm:
            for path in warping_paths(n - dn, m - dm):
                yield [*path, (n - 1, m - 1)]


def paths_dtw(a: Sequence, b: Sequence, cost: str, normalize: bool) -> float:
    """The cheapest of all warping paths, the shortest among those."""
    total, steps = min((sum(COSTS[cost](a[i], b[j]) for i, j in p), len(p)) for p in warping_paths(len(a), len(b)))
    return total / steps if normalize else total


def every_pair(
    oracle: Callable[[Sequence, Sequence, str, bool], float],
    a: list[Sequence],
    b: list[Sequence],
    cost: str,
    normalize: bool,
) -> list[list[float]]:
    return [[oracle(x, y, cost, normalize) for y in b] for x in a]


degrees = st.lists(st.integers(0, 9), min_size=1, max_size=9)


@settings_of_dtw
@many
@given(a=st.lists(degrees, max_size=3), b=st.lists(degrees, max_size=35))
def test_the_table_is_the_oracle_s(cost: str, normalize: bool, a: list[Sequence], b: list[Sequence]) -> None:
    found = dtw(ragged(a), ragged(b), cost=cost, normalize=normalize)
    assert found.shape == (len(a), len(b))
    assert found.tolist() == every_pair(table_dtw, a, b, cost, normalize)


@settings_of_dtw
@many
@given(data=st.data())
def test_no_warping_path_is_cheaper(cost: str, normalize: bool, data: st.DataObject) -> None:
    # Ratios of these are whole, so sums of costs are exact and equal ones are seen to be equal.
    tiny = st.lists(st.lists(st.sampled_from([0, 1, 3, 7]), min_size=1, max_size=4), min_size=1, max_size=3)
    a, b = data.draw(tiny), data.draw(tiny)
    found = dtw(ragged(a), ragged(b), cost=cost, normalize=normalize)
    assert found.tolist() == every_pair(paths_dtw, a, b, cost, normalize)


@settings_of_dtw
@pytest.mark.parametrize("rows", [1, 7, 8, 9, 15, 16, 17, 33])
def test_lanes_of_very_unequal_lengths(cost: str, normalize: bool, rows: int) -> None:
    rng = np.random.default_rng(rows)
    lengths = rng.choice([1, 2, 5, 40, 120], rows)
    b = [sorted(rng.integers(0, 30, length).tolist(), reverse=True) for length in lengths]
    a = [sorted(rng.integers(0, 30, length).tolist(), reverse=True) for length in (1, 33)]
    found = dtw(ragged(a), ragged(b), cost=cost, normalize=normalize)
    assert found.tolist() == every_pair(table_dtw, a, b, cost, normalize)


@settings_of_dtw
def test_sequences_of_real_numbers(cost: str, normalize: bool) -> None:
    rng = np.random.default_rng(1)
    a, b = ([rng.random(length).tolist() for length in lengths] for lengths in ([5, 1, 12], [9, 3, 3, 20]))
    found = dtw(ragged(a, np.float64), ragged(b, np.float64), cost=cost, normalize=normalize)
    assert found.tolist() == every_pair(table_dtw, a, b, cost, normalize)


@settings_of_dtw
@pytest.mark.parametrize(("values", "shorter", "longer"), [(3, 3, 4), (2, 4, 5)])
def test_sequences_of_few_values_tie_in_every_way(
    cost: str, normalize: bool, values: int, shorter: int, longer: int
) -> None:
    a, b = ([list(row) for row in product(range(values), repeat=length)] for length in (shorter, longer))
    found = dtw(ragged(a), ragged(b), cost=cost, normalize=normalize)
    assert found.tolist() == every_pair(table_dtw, a, b, cost, normalize)


@settings_of_dtw
@pytest.mark.parametrize(("a", "b"), [([[]], [[1]]), ([[1]], [[2], []]), ([[1, 2], []], [[1]])])
def test_an_empty_sequence_is_refused(cost: str, normalize: bool, a: list[Sequence], b: list[Sequence]) -> None:
    with pytest.raises(ValueError, match="empty sequence"):
        dtw(ragged(a), ragged(b), cost=cost, normalize=normalize)
