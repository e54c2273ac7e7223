"""Calibration on out-of-fold predictions: probabilities that can be believed, and thresholds for several labels.

With p the mean probability of the members and z its logarithm (one class of several) or its log-odds (several labels),
the calibrated output is scale * z + offset. One scale, the inverse of a temperature, serves all classes, with offset 0;
each label of several has its own scale and offset (Platt, 1999). They minimise the negative log-likelihood plus

    log(scale)^2 + offset^2,

which is what a single uncertain subgraph would add, so that few subgraphs change little. Labels are predicted above one
common threshold, that of the highest micro-F1: with believable probabilities the best threshold is the same for all
labels. Real values stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.models.kernel_machines.regression import minimise_in_box
from subgnn.task import MultiLabel, Scores, Standard, TaskName, Thresholds, task_of

_WIDEST = 3.0  # bound of the logarithm of a scale


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """How outputs are computed from mean probabilities, and the thresholds of labels.

    Shapes:
        scale, offset: (1,), or (labels,) for multi-label. thresholds: (labels,), empty for other tasks.
    """

    scale: NDArray[np.float64]
    offset: NDArray[np.float64]
    thresholds: NDArray[np.float64]

    def apply(self, scores: Scores, task: TaskName, target: Standard | None = None) -> Scores:
        """Calibrated outputs (:meth:`~subgnn.task.Task.calibrated`). Shapes: scores, returns: (..., outputs)."""
        return task_of(task).calibrated(scores, self.scale, self.offset, target)

    @property
    def decision_thresholds(self) -> Thresholds:
        """As :meth:`~subgnn.task.Task.decide` takes them."""
        return self.thresholds.astype(np.float32) if len(self.thresholds) else 0.5


def calibrate(predictions: NDArray[np.float64], targets: NDArray[np.float64], task: TaskName) -> Calibration:
    """Fit scale, offset and thresholds to out-of-fold predictions.

    Shapes:
        predictions: (repeats, n, outputs), probabilities or values. targets: (n,), or (n, labels).
    """
    one = Calibration(np.ones(1), np.zeros(1), np.empty(0))
    kind = task_of(task)
    if kind.real:
        return one
    outputs, repeats = kind.outputs(predictions), len(predictions)
    if not isinstance(kind, MultiLabel):
        y = kind.indicators(targets, outputs.shape[2])

        def loss(log_scale: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            logits = np.exp(log_scale) * outputs
            logs = scipy.special.log_softmax(logits, axis=2)
            slope = ((np.exp(logs) - y) * logits).sum() / repeats + 2 * log_scale
            return float(-(y * logs).sum() / repeats + log_scale[0] ** 2) / len(y), slope / len(y)

        found = minimise_in_box(loss, [0.0], [(-_WIDEST, _WIDEST)])
        return Calibration(np.exp(found), np.zeros(1), np.empty(0))
    pairs = [_platt(outputs[:, :, label], targets[:, label]) for label in range(targets.shape[1])]
    scale, offset = (np.array(column) for column in zip(*pairs, strict=True))
    threshold = kind.best_threshold(scipy.special.expit(scale * outputs + offset), targets)
    return Calibration(scale, offset, np.full(len(scale), threshold))


def _platt(log_odds: NDArray[np.float64], truth: NDArray[np.float64]) -> tuple[float, float]:
    """Scale and offset of one label. Shapes: log_odds: (repeats, n). truth: (n,)."""

    def loss(given: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scaled = np.exp(given[0]) * log_odds
        outputs = scaled + given[1]
        # -log of the probability of what is true
        wrong = np.logaddexp(0, np.where(truth > 0, -outputs, outputs))
        gap = scipy.special.expit(outputs) - (truth > 0)
        slope = np.array([(gap * scaled).sum(), gap.sum()]) / len(log_odds) + 2 * given
        return float(wrong.sum() / len(log_odds) + (given**2).sum()) / len(truth), slope / len(truth)

    found = minimise_in_box(loss, [0.0, 0.0], [(-_WIDEST, _WIDEST), (-10.0, 10.0)])
    return float(np.exp(found[0])), float(found[1])
