"""A quick look at a tiny dataset, from end to end."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from subgnn import Graph
from subgnn.errors import DataError, UserError
from subgnn.experiments import quick
from subgnn.experiments.quick import QUICK_RECIPES, run_quick
from subgnn.training.run_dir import read_results
from tests.training.examples import dataset

SMALL = (
    "prepare.patch_length=5",
    "prepare.walks=2",
    "prepare.walk_length=4",
    "embeddings.dim=8",
    "training.batch_size=8",
    "baseline.classifier=head",
)


def look(data, out, **options):
    return run_quick(data, out, **{"epochs": 2, "overrides": SMALL, "device": "cpu"} | options)


@pytest.fixture(scope="module")
def looked(tmp_path_factory):
    out = tmp_path_factory.mktemp("quick") / "look"
    return out, look(dataset(), out)


def test_rows(looked):
    out, found = looked
    rows = {row["recipe"]: row for row in found["rows"]}
    assert list(rows) == ["constant", *QUICK_RECIPES]
    assert rows["subgnn"]["method"] == "subgnn"
    assert found["failures"] == {}
    assert found["split"] == "the dataset's own"
    assert found["splits"] == {"train": 20, "val": 5, "test": 5}
    for name in QUICK_RECIPES:
        run, row = read_results(out / "runs" / name), rows[name]
        assert row["val"]["micro_f1"] == {"mean": pytest.approx(run["val"]["micro_f1"]), "std": 0.0}
        assert row["test"]["micro_f1"]["mean"] == pytest.approx(run["test"]["micro_f1"])
        assert (row["dataset"], row["n"]) == ("cliques", 1)
    # Looks at validation: two epochs; twice two for frozen and trainable; twelve ways of a bag.
    assert {name: rows[name]["looks"] for name in QUICK_RECIPES} == {"topology": 2, "bag": 12, "avg": 4, "subgnn": 2}


def test_leads_are_those_of_the_rows(looked):
    _, found = looked
    scores = {row["recipe"]: row["val"]["micro_f1"]["mean"] for row in found["rows"]}
    for name, lead in found["over_constant"].items():
        assert lead["lead"] == pytest.approx(scores[name] - scores["constant"], abs=1e-6)
    assert {part["part"] for part in found["parts"]} >= {"z0", "neighborhood/internal", "topology"}


def test_files(looked):
    out, found = looked
    assert json.loads((out / "quick.json").read_text()) == found
    page = (out / "quick.md").read_text()
    assert page.startswith("# A quick look at cliques\n")
    for name in ("constant", *QUICK_RECIPES):
        assert f"| {name} | " in page
    for words in found["verdict"]["words"]:
        assert words in page


def test_five_validation_subgraphs_decide_nothing(looked):
    assert looked[1]["verdict"]["signals"] == ["undecided"]


def test_what_is_finished_is_not_trained_again(looked, monkeypatch):
    out, found = looked

    def refuse(*_: object, **__: object):
        raise AssertionError("trained again")

    monkeypatch.setattr("subgnn.training.run.set_up", refuse)
    assert look(dataset(), out) == found


def test_another_dataset_or_other_settings_are_refused(looked):
    out, _ = looked
    with pytest.raises(DataError, match="holds a look at something else: subgraphs differ; give another --out"):
        look(dataset("binary"), out)
    with pytest.raises(DataError, match="epochs differ"):
        look(dataset(), out, epochs=3)
    with pytest.raises(DataError, match="exists already"):
        look(dataset(), out / "runs")


def test_a_recipe_that_fails_is_listed_and_the_others_go_on(tmp_path, monkeypatch):
    real = quick.train

    def fail(data, recipe, *given, **options):
        if recipe.name == "topology":
            raise UserError("nothing to count", where="topology")
        if recipe.name == "avg":
            raise ZeroDivisionError("ours")
        return real(data, recipe, *given, **options)

    monkeypatch.setattr(quick, "train", fail)
    found = look(dataset(), tmp_path / "look")
    assert found["failures"] == {"topology": "topology: nothing to count", "avg": "ZeroDivisionError: ours"}
    assert [row["recipe"] for row in found["rows"]] == ["constant", "bag", "subgnn"]
    page = (tmp_path / "look" / "quick.md").read_text()
    assert "- topology failed: topology: nothing to count" in page
    # Fixed, the same command trains what is missing.
    monkeypatch.setattr(quick, "train", real)
    again = look(dataset(), tmp_path / "look")
    assert again["failures"] == {}
    assert again["rows"][-1] == found["rows"][-1]


def test_where_all_fail_the_first_is_told(tmp_path, monkeypatch):
    def fail(*_: object, **__: object):
        raise UserError("no")

    monkeypatch.setattr(quick, "train", fail)
    with pytest.raises(DataError, match="no recipe could be trained, 4 of 4 failed; topology: no"):
        look(dataset(), tmp_path / "look")
    assert not (tmp_path / "look").exists()


def test_an_unknown_setting_is_told_before_the_work(tmp_path):
    with pytest.raises(UserError, match=r"unknown setting 'training\.epoch'"):
        look(dataset(), tmp_path / "look", overrides=["training.epoch=1"])
    assert not (tmp_path / "look").exists()


def test_a_split_is_drawn_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(quick, "QUICK_RECIPES", ("bag",))
    data = dataset()
    found = look(replace(data, subgraphs=replace(data.subgraphs, splits=None)), tmp_path / "look")
    assert found["split"] == "drawn: stratified 50/25/25, seed 0"
    assert found["splits"] == {"train": 15, "val": 8, "test": 7}


def test_no_labels_and_no_validation(tmp_path):
    data = dataset()
    bare = replace(data.subgraphs, task="unlabelled", targets=None, classes=())
    with pytest.raises(DataError, match="have no labels"):
        look(replace(data, subgraphs=bare), tmp_path / "look")
    train = replace(data.subgraphs, splits=np.zeros(30, np.int8))
    with pytest.raises(DataError, match="no subgraph in split 'val'; draw another split"):
        look(replace(data, subgraphs=train), tmp_path / "look")


def test_several_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(quick, "QUICK_RECIPES", ("avg",))
    found = look(dataset(), tmp_path / "look", seeds=2)
    row = found["rows"][1]
    assert (row["n"], row["looks"]) == (2, 8)
    scores = [read_results(tmp_path / "look" / "runs" / name)["val"]["micro_f1"] for name in ("avg", "avg_1")]
    assert row["val"]["micro_f1"]["mean"] == pytest.approx(np.mean(scores))
    assert row["val"]["micro_f1"]["std"] == pytest.approx(np.std(scores))


@pytest.mark.parametrize("task", ["multi-label", "regression"])
def test_other_tasks(task, tmp_path, monkeypatch):
    monkeypatch.setattr(quick, "QUICK_RECIPES", ("bag", "subgnn"))
    found = look(dataset(task), tmp_path / "look")
    metric = "r2" if task == "regression" else "micro_f1"
    scores = {row["recipe"]: row["val"][metric]["mean"] for row in found["rows"]}
    for name, lead in found["over_constant"].items():
        assert lead["lead"] == pytest.approx(scores[name] - scores["constant"], abs=1e-4)


def test_a_graph_without_edges(tmp_path):
    data = dataset()
    bare = replace(data, graph=Graph.from_edges([], [], num_nodes=24))
    found = look(bare, tmp_path / "look")
    assert {row["recipe"] for row in found["rows"]} | set(found["failures"]) == {"constant", *QUICK_RECIPES}
    assert "bag" not in found["failures"]


def test_progress_is_told_of_every_recipe(tmp_path):
    told = []
    look(dataset(), tmp_path / "look", on_progress=lambda *what: told.append(what))
    assert {what.partition(":")[0] for what, _, _ in told} == set(QUICK_RECIPES)
    assert all(done <= total for _, done, total in told)
