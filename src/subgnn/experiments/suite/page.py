"""The report of a suite as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from subgnn.experiments.suite.answers import projection
from subgnn.experiments.suite.cells import (
    HEADER,
    SETTING_HEADER,
    by_dataset,
    dataset_notes,
    header_facts,
    score_cells,
    setting_cells,
    spread_text,
)
from subgnn.experiments.suite.charts import (
    bar_chart,
    change_chart,
    overlap_chart,
    reliability_chart,
    score_chart,
    vector_chart,
)
from subgnn.experiments.suite.markdown import failure_words
from subgnn.experiments.suite.rows import Group
from subgnn.reports.agreement import Bin
from subgnn.reports.marks import MARKS_STYLE
from subgnn.reports.markup import Markup, breakable, facts, join, paragraph, section, table, tag
from subgnn.reports.style import STYLE

_PAPER_NOTE = "A gap is ours less the published number: data are not always the same (see the note above)."
_SCORES_NOTE = (
    "The best baseline is the one with the highest test mean on the dataset; p is of the lead over it. A stored split "
    "is the same for all seeds: p then speaks of the training's luck alone. MB is the largest peak of a run."
)
_CHANGES = (
    "The change of the validation score against the unchanged model, paired over seeds. The pointer over a mark shows "
    "its value."
)
_OVERLAPS = (
    "Of each test subgraph, the largest share of its nodes that any one training subgraph has. Bars are a deviation "
    "over seeds. Majority is the most frequent training answer, random one by chance."
)
_RELIABILITY = (
    "Whether probabilities on the test split mean what they say, over all seeds: below the diagonal a model is too "
    "sure of itself. The error is the expected calibration error, the mean gap between said and seen. Shown are the "
    "models that are no baseline, and the best baseline."
)
_PROJECTION = (
    "The vectors z_S of test subgraphs on their first two principal axes, by label (of several, the first). Labels had "
    "no part in the projection."
)


def suite_page(found: dict[str, Any], groups: Sequence[Group]) -> str:
    """The page.

    Args:
        found: the content of report.json.
        groups: the runs, for vectors.
    """
    head = join(
        [
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", found["title"]),
            tag("style", Markup(STYLE + MARKS_STYLE)),
        ]
    )
    parts = {
        "protocol": ("How it was run", _protocol(found)),
        "scores": ("Scores", _scores(found)),
        "study": (_STUDIES.get(found["study"], ""), _study(found)),
        "calibration": ("Calibration", _calibration(found)),
        "vectors": ("Vectors", _vectors(groups)),
        "failures": ("Failed runs", _failures(found)),
    }
    shown = {name: part for name, part in parts.items() if part[1]}
    links = tag("ul", *(tag("li", tag("a", words, href=f"#{name}")) for name, (words, _) in shown.items()))
    top = tag("header", tag("h1", found["title"]), paragraph(found["note"], class_="lead"), tag("nav", links))
    main = tag("main", *(section(name, words, content) for name, (words, content) in shown.items()))
    footer = tag("footer", paragraph("Written by subgnn. This file needs no network and no other file."))
    body = tag("body", top, main, footer)
    return f"<!doctype html>\n{tag('html', tag('head', head), body, lang='en')}\n"


_STUDIES = {
    "ablation": "Which channel sees what",
    "sensitivity": "One setting at a time",
    "generalization": "Seen and unseen nodes",
}


def _protocol(found: dict[str, Any]) -> Markup:
    commands = [tag("pre", tag("code", command), class_="command") for command in found["circumstances"]["commands"]]
    if len(commands) > 1:  # of a table that was made bit by bit
        commands = [tag("details", tag("summary", f"The {len(commands)} commands that made the runs"), *commands)]
    said = [paragraph(words, class_="warn") for words in found["circumstances"]["warnings"]]
    return join([facts(header_facts(found), class_="facts long"), *commands, *said])


def _scores(found: dict[str, Any]) -> Markup:
    parts: list[Markup] = [_summary(found["rows"])] if len(by_dataset(found["rows"])) > 1 else []
    charts = []
    for dataset, rows in by_dataset(found["rows"]).items():
        metric, word = ("r2", "R²") if rows[0]["task"] == "regression" else ("micro_f1", "micro-F1")
        header = [*HEADER[:2], word, *HEADER[3:]]
        empty = [all(not score_cells(row)[i] for row in rows) for i in range(len(HEADER))]
        kept = [i for i, gone in enumerate(empty) if not gone]
        best = max((row["test"].get(metric, {}).get("mean") or 0.0 for row in rows), default=0.0)
        cells = []
        for row in rows:
            texts = [breakable(score_cells(row)[0]), *(score_cells(row)[i] for i in kept[1:])]
            is_best = bool(best) and row["test"].get(metric, {}).get("mean") == best
            cells.append([tag("td", t, class_="best") if is_best and i == 2 else t for i, t in enumerate(texts)])
        shown = table(f"Test scores on {dataset}", [header[i] for i in kept], cells, class_="scores")
        parts += [tag("h3", dataset), shown]
        parts += [paragraph(note, class_="note") for note in dataset_notes(found, rows)]
        if found["study"] == "table":
            charts.append(score_chart(dataset, rows, metric=metric, word=word))
    sources = sorted({row["published"]["source"] for row in found["rows"] if row["published"]})
    if sources:
        parts.append(paragraph(f"Published: {'; '.join(sources)}. {_PAPER_NOTE}", class_="note"))
    if any(row["against"] for row in found["rows"]):
        parts.append(paragraph(_SCORES_NOTE, class_="note"))
    return join([*parts, tag("div", *charts, class_="charts")] if charts else parts)


def _summary(rows: Sequence[dict[str, Any]]) -> Markup:
    """Models by datasets, as papers print it."""
    known = {(row["model"], row["dataset"]): row for row in rows}
    models, datasets = (list(dict.fromkeys(row[name] for row in rows)) for name in ("model", "dataset"))
    cells = []
    for model in models:
        texts = [spread_text(known[model, d]["test"].get("micro_f1")) if (model, d) in known else "" for d in datasets]
        cells.append([breakable(model), *texts])
    return table("Test micro-F1, mean ± deviation over seeds", ["model", *datasets], cells, class_="scores")


def _study(found: dict[str, Any]) -> Markup:
    if found["study"] == "ablation":
        charts = [bar_chart(found["rows"], metric=m, word=w) for m, w in (("micro_f1", "micro-F1"), ("auroc", "AUROC"))]
        return tag("div", *charts, class_="charts")
    if found["study"] == "sensitivity" and found["settings"]:
        parts = [paragraph(_CHANGES)]
        for dataset, rows in by_dataset(found["settings"]).items():
            parts.append(change_chart(dataset, rows, word="micro-F1"))
            parts.append(table(f"Values tried on {dataset}", SETTING_HEADER, map(setting_cells, rows), class_="scores"))
        return join(parts)
    if found["study"] == "generalization":
        return join([paragraph(_OVERLAPS), *(_overlap(*pair) for pair in by_dataset(found["generalization"]).items())])
    return Markup("")


def _overlap(dataset: str, rows: Sequence[dict[str, Any]]) -> Markup:
    lines = [(row["model"], row["bins"]) for row in rows]
    drawn = overlap_chart(dataset, lines, majority=rows[0]["majority"], chance=rows[0]["random"])
    counts = [
        [f"above {b['begin']:.0%} to {b['end']:.0%}" if b["begin"] else f"0 to {b['end']:.0%}", f"{b['subgraphs']:.1f}"]
        for b in rows[0]["bins"]
    ]
    shown = table("Test subgraphs by overlap, mean over seeds", ("overlap", "subgraphs"), counts)
    return tag("div", drawn, shown, class_="charts")


def _calibration(found: dict[str, Any]) -> Markup:
    if not found["calibration"]:
        return Markup("")
    charts = [
        reliability_chart(dataset, [(r["model"], [Bin(**b) for b in r["bins"]], r["error"]) for r in rows])
        for dataset, rows in by_dataset(found["calibration"]).items()
    ]
    return join([paragraph(_RELIABILITY), tag("div", *charts, class_="charts")])


def _vectors(groups: Sequence[Group]) -> Markup:
    charts = []
    for group in (group for group in groups if not group.setting):
        known = projection(group)
        if known is not None:
            places, targets, shares, seed = known
            caption = f"{group.label} on {group.dataset}, seed {seed}"
            charts.append(vector_chart(caption, places, targets, shares, group.runs[0]["classes"]))
    if not charts:
        return Markup("")
    return join([paragraph(_PROJECTION), tag("div", *charts, class_="charts")])


def _failures(found: dict[str, Any]) -> Markup:
    if not found["failures"] and not found["missing"]:
        return paragraph("None: every run that was asked for is finished.")
    items = [tag("li", failure_words(failure)) for failure in found["failures"]]
    items += [tag("li", f"fewer seeds: {words}") for words in found["missing"]]
    return tag("ul", *items)
