"""What each task owns, beside scikit-learn, numpy and by hand."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import special
from sklearn import metrics as reference
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils.class_weight import compute_class_weight

from subgnn.task import Standard, task_of

RNG = np.random.default_rng(0)


def test_losses_by_hand():
    outputs, truth = torch.tensor([[0.0, 0.0], [math.log(3), 0.0]]), torch.tensor([0, 1])
    # Probabilities of the truth: 1/2 and 1/4; with weights, class 1 counts three times.
    assert float(task_of("multi-class").loss(outputs, truth)) == pytest.approx(np.log([2, 4]).mean())
    weighted = float(task_of("multi-class").loss(outputs, truth, torch.tensor([1.0, 3.0])))
    assert weighted == pytest.approx((np.log(2) + 3 * np.log(4)) / 4)
    # sigmoid: 1/2 and 3/4; the first label is there, the second is not; a positive counts twice.
    outputs = torch.tensor([[0.0, math.log(3)]])
    found = float(task_of("multi-label").loss(outputs, torch.tensor([[1, 0]]), torch.tensor([2.0, 2.0])))
    assert found == pytest.approx((2 * np.log(2) + np.log(4)) / 2)
    outputs = torch.tensor([[1.0], [3.0]])
    found = task_of("regression").loss(outputs, torch.tensor([0.0, 5.0], dtype=torch.float64))
    assert (float(found), found.dtype) == (pytest.approx(2.5), outputs.dtype)


@pytest.mark.parametrize(("task", "classes"), [("binary", 2), ("multi-class", 4)])
def test_classes_as_scikit_learn_scores_them(task, classes):
    outputs, truth = torch.from_numpy(RNG.normal(size=(50, classes))), RNG.integers(0, classes, 50)
    found = task_of(task).metrics(outputs, torch.from_numpy(truth))
    guess = outputs.argmax(dim=1).numpy()
    scores = task_of(task).probabilities(outputs).numpy()
    assert scores.sum(axis=1) == pytest.approx(1)
    areas = [reference.roc_auc_score(truth == c, scores[:, c]) for c in range(classes)]
    assert {name: value for name, value in found.items() if name != "auprc"} == pytest.approx(
        {
            "micro_f1": reference.f1_score(truth, guess, average="micro"),
            "macro_f1": reference.f1_score(truth, guess, average="macro"),
            "accuracy": reference.accuracy_score(truth, guess),
            "auroc": np.mean(areas),
        },
        abs=1e-6,
    )


@pytest.mark.parametrize("labels", [2, 3])
def test_labels_as_scikit_learn_scores_them(labels):
    outputs, truth = torch.from_numpy(RNG.normal(size=(50, labels))), RNG.integers(0, 2, (50, labels))
    found = task_of("multi-label").metrics(outputs, torch.from_numpy(truth))
    guess = task_of("multi-label").predictions(outputs).numpy()
    np.testing.assert_array_equal(guess, task_of("multi-label").probabilities(outputs).numpy() > 0.5)
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
    found = task_of("regression").metrics(outputs, torch.from_numpy(truth))
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
    scores = task_of("multi-class").probabilities(outputs).numpy()
    truth = np.array([0, 1, 1, 2])  # one subgraph of class 0, one of class 2, none of class 3
    areas = [reference.roc_auc_score(truth == c, scores[:, c]) for c in range(3)]
    assert task_of("multi-class").metrics(outputs, torch.from_numpy(truth))["auroc"] == pytest.approx(np.mean(areas))
    many = np.array([[1, 1], [1, 0], [0, 0], [1, 0]])  # three of four, and one of four
    areas = [reference.roc_auc_score(many[:, c], outputs[:, c].numpy()) for c in range(2)]
    found = task_of("multi-label").metrics(outputs[:, :2], torch.from_numpy(many))["auroc"]
    assert found == pytest.approx(np.mean(areas))
    assert math.isnan(task_of("multi-label").metrics(outputs[:, :2], torch.ones(4, 2))["auroc"])


def test_a_label_needs_more_than_one_half():
    assert task_of("multi-label").predictions(torch.tensor([[-0.1, 0.0, 0.1]])).tolist() == [[0, 0, 1]]


def test_errors_have_the_units_of_the_label_and_equal_values_no_r2():
    outputs, truth = torch.tensor([[0.1], [0.2], [0.6]]), torch.tensor([0.1, 0.2, 0.3])
    # The squared error is .09, the truth's sum of squares about its mean .02.
    found = task_of("regression").metrics(outputs, truth, unit=10.0)
    assert found == pytest.approx({"mae": 1.0, "rmse": 10 * math.sqrt(0.03), "r2": 1 - 0.09 / 0.02}, rel=1e-5)
    found = task_of("regression").metrics(torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 3.0]))
    assert math.isnan(found["r2"])
    assert found["mae"] == pytest.approx(1.5)


CLASSES = np.array([2, 0, 2, 1, 2])
LABELS = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 0]])
VALUES = np.array([0.5, -1.0, 3.0])


def test_importing_tasks_imports_no_library_of_networks():
    code = "import sys, subgnn.task; print(*{'torch', 'torchmetrics', 'sklearn', 'scipy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


def test_scores_and_outputs_are_inverse():
    outputs = RNG.normal(size=(2, 5, 3))
    references = {"multi-class": special.softmax(outputs, axis=-1), "multi-label": special.expit(outputs)}
    for name, reference_scores in references.items():
        task = task_of(name)
        assert task.scores(outputs) == pytest.approx(reference_scores)
        assert task.scores(task.outputs(reference_scores)) == pytest.approx(reference_scores)
        found = task.probabilities(torch.from_numpy(outputs[0])).numpy()
        assert found == pytest.approx(reference_scores[0])
        assert np.isfinite(task.outputs(np.array([[1.0, 0.0]]))).all()
    target = Standard(np.array([10.0]), np.array([4.0]))
    values = task_of("regression").scores(np.array([[0.5], [-1.0]]), target)
    assert values.tolist() == [[12.0], [6.0]]
    assert task_of("regression").outputs(values, target).tolist() == [[0.5], [-1.0]]


def test_decisions_by_hand():
    scores = np.array([[0.7, 0.3], [0.4, 0.6]], np.float32)
    assert task_of("multi-class").decide(scores).tolist() == [0, 1]
    assert task_of("binary").decide(scores, np.array([np.nan, 0.2], np.float32)).tolist() == [1, 1]
    assert task_of("binary").decide(scores, np.array([0.3, np.nan], np.float32)).tolist() == [0, 0]
    assert task_of("multi-label").decide(scores, np.array([0.5, 0.2], np.float32)).tolist() == [[1, 1], [0, 1]]
    assert task_of("regression").decide(np.array([[0.25], [4.0]])).tolist() == [0.25, 4.0]
    outputs = torch.log(torch.from_numpy(scores))
    assert task_of("binary").predictions(outputs, np.array([np.nan, 0.2], np.float32)).tolist() == [1, 1]


def test_score_terms_add_up_to_the_headline():
    for name, predicted, true in (
        ("multi-class", np.array([2, 0, 1, 1, 2]), CLASSES),
        ("multi-label", 1 - LABELS[::-1], LABELS),
    ):
        gain, weight = task_of(name).score_terms(predicted, true)
        assert gain.sum() / weight.sum() == pytest.approx(reference.f1_score(true, predicted, average="micro"))
    gain, weight = task_of("regression").score_terms(VALUES[::-1], VALUES)
    assert gain.sum() / weight.sum() == pytest.approx(reference.r2_score(VALUES, VALUES[::-1]))


def test_confidences_by_hand():
    scores = np.array([[0.7, 0.3], [0.4, 0.6]])
    said, correct = task_of("binary").confidences(scores, np.array([0, 0]))
    assert (said.tolist(), correct.tolist()) == ([0.7, 0.6], [True, False])
    said, there = task_of("multi-label").confidences(scores, np.array([[1, 0], [1, 1]]))
    assert (said.tolist(), there.tolist()) == ([0.7, 0.3, 0.4, 0.6], [True, False, True, True])


def test_the_constant_prediction_is_that_of_a_dummy():
    rows = np.zeros((5, 1))
    most = DummyClassifier(strategy="most_frequent").fit(rows, CLASSES).predict(rows[:1])
    assert task_of("multi-class").constant(CLASSES) == most[0]
    assert task_of("regression").constant(VALUES) == DummyRegressor().fit(rows[:3], VALUES).predict(rows[:1])[0]


@pytest.mark.parametrize(("name", "train"), [("multi-class", CLASSES), ("multi-label", LABELS), ("regression", VALUES)])
def test_the_constant_prediction_as_output_is_decided_for(name, train):
    task = task_of(name)
    constant = task.constant(train)
    outputs = torch.from_numpy(task.indicators(constant[None], task.num_outputs(3)))
    assert task.predictions(outputs)[0].tolist() == constant.tolist()


def test_balanced_weights_are_those_of_scikit_learn():
    expected = compute_class_weight("balanced", classes=np.arange(3), y=CLASSES)
    assert task_of("multi-class").balanced_weights(CLASSES, 3) == pytest.approx(expected)
    assert task_of("multi-label").balanced_weights(LABELS, 3).tolist() == pytest.approx([1 / 3, 1 / 3, 3])


def test_the_positive_class_is_the_rarer_of_two():
    assert [task_of("binary").positive(np.array(y)) for y in ([0, 0, 1], [0, 1, 1], [0, 1])] == [1, 0, 1]
    assert task_of("multi-label").positive(LABELS) == -1
