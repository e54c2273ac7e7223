"""Linear models with an L2 penalty: logistic and ridge regression, solved so exactly that rounding does not show.

A strictly convex problem has one answer. A solver that stops early gives a different one for each order in which sums
are added, and so for each processor, number of threads and batch size. C is the weight of the data beside the penalty.

*Newton's method* (:func:`fit_linear`) is for rows x_i with outputs f_i = x_i W + b, and minimises

    C sum over i of s_i loss(f_i, y_i) + |W|^2 / 2

A step d solves H d = -g by conjugate gradients, with the diagonal of H as preconditioner: only products with the rows
are needed, which may be sparse. A step is shortened while the slope at its end is uphill. It stops when -g d <=
:data:`TOLERANCE`^2 C sum of s_i: with p the predicted probabilities, the error of outputs, in units of sqrt(p (1 - p)),
is then 1e-8 in the root mean square. Losses are softmax for one class of several, and one against the rest for several
labels. Products with H are in single precision until the last steps; gradients are in double precision always. A fit
may start from that of another penalty (:class:`Path`).

Rows may be known by their inner products K alone (:class:`Gram`): W = X^T a, outputs are K a + b, and a is fitted.
Conjugate gradients are then preconditioned by K, which leaves one product with K for each of their steps, and by the
leading eigenvectors of K. With B the second derivative of the loss, they solve (1 + C B K) d = -(a + C gap).

*Ridge* (:func:`fit_ridge`) needs one Cholesky decomposition: of X^T S X + P with X = [rows, 1], S the weights of rows
and P = 1/C for all columns but the last; or of K + (C S)^-1 for rows that are known by K. The output for row i of a fit
without row i follows from the fit to all rows: y_i - (y_i - f_i) / (1 - h_i), h_i = s_i x_i (X^T S X + P)^-1 x_i^T; in
terms of K it is y_i - a_i / Q_ii, with Q = G - G 1 1^T G / 1^T G 1 and G = (K + (C S)^-1)^-1. Outputs of classes and
labels become logits by a scale (classes), or a scale and an offset for each label, fitted to these left-out outputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.task import TaskName, task_of

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]
Precision = type[np.floating[Any]]
TOLERANCE = 1e-8
_STEPS, _SINGLE_STEPS, _INNER_STEPS, _SHORTER = 150, 40, 2000, 30
_LEADING, _ACCURATE = 256, 1e-3  # eigenvalues that precondition: how many, and from which part of the largest on
_UPHILL = 0.1  # of the slope at the start of a step, at its end
_NEVER = -20.0  # the logit of a class that the training split does not have
_LARGEST_SCALE = 20.0  # of outputs about 1 apart: no probability is beyond 1 in 10^8


@dataclass(slots=True, eq=False)
class Path:
    """Fits to the same rows and targets with one penalty after the other; each starts from the last solution."""

    at: Floats | None = None


@dataclass(frozen=True, eq=False)
class Gram:
    """Rows that are known by their inner products alone, ``values`` (n, n); weights are those of a in W = X^T a."""

    values: Floats

    @cached_property
    def single(self) -> NDArray[np.float32]:
        """The inner products in single precision."""
        return self.values.astype(np.float32)

    @cached_property
    def leading(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The largest eigenvalues (r,) and their vectors (n, r), roughly, by three steps of subspace iteration."""
        draws = np.random.default_rng(0).standard_normal((len(self.values), min(len(self.values), _LEADING)))
        found = self.single @ draws.astype(np.float32)
        for _ in range(2):
            found = self.single @ np.linalg.qr(found)[0]
        basis = np.linalg.qr(found)[0]
        values, turn = np.linalg.eigh(basis.T @ (self.single @ basis))
        kept = values > _ACCURATE * values[-1]
        return values[kept], basis @ turn[:, kept]

    @property
    def shape(self) -> tuple[int, int]:
        """As many columns as rows."""
        return len(self.values), len(self.values)

    def __matmul__(self, weights: Floats) -> Floats:
        return self.values @ weights


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
        rows: an array, a scipy sparse array, or their inner products.
        targets: values, or 1 where a row has the class or label, else 0; then every column has both.
        inverse_penalty: C.
        loss: ``softmax`` if the columns are classes that exclude each other; their biases then sum to 0.
        weights: s; equal in all columns for a softmax.

    Shapes:
        rows: (n, r). targets, weights: (n, K). returns: (r, K), (K,).
    """
    linear = (_OfGram if isinstance(rows, Gram) else _Linear)(rows, targets, inverse_penalty, loss, weights)
    at = linear.start() if path is None or path.at is None else path.at.copy()
    outputs, gradient = linear.slope(at)
    precise = False
    for number in range(_STEPS):
        precise = precise or number >= _SINGLE_STEPS
        step = linear.step(outputs, gradient, np.float64 if precise else np.float32)
        lifted = linear.lift(step, np.float64)
        slope = float((gradient * lifted).sum())
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
            there = float((gradient * lifted).sum())
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
        self.each = np.ones((len(targets), 1)) if weights is None else weights
        self.smallest = TOLERANCE**2 * c * float(np.broadcast_to(self.each, targets.shape).sum())
        self._first: float | None = None
        self.plain = False
        self._prepare()

    def _prepare(self) -> None:
        dense = isinstance(self.rows, np.ndarray)
        self.turned = self.rows.T if dense else self.rows.T.tocsr()
        self.squares = self.turned * self.turned if dense else self.turned.multiply(self.turned).tocsr()
        self.single = self.rows.astype(np.float32), self.turned.astype(np.float32)

    def start(self) -> Floats:
        """No weights, and biases that give the frequencies of classes, or the mean."""
        at = np.zeros((self.rows.shape[1] + 1, self.targets.shape[1]))
        mean = np.average(self.targets, axis=0, weights=np.broadcast_to(self.each, self.targets.shape))
        at[-1] = {"softmax": np.log, "logistic": scipy.special.logit, "squared": np.array}[self.loss](mean)
        return at

    def slope(self, at: Floats) -> tuple[Floats, Floats]:
        """Probabilities or values (n, K), and the gradient (r + 1, K); of a Gram matrix, K^-1 times the gradient."""
        found: Floats = self.rows @ at[:-1] + at[-1]
        if self.loss != "squared":
            found = _softmax(found)[0] if self.loss == "softmax" else scipy.special.expit(found)
        gap = self.each * (found - self.targets)
        return found, np.concatenate([self.c * self._back(gap) + at[:-1], self.c * gap.sum(axis=0, keepdims=True)])

    def _back(self, gap: Floats) -> Floats:
        return np.asarray(self.turned @ gap)

    def lift(self, vector: Floats, kind: Precision) -> Floats:
        """What the product with a gradient is taken of: of a Gram matrix, K times the vector."""
        return vector

    def _bend(self, p: Floats, kind: Precision) -> tuple[Callable[[Floats], Floats], Floats]:
        """The second derivative of the loss, as a function of a change of outputs (n, K), and its diagonal."""
        spread = self.each * (np.ones_like(p) if self.loss == "squared" else p * (1 - p))
        each, q = (self.each * p if self.loss == "softmax" else spread).astype(kind), p.astype(kind)

        def bend(change: Floats) -> Floats:
            if self.loss == "softmax":
                change -= (q * change).sum(axis=1, keepdims=True)
            change *= each
            return change

        return bend, spread

    def step(self, p: Floats, gradient: Floats, kind: Precision) -> Floats:
        """A step of Newton's method, whose products with H are in single or double precision."""
        rows, turned = self.single if kind is np.float32 else (self.rows, self.turned)
        bend, spread = self._bend(p, kind)

        def product(v: Floats, _: Floats) -> Floats:
            change = bend(rows @ v[:-1] + v[-1])
            return np.concatenate([self.c * (turned @ change) + v[:-1], self.c * change.sum(axis=0, keepdims=True)])

        diagonal = np.concatenate([1 + self.c * (self.squares @ spread), self.c * spread.sum(axis=0, keepdims=True)])
        diagonal = np.maximum(diagonal, np.finfo(np.float64).tiny)
        return self._solved(product, gradient, diagonal, kind)

    def _solved(
        self, product: Callable[[Floats, Floats], Floats], gradient: Floats, diagonal: Floats, kind: Precision
    ) -> Floats:
        """The step d with H d = -gradient, by conjugate gradients.

        The squared residual at which it is solved well enough is smaller near the minimum, but not needlessly.
        """
        diagonal, rest = (cast(Floats, array.astype(kind)) for array in (diagonal, -gradient))
        precondition = self._preconditioner(diagonal, kind)
        found, (direction, lifted) = np.zeros_like(rest), precondition(rest)
        size = float((rest * lifted).sum())
        if not size > 0 and not self.plain:  # rounding, of a matrix that is nearly singular
            self.plain = True
            return self._solved(product, gradient, diagonal, kind)
        self._first = max(size, self.smallest) if self._first is None else self._first
        enough = max(size * min(0.01, size / self._first), 0.01 * self.smallest)
        for _ in range(_INNER_STEPS):
            if size <= enough:
                break
            image = product(direction, lifted)
            bend = float((lifted * image).sum())
            if not bend > 0:  # rounding
                break
            length = size / bend
            found += length * direction
            rest -= length * image
            scaled, own = precondition(rest)
            before, size = size, float((rest * own).sum())
            direction *= size / before
            direction += scaled
            lifted = direction if own is scaled else own + (size / before) * lifted
        return found.astype(np.float64)

    def _preconditioner(self, diagonal: Floats, kind: Precision) -> Callable[[Floats], tuple[Floats, Floats]]:
        """A function that gives a vector that is about H^-1 times another, and the same lifted."""

        def precondition(rest: Floats) -> tuple[Floats, Floats]:
            scaled = rest / diagonal
            return scaled, scaled

        return precondition


class _OfGram(_Linear):
    """The objective in terms of inner products of rows; a and b are the rows of one array (n + 1, K)."""

    def _prepare(self) -> None:
        self._lifted: dict[Precision, Floats] = {}

    def _back(self, gap: Floats) -> Floats:
        return gap

    def lift(self, vector: Floats, kind: Precision) -> Floats:
        matrix = self.rows.single if kind is np.float32 else self.rows.values
        return np.concatenate([matrix @ vector[:-1].astype(kind, copy=False), vector[-1:]])

    def step(self, p: Floats, gradient: Floats, kind: Precision) -> Floats:
        bend, spread = self._bend(p, kind)

        def product(v: Floats, lifted: Floats) -> Floats:
            change = bend(lifted[:-1] + v[-1])
            return np.concatenate([self.c * change + v[:-1], self.c * change.sum(axis=0, keepdims=True)])

        diagonal = np.maximum(self.c * spread.sum(axis=0), np.finfo(np.float64).tiny)
        return self._solved(product, gradient, diagonal, kind)

    def _preconditioner(self, diagonal: Floats, kind: Precision) -> Callable[[Floats], tuple[Floats, Floats]]:
        """(K^-1 - U E U^T) K r, with E = C w / (1 + C w l) for eigenvalues l of K and w the mean spread of an output.

        As E < 1 / l, this is positive definite for any U with U^T K U = diag(l), which rounding changes a little.
        """
        values, vectors = (array.astype(kind) for array in self.rows.leading)
        if kind not in self._lifted:
            self._lifted[kind] = self.lift(np.concatenate([vectors, vectors[:1]]), kind)[:-1]
        lifted, mean = self._lifted[kind], diagonal / len(self.targets)
        inner = np.minimum(mean / (1 + mean * values[:, None]), 0.99 / values[:, None]) * (not self.plain)

        def precondition(rest: Floats) -> tuple[Floats, Floats]:
            own = self.lift(rest, kind)
            part = inner * (vectors.T @ own[:-1])
            last = rest[-1:] / diagonal
            return np.concatenate([rest[:-1] - vectors @ part, last]), np.concatenate([own[:-1] - lifted @ part, last])

        return precondition


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
        chance, total = _softmax(logits)
        gap = chance - y
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
        rows: an array, or their inner products; for the logistic loss also a sparse array.
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
    from the likelihood of outputs without each row's own part. That part follows from a step of Newton's method
    (:func:`_nearness`).
    """
    y = task_of(task).indicators(targets, outputs)
    each = task_of(task).balanced_weights(targets, outputs)[targets.astype(np.int64)]
    options: dict[str, Any] = {"inverse_penalty": inverse_penalty, "loss": "logistic", "weights": each, "path": path}
    weight, bias = fit_outputs(rows, targets, task, outputs, **options)
    p, _ = _softmax(rows @ weight + bias)
    own = inverse_penalty * each[:, None]
    near = _nearness(rows, own * p * (1 - p))
    left_out = rows @ weight + own * near * (p - y) / np.maximum(1 - own * near * p * (1 - p), 1e-6)
    there = np.flatnonzero(y.any(axis=0))
    if len(there) == 2:  # the first has logit 0
        left_out[:, there[0]] = 0
    scale, bias[there] = _scale_and_biases(left_out[:, there], y[:, there])
    return weight * scale, bias


def _nearness(rows: Any, spread: Floats) -> Floats:
    """x_i H^-1 x_i^T of each row (n, K), or (n, 1), with H = 1 + X^T S X and S the ``spread`` (n, K) of an output.

    Of rows, by the diagonal of H, which is near the whole where the penalty is strong; of a Gram matrix, by the mean
    spread of all outputs.
    """
    if not isinstance(rows, Gram):
        squares = rows * rows if isinstance(rows, np.ndarray) else rows.multiply(rows).tocsr()
        return np.asarray(squares @ (1 / (1 + squares.T @ spread)))
    root = np.sqrt(spread.mean(axis=1))
    scaled = rows.values * root[:, None]
    matrix = scaled * root
    matrix[np.diag_indices_from(matrix)] += 1
    factor = scipy.linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    turned = scipy.linalg.solve_triangular(factor, scaled, lower=True, overwrite_b=True, check_finite=False)
    found: Floats = rows.values.diagonal() - np.einsum("ji,ji->i", turned, turned)
    return found[:, None]


def _scale_and_biases(scores: Floats, y: Floats) -> tuple[float, Floats]:
    """The scale, from 0 on, and the biases with which scores (n, K) are likely as logits, by Newton's method.

    A weak penalty decides where a scale separates the classes.
    """
    unit = max(float(np.abs(scores).max()), 1e-12)
    parts = scores / unit
    at = np.array([1.0, *np.log(y.mean(axis=0))])

    def slope(at: Floats) -> tuple[float, Floats, Floats]:
        logits = at[0] * parts + at[1:]
        p, total = _softmax(logits)
        gap = p - y
        value = float((total[:, 0] - (y * logits).sum(axis=1)).sum()) + 1e-3 * float(at @ at)
        return value, np.concatenate([[(gap * parts).sum()], gap.sum(axis=0)]) + 2e-3 * at, p

    value, gradient, p = slope(at)
    for _ in range(_STEPS):
        spread = p * (parts - (p * parts).sum(axis=1, keepdims=True))
        bend = np.diag(np.concatenate([[(spread * parts).sum()], p.sum(axis=0)]) + 2e-3)
        bend[1:, 1:] -= p.T @ p
        bend[0, 1:] = bend[1:, 0] = spread.sum(axis=0)
        free = np.ones(len(at), bool)
        free[0] = at[0] > 0 or gradient[0] < 0
        step = np.zeros(len(at))
        step[free] = -np.linalg.solve(bend[np.ix_(free, free)], gradient[free])
        if -float(gradient @ step) <= TOLERANCE**2 * len(y):
            break
        for length in 0.5 ** np.arange(_SHORTER):
            ahead = at + length * step
            ahead[0] = max(ahead[0], 0.0)
            found = slope(ahead)
            if found[0] < value:
                break
        else:
            break  # rounding
        at, (value, gradient, p) = ahead, found
    return float(at[0] / unit), at[1:]


def _softmax(logits: Floats) -> tuple[Floats, Floats]:
    """Probabilities (n, K), and the logarithm of the sum of exponentials (n, 1)."""
    largest = logits.max(axis=1, keepdims=True)
    found = np.exp(logits - largest)
    total = found.sum(axis=1, keepdims=True)
    found /= total
    return found, np.log(total) + largest


def fit_ridge(
    rows: Floats | Gram, targets: Floats, inverse_penalty: float, *, weights: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """W, b, and the output for each row of a fit without it.

    Shapes:
        rows: (n, r). targets, weights: (n, K). returns: (r, K), (K,), (n, K).
    """
    solve = _kernel_ridge if isinstance(rows, Gram) else _primal_ridge
    each = np.ones((len(targets), 1)) if weights is None else weights
    columns, places = np.unique(each, axis=1, return_inverse=True)
    places = np.broadcast_to(places.reshape(-1), targets.shape[1:])
    weight, bias = np.zeros((rows.shape[1], targets.shape[1])), np.zeros(targets.shape[1])
    left_out = np.zeros(targets.shape)
    for number, column in enumerate(columns.T):  # one decomposition serves all columns of the same weights
        own = places == number
        weight[:, own], bias[own], left_out[:, own] = solve(rows, targets[:, own], inverse_penalty, column)
    return weight, bias, left_out


def _primal_ridge(rows: Any, targets: Floats, c: float, weights: Floats) -> tuple[Floats, Floats, Floats]:
    wide = np.hstack([rows, np.ones((len(rows), 1))])
    scaled = wide * weights[:, None]
    matrix = scaled.T @ wide
    matrix[np.arange(rows.shape[1]), np.arange(rows.shape[1])] += 1 / c
    factor = scipy.linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    found = scipy.linalg.cho_solve((factor, True), scaled.T @ targets)
    turned = scipy.linalg.solve_triangular(factor, wide.T, lower=True, check_finite=False)
    leverage = weights * np.einsum("ji,ji->i", turned, turned)
    left_out = targets - (targets - wide @ found) / np.maximum(1 - leverage, 1e-6)[:, None]
    return found[:-1], found[-1], left_out


def _kernel_ridge(rows: Any, targets: Floats, c: float, weights: Floats) -> tuple[Floats, Floats, Floats]:
    matrix = rows.values.copy()
    matrix[np.diag_indices_from(matrix)] += 1 / (c * np.maximum(weights, 1e-12 * weights.max()))
    factor = scipy.linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    solved = scipy.linalg.cho_solve((factor, True), np.hstack([targets, np.ones((len(targets), 1))]))
    inverse, _ = scipy.linalg.lapack.dtrtri(factor, lower=1, overwrite_c=1)
    of_ones = solved[:, -1]
    bias = (of_ones @ targets) / of_ones.sum()
    found = solved[:, :-1] - of_ones[:, None] * bias
    own = np.einsum("ji,ji->i", inverse, inverse) - of_ones**2 / of_ones.sum()
    # 1 - h_i is own / (C s_i).
    return found, bias, targets - found / np.maximum(own, 1e-6 * c * weights)[:, None]


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
