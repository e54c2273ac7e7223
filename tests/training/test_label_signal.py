"""The verdict on made-up predictions: 60 subgraphs of three classes, of which one class is right for 20."""

import re

import numpy as np
import pytest

from subgnn.training.ensemble_selection import OutOfFold
from subgnn.training.label_signal import JudgedModel, signal_of

N = 60
SEES = {
    "constant": "nothing",
    "topology": "shape",
    "bag": "nodes",
    "avg": "nodes",
    "bag-1hop": "surroundings",
    "subgnn": "everything",
}


def judged(names, predictions, targets, task="multi-class", units=None, metric="headline", untried=()):
    """The verdict on models by their predictions (models, n, outputs)."""
    units = np.arange(len(targets)) if units is None else units
    given = OutOfFold(np.asarray(predictions, np.float64)[:, None], targets, task, units, metric)
    models = [JudgedModel(name, SEES[name], simple=name not in ("avg", "subgnn")) for name in names]
    return signal_of(models, given, untried)


def verdict(n: int = N, untried=(), **right: int):
    """Of models that are right for so many subgraphs, evenly spread and not very sure; ``hop`` is bag-1hop."""
    targets = np.arange(n) % 3
    found = []
    for count in right.values():
        place = np.arange(n) * count // n
        predicted = np.where(np.diff(place, append=count) > 0, targets, (targets + 1) % 3)
        found.append(0.9 * np.eye(3)[predicted] + 0.1 / 3)
    return judged([name.replace("hop", "bag-1hop") for name in right], found, targets, untried=untried)


def two_classes(positives: int, n: int, strength: float, models: int = 1, seed: int = 0):
    """Targets, and probabilities of the two classes (models, n, 2) whose log-odds know the label by some strength."""
    rng = np.random.default_rng(seed)
    targets = rng.permutation(np.arange(n) < positives).astype(float)
    log_odds = rng.normal(size=(models, n)) + strength * targets - 4
    chance = 1 / (1 + np.exp(-log_odds))
    return targets, np.stack([1 - chance, chance], axis=2)


def model_that_is_enough(found) -> str:
    """The model that the last sentence advises; empty without a signal."""
    named = re.search(r"(?:as good as|is the best:|is as good:) (\S+) ", found.sentences[-1])
    return named[1] if named else ""


def test_candidates_that_were_not_tried_are_named():
    """What two of twelve candidates do not find, another may."""
    found = verdict(bag=21, untried=["gin", "subgnn"])
    assert found.signals == ("none",)
    assert found.sentences[1:] == ("2 candidates were not tried: gin, subgnn.",)
    for some in ({"bag": 21}, {"n": 3, "bag": 1}, {"bag": 55, "topology": 20}):
        assert verdict(untried=["gin"], **some).sentences[-1] == "1 candidate was not tried: gin."


@pytest.mark.parametrize(
    ("right", "signals", "enough"),
    [
        ({"topology": 24, "bag": 55, "avg": 50, "hop": 55, "subgnn": 54}, ("identity",), "bag"),
        ({"topology": 24, "bag": 24, "avg": 50, "hop": 50, "subgnn": 52}, ("identity",), "bag-1hop"),
        ({"topology": 58, "bag": 24, "avg": 20, "hop": 24, "subgnn": 54}, ("shape",), "topology"),
        ({"topology": 42, "bag": 59, "avg": 20, "hop": 59, "subgnn": 58}, ("identity", "shape"), "bag"),
        ({"topology": 45, "bag": 48, "avg": 20, "hop": 48, "subgnn": 49}, ("shape",), "bag"),
        ({"topology": 24, "bag": 41, "avg": 20, "hop": 59, "subgnn": 58}, ("identity", "surroundings"), "bag-1hop"),
        ({"topology": 24, "bag": 22, "avg": 20, "hop": 58, "subgnn": 57}, ("surroundings",), "bag-1hop"),
        ({"topology": 41, "bag": 42, "avg": 30, "hop": 42, "subgnn": 60}, ("shape", "beyond"), "subgnn"),
        ({"topology": 24, "bag": 22, "avg": 20, "hop": 22, "subgnn": 50}, ("beyond",), "subgnn"),
        ({"topology": 34, "bag": 22, "avg": 20, "hop": 22, "subgnn": 44}, ("unplaced",), "subgnn"),
        ({"topology": 24, "bag": 22, "avg": 20, "hop": 22, "subgnn": 23}, ("none",), ""),
        ({"bag": 55}, ("identity",), ""),
        ({"subgnn": 55}, ("unplaced",), ""),
        ({"subgnn": 55, "hop": 24}, ("unplaced",), "subgnn"),
        ({"bag": 24, "hop": 55}, ("unplaced",), "bag-1hop"),
    ],
)
def test_each_case(right, signals, enough):
    found = verdict(**right)
    assert (found.signals, model_that_is_enough(found)) == (signals, enough)


def test_the_sentences():
    assert verdict(topology=24, bag=55, avg=50, hop=54, subgnn=56).sentences == (
        "The labels depend on which nodes a subgraph has (bag 0.917); always predicting the most frequent "
        "class scores 0.333 (micro-F1).",
        "A simple model is as good: bag 0.917; subgnn 0.933 is not clearly better.",
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
    ahead = "bag 0.567 is ahead, which may be chance: more labelled subgraphs would tell if it is."
    assert verdict(topology=20, bag=34, avg=20, hop=20, subgnn=20).sentences[0].endswith(ahead)


def test_nothing_is_said_of_kinds_of_models_that_were_not_tried():
    (alone,) = verdict(hop=55).sentences
    assert alone.endswith("micro-F1), but its kind is unclear: no model of nodes or shape alone was tried.")
    assert verdict(bag=55).sentences[0].endswith("scores 0.333 (micro-F1); no model of shape alone was tried.")
    assert verdict(avg=55, subgnn=54).sentences[-1] == "No simple model was tried."


def test_weights_are_named_where_shape_alone_does_not_show_it():
    """The plain model of another method, which is worse too, differs by more than weights."""
    targets = np.arange(N) % 2
    right, noise = (0.8 * np.eye(2)[found] + 0.1 for found in (targets, np.arange(N) // 2 % 2))

    def first(method, plain=noise):
        weighted = JudgedModel("topology-weighted", "shape", method="topology", uses=frozenset({"weights"}))
        models = [weighted, JudgedModel("topology", "shape", method=method), JudgedModel("bag", "nodes")]
        given = OutOfFold(np.stack([right, plain, noise])[:, None], targets.astype(float), "binary", np.arange(N))
        return signal_of(models, given).sentences[0]

    named = (
        "The labels depend on the shape of a subgraph and the edge weights (topology-weighted 1.000; without, topology"
    )
    assert first("topology").startswith(f"{named} 0.500);")
    for same in (first("gin"), first("topology", plain=right)):
        assert same.startswith("The labels depend on the shape of a subgraph (topology-weighted 1.000);")


def test_a_model_that_ignores_subgraphs_is_no_evidence():
    assert verdict(constant=20).signals == ("none",)
    assert verdict(constant=20, bag=55) == verdict(bag=55)


def test_too_few_subgraphs_are_those_that_would_not_show_a_perfect_model():
    found = verdict(n=6, topology=3, bag=6, subgnn=3)
    assert found.signals == ("undecided",)
    assert found.sentences[0].startswith("6 labelled subgraphs are too few to tell")
    targets, chances = two_classes(1, 12, 0.0)
    assert judged(["bag"], chances, targets, "binary", metric="auprc").signals == ("undecided",)
    targets, chances = two_classes(4, 200, 0.0)
    assert judged(["bag"], chances, targets, "binary", metric="auprc").signals == ("none",)


def test_more_models_ask_for_more():
    targets, rows = np.arange(100) % 2, np.arange(100)
    bag = 0.9 * np.eye(2)[np.where(rows < 66, targets, 1 - targets)] + 0.05
    poor = np.full((100, 2), 0.5)
    assert judged(["bag"], [bag], targets, "binary").signals == ("identity",)
    assert judged(["bag"] * 31, [bag, *[poor] * 30], targets, "binary").signals == ("none",)


def test_subgraphs_of_a_group_count_as_one():
    targets, rows = np.arange(100) % 2, np.arange(100)
    right = np.where(rows % 20 < 16, targets, 1 - targets)
    bag = [0.9 * np.eye(2)[right] + 0.05]
    assert judged(["bag"], bag, targets, "binary").signals == ("identity",)
    assert judged(["bag"], bag, targets, "binary", rows // 20).signals == ("undecided",)


def test_a_lead_that_is_certain_but_small_is_not_a_signal():
    """Five in 1,000 where the guess leaves 500: sure to be more than chance, and of no use."""
    targets, rows = np.append(np.zeros(500, np.int64), np.ones(500, np.int64)), np.arange(1000)
    found = np.where(rows >= 995, targets, 0)
    bag = 0.02 * np.eye(2)[found] + 0.49
    assert judged(["bag"], [bag], targets, "binary").signals == ("none",)


def test_rare_classes_are_compared_by_how_they_are_ranked():
    """With 2 % positives, micro-F1 leaves .02 to gain, which no margin of .02 could show."""
    targets, chances = two_classes(50, 2500, 8.0, models=2)
    chances[1] = two_classes(50, 2500, 0.0)[1]
    found = judged(["topology", "bag"], chances, targets, "binary", metric="auprc")
    assert (found.signals, model_that_is_enough(found)) == (("shape",), "topology")
    assert found.sentences[0].startswith("The labels depend on the shape of a subgraph (topology 1.000);")
    assert found.sentences[0].endswith("ranking at random scores 0.020 (AUPRC).")
    assert judged(["topology", "bag"], chances, targets, "binary").signals == ("shape",)


@pytest.mark.parametrize(("positives", "n"), [(3, 500), (40, 1000)])
def test_noise_is_no_signal_however_rare_the_class(positives, n):
    for seed in range(8):
        targets, chances = two_classes(positives, n, 0.0, models=6, seed=seed)
        assert judged(list(SEES), chances, targets, "binary", metric="auprc").signals == ("none",)


def test_probabilities_may_show_what_decisions_do_not():
    """A class of 30 % that is never the likelier one, though its probability is 15 % or 45 %."""
    targets = np.concatenate([np.repeat([0, 1], [255, 45]), np.repeat([0, 1], [165, 135])])
    high = np.repeat([0.15, 0.45], 300)
    found = judged(["bag"], [np.stack([1 - high, high], axis=1)], targets, "binary")
    assert found.signals == ("identity",)
    assert found.sentences[1].startswith("Only probabilities show it: no micro-F1 is clearly higher than that of ")


def test_sets_of_labels_and_values():
    rng = np.random.default_rng(0)
    labels, values = rng.integers(0, 2, (80, 3)), rng.normal(size=80)
    flat, close = np.full(80, values.mean()), values + 0.1
    found = judged(["topology", "bag"], np.stack([flat, close])[:, :, None], values, "regression")
    assert found.signals == ("identity",)
    assert "(bag 0.9" in found.sentences[0]
    assert found.sentences[0].endswith("always predicting the mean scores 0.000 (R2).")
    chances = [rng.random((80, 3)), 0.9 * labels + 0.05]
    assert judged(["topology", "bag"], chances, labels.astype(float), "multi-label").signals == ("identity",)
