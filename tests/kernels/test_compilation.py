"""Loops that are spread over threads, and the message that kernels are compiled."""

from __future__ import annotations

import gc
import logging

import numba
import numpy as np
import pytest

from subgnn.kernels import arrays


def test_an_error_in_one_piece_is_raised(monkeypatch):
    monkeypatch.setattr(arrays, "compiled", lambda function: function)
    monkeypatch.setattr(numba, "get_num_threads", lambda: 3)

    @arrays.compiled_parallel
    def divide(begin: int, end: int, values: list[int]) -> None:
        for i in range(begin, end):
            values[i] = 12 // values[i]

    values = [1, 2, 3, 4, 6, 12]
    divide(len(values), values)
    assert values == [12, 6, 4, 3, 2, 1]
    with pytest.raises(ZeroDivisionError):
        divide(np.array([0, 1, 2]), [1, 0])


def test_long_compilation_is_logged_once(monkeypatch, caplog):
    seconds = iter([0.0, 0.25, 0.5, 10.0, 10.75, 20.0, 25.0])
    monkeypatch.setattr(arrays.time, "monotonic", lambda: next(seconds))
    note = arrays._Compilations()
    with caplog.at_level(logging.INFO, "subgnn.kernels"):
        note.on_start(None)
        note.on_start(None)
        note.on_end(None)
        note.on_end(None)  # half a second in all
        assert not caplog.messages
        for _ in range(2):
            note.on_start(None)
            note.on_end(None)
    assert [message.partition(" (")[0] for message in caplog.messages] == ["compiling kernels, once"]


def test_no_garbage_is_collected_during_a_compilation():
    listener = arrays._Compilations()
    assert gc.isenabled()
    listener.on_start(None)
    listener.on_start(None)
    listener.on_end(None)
    assert not gc.isenabled()
    listener.on_end(None)
    assert gc.isenabled()
    gc.disable()
    listener.on_start(None)
    listener.on_end(None)
    assert not gc.isenabled()
    gc.enable()
