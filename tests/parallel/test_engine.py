"""Jobs over processes: results, failures, killed workers, signals, and a parent that is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

from subgnn.errors import UserError
from subgnn.parallel.engine import ENVIRONMENT, Failure, LocalEngine
from subgnn.parallel.memory import limit, memory_limit

PATH = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])


def work(job):
    """What a job says."""
    what, value = job
    if what == "square":
        return value * value
    if what == "pid":
        return os.getpid()
    if what == "environment":
        return {name: os.environ.get(name) for name in ENVIRONMENT}
    if what == "memory":
        return limit()
    if what == "mistake":
        raise UserError("no", where="here", hint="say\nyes")
    if what == "crash":
        return 1 // 0
    if what == "die":
        os.kill(os.getpid(), value)
    if what == "leave":
        os._exit(3)
    if what == "lambda":
        return lambda: value
    Path(value, str(os.getpid())).touch()
    time.sleep(600)
    return None


def done(jobs, processes, preload=()):
    with LocalEngine(processes, preload=preload) as engine:
        return dict(engine.map(work, jobs))


def test_in_this_process():
    found = done([("square", 3), ("crash", 0), ("mistake", 0), ("square", 4)], 1)
    assert (found["square", 3], found["square", 4]) == (9, 16)
    assert found["crash", 0].message == "ZeroDivisionError: integer division or modulo by zero"
    assert "in work" in found["crash", 0].details
    assert found["mistake", 0].message == "here: no; say yes"
    assert list(LocalEngine().map(work, [])) == list(LocalEngine(4).map(work, [])) == []


def test_each_worker_has_an_equal_share_of_the_memory():
    with memory_limit("6GB"):
        assert done([("memory", 0)], 1) == {("memory", 0): 6 * 10**9}
        assert done([("memory", 0)], 2) == {("memory", 0): 3 * 10**9}


@pytest.mark.parametrize("preload", [(), ("json", "no_such_module")])
def test_in_workers_of_which_some_die(preload):
    jobs = [("die", 9), ("square", 3), ("crash", 0), ("leave", 0), ("environment", 0), ("lambda", 1), ("square", 5)]
    before = dict(os.environ)
    found = done(jobs, 2, preload)
    assert dict(os.environ) == before
    assert set(found) == set(jobs)
    assert (found["square", 3], found["square", 5]) == (9, 25)
    assert found["die", 9] == Failure("the worker process was killed (SIGKILL, perhaps out of memory)")
    assert found["leave", 0] == Failure("the worker process ended by itself (exit code 3)")
    assert found["crash", 0].message.startswith("ZeroDivisionError")
    assert isinstance(found["lambda", 1], Failure)
    assert found["environment", 0] == ENVIRONMENT


def test_forked_workers_have_the_environment_of_now(monkeypatch):
    for value in ("first", "second"):
        monkeypatch.setenv("SUBGNN_CACHE", value)
        with LocalEngine(2, preload=["json"]) as engine:
            assert [result for _, result in engine.map(os.getenv, ["SUBGNN_CACHE"])] == [value]


def loaded(name):
    """Whether a module is there before anything asked for it, and the threads and the session of the process."""
    return name in sys.modules, len(list(Path("/proc/self/task").iterdir())), os.getsid(0) == os.getpid()


def is_killed(_):
    numba.get_num_threads()
    os.kill(os.getpid(), signal.SIGKILL)


PRELOADING = """
from subgnn.parallel.engine import LocalEngine, import_early
from subgnn.training.options import PRELOAD
from tests.parallel.test_engine import is_killed, loaded
import_early(PRELOAD)
with LocalEngine(2, preload=PRELOAD) as engine:
    print([result for _, result in engine.map(loaded, [PRELOAD[-1]] * 3)])
    print([result.message for _, result in engine.map(is_killed, [0])])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_workers_are_forked_from_one_process_without_threads():
    env = {**os.environ, "PYTHONPATH": PATH}
    done = subprocess.run([sys.executable, "-c", PRELOADING], capture_output=True, text=True, env=env)
    # The second thread of a worker waits for the end of its parent.
    assert done.stdout.splitlines()[-2] == str([(True, 2, True)] * 3)
    assert "killed (SIGKILL" in done.stdout.splitlines()[-1]
    assert done.stderr == ""  # nothing is left of the worker


@pytest.mark.slow
def test_an_interruption_ends_the_workers(tmp_path):
    jobs = [("sleep", str(tmp_path)), ("square", 2)]
    with LocalEngine(2) as engine:
        results = engine.map(work, jobs)
        assert next(results) == (("square", 2), 4)
        (pid,) = wait_for(tmp_path, 1)
        results.close()
        assert not alive(pid)
        # The other worker is still there, and takes the next jobs.
        ((_, first),) = engine.map(work, [("pid", 0)])
        ((_, second),) = engine.map(work, [("pid", 0)])
        assert first == second != os.getpid()
        # One that is killed while it has nothing to do is replaced.
        os.kill(first, signal.SIGKILL)
        while alive(first):
            time.sleep(0.02)
        ((_, third),) = engine.map(work, [("pid", 0)])
        assert third not in (first, os.getpid())
    assert not alive(third)


def wait_for(folder, count):
    deadline = time.monotonic() + 120
    while len(list(folder.iterdir())) < count and time.monotonic() < deadline:
        time.sleep(0.02)
    pids = [int(path.name) for path in folder.iterdir()]
    assert len(pids) == count
    return pids


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("processes", [0, 1])
def test_lazily(processes):
    results = LocalEngine(processes).map(work, [("square", 1), ("crash", 0)])
    assert next(results) == (("square", 1), 1)


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
from tests.parallel.test_engine import linger
raise_on_signals()
list(LocalEngine(2, preload=["json"]).map(linger, sys.argv[1:]))
"""


@pytest.mark.quick(1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(tmp_path, number):
    script = tmp_path / "script.py"
    script.write_text(PARENT)
    places = [tmp_path / "a", tmp_path / "b"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": {**os.environ, "PYTHONPATH": PATH}}
    parent = subprocess.Popen([sys.executable, script, *places], text=True, **pipes)
    assert [parent.stdout.readline() for _ in range(2)] == ["at work\n"] * 2
    parent.send_signal(number)
    # The workers have inherited its output, which ends when the last of them does.
    assert parent.stdout.read() == ""
    assert parent.stderr.read().count("Traceback") == (number != signal.SIGKILL)  # the parent's own
    parent.communicate()
    assert not any(place.exists() for place in places)
