"""The page of a benchmark: one HTML file with its table, intervals, ranks, times and every dataset."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from subgnn.lab.suites.ranks import Ranking
from subgnn.lab.suites.report import MISSING, PROTOCOLS, Benchmark, score_text
from subgnn.lab.suites.table import with_labels
from subgnn.render import cut, render
from subgnn.reports.charts import Chart, Key, Line, Mark, Style, group_style, number_axes, padded_range, row_axes

_LETTERS = 24
_OURS, _GIVEN, _PUBLISHED = group_style(0), group_style(5), Style("published", "diamond")
_COLUMNS = {
    "macro-F1": "macro_f1",
    "AUROC": "auroc",
    "AUPRC": "auprc",
    "calibration error": "calibration_error",
    "validation": "val_micro_f1",
}
_COSTS = {"seconds": "seconds", "MB": "memory_mb", "GPU MB": "gpu_memory_mb"}


def benchmark_page(benchmark: Benchmark) -> str:
    """The page."""
    parts = [_part(benchmark, protocol) for protocol in benchmark.protocols]
    datasets = list(dict.fromkeys(name for part in parts for name in part["datasets"]))
    sections = {"tables": "Table", "dots": "Intervals", "ranks": "Ranks", "seconds": "Seconds", "datasets": "Datasets"}
    return render(
        "benchmark.html",
        "subgnn.lab",
        title=benchmark.suite.title,
        lead=" ".join(benchmark.suite.note.split()),
        contents=[*sections.items(), ("missing", "Missing runs")],
        facts=_facts(benchmark),
        parts=parts,
        given=benchmark.given,
        datasets=[
            {"name": name, "tables": [table for part in parts if (table := part["datasets"].get(name))]}
            for name in datasets
        ],
        incomplete=benchmark.incomplete(),
    )


def _facts(benchmark: Benchmark) -> list[tuple[str, str]]:
    runs = benchmark.runs
    done = runs[runs["failure"].eq("")]
    return [
        (
            "Runs",
            f"{len(done):,} of {with_labels(runs)['label'].nunique()} models on {runs['dataset'].nunique()} datasets",
        ),
        ("Selection", "on validation; test is scored once"),
        (
            "95 % interval",
            "1.96 √(q (1 - q) / (n + 4) + s² / r), q = (p n + 2) / (n + 4): n test subgraphs, each right or wrong, and "
            "the deviation s of r seeds; by folds without the second term, as every subgraph is tested once",
        ),
        ("Commits", ", ".join(sorted(name for name in done["commit"].unique() if name)) or "not known"),
        ("Devices", ", ".join(sorted(name for name in done["device"].unique() if name)) or "not known"),
    ]


def _part(benchmark: Benchmark, protocol: str) -> dict[str, Any]:
    """What the page shows of one protocol."""
    scores, ranking = benchmark.scores(protocol), benchmark.ranking(protocol)
    names = [*ranking.models, *(name for name in scores.index if name not in ranking.models)]
    mine = benchmark.summary[benchmark.summary["protocol"] == protocol]
    rows = {(row["model"], row["dataset"]): row for row in mine.to_dict("records")}
    failed = with_labels(benchmark.runs)[benchmark.runs["failure"].ne("")]
    messages = {(one.label, one.dataset): one.failure for one in failed.itertuples(index=False)}
    best = scores.round(3).max()
    cells = []
    for model in names:
        rank = ranking.rank(model)
        mean = scores.loc[model].mean() if rank is not None else math.nan
        line = [(MISSING if rank is None else f"{rank:.1f}", "", ""), (score_text(mean), "", "")]
        for dataset in scores.columns:
            row = rows.get((model, dataset))
            if row is None:
                line.append((MISSING, f"{model} on {dataset}: {messages.get((model, dataset), 'no run')}", "missing"))
                continue
            title = f"{model} on {dataset}: {_interval(row)}, {row['n']} runs"
            line.append((score_text(row["score"]), title, "best" if round(row["score"], 3) == best[dataset] else ""))
        cells.append((model, model in benchmark.given, line))
    return {
        "id": protocol,
        "title": PROTOCOLS[protocol],
        "header": ["model", "rank", "mean", *scores.columns],
        "rows": cells,
        "missing": int(scores.isna().sum().sum()),
        "dots": [_dots(benchmark, name, names, rows) for name in scores.columns],
        "ranking": ranking,
        "unranked": [name for name in names if name not in ranking.models],
        "rank_chart": _rank_chart(ranking, benchmark.given) if ranking.critical_difference else None,
        "seconds": _seconds_chart(ranking, rows, benchmark.given),
        "datasets": {name: _dataset(benchmark, protocol, name, names, rows) for name in scores.columns},
    }


def _text(value: float | None) -> str:
    return MISSING if value is None or math.isnan(value) else f"{value:.3f}"


def _interval(row: dict[str, Any]) -> str:
    """A score with its 95 % interval, where the number of test subgraphs is known."""
    return f"{row['score']:.3f}" + ("" if math.isnan(row["error"]) else f" ± {row['error']:.3f}")


def _style(model: str, given: tuple[str, ...]) -> Style:
    return _GIVEN if model in given else _OURS


def _dots(benchmark: Benchmark, dataset: str, names: list[str], rows: dict[tuple[str, str], dict[str, Any]]) -> Chart:
    """A row for each model, in the order of ranks: its mean score, interval and published number."""
    marks, ends, labels = [], [], []
    for place, model in enumerate(names):
        row = rows.get((model, dataset))
        labels.append(cut(model, _LETTERS) if row else f"{cut(model, _LETTERS - 10)}, missing")
        if row is None:
            continue
        error = 0.0 if math.isnan(row["error"]) else row["error"]
        low, high = max(0.0, row["score"] - error), min(1.0, row["score"] + error)
        ends += [low, high]
        title, style = f"{model}: {_interval(row)}, {row['n']} runs", _style(model, benchmark.given)
        marks.append(Mark(x=row["score"], y=place + 0.5, title=title, size=4, x_range=(low, high), style=style))
        known = benchmark.published(model, dataset)
        if known is not None:
            ends.append(known)
            marks.append(Mark(x=known, y=place + 0.5, title=f"published: {known:.3f}", style=_PUBLISHED))
    majority = [
        row["majority"] for (_, name), row in rows.items() if name == dataset and not math.isnan(row["majority"])
    ]
    key = [Key("95 % interval", line="whisker")]
    key += [Key("most frequent class", line="limit")] if majority else []
    key += [Key("published", style=_PUBLISHED)] if any(mark.style is _PUBLISHED for mark in marks) else []
    key += [Key("given", style=_GIVEN)] if benchmark.given else []
    return Chart(
        dataset,
        f"Test micro-F1 on {dataset}: " + "; ".join(mark.title for mark in marks),
        row_axes(labels, padded_range([*ends, *majority[:1]]), "test micro-F1"),
        rules=[(majority[0], "limit")] if majority else [],
        marks=marks,
        key=key,
    )


def _rank_chart(ranking: Ranking, given: tuple[str, ...]) -> Chart:
    """The critical-difference diagram, with a row for each model; a vertical bar joins models that do not differ."""
    difference, k = ranking.critical_difference or 0.0, len(ranking.models)
    step = max(0.4, k / 40)
    last = max(ranking.ranks[-1], 1 + difference)
    bars = [
        Line([x, x], [first + 1.2, end + 1.8], "clique")
        for i, (first, end) in enumerate(ranking.groups)
        for x in [last + (i + 1) * step]
    ]
    marks = [Mark(x=1, y=0.5, title=f"critical difference: {difference:.2f}", size=2, x_range=(1, 1 + difference))]
    for place, (model, rank) in enumerate(zip(ranking.models, ranking.ranks, strict=True), 1):
        marks.append(Mark(x=rank, y=place + 0.5, title=f"{model}: {rank:.2f}", size=4, style=_style(model, given)))
    names = ["critical difference", *(cut(name, _LETTERS) for name in ranking.models)]
    return Chart(
        "Mean rank; a bar joins models that do not differ",
        "; ".join(f"{name} {rank:.2f}" for name, rank in zip(ranking.models, ranking.ranks, strict=True)),
        row_axes(names, (0.5, last + (len(bars) + 1) * step), "mean rank, 1 is best"),
        lines=bars,
        marks=marks,
    )


def _seconds_chart(
    ranking: Ranking, rows: dict[tuple[str, str], dict[str, Any]], given: tuple[str, ...]
) -> Chart | None:
    """Mean score against seconds of a run, of models with both on every dataset; the best for their time have names."""
    points = []
    for model, mean in zip(ranking.models, ranking.means, strict=True):
        seconds = np.array([rows[model, name]["seconds"] for name in ranking.datasets], np.float64)
        if len(seconds) and (seconds > 0).all():
            points.append((float(np.exp(np.log(seconds).mean())), mean, model))
    if len(points) < 2:
        return None
    front, highest = set(), -math.inf
    for _, mean, model in sorted(points, key=lambda point: (point[0], -point[1])):
        if mean > highest:
            front.add(model)
            highest = mean
    low, high = min(point[0] for point in points), max(point[0] for point in points)
    return Chart(
        "Mean micro-F1 over datasets against seconds",
        "; ".join(f"{model}: {mean:.3f}, {seconds:.3g} s" for seconds, mean, model in points),
        number_axes(
            (low / 1.5, high * 1.5),
            padded_range(point[1] for point in points),
            "seconds of a run (geometric mean)",
            "mean micro-F1",
            log_x=True,
        ),
        marks=[
            Mark(
                x=seconds,
                y=mean,
                title=f"{model}: {mean:.3f}, {seconds:.3g} s",
                style=_style(model, given),
                label=model if model in front else "",
            )
            for seconds, mean, model in points
        ],
    )


def _dataset(
    benchmark: Benchmark, protocol: str, dataset: str, names: list[str], rows: dict[tuple[str, str], dict[str, Any]]
) -> dict[str, Any]:
    """The table of a dataset by one protocol, the best first, without empty columns."""
    mine = sorted((rows[name, dataset] for name in names if (name, dataset) in rows), key=lambda row: -row["score"])
    columns = {
        "model": [row["model"] + (f" ({row['variant']})" if row["variant"] else "") for row in mine],
        "folds" if protocol == "folds" else "seeds": [str(row["n"]) for row in mine],
        "micro-F1": [_interval(row) for row in mine],
        **{title: [_text(row[name]) for row in mine] for title, name in _COLUMNS.items()},
        "published": [_text(benchmark.published(row["model"], dataset)) for row in mine],
    }
    here = benchmark.pairs[(benchmark.pairs["dataset"] == dataset) & (benchmark.pairs["protocol"] == protocol)]
    for against, some in here.groupby("against", sort=False):
        found = {(one["model"], one["variant"]): one for one in some.to_dict("records")}
        one_each = [found.get((row["model"], row["variant"])) for row in mine]
        columns[f"over {against}"] = [f"{one['lead']:+.3f}" if one else MISSING for one in one_each]
        columns[f"p over {against}"] = [_text(one["p"]) if one else MISSING for one in one_each]
    for title, name in _COSTS.items():
        columns[title] = [
            MISSING if pd.isna(row[name]) else f"{row[name]:,.3g}" if name == "seconds" else f"{row[name]:,.0f}"
            for row in mine
        ]
    kept = {title: cells for title, cells in columns.items() if any(cell != MISSING for cell in cells)}
    tested = max((row["tested"] for row in mine if not math.isnan(row["tested"])), default=None)
    majority = next((row["majority"] for row in mine if not math.isnan(row["majority"])), None)
    about = [
        PROTOCOLS[protocol],
        *([] if tested is None else [f"{tested:,.0f} test subgraphs"]),
        *([] if majority is None else [f"most frequent class {majority:.3f}"]),
    ]
    missing = [name for name in names if (name, dataset) not in rows]
    return {
        "id": f"{dataset}-{protocol}",
        "caption": "; ".join(about),
        "header": list(kept),
        "rows": [list(line) for line in zip(*kept.values(), strict=True)],
        "missing": missing,
    }
