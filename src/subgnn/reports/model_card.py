"""The model card of a run or an export (Mitchell et al., 2019), in Markdown: use, data, scores, calibration, limits."""

import html
from pathlib import Path
from typing import Any

from subgnn.render import render, write_page
from subgnn.reports.run_page import date_text, score_text
from subgnn.result import RunResult
from subgnn.task import metric_name

MODEL_CARD = "model_card.md"


def write_model_card(result: RunResult, out: Path, *, overwrite: bool = True) -> None:
    """Write the model card of a result."""
    write_page(model_card(result), out, overwrite=overwrite)


def model_card(result: RunResult) -> str:
    """The model card of a result."""
    splits = [split for split in ("val", "test") if result.scores(split)]
    names = list(dict.fromkeys(name for split in splits for name in result.scores(split) if name != "loss"))
    return render(
        "model_card.md",
        result=result,
        line=_line,
        date=date_text(result.date),
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
    )


def _line(text: Any) -> str:
    """Text of a dataset as one line, in which nothing is a tag."""
    return html.escape(" ".join(str(text).split()), quote=False)
