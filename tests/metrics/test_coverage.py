"""Sets of labels contain the true one as often as they promise, whatever the model."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn.errors import UserError
from subgnn.metrics.coverage import HeldOutScores, in_set


def drawn(rng, n, task):
    """Probabilities or values (n, outputs) of a model that is wrong in its own way, and targets."""
    if task == "regression":
        values = rng.normal(size=n)
        return values[:, None], values + rng.standard_t(3, size=n)
    scores = rng.dirichlet([0.5, 1.0, 2.0], n)
    if task == "multi-label":
        return scores, (rng.random((n, 3)) < scores**0.5).astype(np.uint8)
    tempered = scores**0.3 / (scores**0.3).sum(axis=1, keepdims=True)
    return scores, np.array([rng.choice(3, p=p) for p in tempered])


def is_covered(predicted, targets, limits, task):
    if task == "regression":
        return np.abs(predicted[:, 0] - targets) <= limits[0]
    true = targets > 0 if task == "multi-label" else np.eye(3, dtype=bool)[targets]
    return (in_set(predicted, limits) | ~true).all(axis=1)


@pytest.mark.parametrize("task", ["multi-class", "multi-label", "regression"])
@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_coverage_holds_over_many_draws(task, coverage):
    rng, shares = np.random.default_rng(1), []
    for _ in range(200):
        held_out, new = drawn(rng, 39, task), drawn(rng, 20, task)
        scores = HeldOutScores.of(held_out[0][None], held_out[1], task)
        shares.append(is_covered(*new, scores.limits(coverage, new[0].shape[1]), task).mean())
    # k / (n + 1) exactly for continuous scores, here 24 / 40 and 36 / 40; four standard errors of the mean.
    exact = math.ceil(40 * coverage) / 40
    assert abs(np.mean(shares) - exact) < 4 * np.std(shares) / math.sqrt(len(shares))


def test_coverage_by_class_holds_for_each():
    rng, shares = np.random.default_rng(2), []
    for _ in range(200):
        (scores, targets), (new, true) = drawn(rng, 200, "multi-class"), drawn(rng, 100, "multi-class")
        limits = HeldOutScores.of(scores[None], targets, "multi-class").limits(0.8, 3, by_class=True)
        covered = is_covered(new, true, limits, "multi-class")
        shares.append([covered[true == c].mean() for c in range(3)])
    np.testing.assert_allclose(np.mean(shares, axis=0), 0.8, atol=0.03)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 60), st.integers(1, 3), st.floats(0.05, 0.95), st.integers(0, 1000))
def test_limits_are_those_of_a_plain_count(n, repeats, coverage, seed):
    rng = np.random.default_rng(seed)
    predicted = rng.dirichlet([1, 1, 1], (repeats, n)).astype(np.float32)
    targets = rng.integers(0, 3, n)
    scores = HeldOutScores.of(predicted, targets, "multi-class")
    k = math.ceil((n + 1) * coverage - 1e-9)
    if k > n:
        with pytest.raises(UserError, match="cannot be promised from"):
            scores.limits(coverage, 3)
        return
    wanted = sorted(1 - predicted[r, i, targets[i]] for r in range(repeats) for i in range(n))[repeats * k - 1]
    np.testing.assert_allclose(scores.limits(coverage, 3), wanted, atol=1e-5)


def test_too_few_and_nonsense_are_refused():
    scores = HeldOutScores.of(np.full((1, 30, 2), 0.5), np.arange(30) % 2, "binary")
    with pytest.raises(UserError, match=r"--coverage: a coverage of 0.99 cannot .* from 30 .*; accepted: up to 0.967"):
        scores.limits(0.99, 2)
    for wrong in (0, 1, -1, math.nan):
        with pytest.raises(UserError, match="accepted: above 0 and below 1"):
            scores.limits(wrong, 2)
    rare = HeldOutScores.of(np.full((1, 30, 2), 0.5), (np.arange(30) < 3).astype(int), "binary")
    assert np.isinf(rare.limits(0.9, 2, by_class=True)).tolist() == [False, True]
