"""Loss and metrics of every task, beside scikit-learn and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn import metrics as reference

from subgnn.metrics.task_metrics import loss, metric_text, metrics, predictions, probabilities
from subgnn.metrics.weighting import Weighting

RNG = np.random.default_rng(0)


def test_multi_class_loss_by_hand():
    outputs = torch.tensor([[0.0, 0.0], [math.log(3), 0.0]])
    # Probabilities of the truth: 1/2 and 1/4; class 1 counts three times.
    assert float(loss(outputs, torch.tensor([0, 1]), "multi-class")) == pytest.approx(np.log([2, 4]).mean())
    weighted = float(loss(outputs, torch.tensor([0, 1]), "multi-class", Weighting(torch.tensor([1.0, 3.0]))))
    assert weighted == pytest.approx((np.log(2) + 3 * np.log(4)) / 4)


def test_multi_label_loss_by_hand():
    outputs = torch.tensor([[0.0, math.log(3)]])
    # sigmoid: 1/2 and 3/4; the first label is there, the second is not; a positive counts twice.
    found = float(loss(outputs, torch.tensor([[1, 0]]), "multi-label", Weighting(torch.tensor([2.0, 2.0]))))
    assert found == pytest.approx((2 * np.log(2) + np.log(4)) / 2)


def test_regression_loss_by_hand():
    outputs = torch.tensor([[1.0], [3.0]])
    found = loss(outputs, torch.tensor([0.0, 5.0], dtype=torch.float64), "regression")
    assert float(found) == pytest.approx(2.5)
    assert found.dtype == outputs.dtype


def average_precision(truth, scores):
    """That of the rarer class, of equally many of the second."""
    rarer = 0 if (truth == 0).sum() < (truth == 1).sum() else 1
    return reference.average_precision_score(truth == rarer, scores[:, rarer])


@pytest.mark.parametrize("rare", [0, 1])
def test_average_precision_is_that_of_the_rarer_class(rare):
    outputs, truth = torch.from_numpy(RNG.normal(size=(40, 2))), np.where(RNG.random(40) < 0.2, rare, 1 - rare)
    scores = probabilities(outputs, "binary").numpy()
    found = metrics(outputs, torch.from_numpy(truth), "binary")["auprc"]
    assert found == pytest.approx(reference.average_precision_score(truth == rare, scores[:, rare]), abs=1e-6)
    assert math.isnan(metrics(outputs, torch.zeros(40, dtype=torch.int64), "binary")["auprc"])


@pytest.mark.parametrize(("task", "classes"), [("binary", 2), ("multi-class", 4)])
def test_classes_as_scikit_learn_scores_them(task, classes):
    outputs, truth = torch.from_numpy(RNG.normal(size=(50, classes))), RNG.integers(0, classes, 50)
    found = metrics(outputs, torch.from_numpy(truth), task)
    guess = outputs.argmax(dim=1).numpy()
    scores = probabilities(outputs, task).numpy()
    assert scores.sum(axis=1) == pytest.approx(1)
    areas = [reference.roc_auc_score(truth == c, scores[:, c]) for c in range(classes)]
    assert found == pytest.approx(
        {
            "micro_f1": reference.f1_score(truth, guess, average="micro"),
            "macro_f1": reference.f1_score(truth, guess, average="macro"),
            "accuracy": reference.accuracy_score(truth, guess),
            "auroc": np.mean(areas),
        }
        | ({"auprc": average_precision(truth, scores)} if task == "binary" else {}),
        abs=1e-6,
    )


@pytest.mark.parametrize("labels", [2, 3])
def test_labels_as_scikit_learn_scores_them(labels):
    outputs, truth = torch.from_numpy(RNG.normal(size=(50, labels))), RNG.integers(0, 2, (50, labels))
    found = metrics(outputs, torch.from_numpy(truth), "multi-label")
    guess = predictions(outputs, "multi-label").numpy()
    np.testing.assert_array_equal(guess, probabilities(outputs, "multi-label").numpy() > 0.5)
    assert found == pytest.approx(
        {
            "micro_f1": reference.f1_score(truth, guess, average="micro"),
            "macro_f1": reference.f1_score(truth, guess, average="macro"),
            "accuracy": reference.accuracy_score(truth, guess),
            "auroc": reference.roc_auc_score(truth, outputs.numpy(), average="macro"),
            "auprc": reference.average_precision_score(truth, outputs.numpy(), average="macro"),
        },
        abs=1e-6,
    )


def test_values_as_scikit_learn_scores_them():
    outputs, truth = torch.from_numpy(RNG.normal(size=(20, 1))), RNG.normal(size=20)
    found = metrics(outputs, torch.from_numpy(truth), "regression")
    guess = outputs[:, 0].numpy()
    assert found == pytest.approx(
        {
            "mae": reference.mean_absolute_error(truth, guess),
            "rmse": reference.root_mean_squared_error(truth, guess),
            "r2": reference.r2_score(truth, guess),
        },
        abs=1e-5,
    )


def test_auroc_counts_every_class_that_can_be_ranked():
    outputs = torch.tensor([[2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.5, 0.0], [0.0, 2.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    scores = probabilities(outputs, "multi-class").numpy()
    truth = np.array([0, 1, 1, 2])  # one subgraph of class 0, one of class 2, none of class 3
    areas = [reference.roc_auc_score(truth == c, scores[:, c]) for c in range(3)]
    assert metrics(outputs, torch.from_numpy(truth), "multi-class")["auroc"] == pytest.approx(np.mean(areas))
    many = np.array([[1, 1], [1, 0], [0, 0], [1, 0]])  # three of four, and one of four
    areas = [reference.roc_auc_score(many[:, c], outputs[:, c].numpy()) for c in range(2)]
    assert metrics(outputs[:, :2], torch.from_numpy(many), "multi-label")["auroc"] == pytest.approx(np.mean(areas))
    assert math.isnan(metrics(outputs[:, :2], torch.ones(4, 2), "multi-label")["auroc"])


def test_a_single_label_by_hand():
    outputs, truth = torch.tensor([[2.0], [1.0], [-1.0], [-2.0]]), torch.tensor([[1], [0], [1], [1]])
    # One label of three is found, and one too many.
    found = metrics(outputs, truth, "multi-label")
    assert found == pytest.approx(
        {"micro_f1": 2 / 5, "macro_f1": 2 / 5, "accuracy": 1 / 4, "auroc": 1 / 3, "auprc": 29 / 36}
    )


def test_a_label_needs_more_than_one_half():
    assert predictions(torch.tensor([[-0.1, 0.0, 0.1]]), "multi-label").tolist() == [[0, 0, 1]]


def test_values_are_their_own_probabilities():
    outputs = torch.tensor([[-3.0], [0.5]])
    assert probabilities(outputs, "regression").tolist() == outputs.tolist()


def test_errors_have_the_units_of_the_label():
    outputs, truth = torch.tensor([[0.1], [0.2], [0.6]]), torch.tensor([0.1, 0.2, 0.3])
    # The squared error is .09, the truth's sum of squares about its mean .02.
    found = metrics(outputs, truth, "regression", unit=10.0)
    assert found == pytest.approx({"mae": 1.0, "rmse": 10 * math.sqrt(0.03), "r2": 1 - 0.09 / 0.02}, rel=1e-5)


def test_equal_values_have_no_r2():
    found = metrics(torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 3.0]), "regression")
    assert math.isnan(found["r2"])
    assert found["mae"] == pytest.approx(1.5)


def test_errors_are_written_in_significant_digits_and_shares_in_places():
    assert [metric_text(name, 0.00123456) for name in ("mae", "rmse", "r2", "auroc")] == [
        "0.001235",
        "0.001235",
        "0.001",
        "0.001",
    ]
