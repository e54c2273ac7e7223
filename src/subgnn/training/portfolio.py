"""The candidates of a portfolio: which there are, what they score out of fold, and whether more labels would help.

Candidates that are finished are kept in RUN/candidates, and are not judged again when a run is resumed.

The learning curve says what the answer scores when it learns from a quarter and a half of the subgraphs. For each fold,
the members are fitted again to parts of the subgraphs that they learned from, and predict the same held-out fold. Parts
are drawn by class, subgraphs of equal nodes or one group together, and the quarter is within the half. Members keep
their weights, and predictions are not calibrated, so that points differ in the number of labels alone. The first repeat
of the cross-validation is the point of all labels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import AutoSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.own_times import times_of
from subgnn.data.splits import draw_folds
from subgnn.embeddings.sources import PRETRAINED, check_source
from subgnn.errors import DataError, UserError
from subgnn.metrics.significance import score_interval, wilson
from subgnn.models.recipes import check_recipe, used_attributes
from subgnn.models.registry import check_edges, model_of
from subgnn.result import LearningCurve, LearningPoint
from subgnn.storage.arrays import ArrayFile, Format, encode_arrays, read_arrays, write_parts
from subgnn.task import task_of
from subgnn.training.cross_validation import UNUSED, CrossValidation
from subgnn.training.ensemble_selection import HEADLINE, OutOfFold, is_ranking
from subgnn.training.fit import HELD_OUT, TRAIN, VAL
from subgnn.training.fits import Entry

CANDIDATES = "candidates"
"""The folder of a run with the out-of-fold predictions of each candidate."""
_AGAIN = "remove it, and finish the run with subgnn train --resume"
_FORMAT = Format("subgnn-candidate", "file of out-of-fold predictions", "subgnn train writes them", _AGAIN)
Floats = NDArray[np.float64]
_ENOUGH, _MOST_REPEATS = 1000, 4
SHARES, _QUARTERS = (0.25, 0.5), 4
Job = tuple[Entry, NDArray[np.int8]]
"""A candidate, and the splits that it is fitted to."""
FitMany = Callable[[list[Job]], list[NDArray[np.float32] | None]]
"""Fits jobs, and gives the predictions for the held-out subgraphs of each (m, outputs); None if there are none."""


def plan(recipes: Mapping[str, Recipe], pool: CrossValidation, auto: AutoSettings) -> list[Entry]:
    """The candidates in their order, each with why it cannot be fitted, if so, and how often it is judged."""
    graph, repeats = pool.dataset.graph, auto.repeats or min(_MOST_REPEATS, -(-_ENOUGH // len(pool.judged)))
    in_time, rows = times_of(pool.dataset.subgraphs.nodes) is not None, []
    repeats = 1 if pool.blocks is not None else repeats  # time has one order
    for name, recipe in recipes.items():
        row = Entry(name, recipe, dropped=_problem(recipe, graph))
        row.repeats = repeats if auto.repeats or row.is_simple else 1
        if in_time and not model_of(recipe).measures_at_own_time:
            row.dropped = row.dropped or "it cannot measure a subgraph as of its own time"
        if "features" in graph.attributes and "features" in used_attributes(recipe):
            row.note = "uses node features"
        rows.append(row)
    return rows


def _problem(recipe: Recipe, graph: Graph) -> str:
    """Why a candidate cannot be fitted to the data, or nothing."""
    model = model_of(recipe)
    try:
        check_recipe(recipe, graph)
        check_edges(recipe, graph)
        if model.uses_embeddings(recipe):
            check_source(recipe)
            if recipe.embeddings.source in PRETRAINED and not graph.num_edges:
                return "pretraining needs edges, but the graph has none"
    except UserError as error:
        return error.what
    return ""


def save_candidate(row: Entry, key: str, rows: NDArray[np.int64], run: Path) -> None:
    """Write the out-of-fold predictions of a candidate, the ``rows`` they are for (n,), and the seconds into a run."""
    arrays = {"predictions": row.predictions, "rows": rows, "seconds": np.array(row.seconds)}
    (run / CANDIDATES).mkdir(exist_ok=True)
    path = run / CANDIDATES / f"{row.name}.safetensors"
    write_parts(path, encode_arrays(arrays, _FORMAT, {"name": row.name, "key": key}), overwrite=True)


def load_candidate(row: Entry, key: str, run: Path) -> bool:
    """Read the out-of-fold predictions of a candidate, if they are there, whole, and those of the same fits."""
    try:
        file = _candidate_file(run, row.name)
        content: Any = file.content()
    except DataError:
        return False
    if content.get("key") != key or len(file.arrays["predictions"]) != row.repeats:
        return False
    row.predictions = np.array(file.arrays["predictions"], np.float32)
    row.seconds = file.arrays["seconds"].tolist()
    return True


def read_candidate(run: Path, name: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The out-of-fold predictions of a candidate (repeats, n, outputs), and their rows of the dataset (n,)."""
    arrays = _candidate_file(run, name).arrays
    return np.array(arrays["predictions"], np.float32), np.array(arrays["rows"], np.int64)


def _candidate_file(run: Path, name: str) -> ArrayFile:
    return read_arrays(run / CANDIDATES / f"{name}.safetensors", _FORMAT)


@dataclass(frozen=True, slots=True, eq=False)
class CandidateScores:
    """Out-of-fold scores of candidates by the metric that they are compared by, with 95 % intervals."""

    pool: CrossValidation
    metric: str

    @classmethod
    def by(cls, select_by: str, pool: CrossValidation) -> Self:
        """Scores by the metric of a ranking where the recipe selects by one, else by the headline metric."""
        metric = task_of(pool.subgraphs.task).selection_metric(select_by)
        return cls(pool, metric if is_ranking(metric) else HEADLINE)

    @property
    def metric_name(self) -> str:
        """The metric of the leaderboard: that of a ranking, else micro-F1 or R^2, whatever epochs are selected by."""
        return task_of(self.pool.subgraphs.task).headline if self.metric == HEADLINE else self.metric

    def constant(self) -> dict[str, float | None]:
        """The score of always predicting the most frequent class, or the mean; for rankings, of equal scores."""
        targets, task = np.asarray(self.pool.subgraphs.targets), self.pool.subgraphs.task
        outputs = max(1, self.pool.subgraphs.num_classes)
        if self.metric == HEADLINE:
            guess = np.broadcast_to(task_of(task).constant(targets), targets.shape)
            return self.of(task_of(task).indicators(guess, outputs)[None])
        even = np.zeros((1, len(targets), outputs))  # equal scores of all subgraphs
        return {"score": self.given(even).score(even), "low": None, "high": None}

    def of(self, predictions: NDArray[Any] | None) -> dict[str, float | None]:
        """The mean score of out-of-fold predictions (repeats, n, outputs) with its 95 % interval; None without any."""
        if predictions is None:
            return {"score": None, "low": None, "high": None}
        score, low, high = self.interval(predictions)
        known = bool(np.isfinite(low))
        return {"score": score, "low": low if known else None, "high": high if known else None}

    def given(self, *predictions: NDArray[Any]) -> OutOfFold:
        """Out-of-fold predictions of several candidates (repeats, n, outputs), to be scored by the metric."""
        subgraphs = self.pool.subgraphs
        stacked, targets = np.stack(predictions).astype(np.float64), np.asarray(subgraphs.targets, np.float64)
        return OutOfFold(stacked, targets, subgraphs.task, self.pool.units, self.metric)

    def interval(self, *predictions: NDArray[Any]) -> tuple[float, float, float]:
        """A score, or a lead over a second model, and its 95 % interval; NaN if undefined. Shapes: as in ``given``."""
        given = self.given(*predictions)
        ours, *theirs = given.predictions
        value = given.score(ours) - sum(map(given.score, theirs))
        if self.metric == HEADLINE:
            low, high = score_interval(*(given.terms(one).joined(given.units) for one in given.predictions))
        else:
            samples = given.samples(ours) - sum(map(given.samples, theirs))
            low, high = np.quantile(samples, [0.025, 0.975]).tolist() if len(samples) else (np.nan, np.nan)
            if low == high == 1:  # samples of a perfect ranking do not differ
                low, high = wilson(1.0, given.rarer_units)
        return value, min(low, value), max(high, value)


def part_of(pool: CrossValidation, splits: NDArray[np.int8], share: float, name: str) -> NDArray[np.int8]:
    """Splits with a share, in quarters, of the subgraphs to learn from; the others are not used."""
    found = splits.copy()
    # A validation split of its own, as in published protocols, stays whole.
    for split in (TRAIN,) if pool.has_validation else (TRAIN, VAL):
        rows = np.flatnonzero(splits == split)
        quarter = draw_folds(pool.dataset.subgraphs.take(rows), pool.seed, f"{name}/{split}", folds=_QUARTERS)
        found[rows[quarter >= round(share * _QUARTERS)]] = UNUSED
    return found


def learning_curve(
    scores: CandidateScores, members: Sequence[tuple[Entry, float]], *, full: Floats, folds: int, fit_many: FitMany
) -> LearningCurve | None:
    """The learning curve of members with weights; None if a fit to half of the labels failed, or no score is defined.

    ``full`` are the members' mean out-of-fold predictions by weight, of the first repeat (n, outputs).
    """
    pool = scores.pool
    plans = pool.folds(0, folds)
    parts = [
        [part_of(pool, splits, share, f"learning curve/{i}") for i, splits in enumerate(plans)] for share in SHARES
    ]
    found = iter(fit_many([(entry, part) for row in parts for part in row for entry, _ in members]))
    curves: list[tuple[float, Floats]] = []
    for row in parts:
        mixed, whole = np.zeros_like(full), True
        for splits in plans:
            places = np.searchsorted(pool.judged, np.flatnonzero(splits == HELD_OUT))
            for _, weight in members:
                predictions = next(found)
                whole &= predictions is not None
                if predictions is not None:
                    mixed[places] += weight * predictions
        curves += [(float(np.mean([(part < HELD_OUT).sum() for part in row])), mixed)] if whole else []
    if not whole:
        return None
    curves.append((float(np.mean([(splits < HELD_OUT).sum() for splits in plans])), full))
    # mypy does not know that predictions have a score and its interval.
    described: list[Any] = [(labels, scores.of(mixed[None])) for labels, mixed in curves]
    if described[-1][1]["low"] is None:  # all judged subgraphs have one class or value
        return None
    points = tuple(LearningPoint(subgraphs=round(labels), **one) for labels, one in described)
    gain, low, high = scores.interval(curves[-1][1][None], curves[-2][1][None])
    before, after = points[-2:]
    added = f"added {gain:.3f}" if gain > 0 else f"changed the score by {gain:+.3f}"
    begin = f"Doubling the labels, from {before.subgraphs:,} to {after.subgraphs:,} subgraphs, {added}"
    repeated = any(entry.predictions is not None and len(entry.predictions) > 1 for entry, _ in members)
    scores_of = f"{before.score:.3f} to {after.score:.3f}" + " in the first division into folds" * repeated
    shown = f"{begin} ({scores_of}, 95 % interval of the gain {low:+.3f} to {high:+.3f})"
    chance = ", which is within chance; more labels alone may not raise the score."
    return LearningCurve(points=points, sentence=shown + ("; more labels would probably help." if low > 0 else chance))
