"""Checks of rows against what they are to find, done the slow way."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.build_csr import check_neighbors, first_bad_set
from subgnn.ragged import Ragged
from tests.kernels.graphs import many

rows_of_ids = st.lists(st.lists(st.integers(-1, 6), max_size=4), max_size=7)
sorted_rows = st.lists(st.sets(st.integers(0, 4), max_size=3).map(sorted), min_size=5, max_size=5)


def _is_set(row: list[int], limit: int) -> bool:
    return row == sorted(set(row)) and all(0 <= value < limit for value in row)


@many
@given(rows=rows_of_ids, limit=st.integers(0, 7))
def test_the_first_bad_set(rows: list[list[int]], limit: int) -> None:
    bad = [i for i, row in enumerate(rows) if not _is_set(row, limit)]
    assert first_bad_set(Ragged.from_rows(rows), limit) == (bad[0] if bad else None)


@many
@given(rows=rows_of_ids | sorted_rows, weighted=st.booleans())
def test_neighbors(rows: list[list[int]], weighted: bool) -> None:
    ragged = Ragged.from_rows(rows)
    bad = [i for i, row in enumerate(rows) if not _is_set(row, len(rows)) or i in row]
    edges = {(u, v) for u, row in enumerate(rows) for v in row}
    weights = (ragged.row_ids * ragged.values).astype(np.float32) if weighted else None
    node, symmetric = check_neighbors(ragged, weights)
    assert node == (bad[0] if bad else None)
    assert symmetric == (not bad and edges == {(v, u) for u, v in edges})


def test_one_entry_changed_among_many() -> None:
    n = 5000
    ring = np.sort(np.stack([(np.arange(n) + 1) % n, (np.arange(n) - 1) % n], axis=1), axis=1).astype(np.int32)
    offsets = np.arange(0, 2 * n + 1, 2)
    assert check_neighbors(Ragged(ring.reshape(-1), offsets)) == (None, True)
    for place in (3, n + 1, 2 * n - 9):  # the larger neighbour of a node in the middle
        changed = ring.reshape(-1).copy()
        changed[place] += 2
        assert check_neighbors(Ragged(changed, offsets)) == (None, False)


def test_weights_that_differ_by_direction() -> None:
    rows = Ragged.from_rows([[1, 2], [0], [0]])
    assert check_neighbors(rows, np.array([1, 2, 1, 2], np.float32)) == (None, True)
    assert check_neighbors(rows, np.array([1, 2, 2, 1], np.float32)) == (None, False)
