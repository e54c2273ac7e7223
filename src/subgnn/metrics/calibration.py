"""Calibration: predicted probabilities beside the shares that are correct."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.metrics.significance import wilson
from subgnn.task import Task

_BINS = 10


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
    """Ten bins of predicted probabilities, and the mean of |mean probability - share correct| of the bin of each.

    ``right`` says whether each prediction is correct; empty bins are left out.
    """
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
