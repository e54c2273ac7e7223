import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.errors import DataError
from subgnn.ragged import Ragged

ROWS = st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=6)


def lists(ragged):
    return [row.tolist() for row in ragged]


@given(ROWS)
def test_rows_come_back(rows):
    ragged = Ragged.from_rows(rows)
    assert lists(ragged) == rows
    assert len(ragged) == len(rows)
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.row_ids.tolist() == [i for i, row in enumerate(rows) for _ in row]
    ragged.validate("here")


@given(ROWS.filter(bool), st.data())
def test_take(rows, data):
    index = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    taken = Ragged.from_rows(rows).take(index)
    assert lists(taken) == [rows[i] for i in index]
    assert taken.values.dtype == np.int32


def test_indexing():
    ragged = Ragged.from_rows([[1, 2], [], [7]])
    assert ragged[-1].tolist() == [7]
    assert ragged[-3].tolist() == [1, 2]
    for row in (3, -4):
        with pytest.raises(IndexError, match=f"no row {row} among 3"):
            ragged[row]


@pytest.mark.parametrize("offsets", [[], [0], [0, 2], [1, 3], [0, 2, 1, 3], [0, 4]])
def test_validate_refuses_offsets_that_do_not_fit(offsets):
    ragged = Ragged(np.arange(3), np.array(offsets, np.int64))
    with pytest.raises(DataError, match=r"^here: offsets do not describe the values; they must rise"):
        ragged.validate("here")


def test_batches_are_all_rows_in_order():
    rows = Ragged.from_rows([list(range(n)) for n in (1, 30, 5, 80, 2, 2, 2)])
    some = list(rows.batches(40, least=10))
    assert [row.tolist() for part in some for row in part] == [row.tolist() for row in rows]
    assert [len(part) for part in some] == [2, 1, 1, 3]
    assert [len(part) for part in rows.batches(40)] == [3, 1, 3]
    assert list(Ragged.from_rows([]).batches(40)) == []


def test_real_numbers_are_not_rounded_to_whole_ones():
    for rows in ([[0.5]], [[0], [1.0]], [np.array([2**24], np.float32)]):
        with pytest.raises(DataError, match="real numbers; integers are accepted"):
            Ragged.from_rows(rows)
    assert len(Ragged.from_rows([[], [1]])) == 2
    assert Ragged.from_rows([[0.5]], np.float64)[0].tolist() == [0.5]
