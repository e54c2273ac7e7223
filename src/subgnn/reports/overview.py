"""The parts of a page that tell what was run, its scores, and how it learned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from subgnn.reports.findings import Findings
from subgnn.reports.markup import Markup, facts, join, paragraph, section, table, tag
from subgnn.reports.svg import MAX_POINTS, Axes, around, chart, key, thin
from subgnn.training.metrics import metric_text

NAMES = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "accuracy": "accuracy",
    "auroc": "AUROC",
    "mae": "mean absolute error",
    "rmse": "root mean square error",
    "r2": "R²",
    "loss": "loss",
}
SPLIT_WORDS = {"train": "training", "val": "validation", "test": "test"}


def figure_text(value: Any, name: str = "") -> str:
    """A metric as :func:`~subgnn.training.metrics.metric_text` writes it."""
    return metric_text(name, value) if isinstance(value, (int, float)) and math.isfinite(value) else "undefined"


def _headline(found: Findings) -> Markup:
    name = "r2" if found.task == "regression" else "micro_f1"
    ours, constant = found.results[found.split].get(name), found.constant()[name]
    guess = {"regression": "always the mean", "multi-label": "always the most frequent label"}.get(
        found.task, "always the most frequent class"
    )
    tiles = [
        (f"{SPLIT_WORDS[found.split]} {NAMES[name]}", figure_text(ours), f"on {len(found.rows):,} subgraphs"),
        ("for comparison", figure_text(constant), guess),
    ]
    published = found.results.get("published", {})
    if isinstance(published.get(name), (int, float)):
        gap = f"ours {ours - published[name]:+.3f}" if isinstance(ours, (int, float)) else ""
        tiles.append(("published", _published(published, name), gap))
    cells = (tag("div", tag("dt", what), tag("dd", value, tag("small", words))) for what, value, words in tiles)
    return tag("dl", *cells, class_="tiles")


def _published(published: dict[str, Any], name: str) -> str:
    if not isinstance(published.get(name), (int, float)):
        return "-"
    spread = published.get("std") if name == "micro_f1" else None
    return figure_text(published[name]) + (f" ± {figure_text(spread)}" if spread is not None else "")


def _metrics(found: Findings) -> Markup:
    results, published = found.results, found.results.get("published", {})
    constant = found.constant()
    guess = {"regression": "mean", "multi-label": "majority label"}.get(found.task, "majority class")
    header = ["metric", "validation", *(["test"] if found.split == "test" else []), guess]
    rows = []
    for name in constant:
        row = [NAMES.get(name, name), figure_text(results["val"].get(name), name)]
        row += [figure_text(results["test"].get(name), name)] if found.split == "test" else []
        rows.append([*row, figure_text(constant[name], name), *([_published(published, name)] if published else [])])
    caption = f"Scores at the selected epoch; the {guess} is scored on the {SPLIT_WORDS[found.split]} split"
    if found.task == "regression":
        caption += "; errors are in units of the label"
    parts = [table(caption, [*header, *(["published"] if published else [])], rows, class_="scores")]
    if published:
        parts.append(paragraph(f"Published: {published.get('source', 'no source given')}.", class_="note"))
    return join(parts)


def overview(found: Findings) -> Markup:
    """What was run, and its scores."""
    results, recipe, dataset = found.results, found.recipe, found.dataset
    graph, subgraphs = dataset.graph, dataset.subgraphs
    seconds, sizes = results["seconds"], {s: len(subgraphs.indices(s)) for s in SPLIT_WORDS}
    pairs = [
        ("Dataset", dataset.name),
        ("Graph", f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges"),
        ("Subgraphs", ", ".join(f"{count:,} {SPLIT_WORDS[split]}" for split, count in sizes.items())),
        *([("Not used by this recipe", "; ".join(results["unused"]))] if results.get("unused") else []),
        ("Task", found.task + (f", {len(found.classes)} classes" if found.classes else "")),
        ("Recipe", recipe.name),
        ("Seed", str(results["seed"])),
        *_model_facts(found),
        ("Selected epoch", _selected(results)),
        ("Time", f"{seconds['prepare']:.1f} s to prepare, {seconds['train']:.1f} s to train"),
        ("An epoch", f"{seconds['epoch_median']:.3g} s, the median"),
        ("Device", str(results.get("device", "not recorded"))),
        ("Peak memory", f"{results['peak_memory_mb']:,.0f} MB" if "peak_memory_mb" in results else "not recorded"),
    ]
    parts = [_headline(found), _metrics(found), facts(pairs)]
    if found.split == "val":
        words = (
            "The dataset has no test split: what follows is about the validation split, on which the epoch was chosen."
        )
        parts.append(paragraph(words, class_="warn"))
    else:
        parts += _changed(found)
    return section("run", "What was run", *parts)


def _selected(results: dict[str, Any]) -> str:
    """The epoch that was kept; of several networks, that of each."""
    if "members" in results:
        return ", ".join(str(one["selected_epoch"]) for one in results["members"]) + ", of each network by validation"
    return f"{results['selected_epoch']} of 0 to {results['epochs'] - 1}, by validation"


def _model_facts(found: Findings) -> list[tuple[str, str]]:
    """Of the network, or of the baseline and what was chosen on validation."""
    recipe, network = found.recipe, found.network
    if network is None:
        kept = found.results.get("candidate")
        return [("Method", recipe.method), *([("Kept on validation", str(kept))] if kept else [])]
    table_size = 0 if network.table is None else network.table.numel()
    others = sum(p.numel() for p in network.parameters()) - table_size
    trained = "trained" if recipe.embeddings.trainable else "not trained"
    several = found.networks > 1
    return [
        *([("Networks", f"{found.networks}; an answer is the mean of their outputs")] if several else []),
        ("Channels", "; ".join(f"{c.name} ({c.num_anchors} anchors)" for c in recipe.channels) or "none"),
        ("Layers", str(recipe.model.layers)),
        *_corrected(found),
        ("Weights of each" if several else "Weights", f"{others:,}; and {table_size:,} in node vectors, {trained}"),
    ]


def _corrected(found: Findings) -> list[tuple[str, str]]:
    """The baseline that the network corrects, and what was chosen for it on validation."""
    baseline = found.checkpoint.baseline
    return [] if baseline is None else [("Corrects", f"{baseline.spec.method} ({baseline.spec.title})")]


def _changed(found: Findings) -> list[Markup]:
    """A warning where the network, asked again, does not answer as it did when the run ended."""
    name = "r2" if found.task == "regression" else "micro_f1"
    before, now = found.results["test"].get(name), found.scored_again()[name]
    if not isinstance(before, (int, float)) or math.isclose(before, now, abs_tol=5e-3) or math.isnan(before + now):
        return []
    words = f"Asked again for this page, the network reaches a test {NAMES[name]} of {now:.3f}, not {before:.3f}: "
    return [paragraph(words + "has the dataset changed since the run?", class_="warn")]


def curves(found: Findings) -> Markup:
    """Losses and the validation score, epoch by epoch."""
    records, chosen = found.records, int(found.results["selected_epoch"])
    name = next((n for n in ("val_micro_f1", "val_r2") if n in records[0]), "val_loss")
    word = NAMES[name.removeprefix("val_")]
    losses = _line_chart(
        records, chosen, "Loss", [("train_loss", "training loss", "second"), ("val_loss", "validation loss", "first")]
    )
    score = _line_chart(records, chosen, f"Validation {word}", [(name, f"validation {word}", "first")])
    how = "the highest validation micro-F1, then the lowest validation loss"
    words = f"Of the first of {found.networks} networks. " if found.networks > 1 else ""
    words += f"The upright line marks epoch {chosen}, the one that was selected: "
    words += "the lowest validation loss." if found.task == "regression" else f"{how}."
    if found.checkpoint.baseline is not None:
        words += " Epoch 0 is the baseline that the network corrects; only a better score replaces it."
    return section("curves", "How it learned", paragraph(words), tag("div", losses, score, class_="charts"))


def _line_chart(
    records: Sequence[dict[str, Any]], chosen: int, title: str, lines: Sequence[tuple[str, str, str]]
) -> Markup:
    kept = [records[i] for i in thin(len(records), MAX_POINTS)]
    epochs = [r["epoch"] for r in kept]
    values = {name: [float(r.get(name, math.nan)) for r in kept] for name, _, _ in lines}
    every = [v for found in values.values() for v in found if math.isfinite(v)]
    # In logarithms where a few epochs would press all others to the floor.
    log = bool(every) and min(every) > 0 and max(every) > 30 * median(every)
    span = (min(every) / 1.1, max(every) * 1.1) if log else around(every, zero=True)
    last = max(epochs[-1], 1)
    axes = Axes.of((0, last), span, log=log)
    titles = [
        f"epoch {epoch}: " + ", ".join(f"{word} {values[name][i]:.4g}" for name, word, _ in lines)
        for i, epoch in enumerate(epochs)
    ]
    drawn = [axes.line(epochs, values[name], kind) for name, _, kind in lines]
    ends = ", ".join(f"{word} from {values[name][0]:.3g} to {values[name][-1]:.3g}" for name, word, _ in lines)
    entries = [(kind, word) for name, word, kind in lines]
    return chart(
        title + (" (log scale)" if log else ""),
        f"Line chart over {len(records)} epochs: {ends}; epoch {chosen} was selected.",
        axes.frame("epoch", lines[0][1].split()[-1] if len(lines) > 1 else lines[0][1]),
        axes.upright(chosen, "chosen"),
        *drawn,
        axes.hover(epochs, titles),
        key=key(*entries, ("chosen", f"selected epoch, {chosen}")),
    )
