"""A portfolio has an answer however short the time, and goes on after an interruption."""

from __future__ import annotations

from dataclasses import replace

import pytest

from subgnn.api.train_recipe import train
from subgnn.models.recipes import find_recipe
from subgnn.training import portfolio_run
from subgnn.training.portfolio import Budget
from tests.training.examples import dataset

pytestmark = pytest.mark.slow


def test_the_first_candidate_is_finished_when_no_time_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(Budget, "left", property(lambda _: -1.0))
    monkeypatch.setattr(portfolio_run, "NEARLY_PERFECT", 0.0)
    settings = ["auto.only=['surroundings', 'bag']", "auto.folds=2", "auto.repeats=1"]
    results = train(dataset(), find_recipe("auto", settings), tmp_path / "run", device="cpu", report=False)
    notes = {row.name: (row.score is not None, row.note) for row in results.leaderboard}
    scored = [name for name, (known, _) in notes.items() if known]
    assert set(scored) == {"constant", "bag"}
    assert notes["surroundings"][1].startswith("left out: about")


def test_an_interrupted_run_goes_on_with_the_candidates_that_are_left(tmp_path):
    chosen = find_recipe("auto", ["auto.only=['bag', 'bag-1hop']", "auto.folds=2", "auto.repeats=1"])
    whole = train(dataset(), chosen, tmp_path / "run", device="cpu", report=False)
    assert not whole.interrupted
    # As Ctrl-C during the second candidate leaves it.
    replace(whole, interrupted=True, leaderboard=()).save(tmp_path / "run")
    (tmp_path / "run" / "candidates" / "bag-1hop.safetensors").unlink()
    again = train(dataset(), chosen, tmp_path / "run", device="cpu", report=False, resume=True)
    assert not again.interrupted
    assert [(row.name, row.score, row.weight) for row in again.leaderboard] == [
        (row.name, row.score, row.weight) for row in whole.leaderboard
    ]
    assert again.test == whole.test
