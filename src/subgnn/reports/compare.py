"""Compare runs: their scores with intervals, and the settings in which they differ."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from subgnn.config.settings import Recipe
from subgnn.errors import DataError
from subgnn.models.recipes import setting_text
from subgnn.render import cut, render, write_page
from subgnn.reports.charts import Chart, Key, Mark, Style, group_style, padded_range, row_axes
from subgnn.reports.run_page import date_text, score_text
from subgnn.result import RESULTS, RunResult, read_result
from subgnn.task import metric_name
from subgnn.training.run_dir import PAGE, find_runs, read_run_recipe

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

    def score(self, split: str) -> tuple[float | None, tuple[float, float] | None]:
        """The headline score on a split and its 95 % interval; None for what is missing or undefined."""
        score = self.result.scores(split).get(self.result.headline, math.nan)
        low, high = self.result.intervals.get(split, (math.nan, math.nan))
        return score if math.isfinite(score) else None, (low, high) if math.isfinite(low + high) else None

    @property
    def seconds(self) -> float:
        found = self.result.seconds
        return found.pretrain + found.prepare + found.train

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "run": str(self.path)}
        found |= {key: getattr(self.result, key) for key in ("recipe", "dataset", "split", "seed", "task")}
        found["metric"] = self.result.headline
        for split in ("val", "test"):
            score, interval = self.score(split)
            found[split] = {"score": score, "interval": None if interval is None else list(interval)}
        return found | {"seconds": self.seconds, "date": self.result.date}

    def cells(self) -> list[str]:
        scores = [_scored(*self.score(split)) for split in ("val", "test")]
        day = date_text(self.result.date)[:_DAY]
        return [self.name, self.result.recipe, self.result.dataset, *scores, f"{self.seconds:.1f}", day]


HEADER = ("run", "recipe", "data", "val", "test", "seconds", "date")  # titles of ComparedRun.cells


def read_runs(folder: Path) -> tuple[list[ComparedRun], list[str]]:
    """The finished runs below a folder, by dataset and validation score, and a line about each that cannot be read."""
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
        score, _ = run.score("val")  # test scores are for reporting, not for choosing
        return run.result.dataset, run.result.headline, math.inf if score is None else -score, run.name

    return sorted(runs, key=order), problems


def by_dataset(runs: Sequence[ComparedRun]) -> dict[tuple[str, str], list[ComparedRun]]:
    """Group runs, in the order of :func:`read_runs`, by dataset and metric."""
    return {key: list(some) for key, some in groupby(runs, lambda run: (run.result.dataset, run.result.headline))}


def write_comparison(runs: Sequence[ComparedRun], out: Path, *, title: str, overwrite: bool = False) -> None:
    """Write the page that compares runs; it links to their own pages by relative paths."""
    groups, shown = by_dataset(runs), runs[:_MAX_COMPARED]
    pages = [os.path.relpath(run.path / PAGE, out.parent) if (run.path / PAGE).is_file() else "" for run in runs]
    page = render(
        "compare.html",
        title=title,
        header=HEADER,
        rows=[(page and f"./{quote(page)}", run.cells()) for page, run in zip(pages, runs, strict=True)],
        scores=[
            score_chart(name, some, [run for run in runs if run.result.headline == metric])
            for (name, metric), some in groups.items()
        ],
        names=[run.name for run in shown],
        settings=differing_settings(shown),
        left_out=len(runs) - len(shown),
    )
    write_page(page, out, overwrite=overwrite)


def score_chart(dataset: str, runs: Sequence[ComparedRun], same_metric: Sequence[ComparedRun]) -> Chart:
    """Validation and test scores of runs on a dataset, with their intervals, on one scale for all with the metric."""
    word, marks = metric_name(runs[0].result.headline), []
    pairs = [run.score(split) for run in same_metric for split in ("val", "test")]
    scale = padded_range(end for score, interval in pairs if score is not None for end in (score, *(interval or ())))
    for i, run in enumerate(runs):
        for split, place, style in (("val", 0.58, _VAL), ("test", 0.84, _TEST)):
            score, interval = run.score(split)
            if score is not None:
                text = f"{run.name}: {split} {word} {_scored(score, interval)}"
                marks.append(Mark(x=score, y=i + place, title=text, style=style, x_range=interval))
    return Chart(
        f"{dataset}: {word}",
        f"Scores on {dataset}: {'; '.join(mark.title for mark in marks)}.",
        row_axes([cut(run.name, 2 * _NAME) for run in runs], scale, word, names_above=True),
        marks=marks,
        key=[
            Key("validation (out of fold for auto)", style=_VAL),
            Key("test", style=_TEST),
            Key("95 % interval", "whisker"),
        ],
    )


def differing_settings(runs: Sequence[ComparedRun]) -> list[tuple[str, list[str]]]:
    """The settings in which runs differ: the name of each, and its value in each run as text."""
    flat = []
    for run in runs:
        found = {key: str(getattr(run.result, key)) for key in ("recipe", "dataset", "seed", "split")}
        found["version of subgnn"] = run.result.versions.get("subgnn", "")
        for key, value in run.recipe.plain().items():
            if key == "channels":
                found[key] = ", ".join(f"{one['kind']}/{one['side']} {one['num_anchors']}" for one in value)
            elif key not in _NOT_SETTINGS:
                table = isinstance(value, Mapping)
                items = {f"{key}.{name}": one for name, one in value.items()} if table else {key: value}
                found |= {name: one if isinstance(one, str) else setting_text(one) for name, one in items.items()}
        flat.append(found)
    names = dict.fromkeys(name for settings in flat for name in settings)
    rows = [(name, [settings.get(name, "") for settings in flat]) for name in names]
    return [(name, [cut(value, _VALUE) for value in values]) for name, values in rows if len(set(values)) > 1]


def _scored(score: float | None, interval: tuple[float, float] | None) -> str:
    """A score with its interval, such as 0.731 (0.662–0.807)."""
    if score is None:
        return ""
    ends = "" if interval is None else " ({}\N{EN DASH}{})".format(*map(score_text, interval))
    return score_text(score) + ends
