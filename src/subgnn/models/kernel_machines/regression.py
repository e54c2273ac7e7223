"""Logistic and ridge regression on principal components, all outputs and penalties from one decomposition.

The columns of z are principal components: z^T z is diagonal. C is the weight of the data beside the penalty |W|^2.

*Ridge*: W = (z^T z + 1/C)^-1 z^T (y - mean of y), of which the first factor is diagonal. The output for row i of a fit
without row i follows from the fit to all rows: y_i - (y_i - f_i) / (1 - h_i), h_i = 1/n + z_i (z^T z + 1/C)^-1 z_i^T.
RidgeCV would decompose the rows again (.49 s, not .03 s, for 1,272 rows and 4 penalties), without weights of labels.
Outputs of classes and labels become logits by a scale (classes), or a scale and an offset for each label, that are
fitted to these left-out outputs.

Weights s of rows turn z^T z into z^T S z, which is not diagonal, and h_i into s_i x_i (X^T S X + P)^-1 x_i^T, with
X = [z, 1] and P = 1/C for all columns but the last.

*Logistic* (``kernel_machines/convex.py``): the softmax loss for one class of several, and one against the rest for
several labels. It does not need principal components, but is faster on them: its second derivative is nearly diagonal.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.models.kernel_machines.convex import Floats, fit_linear, minimise_in_box
from subgnn.task import TaskName, task_of

Loss = Literal["squared", "logistic"]
_NEVER = -20.0  # the logit of a class that the training split does not have
_LARGEST_SCALE = 20.0  # of outputs about 1 apart: no probability is beyond 1 in 10^8


def fit_outputs(
    rows: Any,
    targets: NDArray[Any],
    task: TaskName,
    outputs: int,
    *,
    loss: Loss,
    inverse_penalty: float,
    weights: Floats | None = None,
) -> tuple[Floats, Floats]:
    """W and b, of logits, or of values for regression, which always has the squared loss.

    A class that the targets lack, and a label that all or none of them have, get a constant output.

    Args:
        rows: principal components; for the logistic loss any array, also a sparse one.
        targets: classes (n,), labels as 0 and 1 (n, labels), or values (n,).
        inverse_penalty: C.
        weights: how much rows, or pairs of a row and a label, count; not for regression.

    Shapes:
        rows: (n, r). weights: (n,), or (n, labels). returns: (r, outputs), (outputs,).
    """
    weight, bias = np.zeros((rows.shape[1], outputs)), np.full(outputs, _NEVER)
    labels = task_of(task)
    if labels.real:
        weight, bias, _ = fit_ridge(rows, np.asarray(targets, np.float64)[:, None], inverse_penalty)
        return weight, bias
    several, y = labels.several, labels.indicators(targets, outputs)
    chance = y.mean(axis=0)
    bias[chance == 1] = -_NEVER if several else 0.0
    there = np.flatnonzero((chance > 0) & (chance < 1))
    if not len(there):
        return weight, bias
    own = None
    if weights is not None:
        own = weights[:, there] if several else np.broadcast_to(weights[:, None], (len(y), len(there)))
    if loss == "squared":
        found = fit_ridge(rows, y[:, there], inverse_penalty, weights=own)
        weight[:, there], bias[there] = _as_logits(*found, y[:, there], several=several, weights=own)
    elif len(there) == 2 and not several:
        # Of two classes the first has logit 0.
        second = None if own is None else own[:, 1:]
        found_weight, found_bias = fit_linear(rows, y[:, there[1:]], inverse_penalty, loss="logistic", weights=second)
        weight[:, there[1:]], bias[there[1:]] = found_weight, found_bias
        bias[there[0]] = 0.0
    else:
        kind: Literal["softmax", "logistic"] = "logistic" if several else "softmax"
        weight[:, there], bias[there] = fit_linear(rows, y[:, there], inverse_penalty, loss=kind, weights=own)
    return weight, bias


def fit_balanced(
    rows: Any,
    targets: NDArray[Any],
    task: TaskName,
    outputs: int,
    *,
    inverse_penalty: float,
    loss: Loss,
    weights: NDArray[np.float64] | None = None,
) -> tuple[Floats, Floats]:
    """As :func:`fit_outputs`, for classes: a logistic fit in which all count the same, brought to their frequencies.

    The bias is not penalised. Where classes are of different sizes, a strong penalty leaves it alone to decide, and the
    largest class is predicted. Here the weights come from a fit with balanced classes, and one scale and the biases
    from the likelihood of outputs without each row's own part. That part follows from a step of Newton's method with
    the diagonal of the Hessian, which is near the whole where the penalty is strong.
    """
    y = task_of(task).indicators(targets, outputs)
    each = task_of(task).balanced_weights(targets, outputs)[targets.astype(np.int64)]
    weight, bias = fit_outputs(rows, targets, task, outputs, inverse_penalty=inverse_penalty, loss=loss, weights=each)
    p = scipy.special.softmax(rows @ weight + bias, axis=1)
    own = inverse_penalty * each[:, None]
    squares = rows * rows if isinstance(rows, np.ndarray) else rows.multiply(rows).tocsr()
    near = squares @ (1 / (1 + squares.T @ (own * p * (1 - p))))
    left_out = rows @ weight + own * near * (p - y) / np.maximum(1 - own * near * p * (1 - p), 1e-6)
    there = np.flatnonzero(y.any(axis=0))
    if len(there) == 2:  # the first has logit 0
        left_out[:, there[0]] = 0
    left_out, y, unit = left_out[:, there], y[:, there], max(float(np.abs(left_out).max()), 1e-12)

    def surprise(numbers: Floats) -> tuple[float, Floats]:
        logits = numbers[0] * left_out / unit + numbers[1:]
        total = scipy.special.logsumexp(logits, axis=1, keepdims=True)
        gap = np.exp(logits - total) - y
        slope = np.concatenate([[(gap * left_out).sum() / unit], gap.sum(axis=0)]) + 2e-3 * numbers
        value = float((total[:, 0] - (y * logits).sum(axis=1)).sum()) + 1e-3 * float(numbers @ numbers)
        return value / len(y), slope / len(y)

    start = [1.0, *np.log(y.mean(axis=0))]
    found = minimise_in_box(surprise, start, [(0.0, 100.0), *[(-50.0, 50.0)] * len(there)])
    bias[there] = found[1:]
    return weight * (found[0] / unit), bias


def fit_ridge(
    rows: Floats, targets: Floats, inverse_penalty: float, *, weights: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """W, b, and the output for each row of a fit without it.

    Shapes:
        rows: (n, r). targets, weights: (n, K). returns: (r, K), (K,), (n, K).
    """
    if weights is not None:
        columns, places = np.unique(weights, axis=1, return_inverse=True)
        fits = [_weighted_ridge(rows, targets, inverse_penalty, column) for column in columns.T]
        # One fit serves all columns of the same weights.
        parts = [[part[..., k] for part in fits[place]] for k, place in enumerate(places.reshape(-1))]
        by_kind = [np.stack(kind, axis=-1) for kind in zip(*parts, strict=True)]
        return by_kind[0], by_kind[1], by_kind[2]
    bias = targets.mean(axis=0)
    diagonal = np.einsum("ij,ij->j", rows, rows) + 1 / inverse_penalty
    weight = (rows.T @ (targets - bias)) / diagonal[:, None]
    leverage = 1 / len(rows) + (rows * rows) @ (1 / diagonal)
    left_out = targets - (targets - rows @ weight - bias) / np.maximum(1 - leverage, 1e-6)[:, None]
    return weight, bias, left_out


def _weighted_ridge(
    rows: Floats, targets: Floats, inverse_penalty: float, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """As :func:`fit_ridge`, with a weight for each row (n,)."""
    wide = np.hstack([rows, np.ones((len(rows), 1))])
    matrix = (wide * weights[:, None]).T @ wide
    matrix[np.arange(rows.shape[1]), np.arange(rows.shape[1])] += 1 / inverse_penalty
    factor = scipy.linalg.cho_factor(matrix)
    found = scipy.linalg.cho_solve(factor, (wide * weights[:, None]).T @ targets)
    leverage = weights * np.einsum("ij,ji->i", wide, scipy.linalg.cho_solve(factor, wide.T))
    left_out = targets - (targets - wide @ found) / np.maximum(1 - leverage, 1e-6)[:, None]
    return found[:-1], found[-1], left_out


def _as_logits(
    weight: Floats, bias: Floats, left_out: Floats, y: Floats, *, several: bool, weights: Floats | None
) -> tuple[Floats, Floats]:
    """The fit, scaled so that left-out outputs are likely as logits."""
    if not several:
        each = None if weights is None else weights[:, 0]

        def surprise(scale: Floats) -> tuple[float, Floats]:
            logits = scale * left_out
            total = scipy.special.logsumexp(logits, axis=1, keepdims=True)
            slope = ((np.exp(logits - total) - y) * left_out).sum(axis=1)
            return (
                float(np.average(total[:, 0] - (y * logits).sum(axis=1), weights=each)),
                np.average(slope, weights=each, keepdims=True),
            )

        scale = minimise_in_box(surprise, [1.0], [(0.1, _LARGEST_SCALE)])
        return weight * scale, bias * scale
    pairs = [
        fit_label_scale(left_out[:, k], y[:, k], None if weights is None else weights[:, k]) for k in range(y.shape[1])
    ]
    scales, offsets = (np.array(part) for part in zip(*pairs, strict=True))
    return weight * scales, bias * scales + offsets


def fit_label_scale(scores: Floats, labels: NDArray[Any], weights: Floats | None = None) -> tuple[float, float]:
    """Scale and offset with which scores of subgraphs are likely as logits of a label (Platt, 1999).

    A label that all or none of them have gets a constant.

    Shapes:
        scores, labels, weights: (n,).
    """
    y = np.asarray(labels, np.float64)
    if y.min() == y.max():
        return 0.0, _NEVER if y.max() == 0 else -_NEVER
    unit = max(float(np.abs(scores).max()), 1e-12)
    each = np.ones(len(y)) if weights is None else weights

    def surprise(pair: Floats) -> tuple[float, Floats]:
        logits = pair[0] * scores / unit + pair[1]
        gap = each * (scipy.special.expit(logits) - y)
        # A weak penalty: where a scale separates the labels, the largest one would be the likeliest.
        value = float((each * (np.logaddexp(0, logits) - y * logits)).sum()) + 1e-3 * float(pair @ pair)
        slope = np.array([gap @ scores / unit, gap.sum()]) + 2e-3 * pair
        return value / each.sum(), slope / each.sum()

    start = [1.0, float(scipy.special.logit(np.average(y, weights=each)))]
    found = minimise_in_box(surprise, start, [(0, 50), (-50, 50)])
    return float(found[0] / unit), float(found[1])
