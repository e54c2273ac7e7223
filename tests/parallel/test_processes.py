"""Child processes: messages, ends, signals, and what each may leave behind."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from subgnn.errors import DataError, MissingExtra
from subgnn.parallel.memory import limit
from subgnn.parallel.processes import Ended, Process, end_all

ROOT = Path(__file__).parents[2]


def answer(parent, word: str) -> None:
    """Send a word, the memory limit and each message received, until one is not positive: then leave, or be killed."""
    print(f"here is {word}")
    parent.send((word, limit()))
    while (number := parent.receive()) > 0:
        parent.send(2 * number)
    if number == 0:
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_child_answers_until_it_ends():
    leaving, killed = (Process(answer, word, memory=2 * 10**9) for word in ("one", "two"))
    assert leaving.receive() == ("one", 2 * 10**9)
    assert killed.receive() == ("two", 2 * 10**9)
    leaving.send(3)
    assert leaving.receive() == 6
    leaving.send(0)
    killed.send(-1)
    assert leaving.receive() == Ended(3)
    assert killed.receive() == Ended(-signal.SIGKILL)
    assert not leaving.is_alive()
    leaving.send(1)  # to nobody
    end_all([leaving, killed])
    assert str(Ended(3)) == "ended by itself (exit code 3)"
    assert str(Ended(-9)) == "was killed (SIGKILL: out of memory, perhaps)"
    assert str(Ended(-15)) == "was killed (SIGTERM)"


def test_an_idle_child_is_ended(capfd):
    child = Process(answer, "idle", memory=10**9)
    assert child.receive()[0] == "idle"
    child.end()
    assert not child.is_alive()
    assert capfd.readouterr().out == "here is idle\n"


@pytest.mark.parametrize("error", [DataError("x", where="f:3", hint="y"), MissingExtra("p", extra="e", feature="f")])
def test_an_error_survives_the_way_to_the_parent(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.hint) == (type(error), str(error), error.hint)


def linger(place: str) -> int:
    path = Path(place)
    path.touch()
    try:
        print("at work\n", end="", flush=True)
        time.sleep(300)
    finally:
        path.unlink()
    return 0


PARENT = """
import sys
from subgnn.parallel.engine import LocalEngine
from subgnn.parallel.interrupts import raise_on_signals
from tests.parallel.test_processes import linger
raise_on_signals()
list(LocalEngine(2).map(linger, sys.argv[1:]))
"""


@pytest.mark.quick(1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_children_end_with_their_parent(tmp_path, number):
    """Without a main guard in the parent's script."""
    script = tmp_path / "script.py"
    script.write_text(PARENT)
    places = [tmp_path / "a", tmp_path / "b"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    parent = subprocess.Popen(
        [sys.executable, script, *places], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert [parent.stdout.readline() for _ in range(2)] == ["at work\n"] * 2
    parent.send_signal(number)
    # The children have inherited its output, which ends when the last of them does.
    assert parent.stdout.read() == ""
    assert parent.stderr.read().count("Traceback") == (number != signal.SIGKILL)  # the parent's own
    parent.communicate()
    assert not any(place.exists() for place in places)
