"""Compare models of a suite: over seeds, over the subgraphs that both predicted, and over datasets.

By the protocol ``folds`` every subgraph is predicted once in ten runs, by models that never saw it. The score is that
of all these predictions together, and models are compared subgraph by subgraph. With a split that is drawn by seed,
they are compared seed by seed; with a stored split in both ways, as its seeds share one test split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from subgnn.lab.suites.plan import FOLDS
from subgnn.lab.suites.results import Group, predicted, spread
from subgnn.metrics.significance import (
    ScoreTerms,
    lead_interval,
    score_terms,
    sign_flip_test,
    standard_error,
    swap_test,
)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
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
        found = spread(self.group.scores("test", self.group.metric).values())
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


def score_group(group: Group) -> Scored:
    """Read the predictions of a group whose runs can be compared subgraph by subgraph."""
    draws: dict[int, list[tuple[NDArray[Any], ...]]] = {}
    units: dict[int, int] = {}
    for run, found in group.predictions() if group.split != "random" else ():
        draw = run["seed"] // FOLDS if group.split == "folds" else run["seed"]
        rows = found["rows"]
        draws.setdefault(draw, []).append((rows, predicted(found, group.task), found["targets"]))
        units |= zip(rows.tolist(), found.get("units", rows).tolist(), strict=True)
    tested, gain, weight = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)]
    for parts in draws.values():  # one prediction a subgraph in each
        rows, labels, targets = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        terms = score_terms(labels, targets, group.task)
        tested.append(rows)
        gain.append(terms.gain)
        weight.append(terms.weight)
    subgraphs, place = np.unique(np.concatenate(tested), return_inverse=True)
    times = np.bincount(place)
    means = (np.bincount(place, np.concatenate(values)) / times for values in (gain, weight))
    unit = np.unique([units[row] for row in subgraphs.tolist()], return_inverse=True)[1]
    return Scored(group, subgraphs, unit, ScoreTerms(*means))


def compare(ours: Scored, theirs: Scored) -> list[dict[str, Any]]:
    """The lead over another model, first by the way of pairing that the protocol asks for.

    Returns:
        Entries of model, lead, n, p and what the n pairs are: seeds or subgraphs. Those over subgraphs have the 95 %
        interval of the lead, and how many subgraphs only one of the two predicts correctly (one class a subgraph). All
        tests are two-sided; subgraphs of one group, or with equal nodes, are swapped and drawn together.
    """
    over_seeds = [] if ours.group.split == "folds" else _over_seeds(ours.group, theirs.group)
    return over_seeds + _over_subgraphs(ours, theirs)


def _over_seeds(ours: Group, theirs: Group) -> list[dict[str, Any]]:
    differences = paired(ours.scores("test", ours.metric), theirs.scores("test", theirs.metric))
    if not differences:
        return []
    lead, p = spread(differences)["mean"], sign_flip_test(differences)
    return [{"model": theirs.label, "lead": lead, "n": len(differences), "p": p, "over": "seeds"}]


def _over_subgraphs(ours: Scored, theirs: Scored) -> list[dict[str, Any]]:
    both, here, there = np.intersect1d(ours.subgraphs, theirs.subgraphs, return_indices=True)
    if not len(both):
        return []
    mine, other = ours.terms.take(here), theirs.terms.take(there)
    won, lost = (int((sign * (mine.gain - other.gain) > 0).sum()) for sign in (1, -1))
    single = ours.group.kind.one_class
    units = np.unique(ours.units[here], return_inverse=True)[1]
    mine, other = mine.joined(units), other.joined(units)
    first, second = (mine, other) if mine.score >= other.score else (other, mine)
    return [
        {
            "model": theirs.group.label,
            "lead": mine.score - other.score,
            "interval": list(lead_interval(mine, other)),
            "n": len(both),
            "p": min(1.0, 2 * swap_test(first, second)),  # swaps are symmetric
            "over": "subgraphs",
            "only_ours": won if single else None,
            "only_theirs": lost if single else None,
        }
    ]


def paired(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Differences by seed."""
    return [ours[seed] - theirs[seed] for seed in sorted(ours) if seed in theirs]


def standings(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean score and mean rank over datasets, of models with a score on all of them; empty for one dataset.

    Rank 1 is the highest score among these models on a dataset; equal scores share the mean of their ranks. The lowest
    lead is that over the best baseline, on the dataset where it is lowest; None for a baseline.

    Args:
        rows: of a report's table.

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
