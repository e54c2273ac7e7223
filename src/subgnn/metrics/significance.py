r"""Paired tests over subgraphs of whether one model is better than another, intervals of scores, and calibration.

Micro-F1 and R^2 are ratios of sums over subgraphs,

    score = sum_i gain_i / sum_i weight_i,

with gain 1 for a correct prediction and weight 1 (one class); 2 TP_i and 2 TP_i + FP_i + FN_i (several labels); or
(y_i - mean y)^2 - (y_i - predicted_i)^2 and (y_i - mean y)^2 (real values). The pairs are subgraphs: all terms of a
subgraph are swapped or drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.data.splits import split_units
from subgnn.data.subgraphs import SubgraphSet
from subgnn.rng import stream
from subgnn.task import Task, TaskName, Thresholds, task_of

if TYPE_CHECKING:
    from torch import Tensor

_SWAPS, _DRAWS, _RESAMPLES, _BLOCK = 20_000, 2_000, 200, 4_000_000
_TINY = 1e-12
_BINS = 10  # of calibration
_MOST_KEPT = 10_000  # subgraphs whose samples are kept for the next interval: 20 MB


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTerms:
    """The terms (n,) that each subgraph adds to a score."""

    gain: NDArray[np.float64]
    weight: NDArray[np.float64]

    @property
    def score(self) -> float:
        """Micro-F1, or R^2; NaN if the weights sum to 0."""
        total = float(self.weight.sum())
        return float(self.gain.sum()) / total if total > 0 else float("nan")

    def joined(self, units: NDArray[np.int64]) -> ScoreTerms:
        """The terms of units (n,), sets of subgraphs that depend on each other: equal nodes, or one group."""
        gain, weight = (np.bincount(units, terms).astype(np.float64) for terms in (self.gain, self.weight))
        return ScoreTerms(gain, weight)

    def take(self, rows: NDArray[np.int64]) -> ScoreTerms:
        return ScoreTerms(self.gain[rows], self.weight[rows])


def score_terms(predicted: NDArray[Any], true: NDArray[Any], task: TaskName) -> ScoreTerms:
    """The terms of micro-F1, for real values of R^2, from (n,) classes or values, or (n, classes) of 0 and 1."""
    return ScoreTerms(*task_of(task).score_terms(predicted, true))


def mean_terms(runs: Sequence[ScoreTerms]) -> ScoreTerms:
    """The mean terms of several runs of one recipe."""
    return ScoreTerms(np.mean([t.gain for t in runs], axis=0), np.mean([t.weight for t in runs], axis=0))


def swap_test(ours: ScoreTerms, theirs: ScoreTerms) -> float:
    """The p-value of our lead under random swaps of the two models' predictions.

    A one-sided paired randomisation test: each subgraph's terms are swapped with probability one half, and the share of
    such swaps with a lead at least as large is returned. For one class a subgraph it is McNemar's exact test: with d
    subgraphs that only one model predicts correctly, all ours, it is 2^-d. Otherwise swaps are drawn at random, and the
    observed one is counted. It needs no large sample: with three subgraphs it is never below 1/8.
    """
    lead = ours.score - theirs.score
    if not np.isfinite(lead):
        return 1.0
    delta = np.stack([theirs.gain - ours.gain, theirs.weight - ours.weight], axis=1)
    differs = delta[np.abs(delta).sum(axis=1) > 0]  # a swap of equals changes nothing
    if not differs[:, 1].any() and (np.abs(differs[:, 0]) == 1).all():
        return float(scipy.stats.binom.sf((differs[:, 0] < 0).sum() - 1, len(differs), 0.5))
    rng = stream(0, "experiments/swaps")
    mine, other = (np.array([terms.gain.sum(), terms.weight.sum()]) for terms in (ours, theirs))
    as_large = 0
    for size in _blocks(_SWAPS, len(differs)):
        moved = rng.integers(0, 2, (size, len(differs)), dtype=np.int8) @ differs
        here, there = np.maximum(mine + moved, [-np.inf, _TINY]), np.maximum(other - moved, [-np.inf, _TINY])
        as_large += int((here[:, 0] / here[:, 1] - there[:, 0] / there[:, 1] >= lead - 1e-9).sum())
    return (1 + as_large) / (1 + _SWAPS)


def score_interval(ours: ScoreTerms, theirs: ScoreTerms | None = None) -> tuple[float, float]:
    """The 95 % interval of a score, or of our lead over another, by the paired bootstrap.

    Samples have as many subgraphs, drawn with replacement.
    """
    given = [ours] if theirs is None else [ours, theirs]
    if not all(np.isfinite(terms.score) for terms in given):
        return float("nan"), float("nan")
    n, found = len(ours.gain), []
    table = np.stack([column for terms in given for column in (terms.gain, terms.weight)], axis=1)
    for drawn in _kept_samples(n) if n <= _MOST_KEPT else _samples(n):
        sums = drawn @ table
        scores = sums[:, ::2] / np.maximum(sums[:, 1::2], _TINY)
        found.append(scores[:, 0] if theirs is None else scores[:, 0] - scores[:, 1])
    low, high = np.quantile(np.concatenate(found), [0.025, 0.975])
    return float(low), float(high)


def headline_interval(
    outputs: Sequence[Tensor], targets: Tensor, subgraphs: SubgraphSet, *, thresholds: Thresholds = 0.5
) -> tuple[float, float]:
    """The 95 % interval of micro-F1, for real values of R^2, on labelled subgraphs; of repeats, the mean terms count.

    Subgraphs of equal nodes or one group are drawn together: they are not independent. Where all predictions are
    correct, or all wrong, samples do not differ, and the interval is that of a share (:func:`wilson`).
    """
    task, true = task_of(subgraphs.task), targets.cpu().numpy()
    found = [task.predictions(one.detach().float().cpu(), thresholds).numpy() for one in outputs]
    terms = mean_terms([ScoreTerms(*task.score_terms(one, true)) for one in found])
    joined = terms.joined(split_units(subgraphs, subgraphs.groups))
    if task.one_class and terms.score in (0.0, 1.0):
        return wilson(terms.score, len(joined.gain))
    return score_interval(joined)


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % confidence interval of a share of ``count`` trials (Wilson)."""
    z = 1.959964
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions with a probability in begin..end.

    As in report.json, ``said`` is their mean probability and ``right`` the share that is correct; ``low`` and ``high``
    are the 95 % confidence interval of the share (Wilson).
    """

    begin: float
    end: float
    count: int
    said: float
    right: float
    low: float
    high: float


def calibration(said: NDArray[Any], right: NDArray[Any]) -> tuple[list[Bin], float]:
    """Ten bins of predicted probabilities, without empty ones, and the mean of |mean probability - share correct|."""
    place = np.minimum((np.asarray(said, np.float64) * _BINS).astype(np.int64), _BINS - 1)
    found, error = [], 0.0
    for i in np.unique(place).tolist():
        here = place == i
        count, mean, share = int(here.sum()), float(said[here].mean()), float(right[here].mean())
        found.append(Bin(i / _BINS, (i + 1) / _BINS, count, mean, share, *wilson(share, count)))
        error += abs(mean - share) * count / len(said)
    return found, error


def calibration_error(task: Task, scores: NDArray[Any], targets: NDArray[Any]) -> float | None:
    """The expected calibration error of probabilities; None for real values."""
    return None if task.real else calibration(*task.confidences(scores, targets))[1]


def _samples(count: int) -> Iterator[NDArray[np.uint8]]:
    """How often each of ``count`` subgraphs is in samples drawn with replacement (samples, count), in blocks."""
    rng = stream(0, "experiments/bootstrap")
    for size in _blocks(_DRAWS, count):
        yield rng.multinomial(count, np.full(count, 1 / count), size).astype(np.uint8)


_kept_samples = lru_cache(maxsize=2)(lambda count: list(_samples(count)))


def resampled(value: Callable[[NDArray[np.int64]], float], units: NDArray[np.int64]) -> NDArray[np.float64]:
    """Values of a metric on samples of the subgraphs by units (n,), drawn with replacement, without undefined ones.

    For metrics that are no ratios of sums, as areas under curves. The rows of a sample rise, so that it stays sorted.
    """
    rng, count = stream(0, "experiments/bootstrap"), int(units.max()) + 1
    drawn = (np.bincount(rng.integers(0, count, count), minlength=count)[units] for _ in range(_RESAMPLES))
    found = [value(np.repeat(np.arange(len(units)), times)) for times in drawn]
    return np.array([one for one in found if one == one])


def standard_error(terms: ScoreTerms) -> float:
    """The standard error of a score, a ratio of sums over independent subgraphs; 0 for one, or without a score."""
    n = len(terms.gain)
    if n == 1 or not np.isfinite(terms.score):
        return 0.0
    left = terms.gain - terms.score * terms.weight
    return float(np.sqrt((left**2).sum() * n / (n - 1)) / terms.weight.sum())


def _blocks(total: int, width: int) -> list[int]:
    """Sizes of blocks that sum to ``total``, each small enough for a table of ``width`` random numbers per row."""
    size = max(1, _BLOCK // max(1, width))
    return [min(size, total - begin) for begin in range(0, total, size)]
