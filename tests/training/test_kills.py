"""Runs that are killed at any moment, and go on as if nothing had been."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from subgnn.data.formats.folder import write_folder
from subgnn.models.checkpoint import load_checkpoint
from subgnn.training.resume import load_progress
from subgnn.training.run_dir import CHECKPOINT, LAST, METRICS, PAGE, RECIPE, RESULTS
from tests.training.examples import dataset

KILLS_PREPARE, KILLS_TRAIN = 8, 12
RECIPE_OPTIONS = ("--recipe", "subgnn", "--seed", "5")


class Killer:
    """The process of ``killed.py``."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.training.killed"],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: object, delay: float | None = None) -> dict:
        self.process.stdin.write(json.dumps({"arguments": [str(a) for a in arguments], "delay": delay}) + "\n")
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


def delays(longest: float, seed: int):
    """Random moments of a command that takes ``longest``, drawing nearer in case it became quicker."""
    rng = np.random.default_rng(seed)
    while True:
        yield longest * rng.random()
        longest *= 0.97


def test_prepare_is_killed(killer, folder):
    command = ("prepare", folder / "data", "--recipe", "subgnn", "--seed")
    took = killer.run(*command, 0)
    assert took["code"] == 0
    kept = folder / "cache" / "prepared"
    (whole,) = (path.read_bytes() for path in kept.iterdir())
    kills = 0
    for delay in delays(took["seconds"], 0):
        for path in kept.glob("*.prepared"):
            path.unlink()
        kills += killer.run(*command, 0, delay=delay)["killed"]
        # Whole or not at all; a killed writer may leave its temporary file, which goes when the next one writes.
        assert all(path.read_bytes() == whole for path in kept.glob("*.prepared"))
        if kills == KILLS_PREPARE:
            break
    assert killer.run(*command, 0)["code"] == 0
    assert [path.read_bytes() for path in kept.glob("*.prepared")] == [whole]


def test_train_is_killed_and_goes_on(killer, folder):
    command = ("train", folder / "data", *RECIPE_OPTIONS, "--set", "training.epochs=25", "--resume", "--out")
    took = killer.run(*command, folder / "whole")
    assert took["code"] == 0
    kills, runs = 0, 0
    for delay in delays(took["seconds"], 1):
        run = folder / f"run{runs}"
        one = killer.run(*command, run, delay=delay)
        kills += one["killed"]
        assert one["killed"] or one["code"] == 0
        _assert_sound(run)
        if kills == KILLS_TRAIN:
            assert killer.run(*command, run)["code"] == 0
        if (run / RESULTS).is_file():
            assert killer.run(*command, run)["code"] == 0
            _assert_equal(folder / "whole", run)
            runs += 1
        if kills == KILLS_TRAIN:
            break


def _assert_sound(run: Path) -> None:
    """What is there under its own name is whole."""
    if (run / RECIPE).is_file():
        json.loads((run / RECIPE).read_text())
    if (run / LAST).is_file():
        load_progress(run / LAST)
    if (run / CHECKPOINT).is_file():
        load_checkpoint(run / CHECKPOINT)


def _assert_equal(a: Path, b: Path) -> None:
    ours, theirs = (load_checkpoint(run / CHECKPOINT).weights for run in (a, b))
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name
    assert (a / METRICS).read_text() == (b / METRICS).read_text()
    assert sorted(path.name for path in b.iterdir()) == sorted([RESULTS, RECIPE, METRICS, CHECKPOINT, PAGE])
