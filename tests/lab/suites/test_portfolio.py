"""A portfolio as a row of a suite: its leaderboard is kept."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from subgnn.api.train_recipe import train
from subgnn.lab.suites import job as jobs
from tests.lab.suites.examples import folder, run, tiny

pytestmark = pytest.mark.slow

FEW = "auto.only=['bag', 'topology']"
MODELS = [
    {"label": "auto", "recipe": "auto", "set": [FEW, "auto.fit_on=train"]},
    {"label": "auto, train and val", "recipe": "auto", "set": [FEW]},
    {"label": "bag", "recipe": "bag"},
    {"label": "bag, train and val", "recipe": "auto", "set": ["auto.only=['bag']"]},
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    parent = tmp_path_factory.mktemp("portfolio")
    suite = tiny(models=MODELS)
    overrides = ("auto.folds=2", "auto.repeats=1", "topology.classifier=forest")
    return parent / "out", run(suite, folder(parent, "multi-label"), parent / "out", seeds=1, overrides=overrides)


def test_the_leaderboard_is_kept(ran):
    out, found = ran
    assert not found["failures"]
    assert len(found["rows"]) == 4
    for path in (out / "runs").iterdir():
        outcome = json.loads((path / "outcome.json").read_text())
        assert {file.name for file in path.iterdir()} <= {
            "outcome.json", "answers.npz", "run.json", "recipe.json", "metrics.jsonl"
        }  # fmt: skip
        label = outcome["models"][0]
        (row,) = (row for row in found["rows"] if row["model"] == label)
        assert outcome["calibration_error"] == pytest.approx(row["calibration_error"], rel=1e-4)
        if label.startswith("auto"):
            leaderboard = json.loads((path / "run.json").read_text())["leaderboard"]
            assert {"bag", "topology"} <= {one["name"] for one in leaderboard}


def test_an_interrupted_portfolio_is_not_finished(tmp_path, monkeypatch):
    suite, data = tiny(models=MODELS[:1]), folder(tmp_path)
    given = {"seeds": 1, "overrides": ("auto.folds=2", "auto.repeats=1", "topology.classifier=forest")}

    def interrupted(*arguments, **options):
        result = replace(train(*arguments, **options), interrupted=True)
        result.save(Path(result.run))
        return result

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(suite, data, tmp_path / "out", **given)
    assert not list((tmp_path / "out").glob("runs/*/outcome.json"))
    found = run(suite, data, tmp_path / "out", **given)
    assert (found["runs"], found["failures"]) == (1, [])
