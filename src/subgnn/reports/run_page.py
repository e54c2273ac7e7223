"""The page of a run, RUN/report.html: its settings, scores, learning curves, predictions, and how to reproduce it."""

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
from subgnn.models.spec import BASELINE
from subgnn.render import render, write_page
from subgnn.reports.charts import MAX_POINTS, Chart, Key, Line, number_axes, padded_range, thin
from subgnn.reports.evaluation import FOLDS, SPLIT_NAMES, Evaluation, evaluate, evaluate_run
from subgnn.reports.predictions import (
    calibration_values,
    confusion_values,
    example_groups,
    prediction_values,
    scatter_chart,
)
from subgnn.reports.reproduce import command, recipe_toml
from subgnn.reports.scores import CLASS_HEADER, class_rows, leaderboard_values, threshold_table
from subgnn.result import read_result
from subgnn.task import metric_name, metric_text
from subgnn.training.options import TrainedRun
from subgnn.training.run_dir import PAGE, as_trained, dataset_path

_MAX_COLUMNS = 250  # tooltips of a chart over epochs


def run_report(run: Path, dataset: Dataset, trained: TrainedRun | None = None) -> str:
    """The page of a finished run, which is read from its folder unless it was just trained on the dataset."""
    found = evaluate_run(run, dataset) if trained is None else evaluate(trained, dataset)
    result, curves = found.result, _curves(found)
    board = leaderboard_values(result, word=metric_name(result.metric)) if result.is_portfolio else None
    scores = "Predicted and true values" if found.task.real else f"Scores of each {found.task.word}"
    threshold = None  # the table of thresholds that were chosen for an aim, and notes
    if (report := result.threshold) is not None:
        of_aim, header, rows = threshold_table(report)
        of_aim = of_aim[0].upper() + of_aim[1:]
        threshold = {"title": of_aim, "header": header, "rows": rows, "notes": threshold_notes(report)}
    line, needs_file = command(found.recipe, result)
    optional = {"leaderboard": board, "curves": curves}
    absent = {name for name, values in optional.items() if not values}
    contents = [
        ("run", "Overview"),
        ("leaderboard", "Leaderboard"),
        ("curves", "Learning curves"),
        ("predictions", "Scores by class" if found.classes else "Predictions"),
        ("table", "Predictions" if found.classes else "Table"),
        ("subgraphs", "Examples"),
        ("calibration", "Calibration"),
        ("reproduce", "Reproduce"),
    ]
    return render(
        "run.html",
        title=f"{result.recipe} on {dataset.name}, seed {result.seed}",
        lead=f"Method {found.recipe.method}: training data, settings, scores and predictions.",
        contents=[pair for pair in contents if pair[0] not in absent],
        task=found.task,
        split=found.scored_on,
        networks=found.networks,
        member=found.member,
        thresholds=np.ndim(found.thresholds) > 0,
        threshold=threshold,
        predictions_title=f"{scores} on the {found.scored_on}",
        overview=_overview(found),
        warnings=result.warnings,
        leaderboard=board,
        curves=curves,
        confusion=confusion_values(found) if found.task.one_class else None,
        classes=class_rows(found) if found.classes else [],
        class_header=[found.task.word, *CLASS_HEADER],
        num_classes=len(found.classes),
        table_of=prediction_values(found),
        scatter=scatter_chart(found) if found.task.real else None,
        examples=example_groups(found),
        calibration=calibration_values(found),
        reproduce={
            "command": line,
            "file": f"{found.recipe.name}.toml" if needs_file else "",
            "facts": [
                ("Versions", ", ".join(f"{name} {version}" for name, version in result.versions.items())),
                ("Graph, SHA-256 of its content", found.checkpoint.spec.graph_hash),
                ("Subgraphs, SHA-256 of nodes, labels and splits", dataset.subgraphs.content_hash),
            ],
            "settings": recipe_toml(found.recipe),
        },
    )


def write_report(run: Path, out: Path | None = None, *, data: Path | None = None, overwrite: bool = False) -> Path:
    """Write the page of a finished run, by default RUN/report.html, which is replaced, and return its path."""
    result = read_result(run)
    page = run_report(run, as_trained(read_dataset(dataset_path(run, result, data)), result))
    write_page(page, out or run / PAGE, overwrite=overwrite or out is None)
    return out or run / PAGE


def score_text(value: Any, name: str = "") -> str:
    """A metric as :func:`~subgnn.task.metric_text` writes it, or "undefined"."""
    return metric_text(name, value) if _is_number(value) and math.isfinite(value) else "undefined"


def date_text(date: str) -> str:
    """When a run was finished, to the minute, such as 2025-03-01 09:30 UTC."""
    try:
        return datetime.fromisoformat(date).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return "not recorded"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _overview(found: Evaluation) -> dict[str, Any]:
    result, published = found.result, found.result.published
    shown = "val" if found.split == FOLDS else found.split
    constant, scored = found.constant(), result.scores(shown)
    headline, names = result.headline, SPLIT_NAMES | ({"val": "out of fold"} if result.is_portfolio else {})
    ours, guess = scored.get(headline), found.task.constant_word
    low, high = found.interval()
    ends = f"95 % interval {score_text(low)} to {score_text(high)}, " if math.isfinite(low + high) else ""
    tiles = [
        (f"{names[shown]} {metric_name(headline)}", score_text(ours), f"{ends}on {len(found.rows):,} subgraphs"),
        ("trivial baseline", score_text(constant[headline]), f"always predicting the {guess}"),
    ]
    if _is_number(published.get(headline)):
        gap = f"ours {ours - published[headline]:+.3f}" if _is_number(ours) else ""
        tiles.append(("published", _published(published, headline), gap))
    columns = ["val", "test"] if found.split == "test" else ["val"]
    rows = [
        [
            metric_name(name),
            *(score_text(result.scores(split).get(name), name) for split in columns),
            score_text(constant[name], name),
            *([_published(published, name)] if published else []),
        ]
        for name in constant
    ]
    return {
        "tiles": tiles,
        "header": ["metric", *(names[s] for s in columns), guess, *(["published"] if published else [])],
        "rows": rows,
        "constant": guess,
        "source": published.get("source", "no source given") if published else "",
        "facts": _facts(found),
    }


def _published(published: dict[str, Any], name: str) -> str:
    if not _is_number(published.get(name)):
        return "-"
    spread = published.get("std") if name == "micro_f1" else None
    return score_text(published[name]) + (f" ± {score_text(spread)}" if spread is not None else "")


def _facts(found: Evaluation) -> list[tuple[str, str]]:
    result, dataset = found.result, found.dataset
    graph, subgraphs = dataset.graph, dataset.subgraphs
    seconds, splits = result.seconds, {} if subgraphs.splits is None else SPLIT_NAMES
    sizes = [f"{len(subgraphs.indices(split)):,} {name}" for split, name in splits.items()]
    selected = f"{result.selected_epoch} of 0 to {result.epochs - 1}, by validation"
    if result.members:
        each = ", ".join(str(member.selected_epoch) for member in result.members)
        selected = f"{each}, of each network by validation"
    epochs = [("Selected epoch", selected), ("Time of an epoch", f"{seconds.epoch_median:.3g} s, the median")]
    updated: list[tuple[str, str]] = []
    if (given := result.updated_from) is not None:
        name = result.headline
        scores = f"{score_text(given.before.get(name), name)} before, {score_text(given.after.get(name), name)} now"
        same = (metric_name(name), f"{scores}, on the same {given.subgraphs:,} held-out subgraphs")
        updated = [("Updated from", given.run), ("Graph", given.graph)]
        updated.append(("Before and after", given.note) if given.note else same)
    return [
        ("Dataset", dataset.name),
        ("Graph", f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges"),
        ("Subgraphs", ", ".join(sizes) or f"{len(subgraphs):,}, without splits"),
        *([("Not used by this recipe", "; ".join(result.unused))] if result.unused else []),
        ("Task", found.task.name + (f", {len(found.classes)} classes" if found.classes else "")),
        ("Recipe", found.recipe.name),
        ("Seed", str(result.seed)),
        ("Date", date_text(result.date)),
        *updated,
        *_model_facts(found),
        *(epochs if len(found.records) > 1 else []),
        ("Time", f"{seconds.prepare:.1f} s to prepare, {seconds.train:.1f} s to train"),
        ("Device", result.device),
        ("Peak memory", f"{result.peak_memory_mb:,.0f} MB"),
    ]


def _model_facts(found: Evaluation) -> list[tuple[str, str]]:
    """Facts about the network, or about the baseline and the candidate that was selected on validation."""
    shown, network, baseline = found.shown.spec, found.network, found.shown.parts.get(BASELINE)
    candidate = found.result.candidate
    facts = [("Method", found.recipe.method), *([("Selected on validation", candidate)] if candidate else [])]
    if network is None:
        return facts
    table_size = 0 if network.table is None else network.table.numel()
    others = sum(p.numel() for p in network.parameters()) - table_size
    trained = "trained" if shown.embeddings.trainable else "not trained"
    several = found.networks > 1
    return [
        *([] if found.member is None else [*facts, ("Member with channels", found.member)]),
        *([("Networks", f"{found.networks}; their outputs are averaged")] if several else []),
        ("Channels", "; ".join(f"{c.name} ({c.num_anchors} anchors)" for c in shown.channels) or "none"),
        ("Layers", str(shown.model.layers)),
        *([] if baseline is None else [("Corrects", f"{baseline.spec.method} ({baseline.spec.title})")]),
        ("Weights of each" if several else "Weights", f"{others:,}; and {table_size:,} in node vectors, {trained}"),
    ]


def _curves(found: Evaluation) -> dict[str, Any] | None:
    """Charts over epochs; None for a portfolio or a model that was fitted in one step."""
    if len(found.records) < 2:
        return None
    records, selected = found.records, found.result.selected_epoch
    selected_by = f"val_{found.result.select_by}"
    name = next((n for n in (selected_by, "val_micro_f1", "val_r2") if n in records[0]), "val_loss")
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
    kept = [records[i] for i in thin(len(records), MAX_POINTS)]
    epochs = [r["epoch"] for r in kept]
    values = {name: [float(r.get(name, math.nan)) for r in kept] for name in lines}
    words = [word for word, _ in lines.values()]
    finite = [v for found in values.values() for v in found if math.isfinite(v)]
    # Logarithmic if a few epochs would press all others to the bottom.
    log = bool(finite) and min(finite) > 0 and max(finite) > 30 * median(finite)
    ends = ", ".join(f"{lines[name][0]} from {v[0]:.3g} to {v[-1]:.3g}" for name, v in values.items())
    return Chart(
        title + (" (log scale)" if log else ""),
        f"Line chart over {len(records)} epochs: {ends}; epoch {selected} was selected.",
        number_axes(
            (0, max(epochs[-1], 1)),
            (min(finite) / 1.1, max(finite) * 1.1) if log else padded_range(finite, zero=True),
            "epoch",
            words[0].split()[-1] if len(words) > 1 else words[0],
            log=log,
        ),
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
