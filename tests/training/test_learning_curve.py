"""Learning curves: parts of folds, known answers, and real fits."""

from dataclasses import replace

import numpy as np
import pytest

from subgnn import Dataset, Graph, SubgraphSet
from subgnn.config.settings import AutoSettings
from subgnn.models.recipes import find_recipe
from subgnn.reports.sections import leaderboard_values
from subgnn.result import parse_result
from subgnn.training.cross_validation import CrossValidation
from subgnn.training.fit import HELD_OUT
from subgnn.training.fits import Entry, open_fits
from subgnn.training.options import TrainOptions
from subgnn.training.portfolio import CandidateScores, learning_curve, part_of
from tests.reports.test_leaderboard import RESULT
from tests.training.examples import dataset, out_of_fold

FOLDS = 4


def many(task="multi-class", count=240):
    """Subgraphs of two nodes of a path, equal ones in pairs, with labels of no meaning."""
    rng = np.random.default_rng(0)
    sets = [[i // 2, i // 2 + 1] for i in range(count)]
    labels = {
        "multi-class": [f"c{i // 2 % 3}" for i in range(count)],
        "multi-label": [[f"c{c}" for c in range(3) if c == i // 2 % 3 or rng.random() < 0.3] for i in range(count)],
        "regression": (np.arange(count) // 2 + 0.5).tolist(),
    }[task]
    graph = Graph.from_edges(np.arange(count), np.arange(1, count + 1))
    return Dataset("many", graph, SubgraphSet.from_lists(sets, num_nodes=count + 1, labels=labels))


def test_parts_are_nested_by_class_and_keep_equal_subgraphs_together():
    pool = CrossValidation.of(many(), AutoSettings(), 0)
    classes = np.asarray(pool.dataset.subgraphs.targets)
    for i, splits in enumerate(pool.folds(0, FOLDS)):
        quarter, half = (part_of(pool, splits, share, f"fold {i}") for share in (0.25, 0.5))
        learned = [part < HELD_OUT for part in (quarter, half, splits)]
        assert (learned[0] <= learned[1]).all()
        assert (learned[1] <= learned[2]).all()
        for part, share in ((learned[0], 0.25), (learned[1], 0.5)):
            counts = np.bincount(classes[part]) / np.bincount(classes[learned[2]])
            np.testing.assert_allclose(counts, share, atol=0.1)
            assert (part[::2] == part[1::2]).all()


@pytest.mark.parametrize("task", ["multi-class", "multi-label", "regression"])
@pytest.mark.parametrize("helps", [True, False])
def test_a_curve_that_is_known(task, helps):
    pool = CrossValidation.of(many(task), AutoSettings(), 0)
    targets = np.asarray(pool.subgraphs.targets)
    true = np.eye(3)[targets] if task == "multi-class" else targets.reshape(len(targets), -1).astype(float)

    def predictions(labels, rows):
        """Noise that falls with the number of labels, if they help."""
        noise = np.random.default_rng(labels if helps else 7).normal(size=true.shape)
        return (true + noise * true.std() * (120 / labels if helps else 0.6))[rows]

    def fit_many(jobs):
        return [predictions(int((splits < HELD_OUT).sum()), splits == HELD_OUT) for _, splits in jobs]

    members = [(Entry(name, find_recipe(name)), share) for name, share in (("bag", 0.75), ("topology", 0.25))]
    full = predictions(180, slice(None))
    judge = CandidateScores.by("auto", pool)
    curve = learning_curve(judge, members, full=full, folds=FOLDS, fit_many=fit_many)
    assert [point.subgraphs for point in curve.points] == pytest.approx([45, 90, 180], abs=6)
    scores = [point.score for point in curve.points]
    assert all(point.low <= point.score <= point.high for point in curve.points)
    assert "division" not in curve.sentence
    if helps:
        assert scores == sorted(scores)
        assert curve.sentence.endswith("; more labels would probably help.")
    else:
        assert scores[0] == pytest.approx(scores[2])
        assert curve.sentence.endswith("which is within chance; more labels alone may not raise the score.")
    missing = learning_curve(judge, members, full=full, folds=FOLDS, fit_many=lambda jobs: [*fit_many(jobs[:-1]), None])
    assert missing is None


@pytest.mark.parametrize("wrong", [0, 1, 4])
def test_intervals_of_rankings_hold_the_mean_over_repeats(wrong):
    """Of four repeats, some have one subgraph above the five positive ones."""
    sets, labels = [[i, i + 1] for i in range(100)], ["yes" if i < 5 else "no" for i in range(100)]
    graph = Graph.from_edges(np.arange(100), np.arange(1, 101))
    subgraphs = SubgraphSet.from_lists(sets, num_nodes=101, labels=labels, task="binary")
    pool = CrossValidation.of(Dataset("rare", graph, subgraphs), AutoSettings(), 0)
    positive = np.asarray(pool.subgraphs.targets) == subgraphs.classes.index("yes")
    scores = np.stack([positive * 0.5] * 4)
    scores[:wrong, 50] = 0.9
    columns = [1 - scores, scores]
    predictions = np.stack(columns if subgraphs.classes[1] == "yes" else columns[::-1], axis=2)
    judge = CandidateScores(pool, "auprc")
    found = judge.of(predictions)
    assert found["score"] == pytest.approx(1 - wrong / 4 / 6)
    assert 0.3 < found["low"] < 0.99
    assert found["low"] <= found["score"] <= found["high"]
    gain, low, high = judge.interval(predictions[:1], predictions[-1:])
    assert low <= gain <= high
    assert gain == judge.of(predictions[:1])["score"] - judge.of(predictions[-1:])["score"]


def test_no_curve_by_a_ranking_of_one_class():
    pool = CrossValidation.of(many(), AutoSettings(), 0)
    pool = replace(pool, judged=np.flatnonzero(np.asarray(pool.dataset.subgraphs.targets) == 0))
    full, members = np.full((len(pool.judged), 3), 1 / 3), [(Entry("bag", find_recipe("bag")), 1.0)]

    def fit_many(jobs):
        return [np.full(((splits == HELD_OUT).sum(), 3), 1 / 3) for _, splits in jobs]

    judge = CandidateScores(pool, "auroc")
    assert learning_curve(judge, members, full=full, folds=FOLDS, fit_many=fit_many) is None


def test_real_fits_the_result_and_the_page():
    recipe, options = find_recipe("bag"), TrainOptions(device="cpu", cache=False)
    pool = CrossValidation.of(dataset(), AutoSettings(), 0)
    full = out_of_fold(recipe, pool, 3, options)[0].astype(np.float64)

    def fit_many(jobs):
        jobs = [fits.job(entry, splits, fold=i) for i, (entry, splits) in enumerate(jobs)]
        found = {job.fold: fold.predictions for job, fold in fits.fit(jobs)}
        return [found[i] for i in range(len(jobs))]

    with open_fits(pool, options) as fits:
        members = [(Entry("bag", recipe), 1.0)]
        judge = CandidateScores.by("auto", pool)
        curve = learning_curve(judge, members, full=full, folds=3, fit_many=fit_many)
    assert len(curve.points) in (2, 3)
    found = replace(RESULT, learning_curve=curve)
    assert parse_result(found.to_json(), "run.json", "again") == found
    values = leaderboard_values(found, word="micro-F1")["learning"]
    assert values["sentence"] == curve.sentence
    assert [mark.x for mark in values["chart"].marks] == [point.subgraphs for point in curve.points]
