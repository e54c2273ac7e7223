"""Tasks in processes of their own, and how each may end."""

from __future__ import annotations

import os
from multiprocessing import Pipe

import pytest

from subgnn.errors import DataWarning, UserError
from subgnn.memory import LEAST, limit, within
from subgnn.processes import _child, _outcome, run_processes


def double(number: int) -> int:
    if number == 0:
        raise UserError("nothing", where="here", hint="give more")
    if number == 13:
        raise KeyboardInterrupt
    if number > 9:
        raise ZeroDivisionError("too much")
    if number < 0:
        os._exit(9)
    return 2 * number


def test_processes():
    looks = []
    with pytest.warns(DataWarning, match=r"a worker was killed \(exit code 9\)"):
        assert run_processes(double, [2, -1], while_waiting=lambda: looks.append(1)) == [4, 0]
    assert looks


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (0, UserError, "^here: nothing; give more$"),
        (10, RuntimeError, "ZeroDivisionError: too much"),
        (13, KeyboardInterrupt, ""),
    ],
)
def test_a_process_that_fails(number, kind, message, monkeypatch):
    """As a process does it, in this one."""
    monkeypatch.setattr("os.setpgrp", lambda: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("warnings.showwarning", lambda *_: None)
    receiver, sender = Pipe(duplex=False)
    _child(double, number, sender, LEAST)
    with pytest.raises(kind, match=message):
        _outcome(receiver, 0)


def allowed(_: int) -> int:
    return limit()


def test_each_has_an_equal_share_of_the_memory():
    with within("6GB"):
        assert run_processes(allowed, [0, 1]) == [3 * 10**9] * 2
    with within("1GB"):  # less than this, there is no working
        assert run_processes(allowed, [0, 1]) == [LEAST] * 2
