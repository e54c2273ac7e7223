"""Results of a suite's runs: groups of them, their scores, comparisons, calibration and overlap with training.

By the protocol ``folds`` every subgraph is predicted once in ten runs, by models that never saw it. The score is that
of all these predictions together, and models are compared subgraph by subgraph. With a split that is drawn by seed,
they are compared seed by seed; with a stored split in both ways, as its seeds share one test split.
"""

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
from scipy.stats import rankdata

from subgnn.errors import DataError
from subgnn.lab.suites.job import ANSWERS, FAILURE, OUTCOME
from subgnn.lab.suites.plan import FOLDS
from subgnn.lab.suites.spec import Suite
from subgnn.metrics.calibration import Bin, calibration
from subgnn.metrics.significance import (
    ScoreTerms,
    lead_interval,
    score_terms,
    sign_flip_test,
    standard_error,
    swap_test,
)
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

    def spread(self, split: str, metric: str) -> dict[str, float | None]:
        """Mean and deviation of a metric over seeds."""
        return spread(self.scores(split, metric).values())

    @property
    def metric(self) -> str:
        """The metric that is compared: micro-F1, or R^2 for real values."""
        return self.task.headline

    @property
    def task(self) -> Task:
        """The task of all runs."""
        return task_of(self.runs[0]["task"])

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
    """Outcomes of finished runs and messages of failed ones in ``runs`` of a suite, each with its ``folder``."""
    found: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*")):
        for name, kept in ((OUTCOME, found), (FAILURE, failed)):
            if (path / name).is_file():
                content = read_json(path / name, _REPLACE)
                if not isinstance(content, dict) or not {"dataset", "seed", "entries", "config"} <= set(content):
                    raise DataError("this file was not written by a suite", where=str(path / name), hint=_REPLACE)
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
    same = defaultdict(list)  # overrides of all configurations of a model on a dataset
    for group in found:
        same[group.dataset, group.model, group.setting, group.value].append(" ".join(group.runs[0]["set"]))
    labelled = []
    for group in found:
        changes, mine = same[group.dataset, group.model, group.setting, group.value], " ".join(group.runs[0]["set"])
        mark = mine if changes.count(mine) == 1 else f"{mine} {group.config[:8]}".strip()
        label = f"{group.model} · {mark}" if len(changes) > 1 and mark else group.model
        labelled.append(replace(group, label=label))
    return labelled


def spread(values: Iterable[float]) -> dict[str, float | None]:
    """Mean and population standard deviation; None if a value is undefined, or there is none."""
    every = list(values)
    if not every or not all(math.isfinite(value) for value in every):
        return {"mean": None, "std": None}
    return {"mean": fmean(every), "std": pstdev(every)}


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


@dataclass(frozen=True, slots=True, eq=False)
class ScoredGroup:
    """A group of runs with its test score.

    Shapes:
        subgraphs: (n,) rows of the dataset that were predicted, in order; empty where each seed has its own split.
        units: (n,) equal for subgraphs of one group or with equal nodes, which depend on each other.
        terms: what each of them adds to the score, the mean over its predictions.
    """

    group: Group
    subgraphs: NDArray[np.int64]
    units: NDArray[np.int64]
    terms: ScoreTerms

    @property
    def score(self) -> dict[str, float | None]:
        """The score and its deviation over runs; by folds, the score of all predictions together."""
        found = self.group.spread("test", self.group.metric)
        if self.group.split == "folds" and len(self.subgraphs):
            found["mean"] = self.terms.score
        return found

    @property
    def interval(self) -> list[float] | None:
        """The 95 % interval of the score by folds: 1.96 standard errors over subgraphs."""
        if self.group.split != "folds" or not len(self.subgraphs):
            return None
        error = 1.96 * standard_error(self.terms.joined(self.units))
        return [self.terms.score - error, self.terms.score + error]


def score_group(group: Group) -> ScoredGroup:
    """Read the predictions of a group whose runs can be compared subgraph by subgraph."""
    draws: dict[int, list[tuple[NDArray[Any], ...]]] = {}
    units: dict[int, int] = {}
    for run, found in group.predictions() if group.split != "random" else ():
        draw = run["seed"] // FOLDS if group.split == "folds" else run["seed"]
        rows = found["rows"]
        draws.setdefault(draw, []).append((rows, predicted(found, group.task.name), found["targets"]))
        units |= zip(rows.tolist(), found.get("units", rows).tolist(), strict=True)
    tested, gain, weight = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)]
    for parts in draws.values():  # one prediction per subgraph in each
        rows, labels, targets = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        terms = score_terms(labels, targets, group.task.name)
        tested.append(rows)
        gain.append(terms.gain)
        weight.append(terms.weight)
    subgraphs, places = np.unique(np.concatenate(tested), return_inverse=True)
    times = np.bincount(places)
    means = (np.bincount(places, np.concatenate(values)) / times for values in (gain, weight))
    unit = np.unique([units[row] for row in subgraphs.tolist()], return_inverse=True)[1]
    return ScoredGroup(group, subgraphs, unit, ScoreTerms(*means))


def compare(ours: ScoredGroup, theirs: ScoredGroup) -> list[dict[str, Any]]:
    """The lead over another model, first by the way of pairing that the protocol asks for.

    Returns:
        Entries of model, lead, n, p and what the n pairs are: seeds or subgraphs. Those over subgraphs have the 95 %
        interval of the lead, and how many subgraphs only one of the two predicts correctly (one class per subgraph).
        All tests are two-sided; subgraphs of one group, or with equal nodes, are swapped and drawn together.
    """
    found: list[dict[str, Any]] = []
    differences = paired(ours.group, theirs.group, "test")
    if differences and ours.group.split != "folds":
        lead, p = spread(differences)["mean"], sign_flip_test(differences)
        found.append({"model": theirs.group.label, "lead": lead, "n": len(differences), "p": p, "over": "seeds"})
    both, here, there = np.intersect1d(ours.subgraphs, theirs.subgraphs, return_indices=True)
    if not len(both):
        return found
    mine, other = ours.terms.take(here), theirs.terms.take(there)
    won, lost = (int((sign * (mine.gain - other.gain) > 0).sum()) for sign in (1, -1))
    units = np.unique(ours.units[here], return_inverse=True)[1]
    mine, other = mine.joined(units), other.joined(units)
    first, second = (mine, other) if mine.score >= other.score else (other, mine)
    found.append(
        {
            "model": theirs.group.label,
            "lead": mine.score - other.score,
            "interval": list(lead_interval(mine, other)),
            "n": len(both),
            "p": min(1.0, 2 * swap_test(first, second)),  # swaps are symmetric
            "over": "subgraphs",
            "only_ours": won if ours.group.task.one_class else None,
            "only_theirs": lost if ours.group.task.one_class else None,
        }
    )
    return found


def paired(ours: Group, theirs: Group, split: str) -> list[float]:
    """Differences of the compared metric by seed."""
    mine, other = (group.scores(split, group.metric) for group in (ours, theirs))
    return [mine[seed] - other[seed] for seed in sorted(mine) if seed in other]


def standings(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean score and mean rank over datasets, of models with a score on all of them; empty for one dataset.

    Rank 1 is the highest score among these models on a dataset; equal scores share the mean of their ranks. The lowest
    lead is that over the best baseline, on the dataset where it is lowest; None for a baseline.

    Example:
        >>> rows = [{"dataset": d, "model": m, "score": {"mean": s}, "against": None} for d, m, s in
        ...         [("x", "a", 0.9), ("y", "a", 0.5), ("x", "b", 0.8), ("y", "b", 0.5), ("x", "c", 0.1)]]
        >>> for line in standings(rows):
        ...     print(line)
        {'model': 'a', 'datasets': 2, 'mean': 0.7, 'rank': 1.25, 'lowest_lead': None}
        {'model': 'b', 'datasets': 2, 'mean': 0.65, 'rank': 1.75, 'lowest_lead': None}
    """
    known = {(row["model"], row["dataset"]): row["score"]["mean"] for row in rows}
    models, datasets = (list(dict.fromkeys(row[name] for row in rows)) for name in ("model", "dataset"))
    whole = [model for model in models if all(known.get((model, name)) is not None for name in datasets)]
    if len(datasets) < 2 or not whole:
        return []
    scores = np.array([[known[model, name] for name in datasets] for model in whole], np.float64)
    ranks = rankdata(-scores.round(12), axis=0).mean(axis=1)
    leads: dict[str, list[float]] = {model: [] for model in models}
    for row in rows:
        if row["against"] and row["against"]["lead"] is not None:
            leads[row["model"]].append(row["against"]["lead"])
    return [
        {
            "model": model,
            "datasets": len(datasets),
            "mean": fmean(values),
            "rank": float(rank),
            "lowest_lead": min(leads[model], default=None),
        }
        for model, values, rank in zip(whole, scores.tolist(), ranks, strict=True)
    ]


def reliability(group: Group) -> tuple[list[Bin], float] | None:
    """Bins of predicted and observed frequencies over all seeds, and the expected calibration error."""
    if group.task.real:
        return None
    found = [group.task.confidences(kept["probabilities"], kept["targets"]) for _, kept in group.predictions()]
    return calibration(*map(np.concatenate, zip(*found, strict=True))) if found else None


def overlap_bins(group: Group) -> list[dict[str, Any]]:
    """Micro-F1 of test subgraphs in five bins of their largest overlap with a training subgraph, over seeds.

    A bin includes its upper end but not its lower one; the first bin includes 0. A seed without a subgraph in a bin
    does not count there.
    """
    if group.task.real:
        return []
    scores: list[list[float]] = [[] for _ in BIN_ENDS]
    counts: list[list[int]] = [[] for _ in BIN_ENDS]
    for _, found in group.predictions():
        bins = np.searchsorted(np.asarray(BIN_ENDS) + _TINY, found["overlap"], side="left")
        classes = predicted(found, group.task.name)
        for i in range(len(BIN_ENDS)):
            here = bins == i
            counts[i].append(int(here.sum()))
            score = score_terms(classes[here], found["targets"][here], group.task.name).score
            if np.isfinite(score):  # not where there is none
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
        if sum(counts[i])
    ]


def random_score(group: Group) -> float | None:
    """The expected micro-F1 of random predictions: uniform over classes; with several labels, each with one half.

    With several labels it is the ratio of expectations, 2 TP over 2 TP + FP + FN.
    """
    classes = len(group.runs[0]["classes"])
    found = next((arrays for _, arrays in group.predictions()), None)
    if group.task.real or found is None:
        return None
    if not group.task.several:
        return 1 / classes
    there = float(np.mean(found["targets"].sum(axis=1)))
    return there / (there + (classes - there) / 2 + there / 2)
