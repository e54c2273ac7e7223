"""Portfolios: folds without leaks, equal results again and after an interruption, budgets, and data at the edges."""

import json
from dataclasses import replace

import numpy as np
import pytest

from subgnn import Dataset, Graph, NodeNames, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.data.strings import Strings
from subgnn.errors import DataError, UserError
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.recipes import find_recipe, portfolio
from subgnn.result import RESULTS
from subgnn.training import cross_validation, fits, portfolio_run, search
from subgnn.training.cross_validation import UNUSED, CrossValidation
from subgnn.training.ensemble_selection import Choice, clearly_behind
from subgnn.training.fit import HELD_OUT, TRAIN, VAL
from subgnn.training.fits import Entry, Fold, run_fit
from subgnn.training.options import TrainOptions, parse_duration
from subgnn.training.portfolio import CANDIDATES, load_candidate, plan
from subgnn.training.run_dir import CHECKPOINT
from subgnn.training.search import Budget, Search
from tests.training.examples import dataset, out_of_fold, press_ctrl_c

pytestmark = pytest.mark.slow

SMALL = ("training.epochs=2", "embeddings.dim=4", "bag.inverse_penalty=10", "bag.normalize=rows")


@pytest.fixture(autouse=True)
def all_are_judged(monkeypatch):
    """Networks are judged to the end, however well or badly they do; the data are too easy for them to be."""
    monkeypatch.setattr(search, "NEARLY_PERFECT", 0.0)
    monkeypatch.setattr(search, "clearly_behind", lambda *_: "")
    monkeypatch.setattr(portfolio_run, "learning_curve", lambda *_, fit_many, **__: fit_many([]) or None)


def small(*only: str, **auto: object):
    """A portfolio of cheap candidates, two folds each."""
    listed = {"only": only or ["bag", "topology", "surroundings"], "folds": 2, "repeats": 1, "time": 3600.0, **auto}
    return find_recipe("auto", [*(f"auto.{key}={json.dumps(value)}" for key, value in listed.items()), *SMALL])


def fit(data, out, recipe=None, **options):
    return train(data, recipe or small(), out, device="cpu", report=False, **options)


def stable(result):
    """What does not depend on time."""
    rows = [replace(row, seconds=0.0) for row in result.leaderboard]
    return result.val, result.test, result.chosen, result.rules, result.signal, rows


@pytest.mark.parametrize("task", ["multi-class", "binary", "multi-label", "regression"])
def test_every_task(tmp_path, task):
    data = dataset(task)
    found = fit(data, tmp_path / "run")
    assert {row.name for row in found.leaderboard} == {"constant", "bag", "topology", "surroundings"}
    assert sum(row.weight for row in found.leaderboard) == pytest.approx(1)
    scores = [row.score for row in found.leaderboard]
    assert scores == sorted(scores, reverse=True)
    assert found.metric == ("r2" if task == "regression" else "micro_f1")
    assert found.signal
    checkpoint = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    members = {row.name for row in found.leaderboard if row.weight}
    assert {row.name for row in found.leaderboard if row.test is not None} == members
    assert set(checkpoint.parts) == members
    opened = open_run_of(tmp_path / "run", data)
    outputs = opened.probabilities(data.subgraphs.nodes.take(data.subgraphs.indices("test")))
    if task in ("multi-class", "binary"):
        truth = np.asarray(data.subgraphs.targets)[data.subgraphs.indices("test")]
        assert (outputs.argmax(axis=1) == truth).mean() == pytest.approx(found.test["micro_f1"])


def open_run_of(run, data):
    return Predictor(run / CHECKPOINT, data.graph.undirected())


def test_the_same_again_and_another_seed(tmp_path):
    first, again = (fit(dataset(), tmp_path / name, seed=3) for name in ("a", "b"))
    assert stable(first) == stable(again)
    one, two = (load_checkpoint(tmp_path / name / CHECKPOINT).weights for name in ("a", "b"))
    assert all((one[name] == two[name]).all() for name in one)
    other = fit(dataset(), tmp_path / "c", seed=4)
    assert stable(other)[-1] != stable(first)[-1]


def test_labels_of_test_have_no_part_but_in_test_scores(tmp_path):
    data = dataset()
    targets = np.array(data.subgraphs.targets)
    held_out = data.subgraphs.indices("test")
    targets[held_out] = (targets[held_out] + 1) % 3
    changed = replace(data, subgraphs=replace(data.subgraphs, targets=targets))
    one, two = fit(data, tmp_path / "a"), fit(changed, tmp_path / "b")
    assert one.test != two.test
    untested = [
        replace(found, test={}, leaderboard=tuple(replace(row, test=None) for row in found.leaderboard))
        for found in (one, two)
    ]
    assert stable(untested[0]) == stable(untested[1])


@pytest.mark.parametrize("name", ["bag", "topology", "surroundings"])
def test_labels_of_a_fold_have_no_part_in_its_predictions(monkeypatch, name):
    data, recipe = dataset(), small(folds=3)
    pool = CrossValidation.of(data, recipe.auto, 0)

    def predictions(pool):
        plain = portfolio(recipe)[name]
        return out_of_fold(plain, pool, 3, TrainOptions(device="cpu"))[0]

    before = predictions(pool)
    splits = pool.folds(0, 3)
    fold = splits[1] == HELD_OUT
    targets = np.array(pool.dataset.subgraphs.targets)
    targets[fold] = np.random.default_rng(0).permutation(targets[fold])
    given = replace(pool.dataset.subgraphs, targets=targets)
    # The folds of the labels before: those of others may be dealt in another way.
    monkeypatch.setattr(CrossValidation, "folds", lambda *_: splits)
    changed = predictions(replace(pool, dataset=replace(pool.dataset, subgraphs=given)))
    held = fold[pool.judged]
    np.testing.assert_allclose(changed[held], before[held], atol=1e-6)


def test_folds_keep_groups_and_equal_nodes_together():
    data = dataset(count=30)
    groups = [f"g{i // 3}" for i in range(25)] + ["test"] * 5
    subgraphs = replace(data.subgraphs, groups=Strings.of(groups))
    auto = small(folds=4).auto
    pool = CrossValidation.of(replace(data, subgraphs=subgraphs), auto, 0)
    names = np.array(groups)
    for splits in [*pool.folds(0, 4), *pool.folds(1, 4), pool.whole()]:
        for group in np.unique(names):
            assert len(set(splits[names == group])) == 1
        assert {TRAIN, VAL} <= set(splits.tolist())
    held_out = np.stack([splits == HELD_OUT for splits in pool.folds(0, 4)])
    assert (held_out.sum(axis=0) == np.repeat([1, 0], [25, 5])).all()
    assert all((splits[25:] == UNUSED).all() for splits in pool.folds(0, 4))
    assert (pool.whole()[25:] == HELD_OUT).all()
    # Groups that the split itself divides are not kept.
    divided = replace(subgraphs, groups=Strings.of([f"g{i // 3}" for i in range(30)]))
    assert CrossValidation.of(replace(data, subgraphs=divided), auto, 0).dataset.subgraphs.groups is None


def test_fit_on_train_leaves_validation_as_it_is(tmp_path):
    data, recipe = dataset(), small("bag", "topology", fit_on="train")
    pool = CrossValidation.of(data, recipe.auto, 0)
    assert (len(pool.judged), pool.val.tolist()) == (20, [*range(20, 25)])
    for splits in [*pool.folds(0, 2), pool.whole()]:
        assert splits[20:25].tolist() == [VAL] * 5
        assert VAL not in splits[:20]
    found = fit(data, tmp_path / "run", recipe)
    assert found.test["micro_f1"] >= 0


def watch(monkeypatch, before=lambda job: None):
    """The names of the candidates whose folds are fitted, in their order; ``before`` is called with each job."""
    calls = []

    def watched(job, *given):
        if job.fold >= 0:
            before(job)
            calls.append(job.name)
        return run_fit(job, *given)

    monkeypatch.setattr(fits, "run_fit", watched)
    return calls


@pytest.mark.parametrize("lost", ["topology", "surroundings"])
def test_a_killed_run_is_continued_from_its_candidates(tmp_path, monkeypatch, lost):
    whole = fit(dataset(), tmp_path / "whole")

    def killed(job):
        if job.name == lost and job.fold == 1:
            raise SystemExit  # as by a signal that nothing handles

    watch(monkeypatch, killed)
    with pytest.raises(SystemExit):
        fit(dataset(), tmp_path / "run")
    assert not (tmp_path / "run" / RESULTS).exists()
    kept = {path.stem for path in (tmp_path / "run" / CANDIDATES).iterdir()}
    assert kept == ({"bag"} if lost == "topology" else {"bag", "topology"})
    calls = watch(monkeypatch)
    # The budget may be another one.
    found = fit(dataset(), tmp_path / "run", resume=True, time="20m")
    assert stable(found) == stable(whole)
    assert not kept & set(calls)
    assert len(calls) == 2 * (3 - len(kept))


def test_kept_candidates_are_those_of_the_same_data(tmp_path):
    fit(dataset(), tmp_path / "run")
    row = Entry("bag", portfolio(small())["bag"])
    assert not load_candidate(row, "another key", tmp_path / "run")
    path = tmp_path / "run" / CANDIDATES / "bag.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert not load_candidate(row, "", tmp_path / "run")
    assert not load_candidate(Entry("none", row.recipe), "", tmp_path / "run")


def test_an_interrupt_keeps_the_best_so_far(tmp_path, monkeypatch):
    watch(monkeypatch, lambda job: press_ctrl_c() if job.name == "surroundings" else None)
    found = fit(dataset(), tmp_path / "run")
    assert found.interrupted
    notes = {row.name: row.note for row in found.leaderboard}
    assert notes["surroundings"] == "interrupted"
    assert not any(row.weight for row in found.leaderboard if row.name == "surroundings")
    calls = watch(monkeypatch)
    again = fit(dataset(), tmp_path / "run", resume=True)
    assert not again.interrupted
    assert set(calls) == {"surroundings"}


def test_an_interrupt_in_the_first_fold_keeps_the_best_of_it(tmp_path, monkeypatch):
    whole = fit(dataset(), tmp_path / "whole")
    watch(monkeypatch, lambda job: press_ctrl_c())
    found = fit(dataset(), tmp_path / "run")
    assert [row.name for row in found.leaderboard if row.weight] == ["bag"]
    assert (found.interrupted, found.judged) == (True, 13)
    watch(monkeypatch)
    assert stable(fit(dataset(), tmp_path / "run", resume=True)) == stable(whole)


def test_an_interrupt_before_the_first_fit_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(Search, "run", lambda self: press_ctrl_c())
    with pytest.raises(KeyboardInterrupt):
        fit(dataset(), tmp_path / "run")


def test_without_time_a_constant_is_the_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(Budget, "left", property(lambda _: -1.0))
    data = dataset()
    found = fit(data, tmp_path / "run")
    assert [row.name for row in found.leaderboard if row.weight] == ["constant"]
    assert set(found.late) == {"bag", "topology", "surroundings"}
    assert found.test["micro_f1"] == pytest.approx(0.2)
    outputs = open_run_of(tmp_path / "run", data).probabilities(data.subgraphs.nodes)
    np.testing.assert_allclose(outputs[0].sum(), 1, rtol=1e-6)
    assert (outputs == outputs[0]).all()


def fits_take(monkeypatch, **seconds):
    """Let fits of candidates take some seconds, and everything else none."""
    now = [0.0]

    def timed(job, *given):
        now[0] += seconds[job.name]
        found = run_fit(job, *given)
        return found if job.fold < 0 else replace(found, seconds=seconds[job.name])

    monkeypatch.setattr(search.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(fits, "run_fit", timed)


@pytest.mark.parametrize(("time", "late"), [(35.0, {"topology"}), (40.0, {"topology"}), (200.0, set())])
def test_candidates_that_take_too_long_are_left_out(tmp_path, monkeypatch, time, late):
    fits_take(monkeypatch, bag=1.0, topology=15.0)
    found = fit(dataset(), tmp_path / "run", small("topology", "bag", time=time))
    assert set(found.late) == late
    notes = {row.name: row.note for row in found.leaderboard}
    assert notes["topology"] == ("no time for its other folds" if late else "")
    assert [row.name for row in found.leaderboard if row.weight] == ["bag"]


def test_one_fold_is_enough_for_an_answer(tmp_path, monkeypatch):
    fits_take(monkeypatch, bag=10.0)
    found = fit(dataset(), tmp_path / "run", small("bag", time=12.0))
    row = next(row for row in found.leaderboard if row.name == "bag")
    assert row.weight == 1
    assert row.note == "fitted to all folds but one: no time for the final fit"
    assert found.judged == 13
    assert found.late == ("bag",)


def test_a_candidate_that_is_clearly_ahead_on_the_first_fold_answers(tmp_path, monkeypatch):
    fits_take(monkeypatch, bag=30.0, topology=1.0)
    found = fit(dataset(), tmp_path / "run", small("bag", "topology", time=70.0))
    rows = {row.name: row for row in found.leaderboard}
    assert (rows["bag"].weight, rows["topology"].weight, found.judged) == (1, 0, 13)
    assert rows["bag"].note == "fitted to all folds but one: no time for the final fit"
    assert found.late == ("bag",)
    assert (rows["topology"].note, rows["topology"].seconds) == ("", 2)


def test_cheap_candidates_are_fitted_to_all_folds_before_walks_are_computed(tmp_path, monkeypatch):
    calls = watch(monkeypatch)
    fit(dataset(), tmp_path / "run", small("diffusion", "bag", time=3600.0))
    assert calls == ["bag", "bag", "diffusion", "diffusion"]


@pytest.mark.parametrize("apart", [False, True])
def test_without_time_for_the_final_fit_that_of_a_fold_answers(tmp_path, monkeypatch, apart):
    if apart:
        monkeypatch.setattr("subgnn.training.options._FEW_SUBGRAPHS", 0)
    real = fits.Fits.fit

    def not_final(self, jobs, **options):
        return [] if any(job.fold < 0 for job in jobs) else real(self, jobs, **options)

    monkeypatch.setattr(fits.Fits, "fit", not_final)
    data = dataset()
    found = fit(data, tmp_path / "run", small("bag"))
    row = next(row for row in found.leaderboard if row.name == "bag")
    assert (row.weight, row.note) == (1, "fitted to all folds but one: no time for the final fit")
    assert found.late == ("bag",)
    outputs = open_run_of(tmp_path / "run", data).probabilities(data.subgraphs.nodes.take(range(25, 30)))
    truth = np.asarray(data.subgraphs.targets)[25:]
    assert (outputs.argmax(axis=1) == truth).mean() == pytest.approx(found.test["micro_f1"])


def test_a_candidate_that_fails_is_listed_and_all_that_fail_are_an_error(tmp_path, monkeypatch):
    broken = small("bag", "topology", "surroundings")
    failing = {"topology"}

    def failed(job):
        if job.name in failing:
            raise UserError("it is broken", where="there")

    watch(monkeypatch, failed)
    found = fit(dataset(), tmp_path / "run", broken)
    notes = {row.name: row.note for row in found.leaderboard}
    assert notes["topology"] == "failed: there: it is broken"
    failing |= {"bag", "surroundings"}
    with pytest.raises(DataError, match="no candidate could be fitted"):
        fit(dataset(), tmp_path / "other", broken)
    assert not (tmp_path / "other").exists() or not any((tmp_path / "other").iterdir())


@pytest.fixture
def doubled(monkeypatch):
    """The example twice, of which a sample is judged; 50 of the 60 subgraphs are to learn from."""
    monkeypatch.setattr(cross_validation, "MOST_JUDGED", 30)
    monkeypatch.setattr(cross_validation, "_PILES", 5)
    data, splits = dataset(), np.where(np.arange(60) < 50, TRAIN, HELD_OUT).astype(np.int8)
    return replace(data, subgraphs=replace(data.subgraphs.take(np.tile(np.arange(30), 2)), splits=splits))


@pytest.mark.filterwarnings("ignore::subgnn.errors.DataWarning")  # of equal subgraphs in train and test
def test_of_many_subgraphs_a_sample_is_judged_and_all_are_fitted(tmp_path, doubled):
    pool = CrossValidation.of(doubled, small().auto, 0)
    assert 20 <= len(pool.judged) <= 30
    classes = np.bincount(np.asarray(pool.subgraphs.targets))
    assert classes.max() - classes.min() <= 2
    found = fit(doubled, tmp_path / "run", small("bag"))
    assert found.judged == len(pool.judged)
    assert len(found.test)
    assert (pool.whole() != HELD_OUT).sum() == 50


@pytest.mark.filterwarnings("ignore::subgnn.errors.DataWarning")
@pytest.mark.parametrize("worse", [0.0, 0.1])
def test_of_a_sample_members_whose_final_fit_takes_too_long_are_not_used(tmp_path, monkeypatch, doubled, worse):
    def even(given, *_):
        return Choice("ensemble", np.full(len(given.predictions), 1 / len(given.predictions)), {})

    monkeypatch.setattr(search, "choose", even)
    monkeypatch.setattr(Search, "score", lambda _, rows: 1.0 - worse * (2 - len(rows)))
    slow, run = {}, Search.run
    monkeypatch.setattr(Search, "run", lambda self: (run(self), slow.update(topology=10**6)))
    monkeypatch.setattr(Search, "refit_seconds", lambda _, rows: float(sum(slow.get(row.name, 0) for row in rows)))
    found = fit(doubled, tmp_path / "run", small("bag", "topology"))
    rows = {row.name: row for row in found.leaderboard}
    if worse:
        assert (rows["bag"].weight, rows["topology"].weight) == (0.5, 0.5)
        assert rows["topology"].note.startswith("fitted to all folds but one of a sample of ")
    else:
        assert (rows["bag"].weight, rows["topology"].weight) == (1, 0)
        assert rows["topology"].note == "not used: no time for its final fit, about 1000000 s"
    assert found.late == ("topology",)


def test_processes_change_nothing(tmp_path, monkeypatch):
    data = replace(dataset(), graph=replace(dataset().graph, names=NodeNames.of(f"n{i}" for i in range(24))))
    here = fit(data, tmp_path / "here")
    monkeypatch.setattr("subgnn.training.options._FEW_SUBGRAPHS", 0)
    apart = fit(data, tmp_path / "apart", processes=2)
    assert stable(apart) == stable(here)
    one, two = (load_checkpoint(tmp_path / name / CHECKPOINT) for name in ("here", "apart"))
    assert open_run_of(tmp_path / "apart", data).probabilities(data.subgraphs.nodes).shape == (30, 3)
    for name, part in one.parts.items():
        assert all((weight == two.parts[name].weights[key]).all() for key, weight in part.weights.items())


def labelled(labels, splits=None, task=None, **options) -> Dataset:
    rng = np.random.default_rng(1)
    n = len(labels)
    nodes = [rng.choice(40, 4, replace=False) for _ in range(n)]
    graph = Graph.from_edges(np.arange(39), np.arange(1, 40))
    subgraphs = SubgraphSet.from_lists(nodes, num_nodes=40, labels=labels, splits=splits, task=task, **options)
    return Dataset("few", graph, subgraphs)


@pytest.mark.parametrize(
    "labels",
    [list("aabbcc"), list("ab" * 10), list("ababababababc"), [["a"], ["b"], ["a", "b"]] * 4, [0.5, 1.5, 2.25] * 3],
)
@pytest.mark.filterwarnings("ignore:.* one subgraph")
def test_few_subgraphs_without_splits(tmp_path, labels):
    data = labelled(labels)
    found = fit(data, tmp_path / "run", small("bag", "topology", folds=5))
    assert found.test == {}
    assert all(row.test is None for row in found.leaderboard)
    assert np.isfinite(found.leaderboard[0].score)


@pytest.mark.filterwarnings("ignore:.* one subgraph")
def test_too_few_subgraphs_are_refused(tmp_path):
    with pytest.raises(DataError, match="at least 3 are needed"):
        fit(labelled(list("ab")), tmp_path / "run")
    with pytest.raises(DataError, match="no labels"):
        fit(labelled(list("abc"), task="unlabelled"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_graph_without_edges(tmp_path):
    data = dataset()
    bare = replace(data, graph=Graph.from_edges([], [], num_nodes=24))
    found = fit(bare, tmp_path / "run", small("bag", "topology", "surroundings-gin"))
    notes = {row.name: row.note for row in found.leaderboard}
    assert notes["surroundings-gin"] == "pretraining needs edges, but the graph has none"
    assert notes["bag"] == ""


def test_candidates_that_use_node_features_are_named(tmp_path):
    data = dataset()
    features = np.random.default_rng(0).normal(size=(24, 3))
    graph = Graph.from_edges(*np.nonzero(np.triu(np.ones((24, 24)), 1)), features=features)
    recipe = small("bag")
    listed = (*recipe.auto.candidates, replace(recipe.auto.candidates[0], name="f", recipe="subgnn"))
    wide = replace(listed[-1], set=(*listed[-1].set, "embeddings.features=beside"))
    auto = replace(recipe.auto, only=("bag", "f"), candidates=(*listed[:-1], wide))
    pool = CrossValidation.of(replace(data, graph=graph), auto, 0)
    rows = plan(portfolio(replace(recipe, auto=auto)), pool, auto)
    assert [row.note for row in rows] == ["", "uses node features"]
    without = plan(portfolio(replace(recipe, auto=auto)), CrossValidation.of(data, auto, 0), auto)
    assert without[1].dropped == "the graph has no node features"


def test_a_budget_is_for_portfolios(tmp_path):
    with pytest.raises(UserError, match="the recipe bag has no time budget"):
        train(dataset(), find_recipe("bag"), tmp_path / "run", time="5m")
    with pytest.raises(UserError, match="the duration is 'soon'; accepted: 90, 90s, 5m, 1h"):
        train(dataset(), small(), tmp_path / "run", time="soon")
    assert [parse_duration(text, "") for text in ("2", "2s", "2m", "2h", " 2.5 m ")] == [2, 2, 120, 7200, 150]


def pretend(monkeypatch, share):
    """Fits that predict the right class for a share of the subgraphs, by the name of the candidate."""

    def pretended(job, *_):
        if job.fold < 0:
            return run_fit(job)
        held_out = job.splits == HELD_OUT
        labels = np.asarray(job.common.get().subgraphs.targets)[held_out]
        shown = np.where(np.arange(len(labels)) < share[job.name] * len(labels), labels, (labels + 1) % 3)
        return Fold(np.eye(3, dtype=np.float32)[shown] * 0.9 + 0.1 / 3, 0.1)

    monkeypatch.setattr(fits, "run_fit", pretended)


@pytest.mark.parametrize(("right", "wrong"), [(0.9, 0.1), (0.9, 0.9), (1.0, 1.0)])
def test_networks_that_cannot_win_are_stopped_or_left_out(tmp_path, monkeypatch, right, wrong):
    """A simple model that is right for a share of the subgraphs, and networks that are."""
    monkeypatch.setattr(search, "NEARLY_PERFECT", 0.01)
    monkeypatch.setattr(search, "clearly_behind", clearly_behind)
    pretend(monkeypatch, {"bag": right, "surroundings": wrong, "surroundings-gin": wrong})
    found = fit(dataset(), tmp_path / "run", small("bag", "surroundings", "surroundings-gin"))
    notes = {row.name: row.note for row in found.leaderboard}
    if wrong < right:
        assert notes["surroundings"].startswith("stopped: 0.")
        assert "where the best has" in notes["surroundings"]
        assert notes["surroundings-gin"] == "left out: surroundings, by the same recipe, was stopped"
    elif right < 1:
        assert not notes["surroundings"]
        assert not notes["surroundings-gin"]
    else:
        expected = "left out: bag had 1.000 in the first division into folds; networks can hardly do better"
        assert notes["surroundings"] == notes["surroundings-gin"] == expected


def test_a_network_that_corrects_a_baseline_far_behind_is_left_out(tmp_path, monkeypatch):
    pretend(monkeypatch, {"bag": 1.0, "topology": 0.0, "shape-plus": 0.0})
    found = fit(dataset(), tmp_path / "run", small("bag", "topology", "shape-plus"))
    notes = {row.name: row.note for row in found.leaderboard}
    assert notes["shape-plus"] == "left out: it corrects topology, which is clearly behind bag"
    assert not notes["bag"]
    assert not notes["topology"]


@pytest.mark.filterwarnings("ignore")
def test_no_network_is_left_out_by_a_ranking_without_a_score(tmp_path):
    labels = ["a"] * 40 + ["a", "b"] * 10
    recipe = small("bag", "topology", "shape-plus", fit_on="train")
    recipe = replace(recipe, training=replace(recipe.training, select_by="auroc"))
    found = fit(labelled(labels, ["train"] * 40 + ["val"] * 10 + ["test"] * 10), tmp_path / "run", recipe)
    assert [(row.score, row.low) for row in found.leaderboard] == [(0, None)] * 4
    assert found.learning_curve is None
