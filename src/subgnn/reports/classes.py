"""Scores of each class, one against the rest: a table, and ROC and precision-recall curves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    precision_recall_fscore_support,
    roc_auc_score,
    roc_curve,
)

from subgnn.render import cut
from subgnn.reports.charts import COLOURS, Chart, Key, Line, Mark, group_line, group_style, number_axes, thin
from subgnn.reports.evaluation import Evaluation

HEADER = ["subgraphs", "precision", "recall", "F1", "AUROC", "average precision"]
_MAX_CLASSES, _MAX_CORNERS, _NAME = 40, 400, 40


def one_hot(targets: NDArray[np.generic], classes: int) -> NDArray[np.int64]:
    """Targets as 0 and 1 for each class.

    Shapes:
        targets: (n,) classes, or (n, classes) already. returns: (n, classes).
    """
    given = np.asarray(targets, np.int64)
    return given if given.ndim == 2 else np.eye(classes, dtype=np.int64)[given]


def class_rows(run: Evaluation) -> list[list[str]]:
    """Name and scores of the most frequent classes, as in :data:`HEADER`; a dash where a score is undefined."""
    true, scores = one_hot(run.targets.numpy(), len(run.classes)), run.probabilities()
    predicted = one_hot(run.predicted(), len(run.classes))
    precision, recall, f1, support = precision_recall_fscore_support(true, predicted, zero_division=np.nan)
    rows = []
    for i in np.argsort(-support, kind="stable")[:_MAX_CLASSES].tolist():
        defined = 0 < support[i] < len(true)
        areas = [
            roc_auc_score(true[:, i], scores[:, i]) if defined else math.nan,
            average_precision_score(true[:, i], scores[:, i]) if defined else math.nan,
        ]
        texts = ["-" if math.isnan(value) else f"{value:.3f}" for value in (precision[i], recall[i], f1[i], *areas)]
        rows.append([cut(run.classes[i], _NAME), f"{int(support[i]):,}", *texts])
    return rows


def class_charts(run: Evaluation) -> list[Chart]:
    """The ROC and the precision-recall curve of the most frequent classes; of two classes, that of the rarer one.

    A class that no subgraph or every subgraph has is left out; without any other there are no charts.
    """
    true, scores = one_hot(run.targets.numpy(), len(run.classes)), run.probabilities()
    support = true.sum(axis=0)
    chosen = [i for i in np.argsort(-support, kind="stable").tolist() if 0 < support[i] < len(true)]
    limits = np.broadcast_to(np.asarray(run.thresholds if np.ndim(run.thresholds) else np.nan), support.shape)
    if run.task.one_class and run.task.has_thresholds:  # the class that has a threshold, or the rarer one
        chosen = [i for i in chosen if not np.isnan(limits[i])] or chosen[-1:]
    chosen = chosen[:COLOURS]
    if not chosen:
        return []
    roc, precision_recall, marks = [Line([0, 1], [0, 1], "even")], [], []
    areas: list[list[float]] = [[], []]
    for group, i in enumerate(chosen):
        false, hits, _ = roc_curve(true[:, i], scores[:, i])
        precision, recall, _ = precision_recall_curve(true[:, i], scores[:, i])
        roc.append(_line(false, hits, group))
        # Steps, as average precision sums them: a straight line between two points would promise too much.
        stairs = np.repeat(recall[::-1], 2)[:-1], np.repeat(precision[::-1], 2)[1:]
        precision_recall.append(_line(*stairs, group))
        areas[0].append(float(roc_auc_score(true[:, i], scores[:, i])))
        areas[1].append(float(average_precision_score(true[:, i], scores[:, i])))
        if not np.isnan(limits[i]) and (alerts := scores[:, i] > limits[i]).any():
            found = int(true[alerts, i].sum())
            x, y = found / int(support[i]), found / int(alerts.sum())
            at = f"{cut(run.classes[i], _NAME)} at the threshold {limits[i]:.4g}: precision {y:.3f}, recall {x:.3f}"
            marks.append(Mark(x=x, y=y, title=at, style=group_style(group), size=5))
    names = [cut(run.classes[i], _NAME) for i in chosen]
    return [
        _chart("ROC", "false positive rate", "true positive rate", roc, names, areas[0]),
        _chart("Precision-recall", "recall", "precision", precision_recall, names, areas[1], marks),
    ]


def _line(xs: NDArray[np.float64], ys: NDArray[np.float64], group: int) -> Line:
    """A curve by its corners; points on a straight line between their neighbours are left out."""
    straight = [(a[:-2] == a[1:-1]) & (a[1:-1] == a[2:]) for a in (xs, ys)]
    corner = np.flatnonzero(np.concatenate([[True], ~(straight[0] | straight[1]), [True]]))
    kept = corner[thin(len(corner), _MAX_CORNERS)]
    return Line(xs[kept].tolist(), ys[kept].tolist(), group_line(group))


def _chart(
    caption: str,
    x: str,
    y: str,
    lines: list[Line],
    names: list[str],
    areas: list[float],
    marks: Sequence[Mark] = (),
) -> Chart:
    key = [
        Key(f"{name}, {area:.3f}", line=group_line(group))
        for group, (name, area) in enumerate(zip(names, areas, strict=True))
    ]
    shown = "; ".join([*(entry.words for entry in key), *(mark.title for mark in marks)])
    return Chart(
        f"{caption} curves and their areas",
        f"{caption} curves, one class against the rest, with their areas: {shown}.",
        number_axes((0, 1), (0, 1), x, y),
        lines=lines,
        marks=list(marks),
        key=[
            *key,
            *([Key("chance", line="even")] if lines[0].kind == "even" else []),
            *([Key("at the threshold", style=marks[0].style)] if marks else []),
        ],
    )
