"""Linear models with an L2 penalty by Newton's method, so exactly that rounding does not show.

A strictly convex problem has one answer. A solver that stops early gives a different one for each order in which sums
are added, and so for each processor, number of threads and batch size. C is the weight of the data beside the penalty.
For rows x_i with outputs f_i = x_i W + b, :func:`fit_linear` minimises

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
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Precision = type[np.floating[Any]]
TOLERANCE = 1e-8
STEPS, SHORTER = 150, 30
"""The most steps of Newton's method, and the most times that one of them is shortened."""
ROWS_AT_A_TIME = 8192
"""Rows that are copied, or whose products and kernels are in memory at the same time."""
_SINGLE_STEPS, _INNER_STEPS = 40, 2000
_LEADING, _ACCURATE = 256, 1e-3  # eigenvalues that precondition: how many, and from which part of the largest on
_UPHILL = 0.1  # of the slope at the start of a step, at its end


def row_blocks(count: int) -> list[slice]:
    """Consecutive blocks of :data:`ROWS_AT_A_TIME` rows."""
    return [slice(begin, min(begin + ROWS_AT_A_TIME, count)) for begin in range(0, count, ROWS_AT_A_TIME)]


@dataclass(slots=True, eq=False)
class Path:
    """Fits to the same rows and targets with one penalty after the other; each starts from the last solution.

    ``at`` has W and b of the last one, and ``duals`` (n, K) a of its W = X^T a: the weighted gaps between targets and
    outputs, times C.
    """

    at: Floats | None = None
    duals: Floats | None = None

    def duals_of(self, weight: Floats, rows: int) -> Floats:
        """The duals (rows, outputs) of weights that are the last W times a scale; columns of 0 were not fitted."""
        found, fitted = np.zeros((rows, weight.shape[1])), weight.any(axis=0)
        if self.at is not None and self.duals is not None and fitted.any():
            found[:, fitted] = self.duals * (np.linalg.norm(weight) / np.linalg.norm(self.at[:-1]))
        return found


@dataclass(frozen=True, eq=False)
class Gram:
    """Rows that are known by their inner products alone, ``values`` (n, n); weights are those of a in W = X^T a."""

    values: Floats

    @cached_property
    def single(self) -> NDArray[np.float32]:
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
    for number in range(STEPS):
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
        for _ in range(SHORTER):
            ahead = at + length * step
            outputs, gradient = linear.slope(ahead)
            there = float((gradient * lifted).sum())
            if there <= -_UPHILL * slope:
                break
            length *= min(max(slope / (slope - there), 0.1), 0.5)
        at = ahead
    else:
        what = f"a {loss} regression of {targets.shape[1]} outputs on {rows.shape[0]:,} rows did not converge"
        warnings.warn(f"{what} in {STEPS} steps of Newton's method", RuntimeWarning, stacklevel=2)
    if path is not None:
        path.at, path.duals = at, linear.c * linear.each * (targets - linear.slope(at)[0])
    return at[:-1], at[-1] - at[-1].mean() if loss == "softmax" else at[-1]


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
        single, self.squares = self.rows.astype(np.float32), None
        self.turned: Any = self.rows.T
        if isinstance(self.rows, np.ndarray):
            self.single = single, single.T
            return
        self.turned = self.turned.tocsr()
        self.squares = self.turned.multiply(self.turned).tocsr()
        self.single = single, self.turned.astype(np.float32)

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
            found = softmax(found)[0] if self.loss == "softmax" else scipy.special.expit(found)
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

        if self.squares is not None:  # sums of squared rows (r, K), by the spread of each
            bent = np.asarray(self.squares @ spread)
        else:
            bent = np.zeros((len(self.turned), spread.shape[1]))
            for block in row_blocks(len(spread)):
                bent += np.square(self.turned[:, block]) @ spread[block]
        diagonal = np.concatenate([1 + self.c * bent, self.c * spread.sum(axis=0, keepdims=True)])
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

        return self._solved(product, gradient, np.maximum(self.c * spread.sum(axis=0), np.finfo(np.float64).tiny), kind)

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


def softmax(logits: Floats) -> tuple[Floats, Floats]:
    """Probabilities (n, K), and the logarithm of the sum of exponentials (n, 1)."""
    largest = logits.max(axis=1, keepdims=True)
    found = np.exp(logits - largest)
    total = found.sum(axis=1, keepdims=True)
    found /= total
    return found, np.log(total) + largest
