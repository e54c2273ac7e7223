"""Thresholds for an aim, beside a search over all of them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn.errors import UserError
from subgnn.metrics.thresholds import Aim, Decision, choose_threshold, count_alerts, threshold_notes
from subgnn.result import Alerts, plain_values
from subgnn.task import task_of

AIMS = ["precision=0.9", "precision=0.5", "precision=1", "recall=0.8", "recall=1", "f1"]
AIMS += ["cost=fp:1,fn:20", "cost=fp:3,fn:1"]
SCORED = st.lists(
    st.tuples(st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1, width=32)), st.booleans()),
    min_size=1,
    max_size=25,
)


def merit(counts: Alerts, aim: Aim) -> tuple[float, ...]:
    """What an aim wants, as numbers to be maximised one after the other."""
    precision = counts.hits / counts.alerts if counts.alerts else 0.0
    if aim.kind == "precision":
        reached = counts.hits > 0 and precision >= aim.least
        return (1, counts.hits, -counts.alerts) if reached else (0, precision, counts.hits)
    if aim.kind == "recall":
        reached = counts.hits / counts.positives >= aim.least
        return (1, precision, counts.hits) if reached else (0, 0, 0)
    if aim.kind == "cost":
        false, missed = counts.alerts - counts.hits, counts.positives - counts.hits
        return (-(aim.false_alert * false + aim.missed * missed), -counts.alerts)
    return (2 * counts.hits / (counts.alerts + counts.positives), precision)


@given(SCORED, st.sampled_from(AIMS))
@settings(max_examples=300)
def test_no_threshold_is_better_than_the_one_chosen(pairs, text):
    scores, truth = np.array([s for s, _ in pairs], np.float32), np.array([int(t) for _, t in pairs])
    aim = Aim.parse(text)
    threshold, reached = choose_threshold(scores, truth, aim)
    if not truth.any():
        assert (threshold, reached) == (0.5, False)
        return
    found = merit(count_alerts(threshold, scores, truth), aim)
    others = [merit(count_alerts(float(t), scores, truth), aim) for t in [-1.0, 1.0, *scores]]
    assert found == pytest.approx(max(others))
    assert reached == (aim.kind in ("f1", "cost") or max(others)[0] == 1)


@given(SCORED, st.sampled_from(AIMS))
@settings(max_examples=60)
def test_repeats_count_together_and_counts_are_their_means(pairs, text):
    scores, truth = np.array([s for s, _ in pairs], np.float32), np.array([int(t) for _, t in pairs])
    once = choose_threshold(scores, truth, Aim.parse(text))
    twice = np.stack([scores, scores])
    assert choose_threshold(twice, truth, Aim.parse(text)) == once
    assert count_alerts(once[0], twice, truth) == count_alerts(once[0], scores, truth)


WRONG = ["0.9", "precision", "precision=0", "precision=1.1", "precision=nan", "f1=2", "f2", "cost=1", "cost=fp:0,fn:1"]
WRONG += ["", "cost=fp:x,fn:1", "cost=fp:1,fp:2", "cost=fp:inf,fn:1", "accuracy=0.9"]


@pytest.mark.parametrize("text", WRONG)
def test_aims_that_are_not_understood(text):
    with pytest.raises(UserError, match=r"the threshold is .*; accepted: precision=P"):
        Aim.parse(text)


@pytest.mark.parametrize("positive", [0, 1])
def test_decisions_of_two_classes(positive):
    scores = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]], np.float32)
    targets = np.array([0, 0, 1, 1])
    options = {"task": "binary", "classes": ("no", "yes"), "positive": positive, "chosen_on": "validation"}
    decision = Decision.choose("recall=0.5", scores, targets, **options)
    assert [one.label for one in decision.labels] == [("no", "yes")[positive]]
    found = task_of("binary").decide(scores, decision.thresholds(("no", "yes")))
    assert (found == positive).sum() == 1 or decision.labels[0].chosen.alerts == (found == positive).sum()
    (counts,) = decision.counts(scores, targets, ("no", "yes"))
    assert counts == decision.labels[0].chosen
    again = Decision.from_json(json.loads(json.dumps(plain_values(decision))), ("no", "yes"), "binary")
    assert again == decision
    assert decision.report(test=[counts]).labels[0].test.precision == 1


def test_decisions_of_labels():
    scores = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]], np.float32)
    targets = np.array([[1, 0], [0, 0], [1, 0]])
    options = {"task": "multi-label", "classes": ("a", "b"), "positive": -1, "chosen_on": "out-of-fold"}
    decision = Decision.choose("precision=0.9", scores, targets, **options)
    assert [one.reached for one in decision.labels] == [True, False]
    assert task_of("multi-label").decide(scores, decision.thresholds(("a", "b"))).tolist() == [[1, 0], [0, 0], [0, 1]]
    assert threshold_notes(decision.report()) == [
        "b: no threshold reaches precision=0.9 out of fold (no subgraph has this label there); 0.5 is kept"
    ]
    assert Decision.from_json(plain_values(decision), ("a", "b"), "multi-label") == decision
    report = decision.report().labels[1].chosen
    assert (report.recall, report.precision) == (None, 0)


def test_an_aim_that_cannot_be_reached_is_not_applied():
    chances, targets = np.array([0.1, 0.2, 0.3, 0.4, 0.9], np.float32), np.array([0, 0, 1, 1, 0])
    options = {"task": "binary", "classes": ("no", "yes"), "positive": 1, "chosen_on": "validation"}
    decision = Decision.choose("precision=0.9", np.stack([1 - chances, chances], axis=1), targets, **options)
    (label,) = decision.labels
    # Above .9 is one that is not positive; of the three highest, two are.
    assert (label.reached, label.threshold, label.chosen.alerts, label.chosen.hits) == (False, 0.5, 1, 0)
    assert (label.nearest.precision, label.nearest.recall) == (pytest.approx(2 / 3), 1)
    assert threshold_notes(decision.report()) == [
        "yes: no threshold reaches precision=0.9 on validation "
        "(the highest precision is 0.667, with a recall of 1.000); 0.5 is kept"
    ]
    assert Decision.from_json(json.loads(json.dumps(plain_values(decision))), ("no", "yes"), "binary") == decision


ODD = {"label": "x", "threshold": 0.5, "reached": True, "chosen": {}}


@pytest.mark.parametrize("change", [{"labels": []}, {"aim": "x"}, {"labels": [ODD]}, {"aim": 3}])
def test_decisions_that_do_not_fit_are_refused(change):
    chosen = plain_values(count_alerts(0.5, np.ones(1, np.float32), np.ones(1)))
    content = {"aim": "f1", "chosen_on": "validation"}
    content["labels"] = [{"label": "no", "threshold": 0.5, "reached": True, "chosen": chosen}]
    assert Decision.from_json(content, ("no", "yes"), "binary").labels[0].threshold == 0.5
    for task in ("multi-label", "multi-class"):
        with pytest.raises(ValueError, match="do not fit"):
            Decision.from_json(content, ("no", "yes"), task)
    with pytest.raises((ValueError, TypeError, UserError)):
        Decision.from_json(content | change, ("no", "yes"), "binary")
