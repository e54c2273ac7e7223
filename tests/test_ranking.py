"""Metrics of rankings beside scikit-learn, and recall at k as a mean over all orders of equal scores."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

from subgnn.errors import UserError
from subgnn.ranking import average_precision, ranking_metric, recall_at, roc_area
from subgnn.task import task_of

RANKED = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30)


@given(RANKED)
@settings(max_examples=150, deadline=None)
def test_areas_are_those_of_scikit_learn(pairs):
    scores, truth = np.array([s / 4 for s, _ in pairs]), np.array([int(t) for _, t in pairs])
    if truth.min() == truth.max():
        assert math.isnan(roc_area(scores, truth))
        assert math.isnan(average_precision(scores, truth))
    else:
        assert roc_area(scores, truth) == pytest.approx(reference.roc_auc_score(truth, scores))
        assert average_precision(scores, truth) == pytest.approx(reference.average_precision_score(truth, scores))


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=5), st.integers(1, 7))
@settings(max_examples=80, deadline=None)
def test_recall_at_k_is_the_mean_over_all_orders_of_equal_scores(pairs, k):
    scores, truth = np.array([s for s, _ in pairs]), np.array([int(t) for _, t in pairs])
    if not truth.any():
        assert math.isnan(recall_at(scores, truth, k))
        return
    shares = []
    for order in permutations(range(len(pairs))):
        ranked = sorted(order, key=lambda i: -scores[i])  # stable
        shares.append(truth[ranked[:k]].sum() / truth.sum())
    assert recall_at(scores, truth, k) == pytest.approx(np.mean(shares))


def test_the_metric_of_selection():
    outputs = torch.log(torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3], [0.5, 0.5]]))
    targets = torch.tensor([0, 1, 0, 1, 0])
    found = task_of("binary").metrics(outputs, targets, select_by="recall@2")
    assert found["recall@2"] == 0.5
    assert "recall@2" not in task_of("binary").metrics(outputs, targets)
    labels = torch.tensor([[1, 1], [0, 1], [0, 1], [0, 0], [0, 1]])
    outputs = torch.tensor([[3.0, 1], [2, 5], [1, 2], [0, 9], [0, 3]])
    several = task_of("multi-label").metrics(outputs, labels, select_by="recall@2")
    assert several["recall@2"] == pytest.approx((1 + 1 / 4) / 2)
    assert math.isnan(ranking_metric("recall@2", np.eye(2), np.zeros(2)))


@pytest.mark.parametrize(
    ("task", "positives", "metric"),
    [("binary", 99, "auprc"), ("binary", 901, "auprc"), ("binary", 100, "micro_f1"), ("binary", 0, "micro_f1")],
)
def test_rare_classes_are_selected_by_their_ranking(task, positives, metric):
    assert task_of(task).default_metric(np.arange(1000) < positives) == metric


def test_metrics_that_a_task_does_not_have():
    assert task_of("multi-class").selection_metric("auto") == "micro_f1"
    for name, task in (("auprc", "multi-class"), ("recall@0", "binary"), ("recall", "binary"), ("auprc", "regression")):
        with pytest.raises(UserError, match="select_by"):
            task_of(task).selection_metric(name)
