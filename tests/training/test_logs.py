"""Loggers get the records of metrics.jsonl and the scores on test, each once, also after an interruption."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from subgnn.api.train_recipe import train
from subgnn.errors import MissingExtra
from subgnn.models.recipes import find_recipe
from subgnn.result import RESULTS
from subgnn.training import resume
from subgnn.training.options import Callbacks
from subgnn.training.run_dir import METRICS

from .examples import dataset, recipe

LOGGERS = ("tensorboard", "mlflow", "wandb")


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
                tag = f"{metric}/{split}" + (
                    f"/{record['candidate']}".replace(" ", "_") if "candidate" in record else ""
                )
                found.setdefault(tag, []).append((record["epoch"], pytest.approx(value, rel=1e-6)))
    results = json.loads((folder / RESULTS).read_text())
    scores = {name: value for name, value in results["test"].items() if value is not None and math.isfinite(value)}
    return found | {
        f"{name}/test": [(results["selected_epoch"], pytest.approx(value, rel=1e-6))] for name, value in scores.items()
    }


@pytest.mark.parametrize("before", [True, False], ids=["from the start", "on going on"])
def test_a_run_that_goes_on_has_every_epoch_once(tmp_path, monkeypatch, before):
    monkeypatch.setattr(resume, "SECONDS_BETWEEN_SAVES", 0.0)

    def interrupt(record):
        if record["epoch"] == 3:
            # What was saved after epoch 1 is all there is to go on from.
            monkeypatch.setattr(resume, "SECONDS_BETWEEN_SAVES", 0.0)
            raise KeyboardInterrupt
        if record["epoch"] == 1:
            monkeypatch.setattr(resume, "SECONDS_BETWEEN_SAVES", 1e9)

    with pytest.raises(KeyboardInterrupt):
        train(
            dataset(),
            recipe(6),
            tmp_path / "run",
            callbacks=Callbacks(on_epoch=interrupt),
            tensorboard=before,
            report=False,
        )
    assert (tmp_path / "run" / "tensorboard").exists() == before
    train(dataset(), recipe(6), tmp_path / "run", resume=True, tensorboard=True, report=False)
    found = events(tmp_path / "run")
    assert [step for step, _ in found["loss/train"]] == [0, 1, 2, 3, 4, 5]
    assert found == expected(tmp_path / "run")


def test_several_networks_have_a_curve_each_also_after_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr(resume, "SECONDS_BETWEEN_SAVES", 0.0)
    several = replace(recipe(3), training=replace(recipe(3).training, members=2))

    def interrupt(record):
        if (record["candidate"], record["epoch"]) == ("member 1", 0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(
            dataset(),
            several,
            tmp_path / "run",
            callbacks=Callbacks(on_epoch=interrupt),
            tensorboard=True,
            report=False,
        )
    train(dataset(), several, tmp_path / "run", resume=True, tensorboard=True, report=False)
    found = events(tmp_path / "run")
    assert found == expected(tmp_path / "run")
    for member in (0, 1):
        assert [step for step, _ in found[f"loss/train/member_{member}"]] == [0, 1, 2]


@pytest.mark.parametrize("name", LOGGERS)
def test_a_missing_package_is_said_before_the_work(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"--{name} needs the package {name}.*subgnn\[track\]"):
        train(dataset(), recipe(1), tmp_path / "run", **{name: True})
    assert not (tmp_path / "run").exists()


class Recording:
    """A logger of Lightning that notes what it is told."""

    def __init__(self, *given, **options):
        self.given, self.options = given, options
        self.settings, self.points, self.ended = {}, {}, []
        self.experiment = self
        self.finish = self.finalize = self.ended.append

    def log_hyperparams(self, settings):
        self.settings = settings

    def log_metrics(self, values, step):
        for name, value in values.items():
            self.points.setdefault(name, []).append((step, value))


@pytest.fixture
def recorded(monkeypatch):
    """MLflow and Weights & Biases, of which only the loggers are called; whether or not they are installed."""
    import lightning.pytorch.loggers as loggers

    made = {}
    for name, kind in (("mlflow", "MLFlowLogger"), ("wandb", "WandbLogger")):
        package = ModuleType(name)
        package.__spec__ = ModuleSpec(name, None)
        package.Settings = dict
        monkeypatch.setitem(sys.modules, name, package)

        def make(*given, name=name, **options):
            made[name] = Recording(*given, **options)
            return made[name]

        monkeypatch.setattr(loggers, kind, make)
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_DISABLE_TELEMETRY", "WANDB_MODE", "WANDB_ERROR_REPORTING"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return made


def test_all_loggers_get_the_same_and_send_nothing(tmp_path, recorded):
    run = tmp_path / "run"
    train(dataset(), recipe(2), run, seed=3, **dict.fromkeys(LOGGERS, True), report=False)
    for logger in recorded.values():
        assert logger.points == expected(run)
        assert logger.settings["seed"] == 3
        assert logger.settings["training"]["epochs"] == 2
    assert recorded["mlflow"].options["tracking_uri"] == f"sqlite:///{run}/mlflow.db"
    assert recorded["wandb"].options["mode"] == "offline"
    assert (recorded["mlflow"].ended, recorded["wandb"].ended) == (["success"], [0])
    assert (os.environ["MLFLOW_DISABLE_TELEMETRY"], os.environ["WANDB_ERROR_REPORTING"]) == ("true", "false")


def test_servers_are_used_where_the_environment_asks_for_them(tmp_path, recorded, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    monkeypatch.setenv("WANDB_MODE", "online")

    def interrupt(record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(
            dataset(),
            recipe(2),
            tmp_path / "run",
            mlflow=True,
            wandb=True,
            callbacks=Callbacks(on_epoch=interrupt),
            report=False,
        )
    assert recorded["mlflow"].options["tracking_uri"] == "http://127.0.0.1:5000"
    assert recorded["wandb"].options["mode"] == "online"
    assert (recorded["mlflow"].ended, recorded["wandb"].ended) == (["failed"], [1])


def test_a_portfolio_logs_its_leaderboard(tmp_path, recorded):
    few = find_recipe("auto", ["auto.only=['bag']", "auto.folds=2", "auto.repeats=1"])
    results = train(dataset(), few, tmp_path / "run", mlflow=True, report=False)
    points = recorded["mlflow"].points
    assert points["micro_f1/test"] == [(0, results.test["micro_f1"])]
    assert {name.split("/")[2] for name in points if "out_of_fold" in name} == {"bag", "constant"}


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_the_real_packages_where_they_are_installed(name, tmp_path, monkeypatch):
    pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    train(dataset(), recipe(2), tmp_path / "run", **{name: True}, report=False)
    assert list((tmp_path / "run").glob({"mlflow": "mlflow.db", "wandb": "wandb/offline-run-*/*.wandb"}[name]))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
