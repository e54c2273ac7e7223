"""Runs that are killed at any moment, and go on as if nothing had been."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from subgnn.data.formats.folder import write_folder
from subgnn.models.checkpoint import load_checkpoint
from subgnn.reports.run_page import MODEL_CARD
from subgnn.result import RESULTS
from subgnn.training.run import load_progress
from subgnn.training.run_dir import CHECKPOINT, LAST, METRICS, PAGE, RECIPE, SUBGRAPHS
from tests.training.examples import assert_equal_runs, dataset

pytestmark = pytest.mark.slow

KILLS = 8
RECIPE_OPTIONS = ("--recipe", "subgnn", "--seed", "5")


class Killer:
    """The process of ``killed.py``."""

    def __init__(self, *program: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *(program or ("-m", "tests.training.killed"))],
            cwd=Path(__file__).parents[2],
            # It forks, so it must have no threads: pandas brings Arrow, whose allocator starts one, and torch its own.
            env=os.environ | {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: object, folder: Path, kill_at: int | None = None) -> dict:
        """Run a command, which kills itself before that change of a file in the folder."""
        asked = {"arguments": [str(a) for a in arguments], "kill_at": kill_at, "folder": str(folder)}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def killer(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        # With several threads, sums are added up in the order the threads come in.
        patch.setenv("NUMBA_NUM_THREADS", "1")
        patch.setenv("SUBGNN_CACHE", str(tmp_path_factory.mktemp("killed") / "cache"))
        started = Killer()
    yield started
    started.process.communicate()


@pytest.fixture(scope="module")
def folder(killer, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "killed0"
    write_folder(dataset(), folder / "data")
    return folder


def test_prepare_is_killed(killer, folder):
    command = ("prepare", folder / "data", "--recipe", "subgnn", "--seed", 0)
    kept = folder / "cache" / "prepared"
    changes = killer.run(*command, folder=folder / "cache")["changes"]
    (whole,) = (path.read_bytes() for path in kept.iterdir())
    for change in range(changes):
        for path in kept.glob("*.prepared"):
            path.unlink()
        assert killer.run(*command, folder=folder / "cache", kill_at=change)["killed"]
        # Whole or not at all; a killed writer may leave its temporary file, which goes when the next one writes.
        assert all(path.read_bytes() == whole for path in kept.glob("*.prepared"))
    assert killer.run(*command, folder=folder / "cache")["code"] == 0
    assert [path.read_bytes() for path in kept.glob("*.prepared")] == [whole]


def test_train_is_killed_and_goes_on(killer, folder):
    command = ("train", folder / "data", *RECIPE_OPTIONS, "--set", "training.epochs=4", "--resume", "--out")
    changes = killer.run(*command, folder / "whole", folder=folder / "whole")["changes"]
    moments = np.random.default_rng(1).permutation(changes)[:KILLS].tolist()
    runs = 0
    while moments:
        run = folder / f"run{runs}"
        one = killer.run(*command, run, folder=run, kill_at=moments[-1])
        _assert_sound(run)
        if one["killed"]:
            moments.pop()
        if not one["killed"] or not moments:
            assert killer.run(*command, run, folder=run)["code"] == 0
            _assert_equal(folder / "whole", run)
            runs += 1


def _assert_sound(run: Path) -> None:
    """What is there under its own name is whole."""
    if (run / RECIPE).is_file():
        json.loads((run / RECIPE).read_text())
    if (run / LAST).is_file():
        load_progress(run / LAST)
    if (run / CHECKPOINT).is_file():
        load_checkpoint(run / CHECKPOINT)


def _assert_equal(a: Path, b: Path) -> None:
    assert_equal_runs(a, b)
    expected = {RESULTS, RECIPE, METRICS, CHECKPOINT, PAGE, SUBGRAPHS, MODEL_CARD}
    assert {path.name for path in b.iterdir()} == expected
