"""The page of a search, study.html: charts of its trials and of the importance of settings."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from subgnn.lab.tuning.trial import score_kind
from subgnn.render import cut, render
from subgnn.reports.charts import (
    MAX_POINTS,
    Box,
    Chart,
    Key,
    Line,
    Mark,
    Style,
    number_axes,
    padded_range,
    row_axes,
    thin,
)
from subgnn.reports.run_page import score_text
from subgnn.task import metric_name

_MOST_BARS, _MOST_CHARTS = 12, 6


def tune_page(found: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    """The page, from the content of study.json and the rows of trials."""
    score, best = f"{score_kind(found['folds'])} {metric_name(found['metric'])}", found["best"]
    shares = dict(list(found["importance"].items())[:_MOST_BARS])
    counts = ", ".join(f"{count} {state}" for state, count in found["trials"].items() if count)
    split = "stored with the dataset" if found["split"] == "stored" else "divided anew for each seed"
    split = f"{found['folds']} folds of training and validation subgraphs" if found["folds"] else split
    return render(
        "tune.html",
        "subgnn.lab",
        title=f"Search on {found['dataset']}: {found['recipe']} in the space {found['space']}",
        lead=f"Settings selected by {score}. No test subgraph was used.",
        contents=[],
        facts=[
            ("Study", found["study"]),
            ("Trials", counts or "none"),
            ("Seeds of a trial", str(found["seeds"])),
            ("Split", split),
            ("Pruner", found["pruner"]),
            ("Storage", found["storage"]),
        ],
        tiles=[] if best is None else [
            (f"best {score}", score_text(best["score"]), f"trial {best['trial']}"),
            ("its validation loss", score_text(best["loss"]), "decides between equal scores"),
        ],
        best=[] if best is None else [(name, _text(value)) for name, value in sorted(best["parameters"].items())],
        progress=_progress_chart(rows, score),
        importance=_importance_chart(shares) if shares else None,
        slices=[_slice_chart(name, rows, score) for name in list(shares)[:_MOST_CHARTS]],
        trials=[
            [str(row["trial"]), row["state"], *("" if row[name] is None else score_text(row[name])
             for name in ("score", "loss")), str(row["epochs"]), row["error"]]
            for row in rows
        ],
    )  # fmt: skip


def _progress_chart(rows: Sequence[dict[str, Any]], word: str) -> Chart | None:
    """Scores by trial, and the best of the complete trials so far as steps; None where no trial has a score."""
    scored = [row for row in rows if row["score"] is not None and row["state"] in ("complete", "pruned")]
    if not scored:
        return None
    scored = [scored[i] for i in thin(len(scored), MAX_POINTS)]
    steps: list[tuple[int, float]] = []
    for row in rows:
        best = steps[-1][1] if steps else -math.inf
        steps += [(row["trial"], best)] if steps else []
        if row["state"] == "complete" and row["score"] > best:
            steps.append((row["trial"], row["score"]))
    line = f"the best so far as a line, which ends at {steps[-1][1]:.4f}" if steps else "none is complete"
    marks = []
    for row in scored:
        style = Style("point" if row["state"] == "complete" else "border")
        title = f"trial {row['trial']}, {row['state']}: {row['score']:.4f}"
        marks.append(Mark(x=row["trial"], y=row["score"], style=style, title=title))
    return Chart(
        f"{word[0].upper()}{word[1:]} by trial",
        f"{len(scored)} trials as points; {line}.",
        number_axes((0, max(1, rows[-1]["trial"])), padded_range(row["score"] for row in scored), "trial", word),
        lines=[Line([x for x, _ in steps], [y for _, y in steps], "first")],
        marks=marks,
        key=[Key("best so far", line="first")],
    )


def _importance_chart(shares: dict[str, float]) -> Chart:
    shown = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    return Chart(
        "Importance of settings",
        f"Bar chart of importance: {shown}.",
        row_axes([cut(name, 30) for name in shares], (0, max(max(shares.values()) * 1.05, 1e-9)), "importance"),
        boxes=[
            Box((0, share), (i + 0.15, i + 0.85), f"{name}: {share:.3f}", "bar")
            for i, (name, share) in enumerate(shares.items())
        ],
    )


def _slice_chart(name: str, rows: Sequence[dict[str, Any]], word: str) -> Chart:
    """Scores of complete trials over one setting; choices stand side by side."""
    kept = [row for row in rows if row["state"] == "complete" and name in row["parameters"]]
    kept = [kept[i] for i in thin(len(kept), MAX_POINTS)]
    values = [row["parameters"][name] for row in kept]
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    labels = [] if numbers else sorted({_text(value) for value in values})
    places = [float(value) if numbers else float(labels.index(_text(value))) for value in values]
    log = numbers and min(places) > 0 and max(places) > 30 * min(places)
    places = [math.log10(place) for place in places] if log else places
    x_label = f"{name}, power of ten" if log else name
    x_range = padded_range(places) if numbers else (-0.5, len(labels) - 0.5)
    ticks = None if numbers else [(float(i), cut(label, 12)) for i, label in enumerate(labels)]
    marks = []
    for place, value, row in zip(places, values, kept, strict=True):
        title = f"trial {row['trial']}: {name} {_text(value)}, {row['score']:.4f}"
        marks.append(Mark(x=place, y=row["score"], style=Style("cloud"), title=title))
    return Chart(
        name,
        f"{len(kept)} complete trials: {word} over {x_label}.",
        number_axes(x_range, padded_range(row["score"] for row in kept), x_label, word, x_ticks=ticks),
        marks=marks,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.4g}" if isinstance(value, float) else json.dumps(value)
