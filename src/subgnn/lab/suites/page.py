"""The page of a benchmark: one HTML file with its table, intervals, ranks, times and every dataset."""

import math
from typing import Any

import numpy as np
import pandas as pd

from subgnn.lab.suites.comparison import rank_models
from subgnn.lab.suites.report import MISSING, PROTOCOLS, Benchmark, score_text, with_labels
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
    parts, runs = [_Part(benchmark, protocol) for protocol in benchmark.protocols], benchmark.runs
    done = runs[runs["failure"].eq("")]
    commits, devices = (", ".join(sorted(filter(None, done[kind].unique()))) for kind in ("commit", "device"))
    return render(
        "benchmark.html",
        "subgnn.lab",
        title=benchmark.suite.title,
        lead=" ".join(benchmark.suite.note.split()),
        done=len(done),
        models=with_labels(runs)["label"].nunique(),
        commits=commits,
        devices=devices,
        parts=parts,
        given=benchmark.given,
        datasets=list(dict.fromkeys(name for part in parts for name in part.rows)),
        incomplete=benchmark.incomplete(),
        score=score_text,
    )


def _text(value: float | None) -> str:
    return MISSING if value is None or math.isnan(value) else f"{value:.3f}"


class _Part:
    """The runs of one protocol: models by rank, their means by dataset, and scores of the most frequent class."""

    def __init__(self, benchmark: Benchmark, protocol: str) -> None:
        self.benchmark, self.protocol, self.title = benchmark, protocol, PROTOCOLS[protocol]
        self.scores = benchmark.scores(protocol)
        self.ranking = rank_models(self.scores)
        self.best, self.missing = self.scores.round(3).max(), int(self.scores.isna().sum().sum())
        self.failures = {(one.label, one.dataset): one.failure for one in benchmark.failed.itertuples(index=False)}
        self.unranked = [name for name in self.scores.index if name not in self.ranking.models]
        self.names = [*self.ranking.models, *self.unranked]
        mine = benchmark.summary[benchmark.summary["protocol"] == protocol].to_dict("records")
        found = {(row["model"], row["dataset"]): row for row in mine}
        self.rows = {
            dataset: {name: found[name, dataset] for name in self.names if (name, dataset) in found}
            for dataset in self.scores.columns
        }
        self.majority = {row["dataset"]: row["majority"] for row in reversed(mine) if not math.isnan(row["majority"])}

    def _style(self, model: str) -> Style:
        return _GIVEN if model in self.benchmark.given else _OURS

    @staticmethod
    def interval(row: dict[str, Any]) -> str:
        """A score with its 95 % interval, where the number of test subgraphs is known."""
        return f"{row['micro_f1']:.3f}" + ("" if math.isnan(row["error"]) else f" ± {row['error']:.3f}")

    def dots(self, dataset: str) -> Chart:
        """A row for each model, in the order of ranks: its mean score, interval and published number."""
        marks, ends, labels = [], [], []
        for place, model in enumerate(self.names):
            row = self.rows[dataset].get(model)
            labels.append(cut(model, _LETTERS) if row else f"{cut(model, _LETTERS - 10)}, missing")
            if row is None:
                continue
            error = 0.0 if math.isnan(row["error"]) else row["error"]
            low, high = max(0.0, row["micro_f1"] - error), min(1.0, row["micro_f1"] + error)
            ends += [low, high]
            title, style = f"{model}: {self.interval(row)}, {row['n']} runs", self._style(model)
            marks.append(Mark(x=row["micro_f1"], y=place + 0.5, title=title, size=4, x_range=(low, high), style=style))
            known = self.benchmark.published(model, dataset)
            if known is not None:
                ends.append(known)
                marks.append(Mark(x=known, y=place + 0.5, title=f"published: {known:.3f}", style=_PUBLISHED))
        majority = [self.majority[dataset]] if dataset in self.majority else []
        key = [Key("95 % interval", line="whisker")]
        key += [Key("most frequent class", line="limit")] if majority else []
        key += [Key("published", style=_PUBLISHED)] if any(mark.style is _PUBLISHED for mark in marks) else []
        key += [Key("given", style=_GIVEN)] if self.benchmark.given else []
        return Chart(
            dataset,
            f"Test micro-F1 on {dataset}: " + "; ".join(mark.title for mark in marks),
            row_axes(labels, padded_range([*ends, *majority]), "test micro-F1"),
            rules=[(score, "limit") for score in majority],
            marks=marks,
            key=key,
        )

    def rank_chart(self) -> Chart | None:
        """The critical-difference diagram: a row for each model; a vertical bar joins models that do not differ."""
        difference, ranks = self.ranking.critical_difference, self.ranking.ranks
        if not difference:
            return None
        ranked = list(zip(self.ranking.models, ranks, strict=True))
        step, last, bars = max(0.4, len(ranks) / 40), max(ranks[-1], 1 + difference), []
        for i, (first, end) in enumerate(self.ranking.groups, 1):
            bars.append(Line([last + i * step] * 2, [first + 1.2, end + 1.8], "clique"))
        marks = [Mark(x=1, y=0.5, title=f"critical difference: {difference:.2f}", size=2, x_range=(1, 1 + difference))]
        for place, (model, rank) in enumerate(ranked, 1):
            marks.append(Mark(x=rank, y=place + 0.5, title=f"{model}: {rank:.2f}", size=4, style=self._style(model)))
        names = ["critical difference", *(cut(name, _LETTERS) for name in self.ranking.models)]
        return Chart(
            "Mean rank; a bar joins models that do not differ",
            "; ".join(f"{name} {rank:.2f}" for name, rank in ranked),
            row_axes(names, (0.5, last + (len(bars) + 1) * step), "mean rank, 1 is best"),
            lines=bars,
            marks=marks,
        )

    def seconds_chart(self) -> Chart | None:
        """Mean score against seconds of models with both on every dataset; those best for their time have names."""
        points = []
        for model in self.ranking.models:
            times = np.array([self.rows[name][model]["seconds"] for name in self.ranking.datasets], np.float64)
            if len(times) and (times > 0).all():
                points.append((float(np.exp(np.log(times).mean())), float(self.scores.loc[model].mean()), model))
        if len(points) < 2:
            return None
        front, highest = set(), -math.inf
        for _, mean, model in sorted(points, key=lambda point: (point[0], -point[1])):
            if mean > highest:
                front.add(model)
                highest = mean
        marks = []
        for seconds, mean, model in points:
            title, label = f"{model}: {mean:.3f}, {seconds:.3g} s", model if model in front else ""
            marks.append(Mark(x=seconds, y=mean, title=title, style=self._style(model), label=label))
        x = min(points)[0] / 1.5, max(points)[0] * 1.5
        y, labels = padded_range(mark.y for mark in marks), ("seconds of a run (geometric mean)", "mean micro-F1")
        title, text = "Mean micro-F1 over datasets against seconds", "; ".join(mark.title for mark in marks)
        return Chart(title, text, number_axes(x, y, *labels, log_x=True), marks=marks)

    def table(self, dataset: str) -> dict[str, Any]:
        """The table of a dataset by one protocol, the best first, without empty columns."""
        mine, pairs = sorted(self.rows[dataset].values(), key=lambda row: -row["micro_f1"]), self.benchmark.pairs
        columns = {
            "model": [row["model"] + (f" ({row['variant']})" if row["variant"] else "") for row in mine],
            "folds" if self.protocol == "folds" else "seeds": [str(row["n"]) for row in mine],
            "micro-F1": [self.interval(row) for row in mine],
            **{title: [_text(row[name]) for row in mine] for title, name in _COLUMNS.items()},
            "published": [_text(self.benchmark.published(row["model"], dataset)) for row in mine],
        }
        here = pairs[(pairs["dataset"] == dataset) & (pairs["protocol"] == self.protocol)]
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
        about = [PROTOCOLS[self.protocol]] + ([] if tested is None else [f"{tested:,.0f} test subgraphs"])
        if dataset in self.majority:
            about.append(f"most frequent class {self.majority[dataset]:.3f}")
        return {
            "caption": "; ".join(about),
            "header": list(kept),
            "rows": [list(line) for line in zip(*kept.values(), strict=True)],
            "missing": [name for name in self.names if name not in self.rows[dataset]],
        }
