"""``subgnn train`` without a recipe: the plan, the leaderboard, the keys of --json, and options that do not fit."""

from __future__ import annotations

import json
import re

import pytest

from subgnn import SubgraphClassifier
from subgnn.data.formats.folder import write_folder
from tests.cli.command import call
from tests.training.examples import dataset

SETTINGS = (
    'auto.only=["bag", "topology"]',
    "auto.folds=2",
    "auto.repeats=1",
    "baseline.inverse_penalty=10",
    "baseline.normalize=rows",
)
OPTIONS = [word for setting in SETTINGS for word in ("--set", setting)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auto") / "data"
    write_folder(dataset(), folder)
    return folder


@pytest.mark.slow
def test_a_table_and_the_next_command(folder, tmp_path):
    called = call("train", folder, "--out", tmp_path / "run", "--time", "2m", *OPTIONS)
    assert (called.code, called.err) == (0, "")
    lines = called.out.splitlines()
    assert lines[1].startswith("candidates, with rough estimates: bag (")
    assert any(line.startswith("chosen: ") for line in lines)
    assert any(line.startswith("The labels depend on which nodes") for line in lines)
    assert lines[-1] == f"next: subgnn predict {tmp_path / 'run'} --subgraphs FILE --out predictions.tsv"
    assert json.loads((tmp_path / "run" / "recipe.json").read_text())["auto"]["time"] == 120


def test_json(folder, tmp_path):
    called = call("train", folder, "--out", tmp_path / "run", "--json", *OPTIONS)
    found = called.json
    assert called.err == ""
    assert {"run", "recipe", "seed", "task", "selected_epoch", "epochs", "val", "test", "seconds"} <= found.keys()
    assert {"micro_f1", "macro_f1", "accuracy", "auroc"} <= found["test"].keys()
    assert {"prepare", "train", "epoch_median"} <= found["seconds"].keys()
    assert (found["recipe"], found["method"]) == ("auto", "auto")
    rows = {"name", "recipe", "score", "low", "high", "seconds", "weight", "note"}
    assert all(rows <= row.keys() for row in found["leaderboard"])
    again = call("train", folder, "--out", tmp_path / "run", "--json", "--resume", *OPTIONS).json
    assert again == found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--time", "soon"), "--time: the duration is 'soon'; accepted: 90, 90s, 5m, 1h"),
        (("--recipe", "bag", "--time", "5m"), "--time: the recipe bag has no time budget"),
        (("--set", 'auto.only=["bags"]'), "^--set: auto.only has 'bags'; accepted: .*did you mean 'bag'"),
        (("--set", "training.epoch=5"), "--set: unknown setting 'training.epoch'"),
    ],
)
def test_refusals(folder, tmp_path, options, message):
    called = call("train", folder, "--out", tmp_path / "run", *options)
    assert called.code == 2
    assert re.search(message, called.err)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_estimator_uses_it_without_a_recipe():
    data = dataset()
    model = SubgraphClassifier(data.graph, settings=SETTINGS, device="cpu").fit(data.subgraphs)
    assert model.run_.result.recipe == "auto"
    test = data.subgraphs.take(data.subgraphs.indices("test"))
    assert model.score(test) == pytest.approx(model.run_.result.test["accuracy"])
