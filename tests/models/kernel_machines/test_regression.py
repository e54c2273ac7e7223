"""Regression on rows and on their inner products, against scikit-learn and against fits that leave a row out."""

import numpy as np
import pytest
import scipy
from scipy import special
from sklearn.linear_model import LogisticRegression

from subgnn.models.kernel_machines.newton import Gram, fit_linear
from subgnn.models.kernel_machines.regression import fit_balanced, fit_outputs, fit_ridge


def components(seed, n=60, r=8):
    """Rows whose columns are orthogonal."""
    left, values, _ = np.linalg.svd(np.random.default_rng(seed).normal(size=(n, r)), full_matrices=False)
    return left * values


@pytest.mark.parametrize("c", [0.1, 10.0, 1000.0])
def test_classes_and_labels_are_fitted_as_by_scikit_learn(c):
    rows, noise = components(0), np.random.default_rng(1).normal(size=(60, 3))
    classes, labels = (rows[:, :3] + noise).argmax(axis=1), (rows[:, :3] + noise > 0).astype(float)
    weight, bias = fit_linear(rows, np.eye(3)[classes], c, loss="softmax")
    model = LogisticRegression(C=c, max_iter=10_000, tol=1e-9).fit(rows, classes)
    np.testing.assert_allclose(special.softmax(rows @ weight + bias, axis=1), model.predict_proba(rows), atol=1e-6)
    weight, bias = fit_linear(rows, labels, c, loss="logistic")
    for k in range(3):
        model.fit(rows, labels[:, k])
        found = special.expit(rows @ weight[:, k] + bias[k])
        np.testing.assert_allclose(found, model.predict_proba(rows)[:, 1], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.array, lambda rows: Gram(rows @ rows.T)])
def test_left_out_outputs_are_those_of_fits_without_the_row(form, weighted):
    rng = np.random.default_rng(3)
    rows, y, each = rng.normal(size=(60, 8)), rng.normal(size=(60, 2)), rng.random((60, 2)) + 0.1
    weights = each if weighted else None
    weight, bias, found = fit_ridge(form(rows), y, 2.0, weights=weights)
    if isinstance(form(rows), Gram):
        weight = rows.T @ weight
    wide, penalty = np.hstack([rows, np.ones((60, 1))]), np.diag([0.5] * 8 + [0.0])
    for k, s in enumerate(each.T if weighted else np.ones((2, 60))):
        for left in (None, 0, 17, 59):
            rest = np.arange(60) != (-1 if left is None else left)
            part = wide[rest] * s[rest, None]
            solution = np.linalg.solve(part.T @ wide[rest] + penalty, part.T @ y[rest, k])
            if left is None:
                np.testing.assert_allclose([*weight[:, k], bias[k]], solution, atol=1e-9)
            else:
                np.testing.assert_allclose(found[left, k], wide[left] @ solution, atol=1e-9)


@pytest.mark.parametrize("loss", ["softmax", "logistic", "squared"])
@pytest.mark.parametrize("c", [0.1, 1000.0])
def test_a_fit_to_inner_products_is_that_to_the_rows(loss, c):
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(90, 200)) * np.logspace(-2, 1, 200)
    y = np.eye(3)[(rows[:, -3:] + rng.normal(size=(90, 3))).argmax(axis=1)]
    weights = np.repeat(rng.random((90, 1)) + 0.5, 3, axis=1)
    expected, offset = fit_linear(rows, y, c, loss=loss, weights=weights)
    found, bias = fit_linear(Gram(rows @ rows.T), y, c, loss=loss, weights=weights)
    link = {"softmax": lambda z: special.softmax(z, axis=1), "logistic": special.expit, "squared": np.array}[loss]
    np.testing.assert_allclose(link(rows @ (rows.T @ found) + bias), link(rows @ expected + offset), atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("present", [[2], [1, 3], [0, 2, 3]])
def test_a_class_that_training_lacks_gets_next_to_nothing(loss, present):
    rows, classes = components(4), np.array(present)[np.arange(60) % len(present)]
    weight, bias = fit_outputs(rows, classes, "multi-class", 4, loss=loss, inverse_penalty=1.0)
    chance = special.softmax(rows @ weight + bias, axis=1)
    assert chance[:, sorted(set(range(4)) - set(present))].max() < 1e-6


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_label_that_all_or_none_have_is_a_constant(loss):
    rows = components(5)
    labels = np.stack([np.zeros(60), np.ones(60), np.arange(60) % 2], axis=1)
    weight, bias = fit_outputs(rows, labels, "multi-label", 3, loss=loss, inverse_penalty=1.0)
    chance = special.expit(rows @ weight + bias)
    assert chance[:, 0].max() < 1e-6
    assert chance[:, 1].min() > 1 - 1e-6


def test_squared_outputs_of_noise_are_unsure():
    rng = np.random.default_rng(6)
    rows = components(6, n=80, r=79)
    classes = rng.integers(0, 3, 80)
    weight, bias = fit_outputs(rows, classes, "multi-class", 3, loss="squared", inverse_penalty=100.0)
    assert special.softmax(rows @ weight + bias, axis=1).max(axis=1).mean() < 0.6


def uneven(classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of classes of 60, 30, 10, ... that differ a little in their means."""
    draws = np.random.default_rng(seed)
    targets = np.repeat(np.arange(classes), [60, 30, 10][:classes])
    return draws.normal(size=(len(targets), 5)) + 1.5 * np.eye(5)[targets], targets


@pytest.mark.parametrize("classes", [2, 3])
def test_with_balanced_classes_a_strong_penalty_does_not_predict_the_largest_class(classes):
    rows, targets = uneven(classes)
    task = "binary" if classes == 2 else "multi-class"
    options = {"loss": "logistic", "inverse_penalty": 1e-3}
    weight, bias = fit_outputs(rows, targets, task, classes, **options)
    assert set((rows @ weight + bias).argmax(axis=1)) == {0}
    weight, bias = fit_balanced(rows, targets, task, classes, inverse_penalty=options["inverse_penalty"])
    assert ((rows @ weight + bias).argmax(axis=1) == targets).mean() > 0.7


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("inverse_penalty", [1e-3, 1e-2])
@pytest.mark.parametrize("form", [np.array, lambda rows: Gram(rows @ rows.T)])
def test_the_scale_of_a_balanced_fit_is_that_of_outputs_of_fits_without_each_row(classes, inverse_penalty, form):
    rows, targets = uneven(classes)
    task = "binary" if classes == 2 else "multi-class"
    options = {"loss": "logistic", "inverse_penalty": inverse_penalty}
    each = (len(targets) / (classes * np.bincount(targets)))[targets]
    left_out = np.zeros((len(rows), classes))
    for i in range(len(rows)):
        rest = np.arange(len(rows)) != i
        weight, _ = fit_outputs(rows[rest], targets[rest], task, classes, weights=each[rest], **options)
        left_out[i] = rows[i] @ weight

    def surprise(numbers):
        logits = numbers[0] * left_out + numbers[1:]
        chosen = logits[np.arange(len(rows)), targets]
        return (scipy.special.logsumexp(logits, axis=1) - chosen).mean() + 1e-6 * (numbers[1:] @ numbers[1:])

    scale = scipy.optimize.minimize(surprise, [1.0, *np.zeros(classes)], tol=1e-12).x[0]
    plain, _ = fit_outputs(rows, targets, task, classes, weights=each, **options)
    found, _ = fit_balanced(form(rows), targets, task, classes, inverse_penalty=options["inverse_penalty"])
    found = rows.T @ found if isinstance(form(rows), Gram) else found
    np.testing.assert_allclose(found, scale * plain, rtol=0.1, atol=1e-9)
