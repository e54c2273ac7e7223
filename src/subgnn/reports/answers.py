"""The parts of a page that tell what a network answers, why, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from subgnn.reports.agreement import calibration, class_scores, confusion
from subgnn.reports.findings import Findings
from subgnn.reports.markup import Markup, breakable, cut, join, paragraph, section, table, tag
from subgnn.reports.overview import SPLIT_WORDS
from subgnn.reports.svg import MAX_POINTS, Axes, around, bar, chart, key, thin

_MAX_MATRIX, _MAX_CLASSES, _LABEL = 12, 40, 40
_PART_NAMES = {
    "z0": "node vectors, z⁽⁰⁾",
    "topology": "topology statistics",
    "size": "size",
    "baseline": "scores of the baseline",
}


def agreement(found: Findings) -> Markup:
    """Which answers were right: a confusion matrix, scores of each label, or a cloud of points."""
    where = f"on the {SPLIT_WORDS[found.split]} split"
    if found.task == "regression":
        return section("answers", f"Predicted and true values {where}", _cloud(found))
    if found.task == "multi-label":
        return section("answers", f"Scores of each label {where}", _class_table(found))
    return section("answers", f"Confusion matrix {where}", _matrix(found))


def _matrix(found: Findings) -> Markup:
    counts = confusion(found.targets.numpy(), found.predicted(), len(found.classes))
    names, notes = [breakable(cut(name, _LABEL)) for name in found.classes], []
    if len(names) > _MAX_MATRIX:
        order = np.argsort(-counts.sum(axis=1), kind="stable")
        kept, rest = order[: _MAX_MATRIX - 1], order[_MAX_MATRIX - 1 :]
        groups = [np.array([k]) for k in kept] + [rest]
        counts = np.array([[counts[np.ix_(a, b)].sum() for b in groups] for a in groups])
        names = [names[k] for k in kept] + [breakable(f"{len(rest)} others")]
        notes = [paragraph(f"The {len(kept)} most frequent classes are shown; the others are one.", class_="note")]
    rows = []
    for i, name in enumerate(names):
        total = counts[i].sum()
        cells = []
        for j, count in enumerate(counts[i]):
            share = count / total if total else 0.0
            percent = f"{share:.0%}" if total else "-"
            kind = "same" if i == j else None
            cells.append(tag("td", f"{count:,}", tag("small", percent), style=f"--share:{share:.3f}", class_=kind))
        rows.append([name, *cells, tag("td", f"{total:,}", style="--share:0")])
    words = "A row is a true class, a column the class that was predicted: subgraphs, and their share of the row. "
    words += "The framed diagonal is right."
    header = [join(["true ↓", tag("br"), "predicted →"]), *names, "all"]
    return join(
        [paragraph(words), table("Subgraphs by true and predicted class", header, rows, class_="matrix"), *notes]
    )


def _class_table(found: Findings) -> Markup:
    every = class_scores(found.targets.numpy(), found.predicted())
    scores = every[:_MAX_CLASSES]
    rows = [
        [
            breakable(cut(found.classes[s.place], _LABEL)),
            f"{s.support:,}",
            *map(_share, (s.precision, s.recall, s.f1)),
        ]
        for s in scores
    ]
    words = "A label is given where its probability is above one half. Precision: of the subgraphs that were given the "
    words += "label, the share that have it. Recall: of those that have it, the share that were given it. "
    words += "A dash: there is nothing to divide by."
    notes = [paragraph(f"The {len(scores)} most frequent of {len(every)} labels.", class_="note")] * (scores != every)
    header = ["label", "with it", "precision", "recall", "F1"]
    return join([paragraph(words), table("Each label, the most frequent first", header, rows), *notes])


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _cloud(found: Findings) -> Markup:
    true, said = found.in_unit(found.targets), found.in_unit(found.outputs[:, 0])
    low, high = around([*true.tolist(), *said.tolist()])
    axes = Axes.of((low, high), (low, high))
    names = found.dataset.subgraphs.names
    points = []
    for i in thin(len(true), MAX_POINTS):
        row = int(found.rows[i])
        name = f"subgraph {row}" if names is None else cut(names[row], 60)
        points.append(
            axes.point(true[i], said[i], f"{name}: true {true[i]:.4g}, predicted {said[i]:.4g}", class_="cloud")
        )
    description = f"Scatter plot of {len(true)} subgraphs, predicted against true values, with the diagonal."
    drawn = chart(
        "Predicted against true",
        description,
        axes.frame("true value", "predicted value"),
        axes.line([low, high], [low, high], "even"),
        *points,
        key=key(("even", "diagonal: predicted as it is")),
    )
    return join([paragraph("A point is a subgraph; the nearer to the diagonal, the better."), drawn])


def parts(found: Findings) -> Markup:
    """What each part of the subgraphs' vectors contributes; nothing for a baseline, which has no parts."""
    every = found.contributions()
    if not every:
        return Markup("")
    first, second = "micro-F1", "log-probability"
    if found.task == "regression":
        first, second = "R²", "root mean square error"
    ranges = [_reach([c.score for c in every]), _reach([c.fit for c in every])]
    rows = [
        [
            join([breakable(_PART_NAMES.get(c.part, c.part)), " ", tag("small", f"{c.columns} columns")]),
            *(
                tag("td", f"{round(v, 3) + 0.0:+.3f}", bar(v, *reach))
                for v, reach in zip((c.score, c.fit), ranges, strict=True)
            ),
        ]
        for c in every
    ]
    where = SPLIT_WORDS[found.split]
    words = f"How much the {where} scores fall when one part of the subgraphs' vectors, as the head receives them, is "
    words += (
        "replaced by its mean over the training split: a bar to the right means that the network relies on the part, "
    )
    words += "none that it does without, one to the left that it would do better without."
    if found.networks > 1:
        words += f" This is told of the first of {found.networks} networks, alone; all other scores are of their mean."
    note = "" if found.task == "regression" else "The log-probability is that of the truth, a mean over answers. "
    note += "Parts that say the same stand in for each other, so that each alone may seem to matter little."
    rises = "rises by" if found.task == "regression" else "falls by"
    header = ["part", f"{first} falls by", f"{second} {rises}"]
    shown = table("Fall of the scores without each part", header, rows, class_="parts")
    return section("parts", "What each part contributes", paragraph(words), shown, paragraph(note, class_="note"))


def _reach(values: Sequence[float]) -> tuple[float, float]:
    finite = [v for v in values if math.isfinite(v)]
    return min([0.0, *finite]), max([0.0, *finite])


def reliability(found: Findings) -> Markup:
    """Whether probabilities mean what they say."""
    if found.task == "regression":
        words = "Nothing to show: the network gives a value, and no probability with it."
        return section("calibration", "Calibration", paragraph(words))
    scores, truth = found.probabilities(), found.targets.numpy()
    if found.task == "multi-label":
        said, right = scores.reshape(-1), (truth == 1).reshape(-1)
        what = "Every subgraph and label is an answer; the share is of those where the label is there."
        axis = "share with the label"
    else:
        said, right = scores.max(axis=1), found.predicted() == truth
        what = "Every subgraph is an answer, with the probability of the class it was given."
        axis = "share right"
    bins, error = calibration(said, right)
    axes = Axes.of((0, 1), (0, 1))
    marks = [
        join([axes.span(b.said, b.low, b.high, "range"),
              axes.point(b.said, b.right, f"{b.count} answers: said {b.said:.3f}, seen {b.right:.3f}", radius=4.5)])
        for b in bins
    ]  # fmt: skip
    drawn = chart(
        "Said and seen",
        f"Reliability curve of {len(bins)} bins; expected calibration error {error:.3f}.",
        axes.frame("probability said", axis),
        axes.line([0, 1], [0, 1], "even"),
        *marks,
        key=key(("even", "as it should be"), ("range", "95 % interval")),
    )
    rows = [[f"{b.begin:.1f} to {b.end:.1f}", f"{b.count:,}", f"{b.said:.3f}", f"{b.right:.3f}"] for b in bins]
    shown = table(f"{len(said):,} answers, by the probability said", ["probability", "answers", "said", "seen"], rows)
    words = f"{what} Below the diagonal the network is too sure of itself, above it too careful. "
    words += f"The expected calibration error, the mean gap between said and seen, is {error:.3f}."
    return section("calibration", "Calibration", paragraph(words), tag("div", drawn, shown, class_="charts"))
