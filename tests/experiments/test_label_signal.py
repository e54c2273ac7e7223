"""The verdict on made-up scores: 60 validation subgraphs, of which the constant prediction gets 20 right."""

from __future__ import annotations

import numpy as np
import pytest

from subgnn.experiments.label_signal import Model, compare, judge
from subgnn.models.significance import ScoreTerms

N = 60


def answers(right: int, n: int = N) -> ScoreTerms:
    """The first ``right`` of n subgraphs are right."""
    return ScoreTerms((np.arange(n) < right).astype(float), np.ones(n))


def verdict(looks: int = 30, n: int = N, constant: int = 20, **right: int):
    models = {name: Model(answers(count, n), looks) for name, count in right.items()}
    return judge(models, constant=answers(constant, n), perfect=answers(n, n))


@pytest.mark.parametrize(
    ("right", "signals", "enough"),
    [
        ({"topology": 24, "bag": 55, "avg": 50, "subgnn": 54}, ("identity",), "bag"),
        ({"topology": 24, "bag": 24, "avg": 50, "subgnn": 52}, ("identity",), "avg"),
        ({"topology": 58, "bag": 24, "avg": 20, "subgnn": 54}, ("shape",), "topology"),
        ({"topology": 40, "bag": 56, "avg": 20, "subgnn": 57}, ("identity", "shape"), "bag"),
        ({"topology": 58, "bag": 24, "avg": 55, "subgnn": 54}, ("shape",), "topology"),
        ({"topology": 45, "bag": 48, "avg": 20, "subgnn": 49}, ("shape",), "bag"),
        ({"topology": 38, "bag": 40, "avg": 30, "subgnn": 59}, ("shape", "beyond"), "subgnn"),
        ({"topology": 21, "bag": 40, "avg": 30, "subgnn": 59}, ("identity", "beyond"), "subgnn"),
        ({"topology": 24, "bag": 22, "avg": 20, "subgnn": 50}, ("beyond",), "subgnn"),
        ({"topology": 27, "bag": 22, "avg": 20, "subgnn": 34}, ("unplaced",), "subgnn"),
        ({"topology": 24, "bag": 22, "avg": 20, "subgnn": 23}, ("none",), ""),
        ({"topology": 24, "bag": 28, "avg": 20, "subgnn": 23}, ("undecided",), ""),
    ],
)
def test_each_case(right, signals, enough):
    found = verdict(**right)
    assert (found.signals, found.enough) == (signals, enough)


def test_what_is_said():
    assert verdict(topology=24, bag=55, avg=50, subgnn=54).words == (
        "The labels follow node identity: which nodes a subgraph has "
        "(bag 0.917 and avg 0.833, beside 0.333 of the constant prediction).",
        "A simple model is enough so far: SubGNN is not clearly better than bag after this short training.",
    )
    assert "no model is clearly above the 0.333" in verdict(topology=20, bag=20, avg=20, subgnn=20).words[0]
    assert verdict(topology=24, bag=22, avg=20, subgnn=50).words[-1].startswith("A simple model is not enough")


def test_size_may_pass_for_identity():
    found = verdict(topology=58, bag=24, avg=55, subgnn=54)
    assert found.words[1] == (
        "avg 0.917 is not clearly better than topology, and sees size, too: whether node identity matters beside shape "
        "cannot be determined."
    )


def test_a_split_that_is_too_small_is_said_to_be():
    found = verdict(n=6, constant=2, looks=12, topology=3, bag=6, avg=3, subgnn=3)
    assert found.signals == ("undecided",)
    assert "with 6 validation subgraphs" in found.words[0]


def test_a_lead_that_one_look_would_have_made_clear_is_told():
    # Eight subgraphs that bag alone gets right: 2^-8 = 0.0039, above 0.05 / 30.
    found = verdict(topology=24, bag=28, avg=20, subgnn=23)
    assert found.words[0] == (
        "Nothing is clear: bag 0.467, beside 0.333 of the constant prediction, may be no more than the best of many "
        "looks at 60 validation subgraphs."
    )


def test_more_looks_ask_for_more():
    # Nine subgraphs that we alone get right: 2^-9 = 0.00195.
    once, often = (compare(Model(answers(29), looks), answers(20)) for looks in (1, 100))
    assert once.clear
    assert not often.clear
    assert (once.below, often.below) == (0.05, 0.0005)


def test_a_lead_that_is_certain_but_small_is_not_clear():
    # 15 in 1,000: sure to be more than chance, and of no use.
    lead = compare(Model(answers(515, 1000), 1), answers(500, 1000))
    assert lead.chance < 0.001
    assert not lead.clear


def test_without_the_network_nothing_is_said_of_it():
    found = verdict(topology=24, bag=55)
    assert (found.signals, found.enough, found.network_over) == (("identity",), "bag", {})
    assert "cannot be determined" in found.words[-1]


def test_without_simple_models():
    found = verdict(subgnn=55)
    assert (found.signals, found.enough) == (("unplaced",), "subgnn")
    assert "no simple model has a result" in found.words[0]
