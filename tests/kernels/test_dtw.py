"""Dynamic time warping against the textbook table, and for tiny sequences against all warping paths."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.dtw import dtw
from tests.kernels.graphs import many, ragged

COSTS: dict[str, Callable[[float, float], float]] = {
    "absolute": lambda x, y: abs(x - y),
    "ratio": lambda x, y: (max(x, y) + 1.0) / (min(x, y) + 1.0) - 1.0,
}
each_cost = pytest.mark.parametrize("cost", COSTS)


def table_dtw(a, b, cost):
    """The O(nm) table."""
    best = {(-1, -1): 0.0}
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            before = [best[p] for p in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if p in best]
            best[i, j] = min(before) + COSTS[cost](x, y)
    return best[len(a) - 1, len(b) - 1]


def warping_paths(n: int, m: int) -> Iterator[list[tuple[int, int]]]:
    """Every monotone chain of pairs from (0, 0) to (n - 1, m - 1)."""
    if n == 1 and m == 1:
        yield [(0, 0)]
    for dn, dm in ((1, 0), (0, 1), (1, 1)):
        if n > dn and m > dm:
            for path in warping_paths(n - dn, m - dm):
                yield [*path, (n - 1, m - 1)]


def paths_dtw(a, b, cost):
    return min(sum(COSTS[cost](a[i], b[j]) for i, j in path) for path in warping_paths(len(a), len(b)))


def agrees(a, b, cost, oracle=table_dtw, dtype=np.int32):
    found = dtw(ragged(a, dtype), ragged(b, dtype), cost=cost)
    assert found.shape == (len(a), len(b))
    assert found.tolist() == [[oracle(x, y, cost) for y in b] for x in a]


degrees = st.lists(st.integers(0, 9), min_size=1, max_size=9)
# Ratios of these are whole, so sums of costs are exact.
tiny = st.lists(st.lists(st.sampled_from([0, 1, 3, 7]), min_size=1, max_size=4), min_size=1, max_size=3)


@each_cost
@many
@given(a=st.lists(degrees, max_size=3), b=st.lists(degrees, max_size=35))
def test_the_table_is_the_oracle_s(cost, a, b):
    agrees(a, b, cost)


@each_cost
@many
@given(a=tiny, b=tiny)
def test_no_warping_path_is_cheaper(cost, a, b):
    agrees(a, b, cost, paths_dtw)


@each_cost
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 33])
def test_lanes_of_very_unequal_lengths(cost, rows):
    rng = np.random.default_rng(rows)
    b = [rng.random(length).tolist() for length in rng.choice([1, 2, 5, 40, 120], rows)]
    agrees([rng.random(length).tolist() for length in (1, 33)], b, cost, dtype=np.float64)


@each_cost
def test_sequences_of_few_values_tie_in_every_way(cost):
    a, b = ([list(row) for row in product(range(2), repeat=length)] for length in (4, 5))
    agrees(a, b, cost)


@pytest.mark.parametrize(("a", "b"), [([[]], [[1]]), ([[1]], [[2], []])])
def test_an_empty_sequence_is_refused(a, b):
    with pytest.raises(ValueError, match="empty sequence"):
        dtw(ragged(a), ragged(b))
