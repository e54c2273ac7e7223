"""Calibration: predicted probabilities beside the observed shares of correct predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.metrics.significance import wilson
from subgnn.reports.charts import Chart, Key, Line, Mark, group_line, group_style, number_axes

_BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions with a probability in begin..end: the mean probability, and the share that is correct.

    ``said`` is the mean probability and ``right`` the share, as in report.json; ``low`` and ``high`` are the 95 %
    confidence interval of the share (Wilson).
    """

    begin: float
    end: float
    count: int
    said: float
    right: float
    low: float
    high: float


def calibration(said: NDArray[Any], right: NDArray[Any]) -> tuple[list[Bin], float]:
    """Ten bins of equal width, less the empty ones, and the expected calibration error.

    The error is the mean over predictions of |mean probability - share correct| of their bin.

    Shapes:
        said: (m,) predicted probabilities. right: (m,) whether each prediction is correct.
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


def reliability_chart(
    caption: str, curves: Sequence[tuple[str, Sequence[Bin], float]], *, share: str = "share correct"
) -> Chart:
    """Predicted probabilities against observed shares with their intervals: name, bins and error of each model."""
    lines, key = [Line([0, 1], [0, 1], "even")], [Key("perfect calibration", line="even")]
    marks = []
    for group, (name, bins, error) in enumerate(curves):
        lines.append(Line([b.said for b in bins], [b.right for b in bins], group_line(group)))
        key.append(Key(f"{name}, error {error:.3f}", line=group_line(group), style=group_style(group)))
        for b in bins:
            title = f"{name}: {b.count} predictions, predicted {b.said:.3f}, observed {b.right:.3f}"
            interval = (b.low, b.high) if len(curves) == 1 else None
            marks.append(Mark(x=b.said, y=b.right, title=title, style=group_style(group), size=4, y_range=interval))
    errors = ", ".join(f"{name} error {error:.3f}" for name, _, error in curves)
    return Chart(
        caption,
        f"Reliability diagram: {errors}.",
        number_axes((0, 1), (0, 1), "predicted probability", share),
        lines=lines,
        marks=marks,
        key=[*key, *([Key("95 % interval", line="whisker")] if len(curves) == 1 else [])],
    )
