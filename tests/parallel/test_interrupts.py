"""Commands that are interrupted: no traceback, nothing half-written, and an exit code that says by what."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from subgnn.data.formats.folder import write_folder
from tests.cli.command import call
from tests.training.examples import dataset

ROOT = Path(__file__).parents[2]

AT_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["AT"]:
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))
            for _ in range(1000):
                pass
sys.meta_path.insert(0, Finder())
"""


def environment(*paths: Path, **more: str) -> dict[str, str]:
    before = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, paths), *before, str(ROOT)]), **more}


def start(script: str, *arguments: object) -> subprocess.Popen:
    """A script that ends in the command line with these arguments."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    script += "from subgnn.__main__ import run\nrun()\n"
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], **pipes, text=True, env=environment())


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("module", "number"), [("subgnn.cli.app", signal.SIGINT), ("numpy", signal.SIGTERM), ("torch", signal.SIGINT)]
)
def test_an_interrupt_while_modules_are_imported(tmp_path, module, number):
    (tmp_path / "sitecustomize.py").write_text(AT_IMPORT)
    env = environment(tmp_path, AT=module, SIGNAL=str(int(number)))
    called = [sys.executable, "-m", "subgnn", "info"]
    done = subprocess.run(called, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr in ("interrupted\n", "interrupted; continue with: subgnn info --resume\n")


IN_A_CALLBACK = """
import os, signal
from subgnn.parallel.interrupts import exit_code, raise_on_signals
class Watched:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass
raise_on_signals()
try:
    Watched()
    while True:
        pass
except KeyboardInterrupt:
    print(exit_code())
"""


def test_an_interrupt_in_a_callback_is_not_lost():
    called = [sys.executable, "-c", IN_A_CALLBACK]
    done = subprocess.run(called, env=environment(), capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("143\n", "")


CONVERT = """
import sys, time
import subgnn.data.convert as module
def read(*_, store, **__):
    (store.folder / "edges").write_text("half")
    print("inside", flush=True)
    time.sleep(300)
module.read_folder = read
"""


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("number", "code", "left"), [(signal.SIGINT, 130, False), (signal.SIGHUP, 129, False), (signal.SIGKILL, -9, True)]
)
def test_convert_leaves_no_scratch_folder(tmp_path, number, code, left):
    write_folder(dataset(), tmp_path / "data")
    (tmp_path / "to").mkdir()
    arguments = ("data", "convert", tmp_path / "data", "--out", tmp_path / "to" / "x.subgnn")
    process = start(CONVERT, *arguments)
    assert process.stdout.readline() == "inside\n"
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == code
    assert errors == ("" if left else "interrupted\n")
    assert bool(list((tmp_path / "to").iterdir())) is left
    # What was left goes when the next one begins.
    assert call(*arguments).code == 0
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["x.subgnn"]


TRAIN = """
import sys
from subgnn.training.run import Recorder
real = Recorder.append
def append(self, record):
    real(self, record)
    print(record["epoch"], flush=True)
    sys.stdin.readline()
Recorder.append = append
"""


@pytest.mark.slow
def test_a_training_that_is_terminated_is_saved(tmp_path):
    write_folder(dataset(), tmp_path / "data")
    options = ["--recipe", "subgnn", "--set", "training.epochs=5", "--no-cache"]
    arguments = ["train", tmp_path / "data", "--out", tmp_path / "run", *options]
    process = start(TRAIN, *arguments)
    assert process.stdout.readline().startswith("task: ")
    assert process.stdout.readline() == "0\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate("\n" * 9)
    again = shlex.join(["subgnn", *map(str, arguments), "--resume"])
    assert (process.returncode, errors) == (143, f"interrupted; continue with: {again}\n")
    written = ["last.safetensors", "metrics.jsonl", "recipe.json", "trained_on.subgnn"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == written
    assert call(*arguments, "--resume").code == 0
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 5


PORTFOLIO = """
import sys
from subgnn.training import search
real = search.save_candidate
def save(row, *given):
    real(row, *given)
    print(row.name, flush=True)
    sys.stdin.readline()
search.save_candidate = save
"""


@pytest.mark.slow
def test_a_portfolio_that_is_terminated_ends_at_once_and_is_resumed(tmp_path):
    write_folder(dataset(), tmp_path / "data")
    settings = ("auto.only=['bag', 'profiles', 'topology']", "auto.folds=2", "auto.repeats=1")
    options = [word for setting in settings for word in ("--set", setting)]
    arguments = ["train", tmp_path / "data", "--out", tmp_path / "run", *options, "--no-cache"]
    process = start(PORTFOLIO, *arguments)
    assert [process.stdout.readline().split()[0] for _ in range(3)] == ["task:", "candidates:", "bag"]
    process.send_signal(signal.SIGTERM)
    # No other candidate is judged, and no answer is fitted.
    again = shlex.join(["subgnn", *map(str, arguments), "--resume"])
    assert process.communicate() == ("", f"interrupted; continue with: {again}\n")
    assert process.returncode == 143
    written = ["candidates", "recipe.json", "trained_on.subgnn"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == written
    assert [path.name for path in (tmp_path / "run" / "candidates").iterdir()] == ["bag.safetensors"]
    resumed = call(*arguments, "--resume", "--json")
    assert (resumed.code, resumed.json.get("interrupted")) == (0, None)
