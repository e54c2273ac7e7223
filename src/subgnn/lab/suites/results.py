"""Results of a suite's runs: groups of them, calibration, and scores by overlap with training subgraphs."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError
from subgnn.lab.suites.job import ANSWERS, FAILURE, OUTCOME
from subgnn.lab.suites.spec import Suite
from subgnn.metrics.significance import score_terms
from subgnn.reports.figures import Bin, calibration, principal_axes
from subgnn.storage.files import read_json
from subgnn.task import Task, TaskName, task_of

BIN_ENDS = (0.2, 0.4, 0.6, 0.8, 1.0)
_READ_ERRORS = (OSError, ValueError, KeyError, EOFError, SyntaxError, RuntimeError, MemoryError)
_TINY = 1e-6  # overlaps are stored as float32
_REPLACE = "remove the run's folder, and run the suite again"


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Runs that differ in their seed alone, ordered by seed; ``label`` is the model's, made unique if necessary."""

    dataset: str
    model: str
    setting: str
    value: str
    config: str
    runs: tuple[dict[str, Any], ...]
    label: str = ""

    def scores(self, split: str, metric: str) -> dict[int, float]:
        """A metric by seed; NaN if a run does not have it."""
        return {run["seed"]: number(run[split].get(metric)) for run in self.runs}

    @property
    def metric(self) -> str:
        """The metric that is compared: micro-F1, or R^2 for real values."""
        return self.kind.headline

    @property
    def task(self) -> TaskName:
        """The task of all runs."""
        task: TaskName = self.runs[0]["task"]
        return task

    @property
    def kind(self) -> Task:
        """What the labels of all runs are."""
        return task_of(self.task)

    @property
    def split(self) -> str:
        """The split of all runs."""
        split: str = self.runs[0]["split"]
        return split

    def predictions(self) -> Iterator[tuple[dict[str, Any], dict[str, NDArray[Any]]]]:
        """Each run with the arrays of its answers.npz, except runs without a test split or with a damaged file."""
        for run in self.runs:
            try:
                with np.load(run["folder"] / ANSWERS, allow_pickle=False) as file:
                    arrays = {name: file[name] for name in file.files}
            except (*_READ_ERRORS, zipfile.BadZipFile, zlib.error):
                continue
            yield run, arrays


def read_runs(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Outcomes of finished runs and messages of failed ones, each with its ``folder``.

    Args:
        folder: ``runs`` of a suite.
    """
    found: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*")):
        for name, kept in ((OUTCOME, found), (FAILURE, failed)):
            if (path / name).is_file():
                content = read_json(path / name, _REPLACE)
                if not isinstance(content, dict) or not {"dataset", "seed", "entries", "config"} <= set(content):
                    raise DataError("this is not a file of a suite", where=str(path / name), hint=_REPLACE)
                kept.append({**content, "folder": path})
                break
    return found, failed


def group_runs(suite: Suite, outcomes: Iterable[dict[str, Any]]) -> list[Group]:
    """Runs by dataset, model, setting and value, in the suite's order; copies of a run count once."""
    groups: dict[tuple[str, str, str, str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
    for run in outcomes:
        for entry in run["entries"]:
            key = (run["dataset"], entry["model"], entry["setting"], entry["value"], run["config"])
            groups[key].setdefault(run["seed"], run)
    datasets, models = [d.name for d in suite.datasets], [m.label for m in suite.models]
    values = [("", "")] + [(s.name, value) for s in suite.settings for value in s.values]

    def order(key: tuple[str, ...]) -> tuple[Any, ...]:
        return place(key[0], datasets), place(key[1], models), place((key[2], key[3]), values), key

    found = [Group(*key, tuple(run for _, run in sorted(groups[key].items()))) for key in sorted(groups, key=order)]
    return [replace(group, label=label) for group, label in zip(found, _labels(found), strict=True)]


def spread(values: Iterable[float]) -> dict[str, float | None]:
    """Mean and population standard deviation; None if a value is undefined, or there is none."""
    every = list(values)
    if not every or not all(math.isfinite(value) for value in every):
        return {"mean": None, "std": None}
    return {"mean": fmean(every), "std": pstdev(every)}


def _labels(groups: Sequence[Group]) -> list[str]:
    """The model's label; for several configurations of it on one dataset, with the overrides that differ."""
    same = defaultdict(list)
    for group in groups:
        same[group.dataset, group.model, group.setting, group.value].append(" ".join(group.runs[0]["set"]))
    found = []
    for group in groups:
        changes = same[group.dataset, group.model, group.setting, group.value]
        mine = " ".join(group.runs[0]["set"])
        mark = mine if changes.count(mine) == 1 else f"{mine} {group.config[:8]}".strip()
        found.append(f"{group.model} · {mark}" if len(changes) > 1 and mark else group.model)
    return found


def number(value: Any) -> float:
    """A number that may be missing, as NaN then."""
    return float(value) if isinstance(value, (int, float)) else math.nan


def place(name: Any, known: Sequence[Any]) -> int:
    """The place of a name in an order; the end for others."""
    return known.index(name) if name in known else len(known)


def predicted(answers: Mapping[str, NDArray[Any]], task: TaskName) -> NDArray[Any]:
    """Predictions of a run's answers.npz: classes (n,), sets of classes (n, classes), or values (n,).

    A label is predicted above its threshold, which is one half where none is stored.
    """
    return task_of(task).decide(answers["probabilities"], answers.get("thresholds", 0.5))


def reliability(group: Group) -> tuple[list[Bin], float] | None:
    """Bins of predicted and observed frequencies over all seeds, and the expected calibration error."""
    if group.kind.real:
        return None
    found = [group.kind.confidences(kept["probabilities"], kept["targets"]) for _, kept in group.predictions()]
    return calibration(*map(np.concatenate, zip(*found, strict=True))) if found else None


def overlap_bins(group: Group) -> list[dict[str, Any]]:
    """Micro-F1 of test subgraphs in five bins of their largest overlap with a training subgraph, over seeds.

    A bin includes its upper end but not its lower one; the first bin includes 0. A seed without a subgraph in a bin
    does not count there.
    """
    if group.kind.real:
        return []
    scores: list[list[float]] = [[] for _ in BIN_ENDS]
    counts: list[list[int]] = [[] for _ in BIN_ENDS]
    for _, found in group.predictions():
        place = np.searchsorted(np.asarray(BIN_ENDS) + _TINY, found["overlap"], side="left")
        classes = predicted(found, group.task)
        for i in range(len(BIN_ENDS)):
            here = place == i
            counts[i].append(int(here.sum()))
            if here.any():
                score = score_terms(classes[here], found["targets"][here], group.task).score
                if np.isfinite(score):
                    scores[i].append(score)
    return [
        {
            "begin": 0.0 if i == 0 else BIN_ENDS[i - 1],
            "end": end,
            "subgraphs": float(np.mean(counts[i])),
            "n": len(scores[i]),
            "micro_f1": spread(scores[i]),
        }
        for i, end in enumerate(BIN_ENDS)
        if counts[i] and sum(counts[i])
    ]


def random_score(group: Group) -> float | None:
    """The expected micro-F1 of random predictions: uniform over classes; with several labels, each with one half.

    With several labels it is the ratio of expectations, 2 TP over 2 TP + FP + FN.
    """
    classes = len(group.runs[0]["classes"])
    found = next((arrays for _, arrays in group.predictions()), None)
    if group.kind.real or found is None:
        return None
    if not group.kind.several:
        return 1 / classes
    there = float(np.mean(found["targets"].sum(axis=1)))
    return there / (there + (classes - there) / 2 + there / 2)


def projection(group: Group) -> tuple[NDArray[np.float64], NDArray[Any], tuple[float, float], int] | None:
    """z_S of the test subgraphs on their first two principal axes.

    Returns:
        Coordinates (n, 2), targets, the shares of the variance along the two axes, and the seed; None if no run of the
        group has saved vectors.
    """
    for run, found in group.predictions():
        known = principal_axes(found["vectors"]) if "vectors" in found else None
        if known is not None:
            return known[0], found["targets"], known[1], run["seed"]
    return None


def calibration_groups(groups: Sequence[Group], rows: Sequence[dict[str, Any]], dataset: str) -> list[Group]:
    """The groups whose calibration is shown: all models that are not baselines, and the best baseline."""
    mine = {row["config"] for row in rows if row["dataset"] == dataset and not row["baseline"]}
    rivals = {row["against"]["model"] for row in rows if row["dataset"] == dataset and row["against"]}
    plain = [group for group in groups if group.dataset == dataset and not group.setting]
    return [group for group in plain if group.config in mine or group.label in rivals]
