"""Scores of a baseline as a network takes them: by hand, and what they keep of the baseline."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from subgnn.models.scores import scores_of


def test_two_classes_by_hand():
    certain = scores_of(np.array([[50.0, -50.0], [0.0, 0.0]]), "binary")
    np.testing.assert_allclose(np.exp(certain), [[0.99, 0.01], [0.5, 0.5]], rtol=1e-5)


def test_of_four_classes_each_has_a_two_hundredth_part():
    found = scores_of(np.array([[90.0, 0.0, 0.0, 0.0]]), "multi-class")
    np.testing.assert_allclose(np.exp(found), [[0.985, 0.005, 0.005, 0.005]], rtol=1e-5)


def test_labels_by_hand():
    found = scores_of(np.array([[50.0, 0.0, -50.0]]), "multi-label")
    np.testing.assert_allclose(special.expit(found), [[0.99, 0.5, 0.01]], rtol=1e-5)


def test_values_stay_as_they_are():
    values = np.array([[3.5], [-1e6]], np.float32)
    np.testing.assert_array_equal(scores_of(values, "regression"), values)


@pytest.mark.parametrize("task", ["multi-class", "multi-label"])
def test_the_order_of_probabilities_is_kept(task):
    outputs = np.random.default_rng(0).normal(scale=3, size=(50, 150))
    found = scores_of(outputs, task)
    before = special.softmax(outputs, axis=1) if task == "multi-class" else outputs
    # Of more than a hundred classes, the likeliest may be under a hundredth: it stays the likeliest.
    np.testing.assert_array_equal(found.argmax(axis=1), outputs.argmax(axis=1))
    np.testing.assert_array_equal(np.diff(found[before[:, 0].argsort(), 0]) >= 0, True)
    if task == "multi-label":
        np.testing.assert_array_equal(found > 0, outputs > 0)
