"""Compare models: over datasets by their ranks and pairs of scores, and subgraph by subgraph from kept predictions.

Over subgraphs: by the protocol ``folds`` every subgraph is predicted once in ten runs, by models that never saw it;
with a stored split, all seeds predict one test split, and a subgraph counts with its mean over them. A split that is
drawn by seed has no such pairs.
"""

import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest, friedmanchisquare, rankdata, studentized_range, wilcoxon

from subgnn.lab.suites.job import ANSWERS
from subgnn.lab.suites.spec import FOLDS
from subgnn.metrics.significance import ScoreTerms, score_interval, score_terms, swap_test
from subgnn.task import task_of

_READ_ERRORS = (
    OSError, ValueError, KeyError, EOFError, SyntaxError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ranking:
    """Mean ranks of the models that have a score on every dataset, the best first."""

    models: tuple[str, ...]
    ranks: tuple[float, ...]
    datasets: tuple[str, ...]
    p: float | None  # of the Friedman test; None for fewer than three models or two datasets
    critical_difference: float | None
    groups: tuple[tuple[int, int], ...]  # first and last place of each largest set of neighbours that do not differ

    def rank(self, model: str) -> float | None:
        return self.ranks[self.models.index(model)] if model in self.models else None


def rank_models(scores: pd.DataFrame) -> Ranking:
    """Rank models by their scores; equal scores share the mean of their ranks.

    By the Nemenyi test, two of k models on n datasets differ at the level of 5 % if their mean ranks are further apart
    than ``q(.05, k) sqrt(k (k + 1) / (6 n))``, with q the studentized range over sqrt(2) (Demšar, JMLR 2006).
    """
    whole = scores.dropna()
    values = whole.to_numpy(np.float64)
    ranks = rankdata(-values.round(12), axis=0).mean(axis=1) if len(whole) else np.zeros(0)
    order = np.argsort(ranks, kind="stable")
    k, n = values.shape
    p = difference = None
    groups: list[tuple[int, int]] = []
    if k > 2 and n > 1:
        p = float(friedmanchisquare(*values.round(12)).pvalue)
        p = 1.0 if math.isnan(p) else p  # all scores are equal
        quantile = float(studentized_range.ppf(0.95, k, np.inf)) / math.sqrt(2)
        difference = quantile * math.sqrt(k * (k + 1) / (6 * n))
        ordered = ranks[order]
        for first in range(k):
            last = int(np.searchsorted(ordered, ordered[first] + difference + 1e-9)) - 1
            if last > first and (not groups or last > groups[-1][1]):
                groups.append((first, last))
    models, means = tuple(str(whole.index[i]) for i in order), tuple(float(ranks[i]) for i in order)
    return Ranking(models, means, tuple(map(str, whole.columns)), p, difference, tuple(groups))


def pair_over_datasets(scores: pd.DataFrame, ours: str) -> list[dict[str, Any]]:
    """One model against each other one over the datasets of both: mean difference, wins, losses and two-sided p.

    ``sign_p`` is that of the sign test, ``p`` that of Wilcoxon's signed ranks; None where no dataset differs.
    """
    found = []
    for other in (name for name in scores.index if name != ours):
        differences = (scores.loc[ours] - scores.loc[other]).dropna().to_numpy(np.float64).round(12)
        if not len(differences):
            continue
        wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
        differing = differences[differences != 0]
        row: dict[str, Any] = {"model": ours, "against": str(other), "datasets": len(differences)}
        row |= {"difference": float(differences.mean()), "wins": wins, "losses": losses, "p": None, "sign_p": None}
        if len(differing):
            row["p"] = float(wilcoxon(differing).pvalue)
            row["sign_p"] = float(binomtest(wins, wins + losses).pvalue)
        found.append(row)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """What a model's predictions add to its score, the mean over its runs."""

    subgraphs: NDArray[np.int64]  # (n,) rows of the dataset that were predicted, in order
    units: NDArray[np.int64]  # (n,) equal for subgraphs of one group or with equal nodes, which depend on each other
    terms: ScoreTerms


def read_predictions(runs: Sequence[Mapping[str, Any]]) -> Predicted | None:
    """Read the predictions of a model's runs; None where the split is random, or no file can be read."""
    draws: dict[int, list[tuple[NDArray[Any], ...]]] = {}  # one prediction of a subgraph in each
    units: dict[int, int] = {}
    for run in runs:
        try:
            with np.load(run["folder"] / ANSWERS, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
            said = task_of(run["task"]).decide(found["probabilities"], found.get("thresholds", 0.5))
            rows, targets = found["rows"], found["targets"]
        except _READ_ERRORS:
            continue
        draw = run["seed"] // FOLDS if run["split"] == "folds" else run["seed"]
        draws.setdefault(draw, []).append((rows, said, targets))
        units |= zip(rows.tolist(), found.get("units", rows).tolist(), strict=True)
    if not draws or runs[0]["split"] == "random":
        return None
    tested = []
    for parts in draws.values():
        rows, labels, targets = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        terms = score_terms(labels, targets, runs[0]["task"])
        tested.append((rows, terms.gain, terms.weight))
    every, *values = (np.concatenate(arrays) for arrays in zip(*tested, strict=True))
    subgraphs, places = np.unique(every, return_inverse=True)
    means = (np.bincount(places, one) / np.bincount(places) for one in values)
    unit = np.unique([units[row] for row in subgraphs.tolist()], return_inverse=True)[1]
    return Predicted(subgraphs, unit, ScoreTerms(*means))


def compare_predictions(ours: Predicted, theirs: Predicted) -> dict[str, float] | None:
    """Lead over another model on the subgraphs of both, its 95 % interval, and p of a two-sided swap test by units."""
    both, here, there = np.intersect1d(ours.subgraphs, theirs.subgraphs, return_indices=True)
    if not len(both):
        return None
    units = np.unique(ours.units[here], return_inverse=True)[1]
    mine, other = ours.terms.take(here).joined(units), theirs.terms.take(there).joined(units)
    first, second = (mine, other) if mine.score >= other.score else (other, mine)
    low, high = score_interval(mine, other)
    p = min(1.0, 2 * swap_test(first, second))  # swaps are symmetric
    return {"n": len(both), "lead": mine.score - other.score, "low": low, "high": high, "p": p}
