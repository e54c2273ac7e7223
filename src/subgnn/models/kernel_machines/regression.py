"""Linear models with an L2 penalty: logistic and ridge regression, solved so exactly that rounding does not show.

A strictly convex problem has one answer. A solver that stops early gives a different one for each order in which sums
are added, and so for each processor, number of threads and batch size. C is the weight of the data beside the penalty.

*Newton's method* (:func:`fit_linear`) is for rows x_i with outputs f_i = x_i W + b, and minimises

    C sum over i of s_i loss(f_i, y_i) + |W|^2 / 2

A step d solves H d = -g by conjugate gradients, with the diagonal of H as preconditioner: only products with the rows
are needed, which may be sparse. A step is shortened while the slope at its end is uphill. It stops when -g d <=
:data:`TOLERANCE`^2 C sum of s_i: with p the predicted probabilities, the error of outputs, in units of sqrt(p (1 - p)),
is then 1e-8 in the root mean square. Losses are softmax for one class of several, and one against the rest for several
labels. It is fastest where the columns of rows are principal components: its second derivative is then nearly diagonal.
Products with H are in single precision until the last steps; gradients are in double precision always. A fit may start
from that of another penalty (:class:`Path`). On 2,399 rows of 20 classes and four penalties, both
together take 17 s, not 45 s.

*Ridge* (:func:`fit_ridge`) needs principal components z, so that z^T z is diagonal: W = (z^T z + 1/C)^-1 z^T (y - m),
with m the mean of y. The output for row i of a fit without row i follows from the fit to all rows: y_i - (y_i - f_i) /
(1 - h_i), h_i = 1/n + z_i (z^T z + 1/C)^-1 z_i^T. Outputs of classes and labels become logits by a scale (classes), or
a scale and an offset for each label, fitted to these left-out outputs. One decomposition serves all outputs and
penalties; RidgeCV would decompose the rows again (.49 s, not .03 s, for 1,272 rows and 4 penalties), without weights of
labels. Weights s of rows turn z^T z into z^T S z, which is not diagonal, and h_i into s_i x_i (X^T S X + P)^-1 x_i^T,
with X = [z, 1] and P = 1/C for all columns but the last.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.task import TaskName, task_of

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]
TOLERANCE = 1e-8
_STEPS, _SINGLE_STEPS, _INNER_STEPS, _SHORTER = 150, 40, 2000, 30
_UPHILL = 0.1  # of the slope at the start of a step, at its end
_NEVER = -20.0  # the logit of a class that the training split does not have
_LARGEST_SCALE = 20.0  # of outputs about 1 apart: no probability is beyond 1 in 10^8


@dataclass(slots=True, eq=False)
class Path:
    """Fits to the same rows and targets with one penalty after the other; each starts from the last solution."""

    at: Floats | None = None


def fit_linear(
    rows: Any,
    targets: Floats,
    inverse_penalty: float,
    *,
    loss: Literal["softmax", "logistic", "squared"],
    weights: Floats | None = None,
    path: Path | None = None,
) -> tuple[Floats, Floats]:
    """W and b of a linear model with an L2 penalty on W.

    Args:
        rows: an array, or a scipy sparse array.
        targets: values, or 1 where a row has the class or label, else 0; then every column has both.
        inverse_penalty: C.
        loss: ``softmax`` if the columns are classes that exclude each other; their biases then sum to 0.
        weights: s; equal in all columns for a softmax.

    Shapes:
        rows: (n, r). targets, weights: (n, K). returns: (r, K), (K,).
    """
    linear = _Linear(rows, targets, inverse_penalty, loss, weights)
    at = linear.start() if path is None or path.at is None else path.at.copy()
    outputs, gradient = linear.slope(at)
    precise = False
    for number in range(_STEPS):
        precise = precise or number >= _SINGLE_STEPS
        product, diagonal = linear.curvature(outputs, np.float64 if precise else np.float32)
        enough = linear.forcing(gradient, diagonal)
        step = _conjugate_gradients(product, -gradient, diagonal, enough=enough)
        slope = float((gradient * step).sum())
        if -slope <= linear.smallest:
            if precise:
                at += step
                break
            precise = True
            continue
        length = 1.0
        for _ in range(_SHORTER):
            ahead = at + length * step
            outputs, gradient = linear.slope(ahead)
            there = float((gradient * step).sum())
            if there <= -_UPHILL * slope:
                break
            length *= min(max(slope / (slope - there), 0.1), 0.5)
        at = ahead
    else:
        what = f"a {loss} regression of {targets.shape[1]} outputs on {rows.shape[0]:,} rows did not converge"
        warnings.warn(f"{what} in {_STEPS} steps of Newton's method", RuntimeWarning, stacklevel=2)
    if path is not None:
        path.at = at
    bias = at[-1] - at[-1].mean() if loss == "softmax" else at[-1]
    return at[:-1], bias


class _Linear:
    """The objective of a linear model; W and b are the rows of one array (r + 1, K), b the last."""

    def __init__(self, rows: Any, targets: Floats, c: float, loss: str, weights: Floats | None) -> None:
        self.rows, self.targets, self.c, self.loss = rows, targets, c, loss
        dense = isinstance(rows, np.ndarray)
        self.turned = rows.T if dense else rows.T.tocsr()
        self.squares = self.turned * self.turned if dense else self.turned.multiply(self.turned).tocsr()
        self.single = rows.astype(np.float32), self.turned.astype(np.float32)
        self.each = np.ones((len(targets), 1)) if weights is None else weights
        self.smallest = TOLERANCE**2 * c * float(np.broadcast_to(self.each, targets.shape).sum())
        self._first: float | None = None

    def start(self) -> Floats:
        """No weights, and biases that give the frequencies of classes, or the mean."""
        at = np.zeros((self.rows.shape[1] + 1, self.targets.shape[1]))
        mean = np.average(self.targets, axis=0, weights=np.broadcast_to(self.each, self.targets.shape))
        at[-1] = {"softmax": np.log, "logistic": scipy.special.logit, "squared": np.array}[self.loss](mean)
        return at

    def slope(self, at: Floats) -> tuple[Floats, Floats]:
        """Probabilities or values (n, K), and the gradient (r + 1, K)."""
        found: Floats = self.rows @ at[:-1] + at[-1]
        if self.loss != "squared":
            found = scipy.special.softmax(found, axis=1) if self.loss == "softmax" else scipy.special.expit(found)
        gap = self.each * (found - self.targets)
        return found, np.concatenate([self.c * (self.turned @ gap) + at[:-1], self.c * gap.sum(axis=0, keepdims=True)])

    def curvature(self, p: Floats, kind: type[np.floating[Any]]) -> tuple[Callable[[Floats], Floats], Floats]:
        """Products with H, in single or double precision, and its diagonal."""
        rows, turned = self.single if kind is np.float32 else (self.rows, self.turned)
        spread = self.each * (np.ones_like(p) if self.loss == "squared" else p * (1 - p))
        each, q = (self.each * p if self.loss == "softmax" else spread).astype(kind), p.astype(kind)

        def product(v: Floats) -> Floats:
            change = rows @ v[:-1].astype(kind) + v[-1].astype(kind)
            if self.loss == "softmax":
                change -= (q * change).sum(axis=1, keepdims=True)
            change *= each
            return np.concatenate([self.c * (turned @ change) + v[:-1], self.c * change.sum(axis=0, keepdims=True)])

        diagonal = np.concatenate([1 + self.c * (self.squares @ spread), self.c * spread.sum(axis=0, keepdims=True)])
        return product, np.maximum(diagonal, np.finfo(np.float64).tiny)

    def forcing(self, gradient: Floats, diagonal: Floats) -> float:
        """The squared residual at which a step is solved well enough: smaller near the minimum, but not needlessly."""
        size = float((gradient * gradient / diagonal).sum())
        self._first = max(size, self.smallest) if self._first is None else self._first
        return max(size * min(0.01, size / self._first), 0.01 * self.smallest)


def _conjugate_gradients(
    product: Callable[[Floats], Floats], wanted: Floats, diagonal: Floats, *, enough: float
) -> Floats:
    """The step d with H d = wanted, until the squared residual, in the units of the diagonal, is small enough."""
    found, rest = np.zeros_like(wanted), wanted.copy()
    scaled = rest / diagonal
    direction, size = scaled, float((rest * scaled).sum())
    for _ in range(_INNER_STEPS):
        if size <= enough:
            break
        image = product(direction)
        bend = float((direction * image).sum())
        if not bend > 0:  # rounding
            break
        length = size / bend
        found += length * direction
        rest -= length * image
        scaled = rest / diagonal
        before, size = size, float((rest * scaled).sum())
        direction = scaled + (size / before) * direction
    return found


def minimise_in_box(objective: Objective, start: Sequence[float], bounds: Sequence[tuple[float, float]]) -> Floats:
    """The minimum of a smooth function of a few numbers, each between two bounds.

    Args:
        objective: the value, of a mean over rows, and its exact gradient.
    """
    options = {"ftol": 0.0, "gtol": 1e-11, "maxiter": 1000}
    found = scipy.optimize.minimize(
        objective, np.array(start, np.float64), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return np.asarray(found.x, np.float64)


def softmax_loss(parts: Floats, y: Floats, weights: Floats | None) -> Objective:
    """The mean cross entropy of logits sum over i of a_i parts_i, as a function of a.

    Shapes:
        parts: (k, n, K). y: (n, K) 0 or 1. weights: (n,), of rows.
    """

    def loss(a: Floats) -> tuple[float, Floats]:
        logits = np.tensordot(a, parts, 1)
        total = scipy.special.logsumexp(logits, axis=1, keepdims=True)
        gap = np.exp(logits - total) - y
        value = total[:, 0] - (y * logits).sum(axis=1)
        return float(np.average(value, weights=weights)), np.average((parts * gap).sum(axis=2), axis=1, weights=weights)

    return loss


def fit_outputs(
    rows: Any,
    targets: NDArray[Any],
    task: TaskName,
    outputs: int,
    *,
    loss: Literal["squared", "logistic"],
    inverse_penalty: float,
    weights: Floats | None = None,
    path: Path | None = None,
) -> tuple[Floats, Floats]:
    """W and b, of logits, or of values for regression, which always has the squared loss.

    A class that the targets lack, and a label that all or none of them have, get a constant output.

    Args:
        rows: principal components; for the logistic loss any array, also a sparse one.
        targets: classes (n,), labels as 0 and 1 (n, labels), or values (n,).
        inverse_penalty: C.
        weights: how much rows (n,), or pairs of a row and a label (n, labels), count; not for regression.

    Shapes:
        rows: (n, r). returns: (r, outputs), (outputs,).
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
        return weight, bias
    kind: Literal["softmax", "logistic"] = "logistic" if several else "softmax"
    if len(there) == 2 and not several:  # the first has logit 0
        bias[there[0]] = 0.0
        there, own, kind = there[1:], None if own is None else own[:, 1:], "logistic"
    weight[:, there], bias[there] = fit_linear(rows, y[:, there], inverse_penalty, loss=kind, weights=own, path=path)
    return weight, bias


def fit_balanced(
    rows: Any,
    targets: NDArray[Any],
    task: TaskName,
    outputs: int,
    *,
    inverse_penalty: float,
    path: Path | None = None,
) -> tuple[Floats, Floats]:
    """A logistic :func:`fit_outputs` in which all classes count the same, brought to their frequencies.

    The bias is not penalised. Where classes are of different sizes, a strong penalty leaves it alone to decide, and the
    largest class is predicted. Here the weights come from a fit with balanced classes, and one scale and the biases
    from the likelihood of outputs without each row's own part. That part follows from a step of Newton's method with
    the diagonal of the Hessian, which is near the whole where the penalty is strong.
    """
    y = task_of(task).indicators(targets, outputs)
    each = task_of(task).balanced_weights(targets, outputs)[targets.astype(np.int64)]
    options: dict[str, Any] = {"inverse_penalty": inverse_penalty, "loss": "logistic", "weights": each, "path": path}
    weight, bias = fit_outputs(rows, targets, task, outputs, **options)
    p = scipy.special.softmax(rows @ weight + bias, axis=1)
    own = inverse_penalty * each[:, None]
    squares = rows * rows if isinstance(rows, np.ndarray) else rows.multiply(rows).tocsr()
    near = squares @ (1 / (1 + squares.T @ (own * p * (1 - p))))
    left_out = rows @ weight + own * near * (p - y) / np.maximum(1 - own * near * p * (1 - p), 1e-6)
    there = np.flatnonzero(y.any(axis=0))
    if len(there) == 2:  # the first has logit 0
        left_out[:, there[0]] = 0
    left_out, y, unit = left_out[:, there], y[:, there], max(float(np.abs(left_out).max()), 1e-12)

    def loss(numbers: Floats) -> tuple[float, Floats]:
        logits = numbers[0] * left_out / unit + numbers[1:]
        total = scipy.special.logsumexp(logits, axis=1, keepdims=True)
        gap = np.exp(logits - total) - y
        slope = np.concatenate([[(gap * left_out).sum() / unit], gap.sum(axis=0)]) + 2e-3 * numbers
        value = float((total[:, 0] - (y * logits).sum(axis=1)).sum()) + 1e-3 * float(numbers @ numbers)
        return value / len(y), slope / len(y)

    start = [1.0, *np.log(y.mean(axis=0))]
    found = minimise_in_box(loss, start, [(0.0, 100.0), *[(-50.0, 50.0)] * len(there)])
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
        loss = softmax_loss(left_out[None], y, None if weights is None else weights[:, 0])
        scale = minimise_in_box(loss, [1.0], [(0.1, _LARGEST_SCALE)])
        return weight * scale, bias * scale
    each = np.ones_like(y) if weights is None else weights
    pairs = [fit_label_scale(left_out[:, k], y[:, k], each[:, k]) for k in range(y.shape[1])]
    scales, offsets = (np.array(part) for part in zip(*pairs, strict=True))
    return weight * scales, bias * scales + offsets


def fit_label_scale(scores: Floats, labels: NDArray[Any], weights: Floats) -> tuple[float, float]:
    """Scale and offset with which scores of subgraphs are likely as logits of a label (Platt, 1999).

    A label that all or none of them have gets a constant. Shapes: scores, labels, weights: (n,).
    """
    y = np.asarray(labels, np.float64)
    if y.min() == y.max():
        return 0.0, _NEVER if y.max() == 0 else -_NEVER
    unit = max(float(np.abs(scores).max()), 1e-12)

    def loss(pair: Floats) -> tuple[float, Floats]:
        logits = pair[0] * scores / unit + pair[1]
        gap = weights * (scipy.special.expit(logits) - y)
        # A weak penalty: where a scale separates the labels, the largest one would be the likeliest.
        value = float((weights * (np.logaddexp(0, logits) - y * logits)).sum()) + 1e-3 * float(pair @ pair)
        slope = np.array([gap @ scores / unit, gap.sum()]) + 2e-3 * pair
        return value / weights.sum(), slope / weights.sum()

    start = [1.0, float(scipy.special.logit(np.average(y, weights=weights)))]
    found = minimise_in_box(loss, start, [(0, 50), (-50, 50)])
    return float(found[0] / unit), float(found[1])
