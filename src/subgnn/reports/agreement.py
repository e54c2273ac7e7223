"""How answers agree with the truth: confusion, scores of each class, calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BINS = 10


def confusion(truth: NDArray[Any], predicted: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """How many subgraphs of true class i were given class j.

    Shapes:
        truth, predicted: (n,). returns: (classes, classes).
    """
    flat = truth.astype(np.int64) * classes + predicted.astype(np.int64)
    return np.bincount(flat, minlength=classes * classes).reshape(classes, classes)


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Precision, recall and F1 of one class; not a number where there is nothing to divide by."""

    place: int
    support: int
    precision: float
    recall: float
    f1: float


def class_scores(truth: NDArray[Any], predicted: NDArray[Any]) -> list[ClassScore]:
    """Scores of each label, the most frequent first.

    Shapes:
        truth, predicted: (n, classes), 0 or 1.
    """
    both = ((truth == 1) & (predicted == 1)).sum(axis=0)
    there, said = (truth == 1).sum(axis=0), (predicted == 1).sum(axis=0)

    def over(a: float, b: float) -> float:
        return a / b if b else math.nan

    found = [
        ClassScore(
            i, int(there[i]), over(both[i], said[i]), over(both[i], there[i]), over(2 * both[i], there[i] + said[i])
        )
        for i in range(truth.shape[1])
    ]
    return sorted(found, key=lambda score: (-score.support, score.place))


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers whose probability was said to lie in a range, and how many of them were right.

    ``low`` and ``high`` hold the share that was right with 95 % confidence (Wilson's interval).
    """

    begin: float
    end: float
    count: int
    said: float
    right: float
    low: float
    high: float


def calibration(said: NDArray[Any], right: NDArray[Any]) -> tuple[list[Bin], float]:
    """Bins of equal width that are not empty, and the expected calibration error: mean of |said - right| over answers.

    Shapes:
        said: (m,) probabilities. right: (m,) whether each was right.
    """
    place = np.minimum((np.asarray(said, np.float64) * _BINS).astype(np.int64), _BINS - 1)
    found, error = [], 0.0
    for i in range(_BINS):
        here = place == i
        count = int(here.sum())
        if count:
            mean, share = float(said[here].mean()), float(right[here].mean())
            found.append(Bin(i / _BINS, (i + 1) / _BINS, count, mean, share, *wilson(share, count)))
            error += abs(mean - share) * count / len(said)
    return found, error


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share seen in so many."""
    z = 1.959964
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)
