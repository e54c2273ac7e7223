"""Searches: what they find, that they go on, and that test subgraphs have no part in them."""

from __future__ import annotations

import csv
import json
import math
import re
import sqlite3
import sys
from dataclasses import replace

import numpy as np
import pytest

from subgnn import Dataset, Graph, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.config.settings import PrepareSettings
from subgnn.errors import DataError, DataWarning, MissingExtra, UserError
from subgnn.lab.tuning import study as studies
from subgnn.lab.tuning import trial as trials
from subgnn.lab.tuning.search_space import parse_space, space_names
from subgnn.lab.tuning.study import Search, counted
from subgnn.lab.tuning.trial import TrialResult, run_trial, without_test
from subgnn.lab.tuning.tune import FILES, tune
from subgnn.models.recipes import find_recipe
from subgnn.parallel.engine import Failure, LocalEngine
from tests.pages import ROOT
from tests.results import result
from tests.training.examples import dataset, recipe

SPACE = parse_space(
    {
        "training": {"lr": {"low": 1e-3, "high": 1e-1, "log": True}},
        "model": {"norm": {"choices": ["none", "batch"]}, "head": {"low": 4, "high": 16}},
        "channels": {"structure": {"use": {"choices": [True, False]}, "num_anchors": {"low": 1, "high": 3}}},
    },
    "test",
    name="few",
)


def made_up(dataset, recipe, **_):
    """A training that takes no time: the score grows with the rate."""
    return TrialResult([recipe.training.lr], [1 - recipe.training.lr])


def search(out, data=None, **options):
    given = {"space": SPACE, "trials": 3, "folds": 0, "device": "cpu"}
    return tune(data or dataset(), recipe(2), out, **given | options)


def table(out):
    with (out / "trials.tsv").open() as file:
        return sorted(csv.DictReader(file, delimiter="\t"), key=lambda row: int(row["trial"]))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    out = tmp_path_factory.mktemp("tune") / "out"
    return out, search(out)


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(studies, "run_trial", made_up)


def test_files(searched):
    out, found = searched
    assert json.loads((out / "study.json").read_text()) == found
    assert found["trials"] == {"complete": 3, "pruned": 0, "failed": 0, "running": 0}
    assert (found["study"], found["metric"], found["total"]) == ("cliques/small/few", "micro_f1", 3)
    rows = table(out)
    assert [row["trial"] for row in rows] == ["0", "1", "2"]
    best = max(rows, key=lambda row: (float(row["score"]), -float(row["loss"])))
    assert (found["best"]["trial"], found["best"]["score"]) == (int(best["trial"]), float(best["score"]))
    assert found["leaderboard"][0] == found["best"]
    assert {path.name for path in out.iterdir()} == {*FILES.values(), "study.db"}


def test_the_first_trial_is_the_recipe(searched):
    out, _ = searched
    first = table(out)[0]
    assert (float(first["training.lr"]), first["model.norm"], first["model.head[0]"]) == (0.01, "batch", "16")
    judged = run_trial(without_test(dataset()), recipe(2), folds=0, device="cpu")
    assert (judged.score, judged.loss) == (float(first["score"]), float(first["loss"]))


def test_the_recipe_trains_to_the_score_of_the_trial(searched, tmp_path):
    out, found = searched
    tuned = find_recipe(str(out / "recipe.toml"))
    assert tuned.name == "small_tuned"
    for words in ("cliques/small/few", f"trial {found['best']['trial']} of 3 complete", "No test subgraph was seen"):
        assert words in tuned.note
    results = train(without_test(dataset()), tuned, tmp_path / "run", device="cpu", report=False)
    assert results.val["micro_f1"] == found["best"]["score"]
    assert results.val["loss"] == pytest.approx(found["best"]["loss"], abs=1e-6)


def test_the_study_is_the_same_whatever_is_in_test(searched, tmp_path):
    out, found = searched
    data = dataset()
    subgraphs = data.subgraphs
    targets = subgraphs.targets.copy()
    targets[subgraphs.indices("test")] = 3  # a class of its own, for all of them
    subgraphs = replace(subgraphs, targets=targets, classes=(*subgraphs.classes, "garbage"))
    search(tmp_path / "out", replace(data, subgraphs=subgraphs))
    plain = [[{k: v for k, v in row.items() if k != "seconds"} for row in table(o)] for o in (out, tmp_path / "out")]
    assert plain[0] == plain[1]
    assert (out / "recipe.toml").read_text() == (tmp_path / "out" / "recipe.toml").read_text()
    # And the folder of one takes the other for the same search.
    assert search(out, replace(data, subgraphs=subgraphs))["best"] == found["best"]


def test_it_goes_on(tmp_path, fast):
    whole = search(tmp_path / "whole", trials=4)
    assert search(tmp_path / "parts", trials=2)["trials"]["complete"] == 2
    told = []
    parts = search(tmp_path / "parts", trials=4, on_progress=lambda *a: told.append(a))
    assert parts["trials"]["complete"] == 4
    assert told == [("trials", 2, 4), ("trials", 3, 4), ("trials", 4, 4)]
    assert search(tmp_path / "parts", trials=4)["trials"] == parts["trials"]  # enough is enough
    rates = [[row["training.lr"] for row in table(tmp_path / name)] for name in ("whole", "parts")]
    assert rates[0] == rates[1]
    assert len(set(rates[0])) == 4
    assert whole["best"]["parameters"] == parts["best"]["parameters"]
    assert search(tmp_path / "parts", trials=9, timeout=0)["trials"]["complete"] == 4
    assert search(tmp_path / "other", trials=4, seed=1)["best"]["parameters"] != whole["best"]["parameters"]


@pytest.mark.slow
def test_another_search_is_refused(tmp_path, fast):
    storage = str(tmp_path / "shared.db")
    search(tmp_path / "out", trials=1, storage=storage, study="mine")
    with pytest.raises(DataError, match=r"holds a different search: folds differ; choose a different --out"):
        search(tmp_path / "out", storage=storage, study="mine", folds=2)
    with pytest.raises(DataError, match=r"different search: subgraphs differ; choose a different --study"):
        search(tmp_path / "third", dataset("binary"), storage=storage, study="mine")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    with pytest.raises(DataError, match="exists already"):
        search(tmp_path / "taken")
    # Two folders, one study.
    assert search(tmp_path / "second", trials=3, storage=storage, study="mine")["trials"]["complete"] == 3
    assert not (tmp_path / "second" / "study.db").exists()


def test_equal_scores_are_decided_by_the_loss(tmp_path, monkeypatch):
    losses = iter([0.5, 0.3, 0.3, 0.4])
    monkeypatch.setattr(studies, "run_trial", lambda *_, **__: TrialResult([0.75], [next(losses)]))
    found = search(tmp_path / "out", trials=4)
    assert (found["best"]["trial"], found["best"]["loss"]) == (1, 0.3)


def test_failures_are_recorded_and_the_study_goes_on(tmp_path, monkeypatch):
    errors = iter([None, UserError("the loss became nan", where="train"), ZeroDivisionError("ours"), None])

    def sometimes(data, drawn, **options):
        error = next(errors, UserError("no"))
        if error is not None:
            raise error
        return made_up(data, drawn, **options)

    monkeypatch.setattr(studies, "run_trial", sometimes)
    found = search(tmp_path / "out", trials=4)
    assert found["trials"] == {"complete": 2, "pruned": 0, "failed": 2, "running": 0}
    messages = ["", "train: the loss became nan", "ZeroDivisionError: ours", ""]
    assert [row["error"] for row in table(tmp_path / "out")] == messages
    with pytest.raises(DataError, match="no trial was completed; trial 0: no"):
        search(tmp_path / "all")
    assert len(table(tmp_path / "all")) == 3
    assert not (tmp_path / "all" / "recipe.toml").exists()


def test_an_interrupt_keeps_what_is_done(tmp_path, monkeypatch):
    def press(data, drawn, **options):
        number.append(len(number))
        if number[-1] == 2:
            raise KeyboardInterrupt
        return made_up(data, drawn, **options)

    number = []
    monkeypatch.setattr(studies, "run_trial", press)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "out", trials=4)
    assert json.loads((tmp_path / "out" / "study.json").read_text())["trials"]["complete"] == 2
    assert (tmp_path / "out" / "recipe.toml").exists()
    # The trial that was interrupted is made up for.
    assert search(tmp_path / "out", trials=4)["trials"] == {"complete": 4, "pruned": 0, "failed": 0, "running": 0}
    assert [row["trial"] for row in table(tmp_path / "out")] == ["0", "1", "3", "4"]


def test_folds_are_scored_by_trainings_without_them(monkeypatch):
    trained, told = [], []

    def watch(data, *given, **options):
        trained.append((data, train(data, *given, **options)))
        return trained[-1][1]

    monkeypatch.setattr(trials, "train", watch)
    seen = without_test(dataset())
    judged = run_trial(seen, recipe(2), folds=3, device="cpu", on_score=lambda *step: told.append(step))
    assert judged.scores == [result.test["micro_f1"] for _, result in trained]
    assert judged.losses == [result.val["loss"] for _, result in trained]
    assert told == [(n, pytest.approx(np.mean(judged.scores[:n]))) for n in (1, 2, 3)]
    held_out = [data.subgraphs.indices("test").tolist() for data, _ in trained]
    assert sorted(row for fold in held_out for row in fold) == list(range(25))
    for data, _ in trained:
        assert [len(data.subgraphs.indices(name)) > 0 for name in ("train", "val", "test")] == [True] * 3


def test_a_trial_is_pruned_after_a_fold(tmp_path, monkeypatch):
    monkeypatch.setattr("optuna.pruners.MedianPruner.prune", lambda self, study, trial: trial.number > 0)
    found = search(tmp_path / "out", trials=2, folds=2)
    assert found["trials"] == {"complete": 1, "pruned": 1, "failed": 0, "running": 0}
    assert (found["folds"], len(found["best"]["scores"])) == (2, 2)
    assert found["best"]["score"] == pytest.approx(np.mean(found["best"]["scores"]))
    assert "Out-of-fold micro-f1" in find_recipe(str(tmp_path / "out" / "recipe.toml")).note


def test_an_undefined_score_is_a_failure(tmp_path, monkeypatch):
    undefined = result(val={"r2": math.nan, "loss": 1.0})
    monkeypatch.setattr(trials, "train", lambda *_, **__: undefined)
    with pytest.raises(DataError, match="trial 0: cliques: r2 of validation is undefined"):
        search(tmp_path / "out", dataset("regression"), trials=1)


def test_settings_that_do_not_fit_are_told_before_there_is_a_study(tmp_path):
    few = parse_space({"channels": {"position": {"num_anchors": {"low": 1, "high": 2}}}}, "few", name="few")
    directed = replace(recipe(1), prepare=PrepareSettings(directed=True, own_hops="bounded"))
    for given, options, words in (
        (directed, {}, r"prepare\.directed with prepare\.own_hops=bounded"),
        (recipe(1), {"trials": 0}, "trials is 0"),
        (recipe(1), {"folds": 1}, "folds is 1; accepted: 0"),
        (replace(recipe(1), channels=()), {"space": few}, "search space few: nothing in it can be changed"),
        (find_recipe("auto"), {}, "the recipe 'auto' is a portfolio, which chooses its own settings; tune one of its"),
    ):
        with pytest.raises(UserError, match=words):
            tune(dataset(), given, tmp_path / "out", **{"space": SPACE, "trials": 1, **options})
    assert not (tmp_path / "out").exists()


def test_without_optuna(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"tune needs the package optuna; .*subgnn\[tune\]"):
        search(tmp_path / "out")


def test_a_worker_that_is_gone_is_made_up_for(tmp_path, fast, monkeypatch):
    monkeypatch.setattr(studies, "HEARTBEAT", 1)
    monkeypatch.setattr(studies, "GRACE", 1)
    given = Search(
        without_test(dataset()), recipe(1), SPACE, f"sqlite:///{tmp_path / 'study.db'}", "shared", {"a": 1}, 3
    )
    with pytest.warns(UserWarning, match="Heartbeat"):
        given.open().ask()
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.execute("insert into trial_heartbeats (trial_id, heartbeat) values (1, '2020-01-01 00:00:00')")
    assert given.run_trials() == 3
    assert [t.state.name for t in given.open().get_trials()] == ["FAIL", *["COMPLETE"] * 3]
    assert len(counted(given.open())) == 3


def test_a_database_that_cannot_be_used(tmp_path, monkeypatch):
    wrong = [
        ("postgre://host/db", r"--storage: .* is not a database; accepted: the path of a SQLite file, or a"),
        (f"{tmp_path}/nowhere/a.db", r"the study cannot be stored there \(.*unable to open.*\); is it running"),
        (f"postgresql://u:secret@/d?host={tmp_path}", r"^postgresql\+psycopg://u:\*\*\*@/d\?host=.*cannot be stored"),
        ("mysql+pymysql://u@h/d", "the driver of mysql\\+pymysql is not installed"),
    ]
    for number, (url, words) in enumerate(wrong):
        with pytest.raises(UserError, match=words) as caught:
            search(tmp_path / str(number), storage=url)
        assert "secret" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"needs the package psycopg; .*subgnn\[tune\]"):
        search(tmp_path / "driver", storage="postgresql://u@h/d")


def test_workers_of_an_engine(tmp_path, fast):
    class Losing(LocalEngine):
        def map(self, function, jobs):
            yield jobs[0], Failure("lost")
            yield from super().map(function, jobs[1:])

    with pytest.warns(DataWarning, match="a trial was lost: lost; run the same command again"):
        assert search(tmp_path / "out", engine=Losing(), trials=2)["trials"]["complete"] == 1
    several = LocalEngine()
    several.machines = {"a", "b"}
    with pytest.raises(UserError, match=r"--storage: a SQLite file cannot be shared by 2 machines; give a"):
        search(tmp_path / "two", engine=several, trials=1)


def test_the_guide_has_every_space_and_file():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = page.partition("\n| packaged space |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(.*?)` \|", rows, re.MULTILINE)) == sorted(space_names())
    listed = page.partition("$ ls tuned\n")[2].partition("\n```")[0]
    assert listed.split() == sorted([*FILES.values(), "study.db"])


GRAPH = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])


def made(labels, splits) -> Dataset:
    nodes = [[i % 6, (i + 1) % 6] for i in range(len(labels))]
    return Dataset("made", GRAPH, SubgraphSet.from_lists(nodes, num_nodes=6, labels=labels, splits=splits))


@pytest.mark.parametrize(
    ("labels", "garbage"),
    [
        (["a", "b", "c", "a", "b"], "never seen"),
        (["a", "b", "b", "a", "b"], "third"),
        ([["a"], ["a", "b"], ["b"], ["b"], ["a"]], ["never", "seen"]),
        ([0.5, 1.5, 2.5, 3.5, 4.5], 1e9),
    ],
)
def test_whatever_the_test_labels_are(labels, garbage):
    splits = ["train", "train", "train", "val", "val"]
    want = made(labels, splits).subgraphs
    seen = without_test(made([*labels, garbage], [*splits, "test"])).subgraphs
    assert seen.content_hash == want.content_hash
    assert (seen.task, seen.classes) == (want.task, want.classes)


def test_refused():
    data = made(["a", "b", "a"], ["train", "val", "test"])
    bare = replace(data, subgraphs=replace(data.subgraphs, targets=None, task="unlabelled", classes=()))
    with pytest.raises(DataError, match="have no labels"):
        without_test(bare)
    with pytest.raises(DataError, match="no splits; draw one with subgnn data split"):
        without_test(replace(data, subgraphs=replace(data.subgraphs, splits=None)))
    with pytest.raises(DataError, match="no subgraph in split 'val'"):
        without_test(made(["a", "b"], ["train", "test"]))
