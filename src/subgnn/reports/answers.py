"""Values of the sections of a run's page about predictions: agreement, contributions, calibration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from subgnn.reports.calibration import calibration
from subgnn.reports.charts import MAX_POINTS, Chart, Key, Line, Mark, bar, padded_range, plot, thin
from subgnn.reports.evaluation import Evaluation
from subgnn.reports.render import cut

_MAX_MATRIX, _MAX_CLASSES, _LABEL = 12, 40, 40
_PART_NAMES = {
    "z0": "node vectors, z⁽⁰⁾",
    "topology": "topology statistics",
    "size": "size",
    "baseline": "scores of the baseline",
}


def confusion_values(run: Evaluation) -> dict[str, Any]:
    """The confusion matrix; beyond twelve classes, the rarest are one.

    Returns:
        names; rows of (total, cells), a cell as count, share of the row, and whether it is on the diagonal; ``shown``,
        the number of classes with a row of their own where the others are gathered, else 0.
    """
    counts = confusion_matrix(run.targets.numpy(), run.predicted(), labels=range(len(run.classes)))
    names, shown = [cut(name, _LABEL) for name in run.classes], 0
    if len(names) > _MAX_MATRIX:
        order = np.argsort(-counts.sum(axis=1), kind="stable")
        shown = _MAX_MATRIX - 1
        groups = [*np.split(order[:shown], shown), order[shown:]]
        counts = np.array([[counts[np.ix_(a, b)].sum() for b in groups] for a in groups])
        names = [*(names[k] for k in order[:shown]), f"{len(order) - shown} others"]
    rows = []
    for i, row in enumerate(counts.tolist()):
        total = sum(row)
        cells = [
            {"count": f"{count:,}", "percent": f"{count / total:.0%}" if total else "-", "same": i == j,
             "share": f"{count / total:.3f}" if total else "0"}
            for j, count in enumerate(row)
        ]  # fmt: skip
        rows.append((names[i], cells, f"{total:,}"))
    return {"names": names, "rows": rows, "shown": shown}


def label_rows(run: Evaluation) -> list[list[str]]:
    """Name, support, precision, recall and F1 of the most frequent labels; a dash where a score is undefined."""
    scores = precision_recall_fscore_support(run.targets.numpy(), run.predicted(), zero_division=np.nan)
    order = np.argsort(-scores[3], kind="stable")[:_MAX_CLASSES]
    return [
        [
            cut(run.classes[i], _LABEL),
            f"{int(scores[3][i]):,}",
            *("-" if math.isnan(column[i]) else f"{column[i]:.3f}" for column in scores[:3]),
        ]
        for i in order
    ]


def scatter_chart(run: Evaluation) -> Chart:
    """Predicted against true values."""
    true, predicted = run.in_unit(run.targets).tolist(), run.in_unit(run.outputs[:, 0]).tolist()
    both = padded_range([*true, *predicted])
    return plot(
        "Predicted against true",
        description=f"Scatter plot of {len(true)} subgraphs, predicted against true values, with the diagonal.",
        x=both,
        y=both,
        x_label="true value",
        y_label="predicted value",
        lines=[Line(both, both, "even")],
        marks=[
            Mark(x=true[i], y=predicted[i], kind="cloud",
                 title=f"{subgraph_name(run, i)}: true {true[i]:.4g}, predicted {predicted[i]:.4g}")
            for i in thin(len(true), MAX_POINTS)
        ],
        key=[Key("predicted = true", line="even")],
    )  # fmt: skip


def subgraph_name(run: Evaluation, index: int) -> str:
    """The name of a subgraph of the split that is scored."""
    row, names = int(run.rows[index]), run.dataset.subgraphs.names
    return f"subgraph {row}" if names is None else cut(names[row], 60)


def part_rows(run: Evaluation) -> list[dict[str, Any]]:
    """The contribution of each part of the subgraphs' vectors, with bars that share a scale per column."""
    parts = run.contributions()
    ranges = []
    for column in ([c.score for c in parts], [c.fit for c in parts]):
        finite = [0.0, *filter(math.isfinite, column)]
        ranges.append((min(finite), max(finite)))
    return [
        {
            "name": _PART_NAMES.get(c.part, c.part),
            "columns": c.columns,
            "cells": [
                (f"{round(v, 3) + 0.0:+.3f}", bar(v, *span)) for v, span in zip((c.score, c.fit), ranges, strict=True)
            ],
        }
        for c in parts
    ]


def calibration_values(run: Evaluation) -> dict[str, Any] | None:
    """The reliability diagram, its bins as rows, and the expected calibration error; None for real values."""
    if run.task == "regression":
        return None
    scores, truth = run.probabilities(), run.targets.numpy()
    if run.task == "multi-label":
        predicted, correct = scores.reshape(-1), (truth == 1).reshape(-1)
    else:
        predicted, correct = scores.max(axis=1), run.predicted() == truth
    bins, error = calibration(predicted, correct)
    marks = [
        Mark(x=b.said, y=b.right, y_range=(b.low, b.high), range_kind="range", size=4.5,
             title=f"{b.count} predictions: predicted {b.said:.3f}, observed {b.right:.3f}")
        for b in bins
    ]  # fmt: skip
    chart = plot(
        "Predicted and observed",
        description=f"Reliability diagram of {len(bins)} bins; expected calibration error {error:.3f}.",
        x=(0, 1),
        y=(0, 1),
        x_label="predicted probability",
        y_label="share with the label" if run.task == "multi-label" else "share correct",
        lines=[Line([0, 1], [0, 1], "even")],
        marks=marks,
        key=[Key("perfect calibration", line="even"), Key("95 % interval", line="range")],
    )
    rows = [[f"{b.begin:.1f} to {b.end:.1f}", f"{b.count:,}", f"{b.said:.3f}", f"{b.right:.3f}"] for b in bins]
    return {"chart": chart, "rows": rows, "count": f"{len(predicted):,}", "error": f"{error:.3f}"}
