"""Searches: what they find, that they go on, and that test subgraphs have no part in them."""

from __future__ import annotations

import csv
import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from subgnn import Graph
from subgnn.api.train_recipe import train
from subgnn.config.files import read_recipe
from subgnn.config.recipes import find_recipe
from subgnn.config.settings import PrepareSettings
from subgnn.errors import DataError, MissingExtra, UserError
from subgnn.lab.tuning import study as studies
from subgnn.lab.tuning import trial as trials
from subgnn.lab.tuning.search_space import parse_space
from subgnn.lab.tuning.trial import TrialResult, max_epochs, run_trial, without_test
from subgnn.lab.tuning.tune import tune
from subgnn.lab.tuning.tune_page import best_so_far
from tests.lab.tuning.searches import SPACE, made_up
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
    assert found["best"]["trial"] == int(best["trial"])
    assert found["best"]["score"] == float(best["score"])
    assert {"recipe.toml", "study.db", "study.html", "inputs.json"} <= {path.name for path in out.iterdir()}
    assert not list(out.glob(".*"))


def test_the_first_trial_is_the_recipe(searched):
    out, _ = searched
    first = table(out)[0]
    assert (float(first["training.lr"]), first["model.norm"], first["model.head[0]"]) == (0.01, "batch", "16")
    judged = run_trial(without_test(dataset()), recipe(2), folds=0, device="cpu")
    assert (judged.score, judged.loss) == (float(first["score"]), float(first["loss"]))


def test_the_recipe_trains_to_the_score_of_the_trial(searched, tmp_path):
    out, found = searched
    tuned = read_recipe(out / "recipe.toml")
    assert tuned.name == "small_tuned"
    for words in ("cliques/small/few", f"trial {found['best']['trial']} of 3 complete", "No test subgraph was seen"):
        assert words in tuned.note
    results = train(without_test(dataset()), tuned, tmp_path / "run", device="cpu", report=False)
    assert results.val["micro_f1"] == found["best"]["score"]
    assert results.val["loss"] == pytest.approx(found["best"]["loss"], abs=1e-6)


def test_page(searched):
    out, found = searched
    page = (out / "study.html").read_text()
    read(page)
    assert "Search on cliques: small in the space few" in page
    assert "best so far" in page
    assert f"{found['best']['score']:.3f}" in page


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


@pytest.mark.slow
def test_no_training_sees_a_test_subgraph(tmp_path, monkeypatch):
    seen = []
    real = trials.train

    def watch(data, *given, **options):
        seen.append([len(data.subgraphs.indices(split)) for split in ("train", "val", "test")])
        return real(data, *given, **options)

    monkeypatch.setattr(trials, "train", watch)
    search(tmp_path / "out", trials=1, seeds=2, split="random")
    assert seen == [[20, 5, 0]] * 2


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


@pytest.mark.slow
def test_the_seed_of_the_search(tmp_path, fast):
    found = [search(tmp_path / str(seed), trials=2, seed=seed) for seed in (0, 1)]
    assert found[0]["best"]["parameters"] != found[1]["best"]["parameters"]


@pytest.mark.slow
def test_another_search_is_refused(tmp_path, fast):
    storage = str(tmp_path / "shared.db")
    search(tmp_path / "out", trials=1, storage=storage, study="mine")
    with pytest.raises(DataError, match=r"holds another search: seeds differ; give another --out"):
        search(tmp_path / "out", storage=storage, study="mine", seeds=2)
    with pytest.raises(
        DataError, match=r"'mine' is a search of something else: subgraphs differ; give another --study"
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
    def sometimes(data, drawn, **options):
        number.append(len(number))
        if number[-1] == 1:
            raise UserError("the loss became nan", where="train")
        if number[-1] == 2:
            raise ZeroDivisionError("ours")
        return made_up(data, drawn, **options)

    number = []
    monkeypatch.setattr(studies, "run_trial", sometimes)
    found = search(tmp_path / "out", trials=4)
    assert found["trials"] == {"complete": 2, "pruned": 0, "failed": 2, "running": 0}
    assert [row["error"] for row in table(tmp_path / "out")] == [
        "",
        "train: the loss became nan",
        "ZeroDivisionError: ours",
        "",
    ]
    read((tmp_path / "out" / "study.html").read_text())


def test_where_all_fail_the_first_is_told(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise UserError("no")

    monkeypatch.setattr(studies, "run_trial", fail)
    with pytest.raises(DataError, match="no trial was completed; trial 0: no"):
        search(tmp_path / "out")
    assert len(table(tmp_path / "out")) == 3
    assert not (tmp_path / "out" / "recipe.toml").exists()


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


def test_timeout(tmp_path, fast):
    search(tmp_path / "out", trials=2)
    assert search(tmp_path / "out", trials=9, timeout=0)["trials"]["complete"] == 2


def test_seeds_are_averaged(tmp_path):
    seen = without_test(dataset())
    both = run_trial(seen, recipe(1), seeds=2, folds=0, device="cpu")
    runs = [train(seen, recipe(1), tmp_path / f"{s}", seed=s, device="cpu", report=False).val for s in range(2)]
    assert both.scores == [run["micro_f1"] for run in runs]
    assert both.loss == pytest.approx(np.mean([run["loss"] for run in runs]))
    assert both.score == pytest.approx(np.mean(both.scores))


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


def test_a_portfolio_is_not_tuned(tmp_path):
    with pytest.raises(UserError, match="the recipe 'auto' is a portfolio, which chooses by itself; tune one of its"):
        tune(dataset(), find_recipe("auto"), tmp_path / "out", space=SPACE, trials=1)


def test_a_search_by_folds(tmp_path):
    found = search(tmp_path / "out", trials=1, folds=2)
    assert (found["folds"], len(found["best"]["scores"])) == (2, 2)
    assert found["best"]["score"] == pytest.approx(np.mean(found["best"]["scores"]))
    assert "Out-of-fold micro-f1" in read_recipe(tmp_path / "out" / "recipe.toml").note
    assert "2 folds of training and validation subgraphs" in (tmp_path / "out" / "study.html").read_text()
    with pytest.raises(DataError, match="holds another search"):
        search(tmp_path / "out", trials=1, folds=0)
    for options, words in (({"folds": 1}, "folds is 1; accepted: 0"), ({"folds": 2, "split": "random"}, "with folds")):
        with pytest.raises(UserError, match=words):
            search(tmp_path / "other", **options)


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


def test_no_step_is_told_twice_where_a_recipe_has_two_candidates():
    """Frozen and trainable embeddings: twice the epochs for each seed."""
    avg = find_recipe("avg", ["embeddings.dim=4", "training.epochs=2"])
    steps = []
    run_trial(
        without_test(dataset()), avg, seeds=2, folds=0, device="cpu", on_step=lambda number, _: steps.append(number)
    )
    assert steps == list(range(1, 2 * max_epochs(avg) + 1))
    assert max_epochs(avg) == 4


def test_no_step_is_told_twice_where_a_recipe_has_several_networks():
    small = recipe(2)
    several = replace(small, training=replace(small.training, members=3))
    steps = []
    run_trial(without_test(dataset()), several, seeds=2, folds=0, device="cpu", on_step=lambda n, _: steps.append(n))
    assert steps == list(range(1, 2 * max_epochs(several) + 1))
    assert max_epochs(several) == 6


def test_orientations_are_a_part_of_what_is_searched(tmp_path, fast):
    data = dataset()
    tails, heads, _ = data.graph.edges()
    there = replace(data, graph=Graph.from_edges(tails, heads, directed=True))
    search(tmp_path / "out", there, trials=1)
    back = replace(data, graph=there.graph.reverse())
    assert back.graph.undirected().content_hash == there.graph.undirected().content_hash
    with pytest.raises(DataError, match="another search: graph differ"):
        search(tmp_path / "out", back, trials=1)


@pytest.mark.quick(1)
@pytest.mark.parametrize("task", ["multi-label", "regression"])
def test_other_tasks(task, tmp_path):
    found = search(tmp_path / "out", dataset(task), trials=1)
    assert found["metric"] == ("r2" if task == "regression" else "micro_f1")
    assert found["trials"]["complete"] == 1


def test_an_undefined_score_is_a_failure(tmp_path, monkeypatch):
    undefined = result(val={"r2": math.nan, "loss": 1.0})
    monkeypatch.setattr(trials, "train", lambda *_, **__: undefined)
    with pytest.raises(DataError, match="trial 0: cliques: r2 of validation is undefined"):
        search(tmp_path / "out", dataset("regression"), trials=1)


def test_baselines_have_the_papers_ranges(tmp_path, fast):
    bag = replace(recipe(1), method="bag", channels=())
    found = tune(dataset(), bag, tmp_path / "out", trials=2, device="cpu")
    assert found["space"] == "paper_baselines"
    assert set(found["best"]["parameters"]) == {
        "training.batch_size",
        "training.lr",
        "training.weight_decay",
        "model.head[0]",
        "model.head[1]",
    }


def test_a_search_may_start_from_a_network_that_sees_nothing(tmp_path, fast):
    blind = replace(recipe(1, initial=False), channels=())
    sees = parse_space({"model": {"initial": {"choices": [False, True]}, "dropout": {"low": 0.1, "high": 0.5}}}, "test")
    assert tune(dataset(), blind, tmp_path / "out", space=sees, trials=1, device="cpu")["best"] is not None


def test_settings_that_do_not_fit_are_told_before_there_is_a_study(tmp_path):
    bad = replace(recipe(1), prepare=PrepareSettings(directed=True, own_hops="bounded"))
    with pytest.raises(UserError, match=r"prepare\.directed with prepare\.own_hops=bounded"):
        tune(dataset(), bad, tmp_path / "out", space=SPACE, trials=1)
    with pytest.raises(UserError, match="trials is 0"):
        search(tmp_path / "out", trials=0)
    few = parse_space({"channels": {"position": {"num_anchors": {"low": 1, "high": 2}}}}, "few", name="few")
    with pytest.raises(UserError, match="search space few: nothing in it can be changed"):
        tune(dataset(), replace(recipe(1), channels=()), tmp_path / "out", space=few)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_importance_follows_what_matters(tmp_path, fast):
    found = search(tmp_path / "out", trials=8, pruner="none")
    assert next(iter(found["importance"])) == "training.lr"
    assert sum(found["importance"].values()) == pytest.approx(1)
    page = (tmp_path / "out" / "study.html").read_text()
    read(page)
    assert "Bar chart of importance: training.lr" in page


def test_best_so_far():
    rows = [
        {"trial": n, "state": state, "score": score}
        for n, state, score in [(0, "failed", None), (1, "complete", 0.2), (2, "pruned", 0.9), (4, "complete", 0.5)]
    ]
    assert best_so_far(rows) == [(1, 0.2), (2, 0.2), (4, 0.5)]


def test_without_optuna(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"tune needs the package optuna; .*subgnn\[tune\]"):
        search(tmp_path / "out")
