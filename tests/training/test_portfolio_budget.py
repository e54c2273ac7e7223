"""A portfolio has an answer however short the time."""

from __future__ import annotations

from subgnn.config.recipes import find_recipe
from subgnn.experiments.train import train
from subgnn.training.portfolio import Budget
from tests.training.examples import dataset


def test_the_first_candidate_is_finished_when_no_time_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(Budget, "left", property(lambda _: -1.0))
    settings = ["auto.only=['avg', 'bag']", "auto.folds=2", "auto.repeats=1"]
    results = train(dataset(), find_recipe("auto", settings), tmp_path / "run", device="cpu", report=False)
    notes = {row["name"]: (row["score"] is not None, row["note"]) for row in results["leaderboard"]}
    scored = [name for name, (known, _) in notes.items() if known]
    assert set(scored) == {"constant", "bag"}
    assert "budget" in notes["avg"][1]
