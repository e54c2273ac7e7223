"""Sections of a run's page: scores by class, by threshold and by candidate; agreement, examples and calibration."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, confusion_matrix, precision_recall_fscore_support, roc_auc_score

from subgnn.data.layout import lay_out
from subgnn.metrics.significance import calibration
from subgnn.render import cut
from subgnn.reports.charts import Chart, Key, Line, Mark, Style, group_style, number_axes, padded_range, row_axes, thin
from subgnn.reports.drawing import drawing_values
from subgnn.reports.evaluation import FOLDS, Evaluation
from subgnn.result import Candidate, LearningCurve, RunResult, ThresholdReport

CLASS_HEADER = ["subgraphs", "precision", "recall", "F1", "AUROC", "average precision"]
_MAX_CLASSES, _CLASS = 40, 40
_CHOSEN_ON = {"validation": "validation subgraphs", "out-of-fold": "out-of-fold predictions"}
_CHOICES = {
    "ensemble": "an ensemble of candidates, weighted by greedy selection",
    "best": "the candidate of the highest score or, of nearly equal ones, of the highest likelihood",
    "simplest": "the simplest candidate within one standard error of the highest score",
}
_CANDIDATE, _WINDOW = 24, 0.15
_MEMBER, _OTHER, _TEST = group_style(0), Style("published"), Style("c5 edge-mark", "diamond")
_MAX_MATRIX, _MAX_ROWS, _MAX_EXAMPLES = 12, 1000, 4
_NAME, _LABEL = 60, 80


def class_rows(run: Evaluation) -> list[list[str]]:
    """Name and scores of the most frequent classes, as in :data:`CLASS_HEADER`; a dash if undefined."""
    scores, found = run.probabilities(), (run.targets.numpy(), run.predicted())
    true, predicted = (run.task.indicators(targets, len(run.classes)) for targets in found)
    precision, recall, f1, support = precision_recall_fscore_support(true, predicted, zero_division=np.nan)
    rows = []
    for i in np.argsort(-support, kind="stable")[:_MAX_CLASSES].tolist():
        areas = [math.nan, math.nan]
        if 0 < support[i] < len(true):
            areas = [area(true[:, i], scores[:, i]) for area in (roc_auc_score, average_precision_score)]
        texts = ["-" if math.isnan(value) else f"{value:.3f}" for value in (precision[i], recall[i], f1[i], *areas)]
        rows.append([cut(run.classes[i], _CLASS), f"{int(support[i]):,}", *texts])
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
            precision = _score(found.precision, "-") + ("" if ends is None else f" ({ends[0]:.2f}-{ends[1]:.2f})")
            hits = f"{found.hits:,.4g} of {found.positives:,.4g}"
            numbers = (precision, _score(found.recall, "-"), f"{found.alerts:,.4g}", hits)
            rows.append((one.label, f"{one.threshold:.4g}", name, *numbers))
    return title, header, rows


def leaderboard_values(result: RunResult, *, word: str) -> dict[str, Any]:
    """The leaderboard of a portfolio: sentences, chart, table, candidates without a score; scores are out of fold."""
    rows, curve = result.leaderboard, result.learning_curve
    scored = [row for row in rows if row.score is not None]
    tested = any(row.test is not None for row in scored)
    about: dict[str, Any] = {"name": "final answer", "recipe": "", "low": None, "high": None, "weight": 1.0, "note": ""}
    score, test_score = result.rules.get(result.chosen), result.test.get(result.metric)
    answer = Candidate(**about, score=score, seconds=sum(row.seconds for row in rows), test=test_score)
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


def _score(value: float | None, missing: str = "") -> str:
    return missing if value is None else f"{value:.3f}"


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
    key = [Key("in the final answer", style=_MEMBER), Key("not in it", style=_OTHER), Key("95 % interval", "whisker")]
    key += [Key("test", style=_TEST)] if any(mark.style is _TEST for mark in marks) else []
    ends = padded_range(end for mark in marks for end in (mark.x, *(mark.x_range or ())))
    return Chart(
        f"Out-of-fold {word}",
        f"Dot-and-bar chart of out-of-fold {word}: {'; '.join(f'{row.name} {_score(row.score)}' for row in rows)}",
        row_axes([cut(row.name, _CANDIDATE) for row in rows], ends, word),
        marks=marks,
        key=key,
    )


def confusion_values(run: Evaluation) -> dict[str, Any]:
    """The confusion matrix; beyond twelve classes, the rarest share a row, and ``shown`` is the number of others."""
    counts = confusion_matrix(run.targets.numpy(), run.predicted(), labels=range(len(run.classes)))
    names, shown = [cut(name, 40) for name in run.classes], 0
    if len(names) > _MAX_MATRIX:
        order, shown = np.argsort(-counts.sum(axis=1), kind="stable"), _MAX_MATRIX - 1
        groups = [*np.split(order[:shown], shown), order[shown:]]
        counts = np.array([[counts[np.ix_(a, b)].sum() for b in groups] for a in groups])
        names = [*(names[k] for k in order[:shown]), f"{len(order) - shown} others"]
    return {"names": names, "counts": counts.tolist(), "shown": shown}


def prediction_values(run: Evaluation) -> dict[str, Any]:
    """The table of predictions in the order of the split, and whether each is wrong; real values have an error."""
    kept = range(min(len(run.rows), _MAX_ROWS))
    sizes = np.diff(run.dataset.subgraphs.nodes.offsets)[run.rows]
    names, true = [_subgraph_name(run, i) for i in kept], [_true_label(run, i) for i in kept]
    if run.task.real:
        predicted, truth = run.in_unit(run.outputs[:, 0]), run.in_unit(run.targets)
        last = [[f"{predicted[i]:.4g}", f"{predicted[i] - truth[i]:+.3g}"] for i in kept]
        header, wrong = ["predicted", "error"], [False] * len(kept)
    else:
        correct, confidence, texts = _predictions(run)
        last = [[cut(texts[i], _LABEL), f"{confidence[i]:.3f}", "yes" if correct[i] else "no"] for i in kept]
        header, wrong = ["predicted", "probability", "correct"], (~correct[: len(kept)]).tolist()
    return {
        "header": ["subgraph", "nodes", "true", *header],
        "rows": [([names[i], f"{sizes[i]}", true[i], *last[i]], wrong[i]) for i in kept],
        "total": len(run.rows),
        "wrong": sum(wrong),
    }


def scatter_chart(run: Evaluation) -> Chart:
    """Predicted against true values."""
    true, predicted = run.in_unit(run.targets).tolist(), run.in_unit(run.outputs[:, 0]).tolist()
    both, marks = padded_range([*true, *predicted]), []
    for i in thin(len(true)):
        title = f"{_subgraph_name(run, i)}: true {true[i]:.4g}, predicted {predicted[i]:.4g}"
        marks.append(Mark(x=true[i], y=predicted[i], style=Style("cloud"), title=title))
    return Chart(
        "Predicted against true",
        f"Scatter plot of {len(true)} subgraphs, predicted against true values, with the diagonal.",
        number_axes(both, both, "true value", "predicted value"),
        lines=[Line(both, both, "even")],
        marks=marks,
        key=[Key("predicted = true", line="even")],
    )


def _subgraph_name(run: Evaluation, index: int) -> str:
    row, names = int(run.rows[index]), run.dataset.subgraphs.names
    return f"subgraph {row}" if names is None else cut(names[row], _NAME)


def _true_label(run: Evaluation, index: int) -> str:
    if run.task.real:
        return f"{run.in_unit(run.targets[index : index + 1])[0]:.4g}"
    return cut(_labels(run, run.targets[index].numpy()), _LABEL)


def calibration_values(run: Evaluation) -> list[dict[str, Any]]:
    """Reliability diagrams, out of fold and on the scored split, with the calibration error; none for real values."""
    if run.task.real:
        return []
    share = "share with the label" if run.task.several else "share correct"
    sources: list[tuple[str, NDArray[Any], NDArray[Any]]] = []
    if run.out_of_fold is not None:
        sources.append(("out of fold", *run.out_of_fold))
    if run.split != FOLDS:
        sources.append((f"on the {run.scored_on}", run.probabilities(), run.targets.numpy()))
    found = []
    for where, probabilities, targets in sources:
        predicted, correct = run.task.confidences(probabilities, targets)
        bins, error = calibration(predicted, correct)
        name, style, marks = run.recipe.name, group_style(0), []
        for b in bins:
            title = f"{name}: {b.count} predictions, predicted {b.said:.3f}, observed {b.right:.3f}"
            marks.append(Mark(x=b.said, y=b.right, title=title, style=style, size=4, y_range=(b.low, b.high)))
        chart = Chart(
            f"Predicted and observed {where}",
            f"Reliability diagram: {name} error {error:.3f}.",
            number_axes((0, 1), (0, 1), "predicted probability", share),
            lines=[Line([0, 1], [0, 1], "even"), Line([b.said for b in bins], [b.right for b in bins], "first")],
            marks=marks,
            key=[
                Key("perfect calibration", line="even"),
                Key(f"{name}, error {error:.3f}", line="first", style=style),
                Key("95 % interval", line="whisker"),
            ],
        )
        rows = [[f"{b.begin:.1f} to {b.end:.1f}", f"{b.count:,}", f"{b.said:.3f}", f"{b.right:.3f}"] for b in bins]
        numbers = {"count": f"{len(predicted):,}", "error": f"{error:.3f}"}
        found.append({"where": where, "chart": chart, "rows": rows} | numbers)
    return found


def example_groups(run: Evaluation) -> list[tuple[str, list[dict[str, Any]]]]:
    """Titles and drawings of confident correct predictions, of each class in turn, and of wrong ones, or by error."""
    if run.task.real:
        predicted = run.in_unit(run.outputs[:, 0])
        error = np.abs(run.in_unit(run.targets) - predicted)
        order = [int(i) for i in np.argsort(error, kind="stable")]
        texts, notes = [f"{value:.4g}" for value in predicted], [f"error {value:.3g}" for value in error]
        groups = {"Nearest": order[:_MAX_EXAMPLES], "Farthest": order[_MAX_EXAMPLES:][::-1]}
    else:
        correct, confidence, texts = _predictions(run)
        notes = [f"probability {value:.3f}" for value in confidence]
        order = [int(i) for i in np.argsort(-confidence, kind="stable")]
        # Sorting by the number of earlier ones of the same class gives each class its turn.
        turn: dict[int, int] = {}
        seen: Counter[str] = Counter()
        for i in order:
            if correct[i]:
                turn[i] = seen[texts[i]]
                seen[texts[i]] += 1
        groups = {"Correct": sorted(turn, key=turn.__getitem__), "Wrong": [i for i in order if not correct[i]]}
    graph, subgraphs = run.dataset.graph.undirected(), run.dataset.subgraphs.nodes

    def example(i: int) -> dict[str, Any]:
        name = _subgraph_name(run, i)
        drawing = drawing_values(graph, lay_out(graph, subgraphs[int(run.rows[i])]), name)
        about = {"name": name, "true": _true_label(run, i), "predicted": cut(texts[i], _LABEL), "note": notes[i]}
        return about | {"drawing": drawing}

    return [(title, [example(i) for i in chosen[:_MAX_EXAMPLES]]) for title, chosen in groups.items()]


def _predictions(run: Evaluation) -> tuple[NDArray[np.bool_], NDArray[Any], list[str]]:
    """Whether the prediction for each subgraph of the split is correct, its probability, and the prediction."""
    scores, truth, predicted = run.probabilities(), run.targets.numpy(), run.predicted()
    texts = [_labels(run, one) for one in predicted]
    if run.task.several:
        return (predicted == truth).all(axis=1), np.where(predicted == 1, scores, 1 - scores).prod(axis=1), texts
    return predicted == truth, scores.max(axis=1), texts


def _labels(run: Evaluation, target: NDArray[Any]) -> str:
    return ", ".join(run.task.names(target, run.classes)) or "no label"
