"""Logistic and ridge regression of classes, labels and values, on rows or on their inner products.

Logistic regression is that of ``newton.py``. Ridge regression (:func:`fit_ridge`) needs one Cholesky decomposition: of
X^T S X + P with X = [rows, 1], S the weights of rows and P = 1/C for all columns but the last; or of K + (C S)^-1 for
rows that are known by K. The output for row i of a fit without row i follows from the fit to all rows:
y_i - (y_i - f_i) / (1 - h_i), with h_i = s_i x_i (X^T S X + P)^-1 x_i^T; in terms of K it is y_i - a_i / Q_ii, with
Q = G - G 1 1^T G / 1^T G 1 and G = (K + (C S)^-1)^-1. Outputs of classes and labels become logits by a scale (classes),
or a scale and an offset for each label, fitted to these left-out outputs. Models that count subgraphs have no left-out
outputs: they score each of five folds by what was counted in the other four (:func:`draw_inner_folds`), and
:func:`fit_scales` is fitted to these scores.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.models.examples import Examples
from subgnn.models.kernel_machines.newton import STEPS, TOLERANCE, Floats, Gram, Path, fit_linear, row_blocks, softmax
from subgnn.models.kernel_machines.views import DiffusionSettings
from subgnn.rng import stream
from subgnn.task import TaskName, task_of

Objective = Callable[[Floats], tuple[float, Floats]]
_NEVER = -20.0  # the logit of a class that the training split does not have
_FOLDS = 5
_HALVINGS = 30  # of a step of Newton's method
_LARGEST_SCALE = 20.0  # of outputs about 1 apart: no probability is beyond 1 in 10^8


def minimise_in_box(objective: Objective, start: Sequence[float], bounds: Sequence[tuple[float, float]]) -> Floats:
    """The minimum of a smooth function of a few numbers, each between two bounds, from its value and exact gradient."""
    options = {"ftol": 0.0, "gtol": 1e-11, "maxiter": 1000}
    x = np.array(start, np.float64)
    found = scipy.optimize.minimize(objective, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(found.x, np.float64)


def softmax_loss(parts: Floats, y: Floats, weights: Floats | None) -> Objective:
    """The mean cross entropy of logits sum over i of a_i parts_i, as a function of a.

    Shapes:
        parts: (k, n, K). y: (n, K) 0 or 1. weights: (n,), of rows.
    """

    def loss(a: Floats) -> tuple[float, Floats]:
        logits = np.tensordot(a, parts, 1)
        chance, total = softmax(logits)
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
        weight[:, there], bias[there], left_out = fit_ridge(rows, y[:, there], inverse_penalty, weights=own)
        if several:
            each = np.ones_like(left_out) if own is None else own
            pairs = [fit_label_scale(left_out[:, k], y[:, label], each[:, k]) for k, label in enumerate(there)]
            scales, offsets = np.array(pairs).T
            weight[:, there], bias[there] = weight[:, there] * scales, bias[there] * scales + offsets
            return weight, bias
        loss_of = softmax_loss(left_out[None], y[:, there], None if own is None else own[:, 0])
        scale = minimise_in_box(loss_of, [1.0], [(0.1, _LARGEST_SCALE)])
        weight[:, there], bias[there] = weight[:, there] * scale, bias[there] * scale
        return weight, bias
    kind: Literal["softmax", "logistic"] = "logistic" if several else "softmax"
    if len(there) == 2 and not several:  # the first has logit 0
        bias[there[0]] = 0.0
        there, own, kind = there[1:], None if own is None else own[:, 1:], "logistic"
    weight[:, there], bias[there] = fit_linear(rows, y[:, there], inverse_penalty, loss=kind, weights=own, path=path)
    return weight, bias


def fit_regression(
    rows: Floats | Gram, examples: Examples, settings: DiffusionSettings, outputs: int
) -> tuple[Floats, Floats]:
    """W and b of the regression that the settings name, fitted to the training split."""
    targets = examples.targets.cpu().numpy()[examples.train]
    options: dict[str, Any] = {"loss": settings.loss, "inverse_penalty": settings.inverse_penalty}
    return fit_outputs(rows, targets, examples.task, outputs, weights=examples.train_weights, **options)


def fit_balanced(
    rows: Any, targets: NDArray[Any], task: TaskName, outputs: int, *, inverse_penalty: float, path: Path | None = None
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
    p, _ = softmax(rows @ weight + bias)
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
    return np.asarray(rows.values.diagonal() - np.einsum("ji,ji->i", turned, turned))[:, None]


def _scale_and_biases(scores: Floats, y: Floats) -> tuple[float, Floats]:
    """The scale, from 0 on, and the biases with which scores (n, K) are likely as logits, by Newton's method.

    A weak penalty decides where a scale separates the classes.
    """
    unit = max(float(np.abs(scores).max()), 1e-12)
    parts = scores / unit
    at = np.array([1.0, *np.log(y.mean(axis=0))])

    def slope(at: Floats) -> tuple[float, Floats, Floats]:
        logits = at[0] * parts + at[1:]
        p, total = softmax(logits)
        gap = p - y
        value = float((total[:, 0] - (y * logits).sum(axis=1)).sum()) + 1e-3 * float(at @ at)
        return value, np.concatenate([[(gap * parts).sum()], gap.sum(axis=0)]) + 2e-3 * at, p

    value, gradient, p = slope(at)
    for _ in range(STEPS):
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
        for length in 0.5 ** np.arange(_HALVINGS):
            ahead = at + length * step
            ahead[0] = max(ahead[0], 0.0)
            found = slope(ahead)
            if found[0] < value:
                break
        else:
            break  # rounding
        at, (value, gradient, p) = ahead, found
    return float(at[0] / unit), at[1:]


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
    """With X = [rows, 1], of which a block is in memory at a time."""
    width = rows.shape[1] + 1
    matrix, turned = np.zeros((width, width)), np.zeros((width, targets.shape[1]))

    def with_ones(block: slice) -> Floats:
        return np.hstack([rows[block], np.ones((block.stop - block.start, 1))])

    for block in row_blocks(len(rows)):
        wide = with_ones(block)
        scaled = (wide * weights[block, None]).T
        matrix += scaled @ wide
        turned += scaled @ targets[block]
    matrix[np.arange(width - 1), np.arange(width - 1)] += 1 / c
    factor = scipy.linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    found = scipy.linalg.cho_solve((factor, True), turned)
    left_out = np.empty_like(targets)
    for block in row_blocks(len(rows)):
        wide, own = with_ones(block), targets[block]
        inner = scipy.linalg.solve_triangular(factor, wide.T, lower=True, check_finite=False)
        leverage = weights[block] * np.einsum("ji,ji->i", inner, inner)
        left_out[block] = own - (own - wide @ found) / np.maximum(1 - leverage, 1e-6)[:, None]
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


def indicators(targets: NDArray[Any], task: TaskName, outputs: int) -> Floats:
    """1 for a class or label that a subgraph has, or for a value above the mean, else 0 (n, outputs)."""
    kind = task_of(task)
    if kind.real:
        return np.asarray(targets > targets.mean(), np.float64)[:, None]
    return np.asarray(kind.indicators(targets, outputs), np.float64)


def draw_inner_folds(count: int, seed: int, name: str) -> NDArray[np.int64]:
    """The fold of each of ``count`` training subgraphs, drawn from a random stream of a name."""
    return stream(seed, name).permutation(count) % min(_FOLDS, max(2, count))


def fit_scales(scores: Floats, targets: NDArray[Any], task: TaskName, weights: Floats | None) -> tuple[Floats, Floats]:
    """Scales a (P, outputs) and a bias b (outputs,), so that sum over p of a_p scores_p + b are logits, or values.

    Classes have one scale for each of the P scores, and a share of the log of their frequency as bias. Labels, each,
    and values have the same scale for all P scores.

    Shapes:
        scores: (P, n, outputs), of held-out subgraphs. weights: (n,), or (n, labels).
    """
    kind, (count, _, outputs) = task_of(task), scores.shape
    if kind.real:
        centred = scores.sum(axis=0)[:, 0]
        mean = centred.mean()
        centred = centred - mean
        slope = max(float(centred @ targets) / max(float(centred @ centred), 1e-12), 0.0)
        return np.full((count, 1), slope), np.array([targets.mean() - slope * mean])
    if kind.several:
        each = np.ones(scores.shape[1:]) if weights is None else weights
        total = scores.sum(axis=0)
        pairs = np.array([fit_label_scale(total[:, k], targets[:, k], each[:, k]) for k in range(outputs)])
        return np.repeat(pairs[None, :, 0], count, axis=0), pairs[:, 1]
    frequency = np.bincount(targets, weights=weights, minlength=outputs)
    there = frequency > 0
    prior = np.log(np.where(there, frequency / frequency.sum(), 1.0))
    shares = np.broadcast_to(prior[there], (1, len(targets), int(there.sum())))
    parts = np.concatenate([scores[:, :, there], shares])
    loss = softmax_loss(parts, kind.indicators(targets, outputs)[:, there], weights)
    *scales, trust = minimise_in_box(loss, [5.0 / count] * count + [1.0], [(0, 200)] * count + [(0, 3)])
    return np.repeat(np.array(scales)[:, None], outputs, axis=1), np.where(there, trust * prior, _NEVER)
