"""The model card of a run or an export (Mitchell et al., 2019), in Markdown: use, data, scores, calibration, limits."""

import html
from pathlib import Path
from typing import Any

from subgnn.render import render, write_page
from subgnn.reports.run_page import date_text, score_text
from subgnn.result import RunResult
from subgnn.task import metric_name

MODEL_CARD = "model_card.md"
_PURPOSES = {
    "binary": "predicts one of two classes",
    "multi-class": "predicts one class",
    "multi-label": "predicts any number of labels",
    "regression": "predicts a number",
    "unlabelled": "computes a vector",
}


def write_model_card(result: RunResult, out: Path, *, overwrite: bool = True) -> None:
    """Write the model card of a result."""
    write_page(model_card(result), out, overwrite=overwrite)


def model_card(result: RunResult) -> str:
    """The model card of a result."""
    data = result.data
    splits = [split for split in ("val", "test") if result.scores(split)]
    names = list(dict.fromkeys(name for split in splits for name in result.scores(split) if name != "loss"))
    # What this run's own data and settings limit.
    limits = [*result.warnings]
    if result.look_ahead:
        limits.append("Edges later than the first held-out subgraph were used: scores may be too high.")
    if result.edges_until is not None:
        limits.append("Later edges of the graph were left out.")
    if result.interrupted:
        limits.append("The search was interrupted: not every candidate was tried.")
    if result.late:
        limits.append(f"There was no time for: {', '.join(result.late)}.")
    if result.unused:
        limits.append(f"Not used by this model: {'; '.join(result.unused)}.")
    return render(
        "model_card.md",
        name=_line(f"{result.recipe} on {result.dataset}"),
        method=result.method,
        members=[(_line(one.name), f"{one.weight:.2f}") for one in result.leaderboard if one.weight],
        date=date_text(result.date),
        result=result,
        versions=", ".join(f"{name} {version}" for name, version in result.versions.items()),
        purpose=_PURPOSES[result.task],
        data=data,
        source="" if data is None else _line(data.source),
        licence="" if data is None else _line(data.licence),
        sizes="" if data is None else ", ".join(f"{split} {count:,}" for split, count in data.splits.items()),
        fitted_to=" and ".join(result.fitted_to),
        portfolio=result.is_portfolio,
        headers=["", *map(result.scores_name, splits)],
        scores=[(metric_name(name), *(score_text(result.scores(s).get(name), name) for s in splits)) for name in names],
        intervals=[
            "{} to {} ({})".format(
                *(score_text(end, result.headline) for end in result.intervals[split]), result.scores_name(split)
            )
            for split in splits
            if split in result.intervals
        ],
        headline=metric_name(result.headline),
        calibration_error="" if result.calibration_error is None else score_text(result.calibration_error),
        scored_on="test" if result.test else result.scores_name("val"),
        signal=_line(result.signal),
        limits=[_line(words) for words in limits],
    )


def _line(text: Any) -> str:
    """Text of a dataset as one line, in which nothing is a tag."""
    return html.escape(" ".join(str(text).split()), quote=False)
