"""Scores from terms, tests of a lead and calibration, against slow and obvious ways."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from subgnn import SubgraphSet
from subgnn.data.strings import Strings
from subgnn.metrics.significance import (
    ScoreTerms,
    calibration,
    headline_interval,
    score_interval,
    score_terms,
    swap_test,
    wilson,
)
from subgnn.task import task_of


def terms(*right: int) -> ScoreTerms:
    return ScoreTerms(np.array(right, float), np.ones(len(right)))


def every_swap(ours: ScoreTerms, theirs: ScoreTerms) -> float:
    """The share of all 2^n swaps whose lead is at least the one seen."""
    lead, found = ours.score - theirs.score, []
    for mask in product([False, True], repeat=len(ours.gain)):
        a = ScoreTerms(np.where(mask, theirs.gain, ours.gain), np.where(mask, theirs.weight, ours.weight))
        b = ScoreTerms(np.where(mask, ours.gain, theirs.gain), np.where(mask, ours.weight, theirs.weight))
        found.append(a.score - b.score >= lead - 1e-9)
    return float(np.mean(found))


def test_scores_are_those_of_the_metrics():
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(40, 4))
    classes, labels = rng.integers(0, 4, 40), rng.integers(0, 2, (40, 4))
    values = rng.normal(size=40)
    for said, true, given, task in (
        (outputs.argmax(axis=1), classes, outputs, "multi-class"),
        ((outputs > 0).astype(int), labels, outputs, "multi-label"),
        (outputs[:, 0], values, outputs[:, :1], "regression"),
    ):
        known = task_of(task).metrics(torch.from_numpy(given), torch.from_numpy(true))
        name = "r2" if task == "regression" else "micro_f1"
        assert score_terms(said, true, task).score == pytest.approx(known[name], abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_swaps_of_right_answers_are_counted_exactly(seed):
    ours, theirs = (terms(*row) for row in np.random.default_rng(seed).integers(0, 2, (2, 9)))
    assert swap_test(ours, theirs) == pytest.approx(every_swap(ours, theirs))


@pytest.mark.parametrize("seed", range(3))
def test_swaps_are_those_of_all_there_are(seed):
    rng = np.random.default_rng(seed)
    true, ours, theirs = (rng.integers(0, 2, (9, 3)) for _ in range(3))
    true[:, 0] = 1
    a, b = score_terms(ours, true, "multi-label"), score_terms(theirs, true, "multi-label")
    assert swap_test(a, b) == pytest.approx(every_swap(a, b), abs=0.012)


def test_an_undefined_score_leads_nothing():
    flat = score_terms(np.zeros(3), np.zeros(3), "regression")
    assert swap_test(flat, flat) == 1.0
    assert np.isnan(score_interval(flat, flat)).all()


def test_the_interval_is_that_of_a_binomial():
    # A lead of one on 50 of 100 subgraphs, none on the others: 0.5 give or take 1.96 * 0.05.
    low, high = score_interval(terms(*[1] * 100), terms(*[0] * 50, *[1] * 50))
    assert low == pytest.approx(0.402, abs=0.02)
    assert high == pytest.approx(0.598, abs=0.02)


@pytest.mark.parametrize("task", ["multi-class", "multi-label", "regression"])
def test_the_headline_interval_draws_groups_together(task):
    rng = np.random.default_rng(0)
    n, of_group = 60, 4
    labels = {"multi-class": list("abcabc" * 10), "multi-label": [["a"], ["a", "b"], ["c"]] * 20}.get(
        task, rng.normal(size=n).tolist()
    )
    groups = [f"g{i // of_group}" for i in range(n)]
    apart = SubgraphSet.from_lists([[i] for i in range(n)], num_nodes=n, labels=labels)
    outputs = torch.from_numpy(rng.normal(size=(n, max(1, apart.num_classes))).astype(np.float32))
    targets = torch.from_numpy(np.array(apart.targets))
    predicted = task_of(task).predictions(outputs).numpy()

    def drawn(units: int) -> list[float]:
        """The score of samples of units, each a run of subgraphs, the slow way."""
        found = []
        for _ in range(2000):
            chosen = rng.integers(0, units, units)
            rows = (chosen[:, None] * (n // units) + np.arange(n // units)).ravel()
            # The mean of all true values stays the reference of R^2.
            terms = score_terms(predicted, targets.numpy(), task)
            found.append(terms.gain[rows].sum() / terms.weight[rows].sum())
        return np.quantile(found, [0.025, 0.975]).tolist()

    single = headline_interval([outputs], targets, apart)
    grouped = headline_interval([outputs, outputs], targets, replace(apart, groups=Strings.of(groups)))
    assert single == pytest.approx(drawn(n), abs=0.06 if task != "regression" else 0.6)
    assert grouped == pytest.approx(drawn(n // of_group), abs=0.06 if task != "regression" else 0.6)


def test_calibration_by_hand():
    said = np.array([0.05, 0.95, 0.97, 0.99, 1.0])
    bins, error = calibration(said, np.array([True, True, False, True, True]))
    assert [(b.begin, b.end, b.count) for b in bins] == [(0.0, 0.1, 1), (0.9, 1.0, 4)]
    assert (bins[1].said, bins[1].right) == pytest.approx((0.9775, 0.75))
    assert error == pytest.approx(0.2 * 0.95 + 0.8 * 0.2275)
    assert all(b.low <= b.right <= b.high for b in bins)


def test_wilson_solves_its_equation():
    # The ends are the shares p with |seen - p| = z sqrt(p (1 - p) / n).
    for seen, count in ((0.3, 10), (0.75, 4), (0.5, 1000)):
        for p in wilson(seen, count):
            assert abs(seen - p) == pytest.approx(1.959964 * math.sqrt(p * (1 - p) / count))
    assert wilson(0.0, 5)[0] == pytest.approx(0)
    assert wilson(1.0, 5)[1] == pytest.approx(1)
