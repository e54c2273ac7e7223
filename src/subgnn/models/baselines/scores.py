"""Logits from scores of classes, by scales that are fitted to the scores of held-out training subgraphs.

Scores of the subgraphs that a model has counted are too high, so the training split is dealt into five folds, and each
is scored by what was counted in the other four.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.models.kernel_machines.newton import Floats
from subgnn.models.kernel_machines.regression import fit_label_scale, minimise_in_box, softmax_loss
from subgnn.rng import stream
from subgnn.task import TaskName, task_of

_FOLDS = 5
_NEVER = -20.0  # the logit of a class that the training split does not have


def indicators(targets: NDArray[Any], task: TaskName, outputs: int) -> Floats:
    """1 for a class or label that a subgraph has, or for a value above the mean, else 0 (n, outputs)."""
    kind = task_of(task)
    if kind.real:
        return np.asarray(targets > targets.mean(), np.float64)[:, None]
    return np.asarray(kind.indicators(targets, outputs), np.float64)


def draw_inner_folds(count: int, seed: int, name: str) -> NDArray[np.int64]:
    """The fold of each of ``count`` training subgraphs, drawn from a random stream of a name."""
    return stream(seed, name).permutation(count) % min(_FOLDS, max(2, count))


def held_out_scores(
    count: int, seed: int, score: Callable[[NDArray[np.bool_], NDArray[np.bool_]], Floats], *, name: str
) -> Floats:
    """Scores of ``count`` subgraphs, each by a fit without its fold.

    Args:
        score: the scores (..., held, outputs) of the subgraphs of the second mask by a fit to those of the first.
        name: of the random stream that draws the folds.
    """
    fold = draw_inner_folds(count, seed, name)
    found: Floats | None = None
    for i in np.unique(fold):
        held = fold == i
        scores = score(~held if count > 1 else held, held)
        if found is None:
            found = np.zeros((*scores.shape[:-2], count, scores.shape[-1]))
        found[..., held, :] = scores
    assert found is not None  # a training split is never empty
    return found


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
