"""Searches: what they find, that they go on, and that test subgraphs have no part in them."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import typing
from dataclasses import replace

import numpy as np
import pytest

from subgnn import Dataset, Graph, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.config.settings import PrepareSettings
from subgnn.errors import DataError, MissingExtra, UserError
from subgnn.lab.tuning import study as studies
from subgnn.lab.tuning import trial as trials
from subgnn.lab.tuning.search_space import parse_space, space_names
from subgnn.lab.tuning.study import Pruner
from subgnn.lab.tuning.trial import TrialResult, max_epochs, run_trial, split_at_random, without_test
from subgnn.lab.tuning.tune import FILES, tune
from subgnn.models.recipes import find_recipe
from tests.lab.tuning.searches import SPACE, made_up
from tests.pages import ROOT
from tests.reports.reading import read
from tests.results import result
from tests.training.examples import dataset, recipe


def search(out, data=None, **options):
    given = {"space": SPACE, "trials": 3, "folds": 0, "device": "cpu"}
    return tune(data or dataset(), recipe(2), out, **given | options)


def table(out):
    with (out / "trials.tsv").open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


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
    assert {path.name for path in out.iterdir()} == {*FILES.values(), "study.db", "inputs.json"}
    page = (out / "study.html").read_text()
    read(page)
    for words in ("Search on cliques: small in the space few", "best so far", f"{found['best']['score']:.3f}"):
        assert words in page


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


@pytest.mark.quick(1)
@pytest.mark.parametrize("change", ["garbage", "removed"])
def test_the_study_is_the_same_whatever_is_in_test(searched, change, tmp_path):
    out, found = searched
    data = dataset()
    subgraphs = data.subgraphs
    held_out = subgraphs.indices("test")
    if change == "removed":
        subgraphs = subgraphs.take(np.setdiff1d(np.arange(len(subgraphs)), held_out))
    else:
        targets = subgraphs.targets.copy()
        targets[held_out] = 3  # a class of its own, for all of them
        subgraphs = replace(subgraphs, targets=targets, classes=(*subgraphs.classes, "garbage"))
    search(tmp_path / "out", replace(data, subgraphs=subgraphs))
    unequal = ("seconds", "worker")
    plain = [[{k: v for k, v in row.items() if k not in unequal} for row in table(o)] for o in (out, tmp_path / "out")]
    assert plain[0] == plain[1]
    assert (out / "recipe.toml").read_text() == (tmp_path / "out" / "recipe.toml").read_text()
    # And the folder of one takes the other for the same search.
    assert search(out, replace(data, subgraphs=subgraphs))["best"] == found["best"]


def test_it_goes_on(tmp_path, fast):
    whole = search(tmp_path / "whole", trials=4)
    assert search(tmp_path / "parts", trials=2)["trials"]["complete"] == 2
    parts = search(tmp_path / "parts", trials=4)
    assert parts["trials"]["complete"] == 4
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
    with pytest.raises(DataError, match=r"holds a different search: seeds differ; choose a different --out"):
        search(tmp_path / "out", storage=storage, study="mine", seeds=2)
    with pytest.raises(
        DataError, match=r"'mine' belongs to a different search: subgraphs differ; choose a different --study"
    ):
        search(tmp_path / "third", dataset("binary"), storage=storage, study="mine")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    with pytest.raises(DataError, match="exists already"):
        search(tmp_path / "taken")
    # Two folders, one study.
    assert search(tmp_path / "second", trials=3, storage=storage, study="mine")["trials"]["complete"] == 3
    assert not (tmp_path / "second" / "study.db").exists()


@pytest.mark.slow
def test_pruned(tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "STARTUP", 1)

    def worse_and_worse(data, drawn, *, on_step=None, **_):
        scores.append(1.0 / (1 + len(scores)))
        return made_up(data, replace(drawn, training=replace(drawn.training, lr=scores[-1])), on_step=on_step)

    scores = []
    monkeypatch.setattr(studies, "run_trial", worse_and_worse)
    found = search(tmp_path / "out", trials=4)
    assert found["trials"] == {"complete": 1, "pruned": 3, "failed": 0, "running": 0}
    assert found["best"]["trial"] == 0
    assert [row["epochs"] for row in table(tmp_path / "out")] == ["2", "1", "1", "1"]
    scores = []
    assert search(tmp_path / "all", trials=4, pruner="none")["trials"]["complete"] == 4
    scores = []
    assert search(tmp_path / "bands", trials=4, pruner="hyperband")["trials"]["failed"] == 0


def test_a_real_training_is_pruned_after_an_epoch(tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "STARTUP", 0)
    monkeypatch.setattr("optuna.pruners.MedianPruner.prune", lambda self, study, trial: trial.number > 0)
    found = search(tmp_path / "out", trials=2)
    assert found["trials"] == {"complete": 1, "pruned": 1, "failed": 0, "running": 0}
    assert [row["epochs"] for row in table(tmp_path / "out")] == ["2", "1"]


def test_equal_scores_are_decided_by_the_loss(tmp_path, monkeypatch):
    losses = iter([0.5, 0.3, 0.3, 0.4])
    monkeypatch.setattr(studies, "run_trial", lambda *_, **__: TrialResult([0.75], [next(losses)], [0]))
    found = search(tmp_path / "out", trials=4)
    assert (found["best"]["trial"], found["best"]["loss"]) == (1, 0.3)
    assert found["importance"] == {}  # nothing mattered


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
    read((tmp_path / "out" / "study.html").read_text())
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


def test_folds_are_scored_by_trainings_without_them(tmp_path, monkeypatch):
    seen, trained = without_test(dataset()), []

    def watch(data, *given, **options):
        trained.append((data, train(data, *given, **options)))
        return trained[-1][1]

    monkeypatch.setattr(trials, "train", watch)
    steps = []
    judged = run_trial(seen, recipe(2), seeds=2, folds=3, device="cpu", on_step=lambda n, _: steps.append(n))
    assert steps == list(range(1, 2 * 3 * 2 + 1))
    assert judged.scores == [result.test["micro_f1"] for _, result in trained]
    assert judged.losses == [result.val["loss"] for _, result in trained]
    assert [result.seed for _, result in trained] == [0, 0, 0, 1, 1, 1]
    held_out = [data.subgraphs.indices("test").tolist() for data, _ in trained]
    for once in (held_out[:3], held_out[3:]):
        assert sorted(row for fold in once for row in fold) == list(range(25))
    assert held_out[0] != held_out[3]
    for data, _ in trained:
        assert [len(data.subgraphs.indices(name)) > 0 for name in ("train", "val", "test")] == [True] * 3


def test_a_search_by_folds(tmp_path):
    found = search(tmp_path / "out", trials=1, folds=2)
    assert (found["folds"], len(found["best"]["scores"])) == (2, 2)
    assert found["best"]["score"] == pytest.approx(np.mean(found["best"]["scores"]))
    assert "Out-of-fold micro-f1" in find_recipe(str(tmp_path / "out" / "recipe.toml")).note
    assert "2 folds of training and validation subgraphs" in (tmp_path / "out" / "study.html").read_text()
    with pytest.raises(DataError, match="holds a different search"):
        search(tmp_path / "out", trials=1, folds=0)


def test_steps_tell_the_best_so_far(monkeypatch):
    """Of regression the epoch of the lowest loss, else that of the best score; and the mean with seeds done."""
    epochs = [(0.2, 0.9), (0.6, 0.8), (0.4, 0.7)]

    def fake(data, drawn, out, *, callbacks, **_):
        name = "r2" if data.subgraphs.task == "regression" else "micro_f1"
        for score, loss in epochs:
            callbacks.on_epoch({f"val_{name}": score, "val_loss": loss})
        best = epochs[-1] if name == "r2" else epochs[1]
        return result(val={name: best[0], "loss": best[1]})

    monkeypatch.setattr(trials, "train", fake)
    for task, want in [("regression", [0.2, 0.6, 0.4, 0.3, 0.5, 0.4]), ("binary", [0.2, 0.6, 0.6, 0.4, 0.6, 0.6])]:
        steps = []
        run_trial(dataset(task), recipe(3), seeds=2, folds=0, on_step=lambda *step, steps=steps: steps.append(step))
        assert [number for number, _ in steps] == [1, 2, 3, 4, 5, 6]
        assert [score for _, score in steps] == pytest.approx(want)


@pytest.mark.parametrize(
    ("given", "epochs"),
    [
        (find_recipe("avg", ["embeddings.dim=4", "training.epochs=2"]), 4),  # frozen and trainable embeddings
        (replace(recipe(2), training=replace(recipe(2).training, members=3)), 6),
    ],
)
def test_no_step_is_told_twice_where_a_recipe_has_several_networks(given, epochs):
    steps = []
    run_trial(without_test(dataset()), given, seeds=2, folds=0, device="cpu", on_step=lambda n, _: steps.append(n))
    assert steps == list(range(1, 2 * epochs + 1))
    assert max_epochs(given) == epochs


def test_orientations_are_a_part_of_what_is_searched(tmp_path, fast):
    data = dataset()
    tails, heads, _ = data.graph.edges()
    there = replace(data, graph=Graph.from_edges(tails, heads, directed=True))
    search(tmp_path / "out", there, trials=1)
    back = replace(data, graph=there.graph.reverse())
    assert back.graph.undirected().content_hash == there.graph.undirected().content_hash
    with pytest.raises(DataError, match="different search: graph differ"):
        search(tmp_path / "out", back, trials=1)


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
        (recipe(1), {"folds": 2, "split": "random"}, "with folds"),
        (replace(recipe(1), channels=()), {"space": few}, "search space few: nothing in it can be changed"),
        (find_recipe("auto"), {}, "the recipe 'auto' is a portfolio, which chooses its own settings; tune one of its"),
    ):
        with pytest.raises(UserError, match=words):
            tune(dataset(), given, tmp_path / "out", **{"space": SPACE, "trials": 1, **options})
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_importance_follows_what_matters(tmp_path, fast):
    found = search(tmp_path / "out", trials=8, pruner="none")
    assert next(iter(found["importance"])) == "training.lr"
    assert sum(found["importance"].values()) == pytest.approx(1)
    page = (tmp_path / "out" / "study.html").read_text()
    read(page)
    assert "Bar chart of importance: training.lr" in page


def test_without_optuna(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"tune needs the package optuna; .*subgnn\[tune\]"):
        search(tmp_path / "out")


@pytest.mark.parametrize(
    ("head", "names"),
    [
        ("space", space_names()),
        ("pruner", typing.get_args(Pruner)),
        ("file", [*FILES.values(), "study.db", "inputs.json"]),
    ],
)
def test_the_guide_has_every_space_pruner_and_file(head, names):
    page = (ROOT / "docs" / "tuning.md").read_text(encoding="utf-8")
    rows = page.partition(f"\n| {head} |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(.*?)` \|", rows, re.MULTILINE)) == sorted(names)


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


def test_divided_anew():
    seen = without_test(dataset())
    drawn = [split_at_random(seen, seed).subgraphs for seed in (0, 0, 1)]
    assert all(len(s.indices("val")) == 5 and len(s.indices("test")) == 0 for s in drawn)
    assert np.array_equal(drawn[0].splits, drawn[1].splits)
    assert not np.array_equal(drawn[0].splits, drawn[2].splits)
    assert not np.array_equal(drawn[0].splits, seen.subgraphs.splits)
    equal = without_test(made(["a", "b"] * 9, ["train"] * 12 + ["val"] * 6))  # six node sets, three times each
    for seed in range(5):
        splits = split_at_random(equal, seed).subgraphs.splits
        assert all(len(set(splits[i::6].tolist())) == 1 for i in range(6))
        assert (splits == 1).sum() == 6
