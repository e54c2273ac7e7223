"""Scores of a run as tables and charts: by class, by threshold, and by candidate of a portfolio."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, precision_recall_fscore_support, roc_auc_score

from subgnn.render import cut
from subgnn.reports.charts import Chart, Key, Line, Mark, Style, group_style, number_axes, padded_range, row_axes
from subgnn.reports.evaluation import Evaluation
from subgnn.result import Candidate, LearningCurve, RunResult, ThresholdReport
from subgnn.task import metric_text

CLASS_HEADER = ["subgraphs", "precision", "recall", "F1", "AUROC", "average precision"]
_MAX_CLASSES, _NAME = 40, 40
_CHOSEN_ON = {"validation": "validation subgraphs", "out-of-fold": "out-of-fold predictions"}
_CHOICES = {
    "ensemble": "an ensemble of candidates, weighted by greedy selection",
    "best": "the candidate of the highest score",
    "simplest": "the simplest candidate within one standard error of the highest score",
}
_CANDIDATE, _WINDOW = 24, 0.15
_MEMBER, _OTHER, _TEST = group_style(0), Style("published"), Style("c5 edge-mark", "diamond")


def _one_hot(targets: NDArray[np.generic], classes: int) -> NDArray[np.int64]:
    given = np.asarray(targets, np.int64)
    return given if given.ndim == 2 else np.eye(classes, dtype=np.int64)[given]


def class_rows(run: Evaluation) -> list[list[str]]:
    """Name and scores of the most frequent classes, as in :data:`CLASS_HEADER`; a dash if undefined."""
    true, scores = _one_hot(run.targets.numpy(), len(run.classes)), run.probabilities()
    predicted = _one_hot(run.predicted(), len(run.classes))
    precision, recall, f1, support = precision_recall_fscore_support(true, predicted, zero_division=np.nan)
    rows = []
    for i in np.argsort(-support, kind="stable")[:_MAX_CLASSES].tolist():
        areas = [math.nan, math.nan]
        if 0 < support[i] < len(true):
            areas = [area(true[:, i], scores[:, i]) for area in (roc_auc_score, average_precision_score)]
        texts = ["-" if math.isnan(value) else f"{value:.3f}" for value in (precision[i], recall[i], f1[i], *areas)]
        rows.append([cut(run.classes[i], _NAME), f"{int(support[i]):,}", *texts])
    return rows


def threshold_table(report: ThresholdReport) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
    """Title, header and rows: the results of each threshold where it was chosen, and on other splits."""
    count = report.labels[0].chosen.subgraphs
    title = f"thresholds for {report.aim}, chosen on {count:,} {_CHOSEN_ON.get(report.chosen_on, report.chosen_on)}"
    header = ("label", "threshold", "on", "precision (95 %)", "recall", "alerts", "found")
    own = "val" if report.chosen_on == "validation" else "folds"
    rows: list[tuple[str, ...]] = []
    for one in report.labels:
        known = {own: one.chosen}
        known |= {name: found for name in ("train", "val", "test") if (found := getattr(one, name)) and name != own}
        for name, found in known.items():
            ends = found.precision_interval
            precision = _number(found.precision) + ("" if ends is None else f" ({ends[0]:.2f}-{ends[1]:.2f})")
            hits = f"{found.hits:,.4g} of {found.positives:,.4g}"
            numbers = (precision, _number(found.recall), f"{found.alerts:,.4g}", hits)
            rows.append((one.label, f"{one.threshold:.4g}", name, *numbers))
    return title, header, rows


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def leaderboard_values(result: RunResult, *, word: str) -> dict[str, Any]:
    """The leaderboard of a portfolio: sentences, the chart, the table, and the candidates without a score.

    The score of the final answer is that of the chosen rule, out of fold: its weights were selected on other folds than
    those it is scored on. ``word`` is the name of the metric.
    """
    rows, curve = result.leaderboard, result.learning_curve
    scored = [row for row in rows if row.score is not None]
    tested = any(row.test is not None for row in scored)
    answer = Candidate(
        name="final answer",
        recipe="",
        score=result.rules.get(result.chosen),
        low=None,
        high=None,
        seconds=sum(row.seconds for row in rows),
        weight=1.0,
        note="",
        test=result.test.get(result.metric),
    )
    top = max((row.score for row in scored if row.score is not None), default=0.0)
    widths = [2 * (row.high - row.low) for row in scored[:1] if row.low is not None and row.high is not None]
    lowest = top - max([_WINDOW, *widths])
    drawn = [row for row in scored if row.score is not None and row.score >= lowest]
    cells = []
    for row in (replace(answer, weight=0.0), *scored):
        interval = "" if row.low is None else f"{_score(row.low)} to {_score(row.high)}"
        weight, test = f"{row.weight:.2f}" if row.weight else "", [_score(row.test)] if tested else []
        cells.append([row.name, _score(row.score), interval, weight, *test, f"{row.seconds:.1f}", row.note])
    return {
        "signal": result.signal,
        "chosen": _CHOICES.get(result.chosen, "unknown"),
        "chart": _candidate_chart([answer, *drawn], word),
        "far": [row.name for row in scored if row not in drawn],
        "header": ["candidate", "out of fold", "95 % interval", "weight", *["test"] * tested, "seconds", "note"],
        "caption": f"Candidates by out-of-fold {word}",
        "rows": cells,
        "tested": tested,
        "dropped": [(row.name, row.note) for row in rows if row.score is None],
        "learning": None if curve is None else {"sentence": curve.sentence, "chart": learning_chart(curve, word=word)},
    }


def learning_chart(curve: LearningCurve, *, word: str) -> Chart:
    """Out-of-fold scores over the number of labelled subgraphs; ``word`` is the name of the metric."""
    xs, ys = [point.subgraphs for point in curve.points], [point.score for point in curve.points]
    shown = [f"{x:,} subgraphs: {_score(y)}" for x, y in zip(xs, ys, strict=True)]
    ends = padded_range(end for point in curve.points for end in (point.low, point.high))
    marks = [
        Mark(x=point.subgraphs, y=point.score, title=title, style=_MEMBER, size=4, y_range=(point.low, point.high))
        for point, title in zip(curve.points, shown, strict=True)
    ]
    return Chart(
        f"Out-of-fold {word} by number of labels",
        f"Line chart of out-of-fold {word} over labelled subgraphs: {'; '.join(shown)}",
        number_axes((0, 1.05 * xs[-1]), ends, "labelled subgraphs to learn from", word),
        lines=[Line(xs, ys, "first")],
        marks=marks,
        key=[Key("score", line="first", style=_MEMBER), Key("95 % interval", line="whisker")],
    )


def _score(value: float | None) -> str:
    return "" if value is None else metric_text("micro_f1", value)


def _candidate_chart(rows: Sequence[Candidate], word: str) -> Chart:
    """One row per candidate: its out-of-fold score with the interval, and below it the test score."""
    marks = []
    for i, row in enumerate(rows):
        title, span = f"{row.name}: {_score(row.score)}", None
        if row.low is not None and row.high is not None:
            span = (row.low, row.high)
            title += f", 95 % interval {_score(row.low)} to {_score(row.high)}"
        if row.score is not None:
            style = _MEMBER if row.weight else _OTHER
            marks.append(Mark(x=row.score, y=i + 0.4, title=title, style=style, size=4, x_range=span))
        if row.test is not None:
            title = f"{row.name}: test {_score(row.test)}"
            marks.append(Mark(x=row.test, y=i + 0.72, title=title, style=_TEST, size=3))
    key = [Key("in the final answer", style=_MEMBER), Key("not in it", style=_OTHER)]
    key.append(Key("95 % interval", line="whisker"))
    key += [Key("test", style=_TEST)] if any(mark.style is _TEST for mark in marks) else []
    ends = padded_range(end for mark in marks for end in (mark.x, *(mark.x_range or ())))
    shown = "; ".join(f"{row.name} {_score(row.score)}" for row in rows)
    return Chart(
        f"Out-of-fold {word}",
        f"Dot-and-bar chart of out-of-fold {word}: {shown}",
        row_axes([cut(row.name, _CANDIDATE) for row in rows], ends, word),
        marks=marks,
        key=key,
    )
