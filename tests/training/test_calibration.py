"""Calibration against a grid, and thresholds against all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from sklearn.metrics import f1_score

from subgnn.task import task_of
from subgnn.training.ensemble_selection import calibrate


def certain(n: int = 500, sharpen: float = 3.0, seed: int = 0):
    """Probabilities that are too certain: the true logits, times a factor."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(1, n, 3))
    chances = special.softmax(logits, axis=2)
    targets = (chances[0].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1).astype(float)
    return special.softmax(sharpen * logits, axis=2), targets


def test_the_temperature_is_the_best_of_a_grid():
    chances, targets = certain()
    found = calibrate(chances, targets, "multi-class")
    assert found.scale[0] == pytest.approx(1 / 3, rel=0.3)
    logs = np.log(np.maximum(chances[0], 1e-6))

    def loss(scale):
        rows = special.log_softmax(scale * logs, axis=1)[np.arange(len(targets)), targets.astype(int)]
        return -rows.sum() + np.log(scale) ** 2

    grid = np.exp(np.linspace(-2.5, 2.5, 2001))
    assert found.scale[0] == pytest.approx(grid[np.argmin([loss(scale) for scale in grid])], rel=5e-3)
    assert (found.offset.tolist(), len(found.thresholds)) == ([0.0], 0)
    calibrated = special.softmax(found.apply(chances, "multi-class")[0], axis=1)
    confident = calibrated.max(axis=1)
    assert confident.mean() == pytest.approx((calibrated.argmax(axis=1) == targets).mean(), abs=0.05)


@pytest.mark.slow
def test_labels_have_a_scale_and_an_offset_each():
    rng = np.random.default_rng(1)
    log_odds = rng.normal(size=(2, 400, 2))
    truth = (special.expit(np.array([2.0, 0.5]) * log_odds[0] + [0.0, -1.0]) > rng.random((400, 2))).astype(float)
    log_odds[1] = log_odds[0]
    found = calibrate(special.expit(log_odds), truth, "multi-label")
    for label in range(2):
        x, y = log_odds[0, :, label], truth[:, label]
        scales, offsets = np.meshgrid(np.exp(np.linspace(-1.5, 1.5, 121)), np.linspace(-2, 2, 161), indexing="ij")
        z = scales[..., None] * x + offsets[..., None]
        losses = np.logaddexp(0, np.where(y > 0, -z, z)).sum(axis=2) + np.log(scales) ** 2 + offsets**2
        at = np.unravel_index(losses.argmin(), losses.shape)
        assert found.scale[label] == pytest.approx(scales[at], rel=0.03)
        assert found.offset[label] == pytest.approx(offsets[at], abs=0.03)
    assert len(set(found.thresholds)) == 1


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 12))
def test_the_threshold_is_the_best_of_all(seed, labels, n):
    rng = np.random.default_rng(seed)
    chances, truth = rng.integers(1, 10, (2, n, labels)) / 10, rng.integers(0, 2, (n, labels)).astype(float)
    whole = np.concatenate([truth, truth]).ravel()

    def score(cut):
        return f1_score(whole, (chances > cut).ravel(), zero_division=0)

    found = task_of("multi-label").best_threshold(chances, truth)
    assert 0 <= found < 1
    assert (
        score(found) == pytest.approx(max(score(cut) for cut in [0.05, *(np.unique(chances) + 0.05)]), abs=1e-9)
        or not truth.any()
    )


@pytest.mark.parametrize(("task", "targets"), [("multi-class", np.zeros(3)), ("multi-label", np.zeros((3, 2)))])
def test_few_subgraphs_change_little_and_nothing_becomes_infinite(task, targets):
    chances = np.array([[[1.0, 0.0]] * 3])
    found = calibrate(chances, targets, task)
    assert np.isfinite(found.apply(chances, task)).all()
    assert (found.scale > 0.04).all()
    assert (found.scale < 21).all()
