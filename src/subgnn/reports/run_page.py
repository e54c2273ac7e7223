"""The page of a run (settings, scores, curves, predictions, how to reproduce it), and its model card in Markdown."""

import html
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.metrics.thresholds import threshold_notes
from subgnn.models.recipes import recipe_toml, train_command
from subgnn.models.spec import BASELINE
from subgnn.render import render, write_page
from subgnn.reports import sections
from subgnn.reports.charts import Chart, Key, Line, number_axes, padded_range, thin
from subgnn.reports.evaluation import SPLIT_NAMES, Evaluation, evaluate, evaluate_run
from subgnn.result import RunResult, read_result
from subgnn.task import metric_name, metric_text
from subgnn.training.ensemble_selection import is_ranking
from subgnn.training.options import TrainedRun
from subgnn.training.run_dir import PAGE, as_trained, dataset_path

MODEL_CARD = "model_card.md"
_MAX_COLUMNS = 250  # tooltips of a chart over epochs


def run_report(run: Path, dataset: Dataset, trained: TrainedRun | None = None) -> str:
    """The page of a finished run, which is read from its folder unless it was just trained on the dataset."""
    found = evaluate_run(run, dataset) if trained is None else evaluate(trained, dataset)
    result, curves, report, network = found.result, _curves(found), found.result.threshold, found.network
    board = sections.leaderboard_values(result, word=metric_name(result.metric)) if result.is_portfolio else None
    vectors = 0 if network is None or network.table is None else network.table.numel()
    weights = 0 if network is None else sum(p.numel() for p in network.parameters()) - vectors
    line, needs_file = train_command(found.recipe, result)
    names = SPLIT_NAMES | ({"val": "out of fold"} if result.is_portfolio else {})
    columns, constant = ["val", "test"] if found.split == "test" else ["val"], found.constant()
    splits = {} if dataset.subgraphs.splits is None else SPLIT_NAMES
    sizes = [f"{len(dataset.subgraphs.indices(split)):,} {name}" for split, name in splits.items()]
    lead = result.headline if result.select_by == "auto" else result.select_by
    low, high = result.intervals.get(columns[-1] if lead == result.headline else "", (math.nan, math.nan))
    rows = [
        [
            metric_name(name),
            *(score_text(result.scores(split).get(name), name) for split in columns),
            score_text(constant[name], name),
            *([_published(result.published, name)] if result.published else []),
        ]
        for name in constant
    ]
    return render(
        "run.html",
        run=found,
        sections=sections,
        names=names,
        sizes=", ".join(sizes) or f"{len(dataset.subgraphs):,}, without splits",
        columns=[names[split] for split in columns],
        rows=rows,
        constant=constant,
        headline=lead,
        guessing="ranking at random" if is_ranking(lead) else f"always predicting the {found.task.constant_word}",
        ends=f"95 % interval {score_text(low)} to {score_text(high)}, " if math.isfinite(low + high) else "",
        weights=weights,
        vectors=vectors,
        score=score_text,
        metric=metric_name,
        published=_published,
        date=date_text(result.date),
        thresholds=np.ndim(found.predictor.thresholds) > 0,
        threshold=None if report is None else (*sections.threshold_table(report), threshold_notes(report)),
        leaderboard=board,
        curves=curves,
        command=line,
        needs_file=needs_file,
        settings=recipe_toml(found.recipe),
    )


def write_report(run: Path, out: Path | None = None, *, data: Path | None = None, overwrite: bool = False) -> Path:
    """Write the page of a finished run, by default RUN/report.html, which is replaced, and return its path."""
    result = read_result(run)
    page = run_report(run, as_trained(read_dataset(dataset_path(run, result, data)), result))
    write_page(page, out or run / PAGE, overwrite=overwrite or out is None)
    return out or run / PAGE


def score_text(value: Any, name: str = "") -> str:
    """A metric as :func:`~subgnn.task.metric_text` writes it, or "undefined"."""
    return metric_text(name, value) if isinstance(value, (int, float)) and math.isfinite(value) else "undefined"


def date_text(date: str) -> str:
    """When a run was finished, to the minute, such as 2025-03-01 09:30 UTC."""
    try:
        return datetime.fromisoformat(date).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return "not recorded"


def _published(published: dict[str, Any], name: str) -> str:
    if not isinstance(published.get(name), (int, float)):
        return "-"
    spread = published.get("std") if name == "micro_f1" else None
    return score_text(published[name]) + (f" ± {score_text(spread)}" if spread is not None else "")


def _curves(found: Evaluation) -> dict[str, Any] | None:
    """Charts over epochs; None for a portfolio or a model that was fitted in one step."""
    if len(found.records) < 2:
        return None
    records, selected = found.records, found.result.selected_epoch
    name = next((n for n in (f"val_{found.result.select_by}", "val_micro_f1", "val_r2") if n in records[0]), "val_loss")
    word = f"validation {metric_name(name.removeprefix('val_'))}"
    losses = {"train_loss": ("training loss", "second"), "val_loss": ("validation loss", "first")}
    charts = [
        epoch_chart(records, selected, "Loss", losses),
        epoch_chart(records, selected, word[0].upper() + word[1:], {name: (word, "first")}),
    ]
    return {"charts": charts, "selected": selected, "word": word, "corrects": BASELINE in found.shown.parts}


def epoch_chart(
    records: Sequence[dict[str, Any]], selected: int, title: str, lines: dict[str, tuple[str, str]]
) -> Chart:
    """Lines over epochs; ``lines`` maps a key of the records to words and the class of a line."""
    kept = [records[i] for i in thin(len(records))]
    epochs = [r["epoch"] for r in kept]
    values = {name: [float(r.get(name, math.nan)) for r in kept] for name in lines}
    words = [word for word, _ in lines.values()]
    finite = [v for found in values.values() for v in found if math.isfinite(v)]
    # Logarithmic if a few epochs would press all others to the bottom.
    log = bool(finite) and min(finite) > 0 and max(finite) > 30 * median(finite)
    height = (min(finite) / 1.1, max(finite) * 1.1) if log else padded_range(finite, zero=True)
    y_label = words[0].split()[-1] if len(words) > 1 else words[0]
    ends = ", ".join(f"{lines[name][0]} from {v[0]:.3g} to {v[-1]:.3g}" for name, v in values.items())
    return Chart(
        title + (" (log scale)" if log else ""),
        f"Line chart over {len(records)} epochs: {ends}; epoch {selected} was selected.",
        number_axes((0, max(epochs[-1], 1)), height, "epoch", y_label, log=log),
        rules=[(selected, "chosen")],
        lines=[Line(epochs, values[name], kind) for name, (_, kind) in lines.items()],
        columns=[
            (epoch, f"epoch {epoch}: " + ", ".join(f"{lines[name][0]} {v[i]:.4g}" for name, v in values.items()))
            for i, epoch in ((i, epochs[i]) for i in thin(len(epochs), _MAX_COLUMNS))
        ],
        key=[
            *(Key(word, line=kind) for word, kind in lines.values()),
            Key(f"selected epoch, {selected}", line="chosen"),
        ],
    )


def model_card(result: RunResult) -> str:
    """The model card of a result."""
    splits = [split for split in ("val", "test") if result.scores(split)]
    names = list(dict.fromkeys(name for split in splits for name in result.scores(split) if name != "loss"))
    return render(
        "model_card.md",
        result=result,
        # Text of a dataset becomes one line, in which nothing is a tag.
        line=lambda text: html.escape(" ".join(str(text).split()), quote=False),
        date=date_text(result.date),
        headers=["", *map(result.scores_name, splits)],
        scores=[(metric_name(name), *(score_text(result.scores(s).get(name), name) for s in splits)) for name in names],
        intervals=[
            f"{' to '.join(score_text(end, result.headline) for end in ends)} ({result.scores_name(split)})"
            for split, ends in result.intervals.items()
            if split in splits
        ],
        headline=metric_name(result.headline),
        calibration_error="" if result.calibration_error is None else score_text(result.calibration_error),
        scored_on="test" if result.test else result.scores_name("val"),
    )
