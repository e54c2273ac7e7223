"""The page of a search: one HTML file, with charts of its trials and of what mattered."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from subgnn.reports.markup import Markup, breakable, cut, facts, join, paragraph, section, table, tag
from subgnn.reports.overview import NAMES, figure_text
from subgnn.reports.style import STYLE
from subgnn.reports.svg import MAX_POINTS, WIDTH, Axes, Scale, around, chart, key, thin

_MOST_BARS = 12
_MOST_CHARTS = 6
_LABELS, _ROW = 190, 22


def tune_page(found: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    """The page, from what study.json holds and the rows of trials."""
    title = f"Search on {found['dataset']}: {found['recipe']} in the space {found['space']}"
    head = join(
        [
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", title),
            tag("style", Markup(STYLE)),
        ]
    )
    lead = f"Settings chosen by validation {NAMES[found['metric']]}. No test subgraph was seen."
    parts = [_overview(found), _progress(found, rows), _importance(found, rows), _trials(rows)]
    body = join(
        [
            tag("header", tag("h1", title), paragraph(lead, class_="lead")),
            tag("main", *parts),
            tag("footer", paragraph("Written by subgnn. This file needs no network and no other file.")),
        ]
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def _overview(found: dict[str, Any]) -> Markup:
    counts, best = found["trials"], found["best"]
    pairs = [
        ("Study", found["study"]),
        ("Trials", ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "none"),
        ("Seeds of a trial", str(found["seeds"])),
        ("Split", "the dataset's own" if found["split"] == "stored" else "divided anew for each seed"),
        ("Pruner", found["pruner"]),
        ("Storage", found["storage"]),
    ]
    if best is None:
        return section("search", "What was searched", paragraph("No trial was completed."), facts(pairs))
    tiles = [
        (f"best validation {NAMES[found['metric']]}", figure_text(best["score"]), f"trial {best['trial']}"),
        ("its validation loss", figure_text(best["loss"]), "decides between equal scores"),
    ]
    cells = (tag("div", tag("dt", what), tag("dd", value, tag("small", words))) for what, value, words in tiles)
    chosen = [(breakable(name), _text(value)) for name, value in sorted(best["parameters"].items())]
    words = "The best of many trials is high by luck: train the recipe anew, and score it once on test."
    settings = table("Settings of the best trial", ("setting", "value"), chosen)
    return section("search", "What was searched", tag("dl", *cells, class_="tiles"), facts(pairs), settings,
                   paragraph(words, class_="note"))  # fmt: skip


def best_so_far(rows: Sequence[dict[str, Any]]) -> list[tuple[int, float]]:
    """Trial by trial the best score of the complete ones up to it.

    Example:
        >>> rows = [{"trial": i, "state": s, "score": v} for i, s, v in [(0, "complete", 0.5), (1, "pruned", 0.9)]]
        >>> best_so_far(rows)
        [(0, 0.5), (1, 0.5)]
    """
    found, best = [], -math.inf
    for row in rows:
        if row["state"] == "complete":
            best = max(best, row["score"])
        if best > -math.inf:
            found.append((row["trial"], best))
    return found


def _progress(found: dict[str, Any], rows: Sequence[dict[str, Any]]) -> Markup:
    """Scores by trial, and the best so far as steps."""
    scored = [row for row in rows if row["score"] is not None and row["state"] in ("complete", "pruned")]
    if not scored:
        return join([])
    scored = [scored[i] for i in thin(len(scored), MAX_POINTS)]
    word = f"validation {NAMES[found['metric']]}"
    axes = Axes.of((0, max(1, rows[-1]["trial"])), around(row["score"] for row in scored))
    steps: list[tuple[int, float]] = []
    for trial, best in best_so_far(rows):
        steps += ([(trial, steps[-1][1])] if steps else []) + [(trial, best)]
    points = [
        axes.point(row["trial"], row["score"], f"trial {row['trial']}, {row['state']}: {row['score']:.4f}",
                   class_="point" if row["state"] == "complete" else "border")
        for row in scored
    ]  # fmt: skip
    drawn = chart(
        f"{word[0].upper()}{word[1:]} by trial",
        f"{len(scored)} trials as points and the best so far as a line, which ends at "
        f"{steps[-1][1]:.4f}." if steps else f"{len(scored)} trials as points; none is complete.",
        axes.frame("trial", word),
        axes.line([x for x, _ in steps], [y for _, y in steps], "first"),
        *points,
        key=key(("first", "best so far")),
    )  # fmt: skip
    words = "A point is a trial; grey ones were pruned, and stand at the score they had then."
    return section("progress", "How the search went", paragraph(words), tag("div", drawn, class_="charts"))


def _importance(found: dict[str, Any], rows: Sequence[dict[str, Any]]) -> Markup:
    """Bars of what each setting explains, and the scores over the most important ones."""
    shares = dict(list(found["importance"].items())[:_MOST_BARS])
    if not shares:
        words = "Too few trials are complete, or their scores are all equal, to say which settings matter."
        return section("importance", "What mattered", paragraph(words))
    words = (
        "The share of the scores' variance over complete trials that each setting explains (fANOVA). With few trials "
        "it is a rough guess. Settings that only some trials have are left out."
    )
    word = f"validation {NAMES[found['metric']]}"
    charts = [_slice(name, rows, word) for name in list(shares)[:_MOST_CHARTS]]
    return section("importance", "What mattered", paragraph(words), bars(shares), tag("div", *charts, class_="charts"))


def bars(shares: dict[str, float]) -> Markup:
    """Bars beside names, on an axis from 0."""
    bottom = _ROW * len(shares) + 8
    place = Scale(0, max(max(shares.values()) * 1.05, 1e-9), _LABELS, WIDTH - 12)
    parts = []
    for value in place.ticks(4):
        at = place(value)
        parts.append(tag("line", x1=at, x2=at, y1=0, y2=bottom, class_="grid"))
        parts.append(tag("text", f"{value:.3g}", x=at, y=bottom + 15, class_="tick x"))
    for i, (name, share) in enumerate(shares.items()):
        top = 4 + _ROW * i
        box = tag("rect", tag("title", f"{name}: {share:.3f}"), x=_LABELS, y=top + 3, width=place(share) - _LABELS,
                  height=_ROW - 6, class_="bar")  # fmt: skip
        parts += [tag("text", cut(name, 30), x=_LABELS - 6, y=top + 15, class_="tick y"), box]
    parts.append(tag("line", x1=_LABELS, x2=_LABELS, y1=0, y2=bottom, class_="axis"))
    parts.append(tag("text", "importance", x=(_LABELS + WIDTH - 12) / 2, y=bottom + 32, class_="label"))
    said = "Bar chart of importance: " + ", ".join(f"{name} {share:.2f}" for name, share in shares.items()) + "."
    drawing = tag("svg", *parts, viewBox=f"0 0 {WIDTH} {bottom + 40}", role="img", aria_label=said, class_="chart")
    return tag("figure", tag("figcaption", "Importance of settings"), drawing)


def _slice(name: str, rows: Sequence[dict[str, Any]], word: str) -> Markup:
    """Scores of complete trials over one setting; choices stand side by side."""
    kept = [row for row in rows if row["state"] == "complete" and name in row["parameters"]]
    kept = [kept[i] for i in thin(len(kept), MAX_POINTS)]
    values = [row["parameters"][name] for row in kept]
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    labels = [] if numbers else sorted({_text(value) for value in values})
    places = [float(value) if numbers else float(labels.index(_text(value))) for value in values]
    log = numbers and min(places) > 0 and max(places) > 30 * min(places)
    places = [math.log10(place) for place in places] if log else places
    axes = Axes.of(around(places), around(row["score"] for row in kept))
    what = f"{name}, power of ten" if log else name
    what += "" if numbers else ": " + cut(", ".join(f"{i} {label}" for i, label in enumerate(labels)), 40)
    points = (
        axes.point(place, row["score"], f"trial {row['trial']}: {name} {_text(row['parameters'][name])}, "
                   f"{row['score']:.4f}", class_="cloud")
        for place, row in zip(places, kept, strict=True)
    )  # fmt: skip
    said = f"{len(kept)} complete trials: {word} over {what}."
    return chart(name, said, axes.frame(what, word), *points)


def _trials(rows: Sequence[dict[str, Any]]) -> Markup:
    shown = [
        (str(row["trial"]), row["state"], figure_text(row["score"]) if row["score"] is not None else "",
         figure_text(row["loss"]) if row["loss"] is not None else "", str(row["epochs"]), row["error"])
        for row in rows
    ]  # fmt: skip
    whole = table("All trials; their settings are in trials.tsv",
                  ("trial", "state", "score", "loss", "epochs", "error"), shown)  # fmt: skip
    return section("trials", "Trials", tag("details", tag("summary", f"{len(rows)} trials"), whole))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.4g}" if isinstance(value, float) else json.dumps(value)
