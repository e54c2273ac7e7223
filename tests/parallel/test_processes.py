"""Tasks in processes of their own, and how each may end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path

import pytest

from subgnn.errors import DataWarning, UserError
from subgnn.parallel.memory import LEAST, limit, within
from subgnn.parallel.processes import _child, _outcome, run_processes
from subgnn.storage.files import scratch_folder


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
    monkeypatch.setattr("subgnn.parallel.processes.end_with_parent", lambda: None)
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


def linger(place: str) -> int:
    with scratch_folder(Path(place)):
        print("at work", flush=True)
        time.sleep(300)
    return 0


PARENT = """
import sys
from subgnn.parallel.engine import LocalEngine
from subgnn.parallel.processes import run_processes
from tests.test_processes import linger
if sys.argv[1] == "processes":
    run_processes(linger, sys.argv[2:])
else:
    list(LocalEngine(2).map(linger, sys.argv[2:]))
"""


@pytest.mark.parametrize("kind", ["processes", "engine"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_their_parent(tmp_path, kind, number):
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", PARENT, kind, str(tmp_path / "a"), str(tmp_path / "b")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths})
    assert [parent.stdout.readline() for _ in range(2)] == ["at work\n"] * 2
    parent.send_signal(number)
    # They have inherited its output, which ends when the last of them does.
    assert parent.stdout.read() == ""
    parent.communicate()
    assert list(tmp_path.iterdir()) == []
