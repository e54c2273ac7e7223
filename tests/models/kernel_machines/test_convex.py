"""Convex problems are solved until rounding does not show."""

import numpy as np
import pytest
from scipy import sparse, special

from subgnn.models.kernel_machines.newton import Path, fit_linear
from subgnn.models.kernel_machines.regression import minimise_in_box

LOSSES = ("softmax", "logistic", "squared")


def problem(seed, loss, *, n=60, r=90):
    """Columns of very different lengths, more of them than rows, and classes that they separate."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, r)) * (rng.random((n, r)) < 0.2) * np.logspace(-3, 2, r)
    y = np.eye(4)[rows[:, -4:].argmax(axis=1)]
    return rows, rows[:, -4:] + rng.normal(size=(n, 4)) if loss == "squared" else y


def gradient(rows, y, c, weight, bias, loss):
    """By the definition, in units of the gradient at 0."""
    out = {"softmax": lambda z: special.softmax(z, axis=1), "logistic": special.expit, "squared": np.array}[loss]

    def at(w, b):
        gap = out(rows @ w + b) - y
        return np.vstack([c * rows.T @ gap + w, c * gap.sum(axis=0)])

    return np.abs(at(weight, bias)).max() / np.abs(at(0 * weight, 0 * bias)).max()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("c", [1e-3, 1.0, 1e4])
def test_the_gradient_is_rounding(loss, c):
    rows, y = problem(0, loss)
    weight, bias = fit_linear(rows, y, c, loss=loss)
    assert gradient(rows, y, c, weight, bias, loss) < 1e-7
    assert loss != "softmax" or abs(bias.sum()) < 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_the_order_of_rows_and_columns_and_single_precision_do_not_show(loss):
    rows, y = problem(1, loss)
    weight, bias = fit_linear(rows, y, 100.0, loss=loss)
    order, turn = np.random.default_rng(0).permutation(60), np.random.default_rng(1).permutation(90)
    found, offset = fit_linear(rows[order][:, turn], y[order], 100.0, loss=loss)
    np.testing.assert_allclose(found, weight[turn], atol=1e-6)
    np.testing.assert_allclose(offset, bias, atol=1e-6)
    found, offset = fit_linear(sparse.csr_array(rows), y, 100.0, loss=loss)
    np.testing.assert_allclose(found, weight, atol=1e-6)
    rounded = rows.astype(np.float32).astype(np.float64)
    near, offset_near = fit_linear(rounded, y, 100.0, loss=loss)
    outputs = [rows @ w + b for w, b in ((weight, bias), (near, offset_near))]
    chances = outputs if loss == "squared" else [special.softmax(one, axis=1) for one in outputs]
    np.testing.assert_allclose(*chances, atol=1e-5, rtol=1e-5)


def test_a_solution_that_is_not_reached_is_reported(monkeypatch):
    monkeypatch.setattr("subgnn.models.kernel_machines.newton.STEPS", 1)
    rows, y = problem(2, "softmax")
    with pytest.warns(RuntimeWarning, match="softmax regression of 4 outputs on 60 rows did not converge in 1 step"):
        fit_linear(rows, y, 100.0, loss="softmax")


def test_a_box_and_its_edges():
    def objective(x):
        return float(((x - [1.0, 5.0]) ** 2).sum()), 2 * (x - [1.0, 5.0])

    np.testing.assert_allclose(minimise_in_box(objective, [0.0, 0.0], [(-3, 3), (-3, 3)]), [1, 3], atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_where_a_path_of_penalties_begins_does_not_matter(loss):
    rows, y = problem(1, loss)
    path = Path()
    for c in (0.1, 1.0, 1e3):
        weight, bias = fit_linear(rows, y, c, loss=loss, path=path)
        expected, offset = fit_linear(rows, y, c, loss=loss)
        outputs = [rows @ w + b for w, b in ((weight, bias), (expected, offset))]
        link = {"softmax": lambda z: special.softmax(z, axis=1), "logistic": special.expit, "squared": np.array}[loss]
        chances = [link(one) for one in outputs]
        np.testing.assert_allclose(*chances, atol=1e-6)
