"""train, evaluate, predict and embed, as they are typed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import subgnn
from subgnn import SubgraphSet, UserError
from subgnn.data.formats.folder import write_folder
from tests.cli.command import call
from tests.training.examples import dataset


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    write_folder(dataset(), folder / "data")
    called = call(
        "train",
        folder / "data",
        "--recipe",
        "structure",
        "--set",
        "training.epochs=2",
        "--out",
        folder / "run",
        "--json",
    )
    assert called.code == 0
    return folder, called.json


def test_train_prints_the_keys_that_scripts_rely_on(run):
    _, results = run
    assert {
        "run",
        "recipe",
        "seed",
        "task",
        "selected_epoch",
        "epochs",
        "val",
        "test",
        "seconds",
        "peak_memory_mb",
    } <= set(results)
    assert {"micro_f1", "macro_f1", "accuracy", "auroc"} <= set(results["test"])
    assert {"prepare", "train", "epoch_median"} <= set(results["seconds"])


def test_evaluate(run):
    folder, results = run
    called = call("evaluate", folder / "run", "--json")
    assert called.json["test"]["micro_f1"] == pytest.approx(results["test"]["micro_f1"])


def test_predict_answers_line_by_line(run):
    folder, _ = run
    (folder / "new.tsv").write_text("0-1-2\tignored\n9-8\n17\n")
    called = call("predict", folder / "run", "--subgraphs", folder / "new.tsv", "--out", folder / "p.tsv")
    assert called.code == 0
    lines = [line.split("\t") for line in (folder / "p.tsv").read_text().splitlines()]
    assert lines[0] == ["subgraph", "label", "clique0", "clique1", "clique2"]
    assert [line[0] for line in lines[1:]] == ["0-1-2", "9-8", "17"]
    for line in lines[1:]:
        scores = np.array(line[2:], float)
        assert scores.sum() == pytest.approx(1, abs=1e-4)
        assert line[1] == f"clique{scores.argmax()}"


def test_predict_names_the_line_that_is_wrong_and_leaves_nothing(run):
    folder, _ = run
    (folder / "bad.tsv").write_text("0-1\n99\n")
    called = call("predict", folder / "run", "--subgraphs", folder / "bad.tsv", "--out", folder / "q.tsv")
    assert called.code == 2
    assert called.error.startswith(f"{folder / 'bad.tsv'}:2: node '99' is not in the graph")
    assert not (folder / "q.tsv").exists()


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_embed(run, suffix):
    folder, _ = run
    (folder / "new.tsv").write_text("0-1-2\n9-8\n")
    called = call("embed", folder / "run", "--subgraphs", folder / "new.tsv", "--out", folder / f"e{suffix}", "--json")
    assert called.json["num_subgraphs"] == 2
    if suffix == ".npy":
        assert np.load(folder / "e.npy").shape == (2, called.json["width"])


def test_an_unknown_recipe_lists_the_choices(run):
    folder, _ = run
    called = call("train", folder / "data", "--recipe", "structur", "--out", folder / "x")
    assert called.code == 2
    assert "did you mean 'structure'?" in called.error
    assert not (folder / "x").exists()


def test_a_folder_that_holds_no_run(tmp_path):
    called = call("evaluate", tmp_path)
    assert called.code == 2
    assert "no finished run" in called.error


def test_a_baseline_that_cannot_predict_new_subgraphs_says_so(run, tmp_path):
    folder, _ = run
    few = ("--set", "embeddings.dim=4", "--set", "training.epochs=1")
    assert call("train", folder / "data", "--recipe", "mn-gin", *few, "--out", tmp_path / "run").code == 0
    assert call("evaluate", tmp_path / "run").code == 0
    known = (folder / "data" / "subgraphs.tsv").read_text().splitlines()[0].split("\t")[0]
    (tmp_path / "known.tsv").write_text(f"{known}\n")
    (tmp_path / "new.tsv").write_text(f"{known}\n0-9\n")
    assert (
        call("predict", tmp_path / "run", "--subgraphs", tmp_path / "known.tsv", "--out", tmp_path / "a.tsv").code == 0
    )
    for verb, out in (("predict", "new_out.tsv"), ("embed", "new_out.npy")):
        called = call(verb, tmp_path / "run", "--subgraphs", tmp_path / "new.tsv", "--out", tmp_path / out)
        assert called.code == 2
        assert "mn-gin cannot predict new subgraphs, and 0-9 is none of the" in called.error
        assert not (tmp_path / out).exists()


def test_evaluate_on_a_split_with_subgraphs_that_a_baseline_does_not_know(run, tmp_path):
    folder, _ = run
    few = ("--set", "embeddings.dim=4", "--set", "training.epochs=1")
    assert call("train", folder / "data", "--recipe", "mn-gin", *few, "--out", tmp_path / "run").code == 0
    data = dataset()
    nodes = [row.tolist() for row in data.subgraphs.nodes]
    nodes[-1] = [0, 9]
    labels = [data.subgraphs.classes[int(label)] for label in data.subgraphs.targets]
    splits = ["train"] * 20 + ["val"] * 5 + ["test"] * 5
    other = SubgraphSet.from_lists(nodes, num_nodes=24, labels=labels, splits=splits)
    loaded = subgnn.load(tmp_path / "run")
    assert 0 <= loaded.evaluate(other.take(other.indices("val")))["micro_f1"] <= 1
    with pytest.raises(UserError, match="mn-gin cannot predict new subgraphs, and 0-9 is none of the"):
        loaded.evaluate(other.take(other.indices("test")))


def test_the_published_split_is_that_of_training_scores_and_pages(tmp_path):
    """Val is the smaller part of the file; published results are on it."""
    data = dataset()
    splits = ["train"] * 18 + ["val"] * 4 + ["test"] * 8
    rows, labels = [row.tolist() for row in data.subgraphs.nodes], [str(t) for t in data.subgraphs.targets]
    given = SubgraphSet.from_lists(rows, num_nodes=data.graph.num_nodes, labels=labels, splits=splits)
    write_folder(replace(data, subgraphs=given), tmp_path / "data")
    words = ["train", tmp_path / "data", "--recipe", "bag", "--split", "published", "--out", tmp_path / "run"]
    results = call(*words, "--json").json
    assert results["split"] == "published"
    for split in ("val", "test"):
        again = call("evaluate", tmp_path / "run", "--split", split, "--json").json[split]
        assert again["micro_f1"] == pytest.approx(results[split]["micro_f1"])
    assert call("report", tmp_path / "run").code == 0
    assert "--split published" in (tmp_path / "run" / "report.html").read_text()
    described = call("data", "describe", tmp_path / "data", "--split", "published", "--json").json
    assert (described["splits"], described["split"]) == ({"train": 18, "val": 8, "test": 4}, "published")
    shown = call("data", "describe", tmp_path / "data", "--split", "published").out
    assert "val 8, test 4 (val and test of the file exchanged)" in shown
    assert call("data", "describe", tmp_path / "data", "--json").json["splits"] == {"train": 18, "val": 4, "test": 8}
