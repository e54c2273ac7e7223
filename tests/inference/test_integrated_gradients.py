"""Attributions add up to the difference of logits, and are what they are by hand where that can be done."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from subgnn import Ragged
from subgnn.errors import MissingExtra
from subgnn.inference.masking import subgraph_inputs
from tests.inference.explained import explain, explained

ROW = [0, 1, 2, 10, 11, 20]
MODELS = [
    {},
    {"layers": 2, "output": "both", "topology": True},
    {"readout": "attention", "norm": "none"},
    {"aggregation": "max", "readout": "max", "initial": False},
    {"trainable_components": True},
]


def add_up(found):
    """The sums that must be the logits minus the baseline minus the residual."""
    had = found.attributions
    expected = np.array(found.logits) - had.baseline - np.array(had.residual)
    parts = [item for item in had.channels if item.level != "channel"]
    components = np.sum([item.contributions for item in had.components], axis=0) + had.of_subgraph
    return expected, np.sum([item.contributions for item in parts], axis=0), components


@pytest.mark.quick(2)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: "-".join(model) or "plain")
def test_they_add_up(model):
    _, predictor = explained(**model)
    found = explain(predictor, [ROW], attributions=True, max_anchors=10_000)[0]
    had = found.attributions
    expected, parts, components = add_up(found)
    np.testing.assert_allclose(parts, expected, atol=1e-5)
    np.testing.assert_allclose(components, expected, atol=1e-5)
    largest = np.abs(np.array(found.logits) - had.baseline).max()
    assert np.abs(had.residual).max() <= 0.01 * largest
    by_name = {item.name: np.array(item.contributions) for item in had.channels}
    for kind in ("position", "neighborhood", "structure"):
        np.testing.assert_allclose(by_name[kind], by_name[f"{kind}/internal"] + by_name[f"{kind}/border"], atol=1e-6)
        for side in ("internal", "border"):
            mine = [item.contributions for item in had.anchors if item.channel == f"{kind}/{side}"]
            np.testing.assert_allclose(np.sum(mine, axis=0), by_name[f"{kind}/{side}"], atol=1e-5)


@pytest.mark.parametrize("task", ["binary", "multi-label", "regression"])
def test_they_add_up_for_every_task(task):
    _, predictor = explained(task)
    found = explain(predictor, [ROW], attributions=True)[0]
    expected, parts, components = add_up(found)
    np.testing.assert_allclose(parts, expected, atol=1e-5)
    np.testing.assert_allclose(components, expected, atol=1e-5)


def test_an_ensemble_is_explained_as_its_mean():
    _, predictor = explained(ensemble=True)
    found = explain(predictor, [ROW], attributions=True, max_anchors=10_000)[0]
    expected, parts, _ = add_up(found)
    np.testing.assert_allclose(found.logits, predictor.outputs(Ragged.from_rows([ROW]))[0], atol=1e-6)
    np.testing.assert_allclose(parts, expected, atol=1e-5)
    assert {item.draw for item in found.by_anchor} == {item.draw for item in found.attributions.anchors} == {0, 1}


def test_they_are_the_integral_of_gradients():
    _, predictor = explained()
    inputs = next(subgraph_inputs(*next(predictor.measured(Ragged.from_rows([ROW]), draws=1).combinations())))
    gamma = inputs.gammas[0][1]
    total = torch.zeros_like(gamma)
    steps = 400
    for step in range(steps):
        t = (step + 0.5) / steps
        moved = [[(near * t)[None].requires_grad_() for near in layer] for layer in inputs.gammas]
        answer = inputs.outputs(t * inputs.initial[None], moved, (None, None))
        total += torch.autograd.grad(answer[0, 0], moved[0][1])[0][0] * gamma / steps
    found = explain(predictor, [ROW], attributions=True)[0].attributions
    by_name = {item.name: item.contributions[0] for item in found.channels}
    assert by_name["position/border"] == pytest.approx(float(total.sum()), abs=2e-3)


def test_without_captum(monkeypatch):
    _, predictor = explained()
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    assert explain(predictor, [ROW])[0].attributions is None
    with pytest.raises(MissingExtra, match=r"integrated gradients needs the package captum; .*subgnn\[explain\]"):
        explain(predictor, [ROW], attributions=True)
