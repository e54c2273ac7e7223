"""A suite that is killed at any moment loses at most the run in flight."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.lab.suites.examples import SMALL, folder, timeless
from tests.training.test_kills import Killer

pytestmark = pytest.mark.slow

KILLS = 3
# Everything that the children would import, once.
SERVE = """
import runpy
import sklearn.linear_model
import subgnn.lab.suites.run
runpy.run_module("tests.training.killed", run_name="__main__")
"""
SUITE = """
title = "Killed"

[protocol]
seeds = 2

[[datasets]]
name = "cliques"

[[models]]
label = "avg"
recipe = "avg"

[[models]]
label = "bag"
recipe = "bag"
baseline = true
"""


class SuiteKiller(Killer):
    def __init__(self) -> None:
        super().__init__("-c", SERVE)


@pytest.fixture(scope="module")
def killer(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_NUM_THREADS", "1")
        patch.setenv("SUBGNN_CACHE", str(tmp_path_factory.mktemp("killed_suite") / "cache"))
        started = SuiteKiller()
    yield started
    started.process.communicate()


def test_killed_again_and_again(killer, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    settings = [word for given in SMALL for word in ("--set", given)]
    command = ["benchmark", "run", tmp_path / "suite.toml", "--data", f"cliques={folder(tmp_path)}", *settings]
    command += ["--set", "training.epochs=10", "--device", "cpu", "--out"]
    changes = killer.run(*command, tmp_path / "whole", folder=tmp_path / "whole")["changes"]
    finished: set[str] = set()
    for moment in sorted(np.random.default_rng(0).permutation(changes)[:KILLS].tolist()):
        one = killer.run(*command, tmp_path / "out", folder=tmp_path / "out", kill_at=moment)
        there = {path.parent.name for path in (tmp_path / "out").glob("runs/*/outcome.json")}
        started = {path.name for path in (tmp_path / "out").glob("runs/*")}
        assert finished <= there
        assert len(started - there) <= 1
        finished = there
        for name in there:
            json.loads((tmp_path / "out" / "runs" / name / "outcome.json").read_text())
        if not one["killed"]:
            assert one["code"] == 0
            break
    assert killer.run(*command, tmp_path / "out", folder=tmp_path / "out")["code"] == 0
    reports = [json.loads((tmp_path / name / "report.json").read_text()) for name in ("whole", "out")]
    for report in reports:
        report.pop("circumstances")  # the command names the folder
    assert timeless(reports[0]) == timeless(reports[1])
