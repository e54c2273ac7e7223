"""Linear models on sparse rows, for every task, as weights and a bias."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.subgraphs import Task

Fitted = tuple[NDArray[np.float32], NDArray[np.float32]]
_STEPS = 500
_NEVER = -20.0  # the logit of a class that the training split does not have


def fit_linear(rows: Any, targets: NDArray[Any], task: Task, outputs: int, inverse_penalty: float) -> Fitted:
    """Logistic regression with an L2 penalty; one against the rest for multi-label; ridge for regression.

    Args:
        rows: a scipy CSR array.
        inverse_penalty: C, the weight of the data beside the penalty.

    Shapes:
        rows: (n, F). returns: weight (F, outputs), bias (outputs,), float32.
    """
    if task == "regression":
        from sklearn.linear_model import Ridge

        ridge = Ridge(alpha=1 / inverse_penalty, solver="sparse_cg", tol=1e-6).fit(rows, targets)
        return ridge.coef_.reshape(-1, 1).astype(np.float32), np.array([ridge.intercept_], np.float32)
    if task == "multi-label":
        columns = [_one_label(rows, targets[:, label], inverse_penalty) for label in range(outputs)]
        return np.stack([w for w, _ in columns], axis=1), np.array([b for _, b in columns], np.float32)
    return _one_of_many(rows, targets, outputs, inverse_penalty)


def _one_label(rows: Any, targets: NDArray[Any], inverse_penalty: float) -> tuple[NDArray[np.float32], float]:
    if targets.min() == targets.max():
        return np.zeros(rows.shape[1], np.float32), _NEVER if targets.max() == 0 else -_NEVER
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=inverse_penalty, max_iter=_STEPS).fit(rows, targets)
    return model.coef_[0].astype(np.float32), float(model.intercept_[0])


def _one_of_many(rows: Any, targets: NDArray[Any], outputs: int, inverse_penalty: float) -> Fitted:
    """Softmax over the classes that are there; of two, the first has logit 0."""
    weight, bias = np.zeros((rows.shape[1], outputs), np.float32), np.full(outputs, _NEVER, np.float32)
    present = np.unique(targets)
    bias[present] = 0.0
    if len(present) == 2:
        weight[:, present[1]], bias[present[1]] = _one_label(rows, targets == present[1], inverse_penalty)
    elif len(present) > 2:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=inverse_penalty, max_iter=_STEPS).fit(rows, targets)
        weight[:, present], bias[present] = model.coef_.T, model.intercept_
    return weight, bias
