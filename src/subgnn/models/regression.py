"""Logistic and ridge regression on principal components, all outputs and penalties from one decomposition.

The columns of z are principal components: z^T z is diagonal. C is the weight of the data beside the penalty |W|^2.

*Ridge*: W = (z^T z + 1/C)^-1 z^T (y - mean of y), of which the first factor is diagonal. The output for row i of a fit
without row i follows from the fit to all rows: y_i - (y_i - f_i) / (1 - h_i), h_i = 1/n + z_i (z^T z + 1/C)^-1 z_i^T.
Outputs of classes and labels become logits by a scale (classes), or a scale and an offset for each label, that are
fitted to these left-out outputs.

*Logistic*: minimises C sum_i loss(z_i W + b, y_i) + |W|^2 / 2, the softmax loss for one class of several, and one
against the rest for several labels. The second derivative is about 1 + C k (z^T z)_jj in direction j, with k the mean
of p (1 - p): scaled by its root, the problem is well conditioned whatever C is, and L-BFGS takes a few dozen steps.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.data.subgraphs import Task

Floats = NDArray[np.float64]
Loss = Literal["squared", "logistic"]
_NEVER = -20.0  # the logit of a class that the training split does not have
_STEPS = 500
_LARGEST_SCALE = 20.0  # of outputs about 1 apart: no probability is beyond 1 in 10^8


def fit_outputs(
    rows: Floats, targets: NDArray[Any], task: Task, outputs: int, *, loss: Loss, inverse_penalty: float
) -> tuple[Floats, Floats]:
    """W and b, of logits, or of values for regression, which always has the squared loss.

    A class that the targets lack, and a label that all or none of them have, get a constant output.

    Args:
        targets: classes (n,), labels as 0 and 1 (n, labels), or values (n,).
        inverse_penalty: C.

    Shapes:
        rows: (n, r). returns: (r, outputs), (outputs,).
    """
    weight, bias = np.zeros((rows.shape[1], outputs)), np.full(outputs, _NEVER)
    if task == "regression":
        weight, bias, _ = fit_ridge(rows, np.asarray(targets, np.float64)[:, None], inverse_penalty)
        return weight, bias
    several = task == "multi-label"
    y = np.asarray(targets, np.float64) if several else np.eye(outputs)[np.asarray(targets, np.int64)]
    chance = y.mean(axis=0)
    bias[chance == 1] = -_NEVER if several else 0.0
    there = np.flatnonzero((chance > 0) & (chance < 1))
    if not len(there):
        return weight, bias
    if loss == "squared":
        found = fit_ridge(rows, y[:, there], inverse_penalty)
        weight[:, there], bias[there] = _as_logits(*found, y[:, there], several=several)
    elif len(there) == 2 and not several:
        # Of two classes the first has logit 0.
        weight[:, there[1:]], bias[there[1:]] = fit_logistic(rows, y[:, there[1:]], inverse_penalty, softmax=False)
        bias[there[0]] = 0.0
    else:
        weight[:, there], bias[there] = fit_logistic(rows, y[:, there], inverse_penalty, softmax=not several)
    return weight, bias


def fit_ridge(rows: Floats, targets: Floats, inverse_penalty: float) -> tuple[Floats, Floats, Floats]:
    """W, b, and the output for each row of a fit without it.

    Shapes:
        rows: (n, r). targets: (n, K). returns: (r, K), (K,), (n, K).
    """
    bias = targets.mean(axis=0)
    diagonal = np.einsum("ij,ij->j", rows, rows) + 1 / inverse_penalty
    weight = (rows.T @ (targets - bias)) / diagonal[:, None]
    leverage = 1 / len(rows) + (rows * rows) @ (1 / diagonal)
    left_out = targets - (targets - rows @ weight - bias) / np.maximum(1 - leverage, 1e-6)[:, None]
    return weight, bias, left_out


def _as_logits(weight: Floats, bias: Floats, left_out: Floats, y: Floats, *, several: bool) -> tuple[Floats, Floats]:
    """The fit, scaled so that left-out outputs are likely as logits."""
    if not several:

        def surprise(scale: float) -> float:
            logits = scale * left_out
            return float((scipy.special.logsumexp(logits, axis=1) - (y * logits).sum(axis=1)).mean())

        scale = scipy.optimize.minimize_scalar(surprise, bounds=(0.1, _LARGEST_SCALE), method="bounded").x
        return weight * scale, bias * scale
    pairs = [fit_label_scale(left_out[:, k], y[:, k]) for k in range(y.shape[1])]
    scales, offsets = (np.array(part) for part in zip(*pairs, strict=True))
    return weight * scales, bias * scales + offsets


def fit_label_scale(scores: Floats, labels: NDArray[Any]) -> tuple[float, float]:
    """Scale and offset with which scores of subgraphs are likely as logits of a label (Platt, 1999).

    A label that all or none of them have gets a constant.

    Shapes:
        scores, labels: (n,).
    """
    y = np.asarray(labels, np.float64)
    if y.min() == y.max():
        return 0.0, _NEVER if y.max() == 0 else -_NEVER
    unit = max(float(np.abs(scores).max()), 1e-12)

    def surprise(pair: Floats) -> tuple[float, Floats]:
        logits = pair[0] * scores / unit + pair[1]
        gap = scipy.special.expit(logits) - y
        # A weak penalty: where a scale separates the labels, the largest one would be the likeliest.
        value = float((np.logaddexp(0, logits) - y * logits).sum()) + 1e-3 * float(pair @ pair)
        return value, np.array([gap @ scores / unit, gap.sum()]) + 2e-3 * pair

    start = np.array([1.0, float(scipy.special.logit(y.mean()))])
    found = scipy.optimize.minimize(surprise, start, jac=True, method="L-BFGS-B", bounds=[(0, 50), (-50, 50)]).x
    return float(found[0] / unit), float(found[1])


def fit_logistic(rows: Floats, targets: Floats, inverse_penalty: float, *, softmax: bool) -> tuple[Floats, Floats]:
    """W and b.

    Args:
        targets: 1 where a row has the class or label, else 0; every column has both.
        inverse_penalty: C.
        softmax: whether classes exclude each other; else columns are fitted by themselves.

    Shapes:
        rows: (n, r). targets: (n, K). returns: (r, K), (K,).
    """
    (n, r), k = rows.shape, targets.shape[1]
    chance = targets.mean(axis=0)
    curvature = inverse_penalty * float((chance * (1 - chance)).mean())
    scale = 1 / np.sqrt(1 + curvature * np.einsum("ij,ij->j", rows, rows))[:, None]
    step = 1 / np.sqrt(curvature * n)
    scaled = rows * scale.T

    def objective(flat: Floats) -> tuple[float, Floats]:
        v, b = flat[:-k].reshape(r, k), flat[-k:]
        logits = scaled @ v + b * step
        if softmax:
            total = scipy.special.logsumexp(logits, axis=1, keepdims=True)
            loss = float((total[:, 0] - (targets * logits).sum(axis=1)).sum())
            gap = np.exp(logits - total) - targets
        else:
            loss = float((np.logaddexp(0, logits) - targets * logits).sum())
            gap = scipy.special.expit(logits) - targets
        w = scale * v
        value = inverse_penalty * loss + 0.5 * float((w * w).sum())
        slope = inverse_penalty * (scaled.T @ gap) + scale * w
        return value, np.concatenate([slope.reshape(-1), inverse_penalty * step * gap.sum(axis=0)])

    # From the frequencies of classes: log-odds, or logarithms, of which a softmax knows the differences.
    start = np.log(chance) if softmax else scipy.special.logit(chance)
    options = {"maxiter": _STEPS, "gtol": 1e-5 * np.sqrt(inverse_penalty), "ftol": 1e-12}
    first = np.concatenate([np.zeros(r * k), start / step])
    found = scipy.optimize.minimize(objective, first, jac=True, method="L-BFGS-B", options=options).x
    return scale * found[:-k].reshape(r, k), found[-k:] * step
