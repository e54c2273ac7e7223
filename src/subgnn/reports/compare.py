"""Compare runs: their scores with intervals, their curves, and the settings in which they differ."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from subgnn.config.settings import Recipe
from subgnn.errors import DataError
from subgnn.render import cut, render, write_page
from subgnn.reports.charts import (
    COLOURS,
    MAX_POINTS,
    Chart,
    Key,
    Line,
    Mark,
    Style,
    group_line,
    group_style,
    number_axes,
    padded_range,
    row_axes,
    thin,
)
from subgnn.reports.evaluation import read_records, selected_records
from subgnn.reports.reproduce import setting_text
from subgnn.reports.run_page import date_text, score_text
from subgnn.result import RESULTS, RunResult, read_result
from subgnn.task import metric_name
from subgnn.training.run_dir import METRICS, PAGE, find_runs, read_run_recipe

_MAX_COMPARED = 40
_NAME, _VALUE, _DAY = 24, 60, len("2025-03-01")
_VAL, _TEST = group_style(0), Style("c5 edge-mark", "diamond")
_NOT_SETTINGS = ("name", "note", "published")


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRun:
    """A finished run; ``name`` is its path below the folder of all runs."""

    name: str
    path: Path
    result: RunResult
    recipe: Recipe

    @property
    def metric(self) -> str:
        """The headline metric."""
        return self.result.headline

    def score(self, split: str) -> float | None:
        """The headline score on a split; None if it is missing or undefined."""
        return _number(self.result.scores(split).get(self.metric))

    def interval(self, split: str) -> tuple[float, float] | None:
        """The 95 % interval of the score; None if it is missing or undefined."""
        low, high = map(_number, self.result.intervals.get(split, (None, None)))
        return None if low is None or high is None else (low, high)

    @property
    def seconds(self) -> float:
        """Time of the whole run."""
        found = self.result.seconds
        return found.pretrain + found.prepare + found.train

    def to_json(self) -> dict[str, Any]:
        """The run as plain values."""
        result = self.result
        about = {key: getattr(result, key) for key in ("recipe", "dataset", "split", "seed", "task")}
        scores = {
            split: {"score": self.score(split), "interval": list(self.interval(split) or ()) or None}
            for split in ("val", "test")
        }
        last = {"seconds": self.seconds, "date": result.date}
        return {"name": self.name, "run": str(self.path), **about, "metric": self.metric, **scores, **last}

    def cells(self) -> list[str]:
        """Name, recipe, data, scores, seconds and date, as text."""
        scores = [_scored(self.score(split), self.interval(split)) for split in ("val", "test")]
        day = date_text(self.result.date)[:_DAY]
        return [self.name, self.result.recipe, self.result.dataset, *scores, f"{self.seconds:.1f}", day]


HEADER = ("run", "recipe", "data", "val", "test", "seconds", "date")
"""Titles of :meth:`ComparedRun.cells`."""


def read_runs(folder: Path) -> tuple[list[ComparedRun], list[str]]:
    """The finished runs below a folder, and one line about each run that cannot be read.

    Runs are sorted by dataset and task, then by validation score, the best first: test scores are for reporting, not
    for choosing.
    """
    runs, problems = [], []
    for path in find_runs(folder):
        try:
            result = read_result(path)
            name = path.name if path == folder else path.relative_to(folder).as_posix()
            runs.append(ComparedRun(name, path, result, read_run_recipe(path)))
        except DataError as error:
            problems.append(str(error))
    if not runs:
        more = f"; {len(problems)} cannot be read: {problems[0]}" if problems else ""
        what = f"there is no finished run here{more}"
        raise DataError(what, where=str(folder), hint=f"give the folder where subgnn train wrote runs ({RESULTS})")

    def order(run: ComparedRun) -> tuple[str, str, float, str]:
        score = run.score("val")
        return run.result.dataset, run.metric, math.inf if score is None else -score, run.name

    return sorted(runs, key=order), problems


def by_dataset(runs: Sequence[ComparedRun]) -> dict[tuple[str, str], list[ComparedRun]]:
    """Group runs by dataset and metric."""
    groups: dict[tuple[str, str], list[ComparedRun]] = {}
    for run in runs:
        groups.setdefault((run.result.dataset, run.metric), []).append(run)
    return groups


def write_comparison(runs: Sequence[ComparedRun], out: Path, *, title: str, overwrite: bool = False) -> None:
    """Write the page that compares runs; it links to their own pages by relative paths."""
    groups = by_dataset(runs)
    scales = {metric: _scale([run for run in runs if run.metric == metric]) for _, metric in groups}
    shown, settings = runs[:_MAX_COMPARED], differing_settings(runs[:_MAX_COMPARED])
    curves = [chart for (name, _), some in groups.items() for chart in curve_charts(name, some)]
    contents = [("runs", "Runs"), ("scores", "Scores"), ("curves", "Curves"), ("settings", "Settings")]
    page = render(
        "compare.html",
        title=title,
        lead=f"{len(runs)} runs side by side.",
        contents=[pair for pair in contents if curves or pair[0] != "curves"],
        header=HEADER,
        rows=[(_link(run, out), run.cells()) for run in runs],
        scores=[score_chart(name, some, scales[metric]) for (name, metric), some in groups.items()],
        curves=curves,
        most_lines=COLOURS,
        names=[run.name for run in shown],
        settings=settings,
        left_out=len(runs) - len(shown),
    )
    write_page(page, out, overwrite=overwrite)


def _scale(runs: Sequence[ComparedRun]) -> tuple[float, float]:
    """A range that holds the scores and intervals of all runs."""
    pairs = [(run.score(split), run.interval(split)) for run in runs for split in ("val", "test")]
    return padded_range(end for score, interval in pairs if score is not None for end in (score, *(interval or ())))


def _link(run: ComparedRun, out: Path) -> str:
    """The relative address of a run's page; empty if there is none."""
    page = run.path / PAGE
    return "./" + quote(Path(os.path.relpath(page, out.parent)).as_posix()) if page.is_file() else ""


def score_chart(dataset: str, runs: Sequence[ComparedRun], scale: tuple[float, float]) -> Chart:
    """Validation and test scores of runs on a dataset, with their intervals, on a scale that all datasets share."""
    word, marks = metric_name(runs[0].metric), []
    for i, run in enumerate(runs):
        for split, place, style in (("val", 0.58, _VAL), ("test", 0.84, _TEST)):
            score, interval = run.score(split), run.interval(split)
            if score is not None:
                text = f"{run.name}: {split} {word} {_scored(score, interval)}"
                marks.append(Mark(x=score, y=i + place, title=text, style=style, size=3.5, x_range=interval))
    shown = "; ".join(mark.title for mark in marks)
    return Chart(
        f"{dataset}: {word}",
        f"Scores on {dataset}: {shown}.",
        row_axes([cut(run.name, 2 * _NAME) for run in runs], scale, word, names_above=True),
        marks=marks,
        key=[
            Key("validation (out of fold for auto)", style=_VAL),
            Key("test", style=_TEST),
            Key("95 % interval", line="whisker"),
        ],
    )


def curve_charts(dataset: str, runs: Sequence[ComparedRun]) -> list[Chart]:
    """Validation score and loss over epochs, one line per run with more than one epoch."""
    known = []
    for run in runs:
        try:
            where = run.path / METRICS
            every = [] if run.result.is_portfolio else read_records(where)
            records = selected_records(every, run.result, str(where)) if every else []
        except DataError:
            records = []
        if len(records) > 1:
            known.append((run, [records[i] for i in thin(len(records), MAX_POINTS)]))
    if not known:
        return []
    metric = runs[0].metric
    found = [
        _curve_chart(f"{dataset}: validation {metric_name(name)}", f"val_{name}", known[:COLOURS])
        for name in (metric, "loss")
    ]
    return [chart for chart in found if any(math.isfinite(y) for line in chart.lines for y in line.ys)]


def _curve_chart(caption: str, key: str, known: Sequence[tuple[ComparedRun, list[dict[str, Any]]]]) -> Chart:
    lines, entries = [], []
    for group, (run, records) in enumerate(known):
        values = [value if (value := _number(record.get(key))) is not None else math.nan for record in records]
        lines.append(Line([record["epoch"] for record in records], values, group_line(group)))
        entries.append(Key(cut(run.name, _NAME), line=group_line(group)))
    last = max(line.xs[-1] for line in lines)
    return Chart(
        caption,
        f"{caption} over epochs, of {', '.join(run.name for run, _ in known)}.",
        number_axes(
            (0, max(last, 1)), padded_range(y for line in lines for y in line.ys), "epoch", caption.split()[-1]
        ),
        lines=lines,
        key=entries,
    )


def differing_settings(runs: Sequence[ComparedRun]) -> list[tuple[str, list[str]]]:
    """The settings in which runs differ: the name of each, and its value in each run as text."""
    flat = [_settings(run) for run in runs]
    names = dict.fromkeys(name for settings in flat for name in settings)
    rows = [(name, [settings.get(name, "") for settings in flat]) for name in names]
    return [(name, [cut(value, _VALUE) for value in values]) for name, values in rows if len(set(values)) > 1]


def _settings(run: ComparedRun) -> dict[str, str]:
    """All settings of a run by their names in recipes, and whatever else determines its scores."""
    found: dict[str, str] = {key: str(getattr(run.result, key)) for key in ("recipe", "dataset", "seed", "split")}
    found["version of subgnn"] = run.result.versions.get("subgnn", "")
    for key, value in run.recipe.plain().items():
        if key in _NOT_SETTINGS:
            continue
        if key == "channels":
            found[key] = ", ".join(f"{one['kind']}/{one['side']} {one['num_anchors']}" for one in value)
            continue
        several = (
            {f"{key}.{name}": item for name, item in value.items()} if isinstance(value, Mapping) else {key: value}
        )
        found |= {name: one if isinstance(one, str) else setting_text(one) for name, one in several.items()}
    return found


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _scored(score: float | None, interval: tuple[float, float] | None) -> str:
    """A score with its interval, such as 0.731 (0.662–0.807)."""
    if score is None:
        return ""
    ends = "" if interval is None else " ({}\N{EN DASH}{})".format(*map(score_text, interval))
    return score_text(score) + ends
