"""Loops that are spread over threads, and the message that kernels are compiled."""

from functools import partial

import numba
import numpy as np
import pytest

from subgnn.kernels import arrays


def test_an_error_in_one_piece_is_raised(monkeypatch):
    monkeypatch.setattr(numba, "get_num_threads", lambda: 3)

    @partial(arrays.compiled_parallel, compiler=lambda function: function)
    def divide(begin: int, end: int, values: list[int]) -> None:
        for i in range(begin, end):
            values[i] = 12 // values[i]

    values = [1, 2, 3, 4, 6, 12]
    divide(len(values), values)
    assert values == [12, 6, 4, 3, 2, 1]
    with pytest.raises(ZeroDivisionError):
        divide(np.array([0, 1, 2]), [1, 0])
