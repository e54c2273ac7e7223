"""``train`` and ``evaluate`` of a named recipe and of ``auto``, ``predict`` and ``embed``, as they are typed."""

import json
import re
from dataclasses import replace

import pytest

from subgnn import SubgraphSet, write_folder
from tests.cli.command import call
from tests.training.examples import dataset

KEYS = {"run", "recipe", "seed", "task", "selected_epoch", "epochs", "val", "test", "seconds", "peak_memory_mb"}
AUTO = ('auto.only=["bag", "topology"]', "auto.folds=2", "auto.repeats=1")
AUTO += ("bag.inverse_penalty=10", "bag.normalize=rows")
AUTO_OPTIONS = [word for setting in AUTO for word in ("--set", setting)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    write_folder(dataset(), folder / "data")
    options = ("--recipe", "structure", "--set", "training.epochs=2", "--out", folder / "run")
    return folder, call("train", folder / "data", *options, "--json").json


def test_keys_that_scripts_rely_on_and_evaluate(run):
    folder, results = run
    assert set(results) >= KEYS
    assert {"micro_f1", "macro_f1", "accuracy", "auroc"} <= set(results["test"])
    assert {"prepare", "train", "epoch_median"} <= set(results["seconds"])
    again = call("evaluate", folder / "run", "--json").json
    assert again["test"]["micro_f1"] == pytest.approx(results["test"]["micro_f1"])


def test_the_published_split_is_that_of_training_scores_and_pages(tmp_path):
    """Val is the smaller part of the file; published results are on it."""
    data, run, path = dataset(), tmp_path / "run", tmp_path / "data"
    splits = ["train"] * 18 + ["val"] * 4 + ["test"] * 8
    rows, labels = [row.tolist() for row in data.subgraphs.nodes], [str(t) for t in data.subgraphs.targets]
    given = SubgraphSet.from_lists(rows, num_nodes=data.graph.num_nodes, labels=labels, splits=splits)
    write_folder(replace(data, subgraphs=given), path)
    results = call("train", path, "--recipe", "bag", "--split", "published", "--out", run, "--json").json
    assert results["split"] == "published"
    for split in ("val", "test"):
        again = call("evaluate", run, "--split", split, "--json").json[split]
        assert again["micro_f1"] == pytest.approx(results[split]["micro_f1"])
    assert call("report", run).code == 0
    assert "--split published" in (run / "report.html").read_text()
    described = call("data", "describe", path, "--split", "published", "--json").json
    assert (described["splits"], described["split"]) == ({"train": 18, "val": 8, "test": 4}, "published")
    shown = call("data", "describe", path, "--split", "published").out
    assert "val 8, test 4 (val and test of the file exchanged)" in shown
    assert call("data", "describe", path, "--json").json["splits"] == {"train": 18, "val": 4, "test": 8}


@pytest.mark.slow
def test_auto_prints_a_table_and_the_next_command(run, tmp_path):
    called = call("train", run[0] / "data", "--out", tmp_path / "run", "--time", "2m", *AUTO_OPTIONS)
    assert (called.code, called.err) == (0, "")
    lines = called.out.splitlines()
    assert lines[1].startswith("candidates: bag")
    assert any(line.startswith("chosen: ") for line in lines)
    assert any(line.startswith("The labels depend on which nodes") for line in lines)
    assert lines[-1] == f"next: subgnn predict {tmp_path / 'run'} --subgraphs FILE --out predictions.tsv"
    assert json.loads((tmp_path / "run" / "recipe.json").read_text())["auto"]["time"] == 120


def test_auto_as_json_and_resumed(run, tmp_path):
    command = ("train", run[0] / "data", "--out", tmp_path / "run", "--json", *AUTO_OPTIONS)
    called = call(*command)
    found = called.json
    assert called.err == ""
    assert found.keys() >= KEYS
    assert (found["recipe"], found["method"]) == ("auto", "auto")
    rows = {"name", "recipe", "score", "low", "high", "seconds", "weight", "note"}
    assert all(rows <= row.keys() for row in found["leaderboard"])
    assert call(*command, "--resume").json == found


@pytest.mark.parametrize(
    ("out", "options", "message"),
    [
        ("full", (), "exists already; choose another --out"),
        ("full/file/run", (), "cannot be written .*full/file is not a folder"),
        ("run", ("--threshold", "often"), "--threshold: the threshold is 'often'"),
        ("run", ("--set", "training.select_by=auc"), "--set: training.select_by is 'auc'; .* did you mean 'auroc'?"),
    ],
)
def test_some_refusals_come_before_the_data_is_read(tmp_path, out, options, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    called = call("train", tmp_path / "no such data", "--out", tmp_path / out, *options)
    assert called.code == 2
    assert re.search(message, called.err)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--recipe", "structur"), "did you mean 'structure'?"),
        (("--time", "soon"), "--time: the duration is 'soon'; accepted: 90, 90s, 5m, 1h"),
        (("--recipe", "bag", "--time", "5m"), "--time: the recipe bag has no time budget"),
        (("--set", 'auto.only=["bags"]'), "^--set: auto.only has 'bags'; accepted: .*did you mean 'bag'"),
        (("--set", "training.epoch=5"), "--set: unknown setting 'training.epoch'"),
    ],
)
def test_refusals(run, tmp_path, options, message):
    called = call("train", run[0] / "data", "--out", tmp_path / "run", *options)
    assert called.code == 2
    assert re.search(message, called.err)
    assert not (tmp_path / "run").exists()
