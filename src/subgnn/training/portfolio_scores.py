"""Scores of the candidates of a portfolio, and of outputs for labelled subgraphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.data.subgraphs import SubgraphSet
from subgnn.metrics.significance import ScoreTerms, score_interval, score_terms
from subgnn.models.examples import label_unit, target_tensor
from subgnn.models.spec import ModelSpec
from subgnn.ranking import recall_count
from subgnn.task import Thresholds, task_of
from subgnn.training.ensemble_selection import HEADLINE, RANKING, OutOfFold, prediction_terms, score_of, score_samples
from subgnn.training.portfolio import Pool, Row


@dataclass(frozen=True, slots=True, eq=False)
class CandidateScores:
    """Out-of-fold scores of candidates by the metric that they are compared by, with 95 % intervals."""

    pool: Pool
    metric: str

    @classmethod
    def by(cls, select_by: str, pool: Pool) -> CandidateScores:
        """Scores by the metric of a ranking where the recipe selects by one, else by the headline metric."""
        metric = task_of(pool.subgraphs.task).selection_metric(select_by)
        ranked = metric in RANKING or recall_count(metric) is not None
        return cls(pool, metric if ranked else HEADLINE)

    @property
    def metric_name(self) -> str:
        """The metric of the leaderboard: that of a ranking, else micro-F1 or R^2, whatever epochs are selected by."""
        return task_of(self.pool.subgraphs.task).headline if self.metric == HEADLINE else self.metric

    def constant(self) -> dict[str, float | None]:
        """The score of the constant prediction."""
        targets, task = np.asarray(self.pool.subgraphs.targets), self.pool.subgraphs.task
        if self.metric == HEADLINE:
            guess = np.broadcast_to(task_of(task).constant(targets), targets.shape)
            return self._with_interval(score_terms(guess, targets, task))
        even = np.zeros((1, len(targets), max(1, self.pool.subgraphs.num_classes)))  # equal scores of all subgraphs
        return {"score": score_of(even, targets, task, self.metric), "low": None, "high": None}

    def terms(self, row: Row) -> ScoreTerms | None:
        """The terms of the headline score of a candidate; None before it is judged."""
        if row.predictions is None:
            return None
        targets = np.asarray(self.pool.subgraphs.targets, np.float64)
        return prediction_terms(row.predictions.astype(np.float64), targets, self.pool.subgraphs.task)

    def of(self, row: Row) -> dict[str, float | None]:
        """The out-of-fold score of a candidate by the metric of selection, with its 95 % interval."""
        if row.predictions is None or self.metric == HEADLINE:
            terms = self.terms(row)
            return {"score": None, "low": None, "high": None} if terms is None else self._with_interval(terms)
        found, subgraphs = row.predictions.astype(np.float64), self.pool.subgraphs
        targets = np.asarray(subgraphs.targets, np.float64)
        samples = score_samples(found, OutOfFold(found[None], targets, subgraphs.task, self.pool.units, self.metric))
        low, high = np.quantile(samples, [0.025, 0.975]).tolist() if len(samples) else (None, None)
        return {"score": score_of(found, targets, subgraphs.task, self.metric), "low": low, "high": high}

    def _with_interval(self, terms: ScoreTerms) -> dict[str, float | None]:
        low, high = score_interval(terms.joined(self.pool.units))
        return {"score": terms.score, "low": low, "high": high}


def output_metrics(
    outputs: NDArray[Any],
    subgraphs: SubgraphSet,
    spec: ModelSpec,
    thresholds: Thresholds = 0.5,
    *,
    with_loss: bool = False,
    select_by: str = "auto",
) -> dict[str, float]:
    """Metrics of outputs for labelled subgraphs, after the loss where it is wanted."""
    found, targets = torch.from_numpy(np.asarray(outputs, np.float32)), target_tensor(subgraphs, spec.standards)
    options: dict[str, Any] = {"thresholds": thresholds, "select_by": select_by}
    task = task_of(spec.task)
    scores = task.metrics(found, targets, unit=label_unit(spec.standards), **options)
    return ({"loss": float(task.loss(found, targets))} if with_loss else {}) | scores
