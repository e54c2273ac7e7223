"""Minima of smooth convex functions, so exact that rounding does not show.

A strictly convex problem has one answer. A solver that stops early gives another one for each order in which sums are
added, and so for each processor, number of threads and size of batch.

*Linear models* (:func:`fit_linear`) have rows x_i, outputs f_i = x_i W + b, and minimise

    C sum over i of s_i loss(f_i, y_i) + |W|^2 / 2

by Newton's method. A step d solves H d = -g by conjugate gradients, with the diagonal of H as preconditioner: only
products with the rows are needed, which may be sparse. A step is shortened while the slope at its end is uphill. The
rule to stop is -g d <= :data:`TOLERANCE`^2 C sum of s_i: with p the predicted probabilities, the error of outputs, in
units of sqrt(p (1 - p)), is then 1e-8 in the root mean square.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Loss = Literal["softmax", "logistic", "squared"]
TOLERANCE = 1e-8
_STEPS, _INNER_STEPS, _SHORTER = 100, 2000, 30
_UPHILL = 0.1  # of the slope at the start of a step, at its end


def fit_linear(
    rows: Any, targets: Floats, inverse_penalty: float, *, loss: Loss, weights: Floats | None = None
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
    at = linear.start()
    outputs, gradient = linear.slope(at)
    for _ in range(_STEPS):
        product, diagonal = linear.curvature(outputs)
        enough = linear.forcing(gradient, diagonal)
        step = _conjugate_gradients(product, -gradient, diagonal, enough=enough)
        slope = float((gradient * step).sum())
        if -slope <= linear.smallest:
            at += step
            break
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
    bias = at[-1] - at[-1].mean() if loss == "softmax" else at[-1]
    return at[:-1], bias


class _Linear:
    """The objective of a linear model; W and b are the rows of one array (r + 1, K), b the last."""

    def __init__(self, rows: Any, targets: Floats, c: float, loss: Loss, weights: Floats | None) -> None:
        self.rows, self.targets, self.c, self.loss = rows, targets, c, loss
        dense = isinstance(rows, np.ndarray)
        self.turned = rows.T if dense else rows.T.tocsr()
        self.squares = self.turned * self.turned if dense else self.turned.multiply(self.turned).tocsr()
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
        return found, self._back(self.each * (found - self.targets), at)

    def _back(self, gap: Floats, at: Floats) -> Floats:
        """From derivatives by outputs (n, K) to those by W and b, with the penalty."""
        return np.concatenate([self.c * (self.turned @ gap) + at[:-1], self.c * gap.sum(axis=0, keepdims=True)])

    def curvature(self, p: Floats) -> tuple[Callable[[Floats], Floats], Floats]:
        """Products with H, and its diagonal."""
        spread = self.each * (np.ones_like(p) if self.loss == "squared" else p * (1 - p))

        def product(v: Floats) -> Floats:
            change = self.rows @ v[:-1] + v[-1]
            if self.loss == "softmax":
                return self._back(self.each * p * (change - (p * change).sum(axis=1, keepdims=True)), v)
            return self._back(spread * change, v)

        diagonal = np.concatenate([1 + self.c * (self.squares @ spread), self.c * spread.sum(axis=0, keepdims=True)])
        return product, np.maximum(diagonal, np.finfo(np.float64).tiny)

    def forcing(self, gradient: Floats, diagonal: Floats) -> float:
        """How exactly a step is to be solved: the more so, the nearer the minimum is, but not beyond what is needed."""
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
        if bend <= 0:  # rounding
            break
        length = size / bend
        found += length * direction
        rest -= length * image
        scaled = rest / diagonal
        before, size = size, float((rest * scaled).sum())
        direction = scaled + (size / before) * direction
    return found


def minimise_in_box(
    objective: Callable[[Floats], tuple[float, Floats]], start: Sequence[float], bounds: Sequence[tuple[float, float]]
) -> Floats:
    """The minimum of a function of a few numbers, each between two bounds.

    Args:
        objective: the value, of a mean over rows, and its exact gradient.
    """
    options = {"ftol": 0.0, "gtol": 1e-11, "maxiter": 1000}
    found = scipy.optimize.minimize(
        objective, np.array(start, np.float64), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return np.asarray(found.x, np.float64)
