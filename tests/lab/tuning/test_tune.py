"""Searches: what they find, that they go on, and that test subgraphs have no part in them."""

import csv
import math
import re
import sys
from dataclasses import replace

import pytest

from subgnn.api.train_recipe import train
from subgnn.config.settings import ChannelSettings
from subgnn.errors import DataError, MissingExtra, UserError
from subgnn.lab.tuning import tune as tuning
from subgnn.lab.tuning.tune import FILES, parse_space, space_names, tune
from subgnn.models.recipes import find_recipe
from tests.pages import ROOT
from tests.results import result
from tests.training.examples import dataset, recipe

SPACE = parse_space(
    {
        "training": {"lr": {"low": 1e-3, "high": 1e-1, "log": True}},
        "model": {"norm": {"choices": ["none", "batch"]}, "head": {"low": 4, "high": 16}},
        "channels": {"structure": {"num_anchors": {"low": 1, "high": 3}}},
    },
    "test",
    name="few",
)


def search(out, data=None, **options):
    given = {"space": SPACE, "trials": 3, "folds": 2, "device": "cpu"}
    return tune(data or dataset(), recipe(2), out, **given | options)


def table(out):
    with (out / "trials.tsv").open() as file:
        return sorted(csv.DictReader(file, delimiter="\t"), key=lambda row: int(row["number"]))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    out = tmp_path_factory.mktemp("tune") / "out"
    return out, search(out)


@pytest.fixture
def fast(monkeypatch):
    """Trainings that take no time: the score grows with the rate."""
    monkeypatch.setattr(tuning, "_score", lambda trial, seen, recipe, **_: recipe.training.lr)


def test_files(searched):
    out, found = searched
    assert (found["trials"], found["study"], found["metric"]) == ({"complete": 3}, "cliques/small/few", "micro_f1")
    assert {path.name for path in out.iterdir()} == {*FILES.values(), "study.db"}
    rows = table(out)
    assert [row["number"] for row in rows] == ["0", "1", "2"]
    assert found["best"]["score"] == max(float(row["value"]) for row in rows)
    # The first trial is the recipe itself.
    first = rows[0]
    own = (float(first["params_training.lr"]), first["params_model.norm"], first["params_model.head[0]"])
    assert own == (0.01, "batch", "16")
    tuned = find_recipe(str(out / "recipe.toml"))
    assert tuned.name == "small_tuned"
    for words in ("cliques/small/few", f"trial {found['best']['trial']} of 3 complete", "No test subgraph was seen"):
        assert words in tuned.note
    assert tuned.training.lr == found["best"]["parameters"]["training.lr"]


def test_the_study_is_the_same_whatever_is_in_test(searched, tmp_path):
    out, found = searched
    data = dataset()
    subgraphs = data.subgraphs
    targets = subgraphs.targets.copy()
    targets[subgraphs.indices("test")] = 0
    subgraphs = replace(subgraphs, targets=targets)
    search(tmp_path / "out", replace(data, subgraphs=subgraphs))
    plain = [
        [{k: v for k, v in row.items() if "time" not in k and k != "duration"} for row in table(o)]
        for o in (out, tmp_path / "out")
    ]
    assert plain[0] == plain[1]
    assert (out / "recipe.toml").read_text() == (tmp_path / "out" / "recipe.toml").read_text()
    # And the study of one takes the other for the same search.
    assert search(out, replace(data, subgraphs=subgraphs))["best"] == found["best"]


def test_it_goes_on(tmp_path, fast):
    whole = search(tmp_path / "whole", trials=4)
    assert search(tmp_path / "parts", trials=2)["trials"] == {"complete": 2}
    told = []
    parts = search(tmp_path / "parts", trials=4, on_progress=lambda *a: told.append(a))
    assert told == [("trials", 2, 4), ("trials", 3, 4), ("trials", 4, 4)]
    assert search(tmp_path / "parts", trials=4)["trials"] == {"complete": 4}  # enough is enough
    rates = [[row["params_training.lr"] for row in table(tmp_path / name)] for name in ("whole", "parts")]
    assert rates[0] == rates[1]
    assert len(set(rates[0])) == 4
    assert whole["best"] == parts["best"]
    assert search(tmp_path / "parts", trials=9, timeout=0)["trials"]["complete"] == 4
    assert search(tmp_path / "other", trials=4, seed=1)["best"]["parameters"] != whole["best"]["parameters"]


def test_another_search_is_refused(tmp_path, fast):
    storage = str(tmp_path / "shared.db")
    search(tmp_path / "out", trials=1, storage=storage, study="mine")
    with pytest.raises(DataError, match=r"different search: folds differ; choose a different --study"):
        search(tmp_path / "out", storage=storage, study="mine", folds=3)
    with pytest.raises(DataError, match=r"different search: subgraphs differ; choose a different --study"):
        search(tmp_path / "third", dataset("binary"), storage=storage, study="mine")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    with pytest.raises(DataError, match="exists already"):
        search(tmp_path / "taken")
    # Two folders, one study.
    assert search(tmp_path / "second", trials=3, storage=storage, study="mine")["trials"] == {"complete": 3}
    assert not (tmp_path / "second" / "study.db").exists()


def test_failures_are_recorded_and_the_study_goes_on(tmp_path, monkeypatch):
    errors = iter([None, UserError("the loss became nan", where="train"), ZeroDivisionError("ours"), None])

    def sometimes(trial, data, drawn, **_):
        error = next(errors, UserError("no"))
        if error is not None:
            raise error
        return drawn.training.lr

    monkeypatch.setattr(tuning, "_score", sometimes)
    assert search(tmp_path / "out", trials=4)["trials"] == {"complete": 2, "fail": 2}
    messages = ["", "train: the loss became nan", "ZeroDivisionError: ours", ""]
    assert [row["user_attrs_error"] for row in table(tmp_path / "out")] == messages
    with pytest.raises(DataError, match="no trial was completed: no; fix the recipe"):
        search(tmp_path / "all")


def test_an_interrupted_trial_is_replaced(tmp_path, monkeypatch):
    def press(trial, data, drawn, **_):
        if trial.number == 2:
            raise KeyboardInterrupt
        return drawn.training.lr

    monkeypatch.setattr(tuning, "_score", press)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "out", trials=4)
    assert search(tmp_path / "out", trials=4)["trials"] == {"complete": 4, "fail": 1}


def test_folds_are_scored_by_trainings_without_them(tmp_path, monkeypatch):
    trained = []

    def watch(data, *given, **options):
        trained.append((data, train(data, *given, **options)))
        return trained[-1][1]

    monkeypatch.setattr(tuning, "train", watch)
    monkeypatch.setattr("optuna.pruners.MedianPruner.prune", lambda self, study, trial: trial.number > 0)
    found = search(tmp_path / "out", trials=2, folds=3)
    # The second trial is pruned after a fold.
    assert (found["trials"], len(trained)) == ({"complete": 1, "pruned": 1}, 4)
    scores = [result.test["micro_f1"] for _, result in trained[:3]]
    assert found["best"]["score"] == pytest.approx(sum(scores) / 3)
    held_out = [data.subgraphs.indices("test").tolist() for data, _ in trained[:3]]
    assert sorted(row for fold in held_out for row in fold) == list(range(25))
    for data, _ in trained:
        assert [len(data.subgraphs.indices(name)) > 0 for name in ("train", "val", "test")] == [True] * 3
    assert "out-of-fold micro-F1" in find_recipe(str(tmp_path / "out" / "recipe.toml")).note


def test_an_undefined_score_is_a_failure(tmp_path, monkeypatch):
    undefined = result(test={"r2": math.nan})
    monkeypatch.setattr(tuning, "train", lambda *_, **__: undefined)
    with pytest.raises(DataError, match="no trial was completed: cliques: r2 of a fold is undefined"):
        search(tmp_path / "out", dataset("regression"), trials=1)


def test_settings_that_do_not_fit_are_told_before_there_is_a_study(tmp_path):
    few = parse_space({"channels": {"position": {"num_anchors": {"low": 1, "high": 2}}}}, "few", name="few")
    unknown = replace(recipe(1), channels=(ChannelSettings("position", "border", 3, similarity="warping"),))
    for given, options, words in (
        (unknown, {}, "the channel position/border does not support the similarity 'warping'"),
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


def test_a_database_that_cannot_be_used(tmp_path):
    wrong = [
        ("postgre://host/db", r"--storage: .* is not a database .*; accepted: the path of a SQLite file, or a"),
        (f"{tmp_path}/nowhere/a.db", r"the study cannot be stored there \(.*unable to open.*\); is it running"),
        (f"postgresql://u:secret@/d?host={tmp_path}", r"^postgresql\+psycopg://u:\*\*\*@/d\?host=.*cannot be stored"),
        ("mysql+pymysql://u@h/d", "the driver of mysql\\+pymysql is not installed"),
    ]
    for number, (url, words) in enumerate(wrong):
        with pytest.raises(UserError, match=words) as caught:
            search(tmp_path / str(number), storage=url)
        assert "secret" not in str(caught.value)


def test_the_guide_has_every_space_and_file():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = page.partition("\n| packaged space |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `(.*?)` \|", rows, re.MULTILINE)) == sorted(space_names())
    listed = page.partition("$ ls tuned\n")[2].partition("\n```")[0]
    assert listed.split() == sorted([*FILES.values(), "study.db"])
