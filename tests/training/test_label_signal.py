"""The verdict on made-up predictions: 60 subgraphs of three classes, of which the constant prediction gets 20 right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subgnn.metrics.significance import score_terms
from subgnn.training.label_signal import CandidateScore, signal_of

N = 60
SEES = {
    "constant": "nothing",
    "topology": "shape",
    "bag": "nodes",
    "avg": "nodes",
    "bag-1hop": "surroundings",
    "subgnn": "everything",
}


def judged(name, predicted, targets, task="multi-class"):
    return CandidateScore(name, SEES[name], score_terms(predicted, targets, task), simple=name not in ("avg", "subgnn"))


def verdict(n: int = N, constant: int = 20, untried=(), **right: int):
    """Of models that are right for the first so many subgraphs; ``hop`` is bag-1hop."""
    targets = np.arange(n) % 3
    models = []
    for name, count in {"constant": constant, **right}.items():
        predicted = np.where(np.arange(n) < count, targets, (targets + 1) % 3)
        name = name.replace("hop", "bag-1hop")
        models.append(judged(name, predicted, targets))
    return signal_of(models, targets, "multi-class", np.arange(n), untried)


def test_candidates_that_were_not_tried_are_named():
    """What two of twelve candidates do not find, another may."""
    found = verdict(bag=21, untried=["gin", "subgnn"])
    assert found.signals == ("none",)
    assert found.sentences[0].endswith("(micro-F1 0.333). 2 candidates were not tried: gin, subgnn.")
    assert verdict(bag=21, untried=["gin"]).sentences[0].endswith(" 1 candidate was not tried: gin.")
    assert "not tried" not in verdict(bag=21).sentences[0]
    assert verdict(n=3, constant=1, bag=1, untried=["gin"]).sentences[0].endswith(" 1 candidate was not tried: gin.")


@pytest.mark.parametrize(
    ("right", "signals", "enough"),
    [
        ({"topology": 24, "bag": 55, "avg": 50, "hop": 55, "subgnn": 54}, ("identity",), "bag"),
        ({"topology": 24, "bag": 24, "avg": 50, "hop": 50, "subgnn": 52}, ("identity",), "bag-1hop"),
        ({"topology": 58, "bag": 24, "avg": 20, "hop": 24, "subgnn": 54}, ("shape",), "topology"),
        ({"topology": 37, "bag": 58, "avg": 20, "hop": 58, "subgnn": 57}, ("identity", "shape"), "bag"),
        ({"topology": 58, "bag": 24, "avg": 55, "hop": 24, "subgnn": 54}, ("shape",), "topology"),
        ({"topology": 45, "bag": 48, "avg": 20, "hop": 48, "subgnn": 49}, ("shape",), "bag"),
        ({"topology": 24, "bag": 40, "avg": 20, "hop": 58, "subgnn": 57}, ("identity", "surroundings"), "bag-1hop"),
        ({"topology": 24, "bag": 22, "avg": 20, "hop": 58, "subgnn": 57}, ("surroundings",), "bag-1hop"),
        ({"topology": 38, "bag": 40, "avg": 30, "hop": 41, "subgnn": 59}, ("shape", "beyond"), "subgnn"),
        ({"topology": 21, "bag": 40, "avg": 30, "hop": 40, "subgnn": 59}, ("identity", "beyond"), "subgnn"),
        ({"topology": 24, "bag": 22, "avg": 20, "hop": 22, "subgnn": 50}, ("beyond",), "subgnn"),
        ({"topology": 28, "bag": 22, "avg": 20, "hop": 22, "subgnn": 34}, ("unplaced",), "subgnn"),
        ({"topology": 24, "bag": 22, "avg": 20, "hop": 22, "subgnn": 23}, ("none",), ""),
        ({"topology": 24, "bag": 28, "avg": 20, "hop": 22, "subgnn": 23}, ("undecided",), ""),
        ({"bag": 55}, ("identity",), "bag"),
        ({"subgnn": 55}, ("unplaced",), "subgnn"),
    ],
)
def test_each_case(right, signals, enough):
    found = verdict(**right)
    assert (found.signals, found.enough) == (signals, enough)


def test_the_sentences():
    assert verdict(topology=24, bag=55, avg=50, hop=54, subgnn=56).sentences == (
        "The labels depend on which nodes a subgraph has (bag 0.917); always predicting the most frequent "
        "class scores 0.333 (micro-F1).",
        "A simple model is as good: bag 0.917; subgnn 0.933 is not clearly better.",
    )
    assert verdict(constant=12, topology=24, bag=36, hop=48, subgnn=60).sentences == (
        "The labels depend on which nodes a subgraph has (bag 0.600), on its shape (topology 0.400), on the "
        "nodes around it (bag-1hop 0.800) and on more than each of these alone (subgnn 1.000); always "
        "predicting the most frequent class scores 0.200 (micro-F1).",
        "No simple model is as good as subgnn 1.000.",
    )
    assert verdict(topology=58, bag=24).sentences == (
        "The labels depend on the shape of a subgraph (topology 0.967); always predicting the most frequent "
        "class scores 0.333 (micro-F1).",
        "A simple model is the best: topology 0.967.",
    )
    assert verdict(topology=20, bag=20).sentences == (
        "No signal was found: no model is clearly better than always predicting the most frequent class "
        "(micro-F1 0.333).",
    )


def test_too_few_subgraphs_are_said_to_be():
    found = verdict(n=6, constant=2, topology=3, bag=6, subgnn=3)
    assert found.signals == ("undecided",)
    assert found.sentences[0].startswith("6 labelled subgraphs are too few to tell")


def test_more_models_ask_for_more():
    # Nine subgraphs that the model alone gets right: 2^-9 = 0.00195.
    targets, rows = np.zeros(100, np.int64), np.arange(100)
    constant, bag = (judged(name, np.where(rows < k, 0, 1), targets) for name, k in (("constant", 20), ("bag", 29)))
    poor = replace(constant, sees="nodes")
    assert signal_of([constant, bag], targets, "multi-class", rows).signals == ("identity",)
    assert signal_of([constant, bag, *[poor] * 30], targets, "multi-class", rows).signals == ("undecided",)


def test_subgraphs_of_a_group_count_as_one():
    targets, rows = np.zeros(100, np.int64), np.arange(100)
    constant, bag = (judged(name, np.where(rows < k, 0, 1), targets) for name, k in (("constant", 20), ("bag", 60)))
    assert signal_of([constant, bag], targets, "multi-class", rows).signals == ("identity",)
    assert signal_of([constant, bag], targets, "multi-class", rows // 20).signals == ("undecided",)


def test_a_lead_that_is_certain_but_small_is_not_a_signal():
    # 15 in 1,000: sure to be more than chance, and of no use.
    targets, rows = np.zeros(1000, np.int64), np.arange(1000)
    constant, bag = (judged(name, np.where(rows < k, 0, 1), targets) for name, k in (("constant", 500), ("bag", 515)))
    assert signal_of([constant, bag], targets, "multi-class", rows).signals == ("none",)


def test_sets_of_labels_and_values():
    rng, rows = np.random.default_rng(0), np.arange(80)
    labels, values = rng.integers(0, 2, (80, 3)), rng.normal(size=80)
    flat, close = np.full(80, values.mean()), values + 0.1
    models = [judged("topology", flat, values, "regression"), judged("bag", close, values, "regression")]
    found = signal_of(models, values, "regression", rows)
    assert found.signals == ("identity",)
    assert "(bag 0.9" in found.sentences[0]
    assert found.sentences[0].endswith("always predicting the mean scores 0.000 (R2).")
    models = [judged("topology", 1 - labels, labels, "multi-label"), judged("bag", labels, labels, "multi-label")]
    assert signal_of(models, labels, "multi-label", rows).signals == ("identity",)
