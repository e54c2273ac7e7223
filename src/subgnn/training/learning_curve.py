"""Would more labels help? The score of a portfolio's answer when it learns from a quarter and a half of the subgraphs.

For each fold, the members are fitted again to parts of the subgraphs that they learned from, and predict the same
held-out fold. Parts are drawn by class, subgraphs of equal nodes or one group together, and the quarter is within the
half. Members keep their weights, and predictions are not calibrated, so that points differ in the number of labels
alone. The first repeat of the cross-validation is the point of all labels.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from subgnn.data.splits import draw_folds
from subgnn.metrics.significance import lead_interval, score_interval
from subgnn.result import LearningCurve, LearningPoint
from subgnn.training.cross_validation import UNUSED, CrossValidation
from subgnn.training.ensemble_selection import HEADLINE, Array, OutOfFold, prediction_terms, score_of, score_samples
from subgnn.training.fit import HELD_OUT, TRAIN, VAL
from subgnn.training.fits import Entry

SHARES = (0.25, 0.5)
_QUARTERS = 4
Job = tuple[Entry, NDArray[np.int8]]
"""A candidate, and the splits that it is fitted to."""
FitMany = Callable[[list[Job]], list[NDArray[np.float32] | None]]
"""Fits jobs, and gives the predictions for the held-out subgraphs of each (m, outputs); None if there are none."""


def part_of(pool: CrossValidation, splits: NDArray[np.int8], share: float, name: str) -> NDArray[np.int8]:
    """Splits with a share, in quarters, of the subgraphs to learn from; the others are not used."""
    found = splits.copy()
    # A validation split of its own, as in published protocols, stays whole.
    for split in (TRAIN,) if pool.has_validation else (TRAIN, VAL):
        rows = np.flatnonzero(splits == split)
        quarter = draw_folds(pool.dataset.subgraphs.take(rows), pool.seed, f"{name}/{split}", folds=_QUARTERS)
        found[rows[quarter >= round(share * _QUARTERS)]] = UNUSED
    return found


def learning_curve(
    pool: CrossValidation,
    members: Sequence[tuple[Entry, float]],
    *,
    full: Array,
    folds: int,
    fit_many: FitMany,
    metric: str = HEADLINE,
) -> LearningCurve | None:
    """The learning curve of members with weights; None if a fit to half of the labels failed.

    Args:
        full: the members' mean out-of-fold predictions by weight, of the first repeat (n, outputs).
        folds: of the cross-validation.
        metric: of selection, as in :class:`OutOfFold`.
    """
    plans = pool.folds(0, folds)
    jobs: list[Job] = []
    for share in SHARES:
        for i, splits in enumerate(plans):
            part = part_of(pool, splits, share, f"learning curve/{i}")
            jobs += [(entry, part) for entry, _ in members]
    found = iter(zip(jobs, fit_many(jobs), strict=True))
    place = np.full(len(pool.dataset.subgraphs), -1, np.int64)
    place[pool.judged] = np.arange(len(pool.judged))
    curves: list[tuple[float, Array]] = []
    for _ in SHARES:
        mixed, labels, whole = np.zeros_like(full), 0, True
        for splits in plans:
            for _, weight in members:
                (_, part), predictions = next(found)
                whole &= predictions is not None
                if predictions is not None:
                    mixed[place[splits == HELD_OUT]] += weight * predictions
            labels += int((part < HELD_OUT).sum())
        curves += [(labels / len(plans), mixed)] if whole else []
    if not whole:
        return None
    curves.append((float(np.mean([(splits < HELD_OUT).sum() for splits in plans])), full))
    return _described(curves, pool, metric)


def _described(curves: Sequence[tuple[float, Array]], pool: CrossValidation, metric: str) -> LearningCurve:
    """Points with intervals, and what the last doubling added, by a paired interval."""
    subgraphs, units = pool.subgraphs, pool.units
    task, targets = subgraphs.task, np.asarray(subgraphs.targets, np.float64)
    given = OutOfFold(np.stack([[mixed] for _, mixed in curves]), targets, task, units, metric)
    scores = [score_of(one, targets, task, metric) for one in given.predictions]
    if metric == HEADLINE:
        terms = [prediction_terms(one, targets, task).joined(units) for one in given.predictions]
        ends = [score_interval(one) for one in terms]
        low, high = lead_interval(terms[-1], terms[-2])
    else:
        samples = [score_samples(one, given) for one in given.predictions]
        ends = [tuple(np.quantile(one, [0.025, 0.975]).tolist()) for one in samples]
        low, high = np.quantile(samples[-1] - samples[-2], [0.025, 0.975]).tolist()
    points = tuple(
        LearningPoint(subgraphs=round(labels), score=score, low=ends[i][0], high=ends[i][1])
        for i, ((labels, _), score) in enumerate(zip(curves, scores, strict=True))
    )
    before, after = points[-2:]
    gain = after.score - before.score
    added = f"added {gain:.3f}" if gain > 0 else f"changed the score by {gain:+.3f}"
    begin = f"Doubling the labels, from {before.subgraphs:,} to {after.subgraphs:,} subgraphs, {added}"
    shown = f"{begin} ({before.score:.3f} to {after.score:.3f}, 95 % interval of the gain {low:+.3f} to {high:+.3f})"
    chance = ", which is within chance; more labels alone may not help."
    end = "; more labels would probably help." if low > 0 else chance
    return LearningCurve(points=points, sentence=shown + end)
