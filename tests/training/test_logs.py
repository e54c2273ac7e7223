"""TensorBoard gets the records of metrics.jsonl and the scores on test, each once, also after an interruption."""

import json
import math
import sys
from dataclasses import replace

import pytest

from subgnn.api.train_recipe import train
from subgnn.errors import MissingExtra
from subgnn.models.recipes import find_recipe
from subgnn.result import RESULTS
from subgnn.training import logs
from subgnn.training.options import Callbacks
from subgnn.training.run_dir import METRICS

from .examples import dataset, recipe, train_until


def events(folder):
    """Tag to its (step, value) pairs, all that the files hold."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    found = {}
    for path in sorted((folder / "tensorboard").iterdir()):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, next(iter(value.tensor.float_val), None)))
    return {tag: points for tag, points in found.items() if not tag.startswith("_hparams_/")}


def expected(folder):
    """The same by metrics.jsonl and run.json."""
    records = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
    found = {}
    for record in records:
        for name, value in record.items():
            if name not in ("epoch", "candidate") and math.isfinite(value):
                split, metric = name.split("_", 1)
                candidate = record.get("candidate", "").replace(" ", "_")
                tag = "/".join(filter(None, (metric, split, candidate)))
                found.setdefault(tag, []).append((record["epoch"], pytest.approx(value, rel=1e-6)))
    results = json.loads((folder / RESULTS).read_text())
    scores = {name: value for name, value in results["test"].items() if value is not None and math.isfinite(value)}
    return found | {
        f"{name}/test": [(results["selected_epoch"], pytest.approx(value, rel=1e-6))] for name, value in scores.items()
    }


@pytest.mark.parametrize("before", [True, False], ids=["from the start", "on going on"])
def test_a_run_that_goes_on_has_every_epoch_once(tmp_path, monkeypatch, before):
    monkeypatch.setattr(logs, "SECONDS_BETWEEN_SAVES", 0.0)

    def interrupt(record):
        if record["epoch"] == 3:
            # What was saved after epoch 1 is all there is to go on from.
            monkeypatch.setattr(logs, "SECONDS_BETWEEN_SAVES", 0.0)
            raise KeyboardInterrupt
        if record["epoch"] == 1:
            monkeypatch.setattr(logs, "SECONDS_BETWEEN_SAVES", 1e9)

    told = Callbacks(on_epoch=interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(dataset(), recipe(6), tmp_path / "run", callbacks=told, tensorboard=before, report=False)
    assert (tmp_path / "run" / "tensorboard").exists() == before
    train(dataset(), recipe(6), tmp_path / "run", resume=True, tensorboard=True, report=False)
    found = events(tmp_path / "run")
    assert [step for step, _ in found["loss/train"]] == [0, 1, 2, 3, 4, 5]
    assert found == expected(tmp_path / "run")


def test_several_networks_have_a_curve_each_also_after_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "SECONDS_BETWEEN_SAVES", 0.0)
    several = replace(recipe(3), training=replace(recipe(3).training, members=2))
    train_until(0, dataset(), several, tmp_path / "run", candidate="member 1", tensorboard=True, report=False)
    train(dataset(), several, tmp_path / "run", resume=True, tensorboard=True, report=False)
    found = events(tmp_path / "run")
    assert found == expected(tmp_path / "run")
    for member in (0, 1):
        assert [step for step, _ in found[f"loss/train/member_{member}"]] == [0, 1, 2]


def test_a_missing_package_is_said_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtra, match=r"--tensorboard needs the package tensorboard.*subgnn\[track\]"):
        train(dataset(), recipe(1), tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()


def test_a_portfolio_logs_its_leaderboard(tmp_path):
    few = find_recipe("auto", ["auto.only=['bag']", "auto.folds=2", "auto.repeats=1"])
    results = train(dataset(), few, tmp_path / "run", tensorboard=True, report=False)
    points = events(tmp_path / "run")
    assert points["micro_f1/test"] == [(0, pytest.approx(results.test["micro_f1"]))]
    assert {name.split("/")[2] for name in points if "out_of_fold" in name} == {"bag", "constant"}
