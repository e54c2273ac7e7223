"""Contributions of parts and calibration, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from subgnn.metrics.significance import wilson
from subgnn.reports.evaluation import contributions
from subgnn.reports.figures import calibration
from subgnn.task import task_of


def head(weight):
    made = nn.Linear(len(weight[0]), len(weight), bias=False)
    made.weight.data = torch.tensor(weight)
    return made


def test_two_classes_by_hand():
    # Column 0 is class 0's logit, column 1 class 1's, column 2 is read by nothing.
    vectors = torch.tensor([[2.0, 0.0, 5.0], [0.0, 1.0, 6.0]])
    means = torch.tensor([3.0, 0.5, 0.0])
    found = contributions(
        head([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
        {"a": [slice(0, 1)], "b": [slice(1, 2)], "idle": [slice(2, 3)], "all": [slice(0, 1), slice(1, 3)]},
        vectors=vectors,
        means=means,
        targets=torch.tensor([0, 1]),
        task=task_of("multi-class"),
    )

    def log_probability(right, wrong):
        return -math.log(1 + math.exp(wrong - right))

    whole = (log_probability(2, 0) + log_probability(1, 0)) / 2
    # Without a both rows have 3 there: (3, 0) is right, (3, 1) says class 0 where it is 1.
    a = whole - (log_probability(3, 0) + log_probability(1, 3)) / 2
    # Without b both rows have 0.5 there: (2, .5) and (0, .5) are right.
    b = whole - (log_probability(2, 0.5) + log_probability(0.5, 0)) / 2
    both = whole - (log_probability(3, 0.5) + log_probability(0.5, 3)) / 2
    assert [(c.part, c.columns) for c in found] == [("a", 1), ("b", 1), ("idle", 1), ("all", 3)]
    assert [c.score for c in found] == pytest.approx([0.5, 0, 0, 0.5])
    assert [c.fit for c in found] == pytest.approx([a, b, 0, both], abs=1e-6)
    assert vectors.tolist() == [[2.0, 0.0, 5.0], [0.0, 1.0, 6.0]]


def test_real_values_by_hand():
    # Predicted as they are; without the column all get 2: errors -1, 0, 1 about a mean of 2.
    (found,) = contributions(
        head([[1.0]]),
        {"only": [slice(0, 1)]},
        vectors=torch.tensor([[1.0], [2.0], [3.0]]),
        means=torch.tensor([2.0]),
        targets=torch.tensor([1.0, 2.0, 3.0]),
        task=task_of("regression"),
    )
    assert found.score == pytest.approx(1.0)
    assert found.fit == pytest.approx(math.sqrt(2 / 3))


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
