"""Class weights: by hand, and what they change in every kind of model."""

import numpy as np
import pytest
import torch

from subgnn.config.settings import TrainingSettings
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import UserError
from subgnn.metrics.weighting import class_weights, loss_weights, row_weights
from subgnn.models.baselines.topology import grow_trees, tree_outputs
from subgnn.models.kernel_machines.newton import fit_linear
from subgnn.models.kernel_machines.regression import fit_outputs, fit_ridge
from subgnn.models.peers.wlks import Fit
from subgnn.ragged import Ragged

RNG = np.random.default_rng(0)


def subgraphs(targets, task, classes, splits=None):
    targets = np.asarray(targets)
    nodes = Ragged(np.arange(len(targets), dtype=np.int32), np.arange(len(targets) + 1))
    splits = np.zeros(len(targets), np.int8) if splits is None else np.array(splits, np.int8)
    return SubgraphSet(nodes, task, targets, classes, splits=splits)


def test_balanced_weights_by_hand():
    balanced = TrainingSettings(class_weights="balanced")
    two = subgraphs([0, 0, 0, 1], "binary", ("a", "b"))
    assert loss_weights(balanced, two).tolist() == pytest.approx([4 / 6, 2])
    assert loss_weights(TrainingSettings(class_weights=True), two).tolist() == pytest.approx([4 / 6, 2])
    several = subgraphs(np.array([[1, 1], [0, 1], [0, 1], [0, 0]]), "multi-label", ("a", "b"))
    assert loss_weights(balanced, several).tolist() == pytest.approx([3, 1 / 3])
    # Only the training split counts.
    split = subgraphs([0, 1, 1, 1, 1], "binary", ("a", "b"), [0, 0, 1, 2, 2])
    assert loss_weights(balanced, split).tolist() == [1, 1]
    assert loss_weights(balanced, subgraphs([0.5, 1.5], "regression", ())) is None
    assert loss_weights(TrainingSettings(), two) is None


@pytest.mark.parametrize("text", ["", "a", "a=", "a=0", "a=-1", "a=nan", "=2", "a=1,a=2", "a=1e7"])
def test_weights_that_are_not_understood_are_refused(text):
    with pytest.raises(UserError, match="class_weights is "):
        class_weights(text, np.array([0, 1]), "binary", ("a", "b"))


ROWS = RNG.normal(size=(40, 5))
CLASSES = (ROWS[:, 0] + RNG.normal(size=40) > 1.2).astype(np.int64)
LABELS = np.stack([CLASSES, RNG.integers(0, 2, 40)], axis=1)


def repeated(weights):
    """Rows as often as their weights say."""
    return np.repeat(np.arange(len(weights)), weights.astype(int))


def test_weighted_ridge_is_that_of_repeated_rows():
    weights = RNG.integers(1, 4, 40).astype(float)
    again = repeated(weights)
    targets = np.stack([CLASSES, 1 - CLASSES], axis=1).astype(float)
    wide = np.repeat(weights[:, None], 2, axis=1)
    found = fit_ridge(ROWS, targets, 3.0, weights=wide)

    def slow(x, y):
        full = np.hstack([x, np.ones((len(x), 1))])
        penalty = np.diag([1 / 3.0] * x.shape[1] + [0.0])
        return np.linalg.solve(full.T @ full + penalty, full.T @ y)

    expected = slow(ROWS[again], targets[again])
    assert found[0] == pytest.approx(expected[:-1])
    assert found[1] == pytest.approx(expected[-1])
    for i in (0, 7, 39):  # all copies of a row are left out together
        rest = again[again != i]
        without = slow(ROWS[rest], targets[rest])
        assert found[2][i] == pytest.approx(np.append(ROWS[i], 1) @ without)


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_weighted_logistic_regression_is_that_of_repeated_rows(kind):
    weights = RNG.integers(1, 4, 40).astype(float)
    again, targets = repeated(weights), np.eye(2)[CLASSES]
    found = fit_linear(ROWS, targets, 2.0, loss=kind, weights=np.repeat(weights[:, None], 2, axis=1))
    expected = fit_linear(ROWS[again], targets[again], 2.0, loss=kind)
    assert found[0] == pytest.approx(expected[0], abs=1e-7)
    assert found[1] == pytest.approx(expected[1], abs=1e-7)


@pytest.mark.quick(1)
@pytest.mark.parametrize("task", ["binary", "multi-label"])
def test_linear_models_trees_and_machines_take_weights(task):
    from scipy import sparse

    targets = CLASSES if task == "binary" else LABELS
    weights = row_weights(torch.tensor([1.0, 50.0]), targets)
    table, rows = ROWS.copy(), sparse.csr_array(np.abs(ROWS))
    positive = 1
    for fit_model in (
        lambda w: (lambda found: rows @ found[0] + found[1])(
            fit_outputs(rows, targets, task, 2, loss="logistic", inverse_penalty=1.0, weights=w)
        ),
        lambda w: tree_outputs(
            grow_trees(table, targets, task, outputs=2, boosting=True, seed=0, weights=w),
            table + 0.3,
            task,
            boosting=True,
        ),
        lambda w: (lambda found: rows @ found[0] + found[1])(
            Fit(task, 2, 0.1)(rows, (rows @ rows.T).toarray(), targets, w)
        ),
    ):
        plain, weighted = fit_model(None), fit_model(weights)
        assert weighted[:, -1 if weighted.shape[1] == 1 else positive].mean() > plain[:, -1].mean()
        same = fit_model(np.ones_like(weights))
        assert same == pytest.approx(plain, abs=1e-4)
