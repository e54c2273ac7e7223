"""Compare models over datasets: mean ranks with critical differences, and pairs of models.

The Friedman test asks whether any of the models differ; the Nemenyi test says which do: two of k models on n datasets
differ at the level of 5 % if their mean ranks are further apart than

    CD = q(.05, k) sqrt(k (k + 1) / (6 n)),

with q the studentized range over sqrt(2) (Demšar, JMLR 2006).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, friedmanchisquare, rankdata, studentized_range, wilcoxon

_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Ranking:
    """Mean ranks of the models that have a score on every dataset, the best first.

    ``groups`` are the first and last place of each largest set of neighbours that do not differ; ``p`` is that of the
    Friedman test, None for fewer than three models or two datasets.
    """

    models: tuple[str, ...]
    ranks: tuple[float, ...]
    means: tuple[float, ...]
    datasets: tuple[str, ...]
    p: float | None
    critical_difference: float | None
    groups: tuple[tuple[int, int], ...]

    def rank(self, model: str) -> float | None:
        """The mean rank of a model; None if it misses a dataset."""
        return self.ranks[self.models.index(model)] if model in self.models else None


def scores_by_dataset(summary: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """Scores with a row for each model and a column for each dataset, in the order in which they occur."""
    mine = summary[summary["protocol"] == protocol]
    found = mine.pivot(index="model", columns="dataset", values="score")
    return found.reindex(index=mine["model"].unique(), columns=mine["dataset"].unique())


def rank_models(scores: pd.DataFrame) -> Ranking:
    """Rank models by their scores; equal scores share the mean of their ranks.

    Example:
        >>> scores = pd.DataFrame([[0.9, 0.5], [0.8, 0.5], [0.1, None]], ["a", "b", "c"], ["x", "y"])
        >>> found = rank_models(scores)
        >>> found.models, found.ranks
        (('a', 'b'), (1.25, 1.75))
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
            last = int(np.searchsorted(ordered, ordered[first] + difference + _TINY)) - 1
            if last > first and (not groups or last > groups[-1][1]):
                groups.append((first, last))
    return Ranking(
        tuple(str(whole.index[i]) for i in order),
        tuple(float(ranks[i]) for i in order),
        tuple(float(values[i].mean()) for i in order),
        tuple(map(str, whole.columns)),
        p,
        difference,
        tuple(groups),
    )


def pair_over_datasets(scores: pd.DataFrame, ours: str) -> list[dict[str, Any]]:
    """One model against each other one over the datasets that both have: mean difference, wins, losses and p.

    ``sign_p`` is that of the sign test, ``p`` that of Wilcoxon's signed ranks, both two-sided and without ties; None
    where no dataset differs.
    """
    found = []
    for other in (name for name in scores.index if name != ours):
        differences = (scores.loc[ours] - scores.loc[other]).dropna().to_numpy(np.float64).round(12)
        if not len(differences):
            continue
        wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
        differing = differences[differences != 0]
        found.append(
            {
                "model": ours,
                "against": str(other),
                "datasets": len(differences),
                "difference": float(differences.mean()),
                "wins": wins,
                "losses": losses,
                "p": float(wilcoxon(differing).pvalue) if len(differing) else None,
                "sign_p": float(binomtest(wins, wins + losses).pvalue) if len(differing) else None,
            }
        )
    return found
