"""One trial of a search: a recipe trained and scored on folds, or on validation, without test subgraphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np

from subgnn.api.train_recipe import train, with_metric
from subgnn.config.settings import AutoSettings, Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.subgraphs import SPLITS
from subgnn.errors import DataError
from subgnn.parallel.progress import ignore
from subgnn.storage.files import temporary_folder
from subgnn.task import task_of
from subgnn.training.cross_validation import UNUSED, CrossValidation

FOLDS = AutoSettings().folds
"""Folds that a trial is scored on by default, as many as a portfolio has."""


@dataclass(slots=True)
class TrialResult:
    """Score and loss of each training of a trial: one, or one for each fold."""

    scores: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The mean over trainings."""
        return fmean(self.scores)

    @property
    def loss(self) -> float:
        """The mean over trainings of the validation loss; it decides between equal scores."""
        return fmean(self.losses)


def run_trial(
    dataset: Dataset,
    recipe: Recipe,
    *,
    folds: int = FOLDS,
    device: str = "auto",
    cache: bool = True,
    on_score: Callable[[int, float], None] = ignore,
) -> TrialResult:
    """Train a recipe, and score each training at the epoch that validation selects.

    Args:
        dataset: without test subgraphs (:func:`without_test`).
        folds: all subgraphs are dealt into as many folds as a portfolio deals them; the recipe is trained without each
            fold, on a part of the others with another part for validation, and scored on it. 0: it is trained once,
            and scored on validation.
        on_score: called after each training with their number and their mean score; it may raise to end the trial.
    """
    recipe = with_metric(recipe, dataset.subgraphs)
    result, metric = TrialResult(), task_of(dataset.subgraphs.task).selection_metric(recipe.training.select_by)
    for seen in _trainings(dataset, folds):
        with temporary_folder("subgnn-trial") as folder:
            found = train(seen, recipe, folder / "run", device=device, cache=cache, report=False)
        score = found.scores("test" if folds else "val")[metric]
        if math.isnan(score):
            what = f"{metric} of {'a fold' if folds else 'validation'} is undefined"
            raise DataError(what, where=dataset.name, hint="are all targets equal there?")
        result.scores.append(score)
        result.losses.append(found.val["loss"])
        on_score(len(result.scores), result.score)
    return result


def _trainings(dataset: Dataset, folds: int) -> Iterator[Dataset]:
    """The dataset of each training of a trial; with folds, the one that is held out is the test split."""
    if not folds:
        yield dataset
        return
    pool = CrossValidation.of(dataset, AutoSettings(), 0)
    for splits in pool.folds(0, folds):
        used = np.flatnonzero(splits != UNUSED)
        yield replace(pool.dataset, subgraphs=replace(pool.dataset.subgraphs.take(used), splits=splits[used]))


def without_test(dataset: Dataset) -> Dataset:
    """The training and validation subgraphs, in their order, and the classes that occur in them.

    A class that only test subgraphs have is left out as well, so that nothing about test enters a search.
    """
    subgraphs = dataset.subgraphs
    subgraphs.require_labels(dataset.name)
    if subgraphs.splits is None:
        raise DataError("the subgraphs have no splits", where=dataset.name, hint="draw one with subgnn data split")
    for name in ("train", "val"):
        if not len(subgraphs.indices(name)):
            hint = "draw another split with subgnn data split"
            raise DataError(f"no subgraph in split '{name}'", where=dataset.name, hint=hint)
    seen = subgraphs.take(np.flatnonzero(subgraphs.splits != SPLITS.index("test")))
    targets, task = seen.targets, seen.task
    if targets is None or task_of(task).real:
        return replace(dataset, subgraphs=seen)
    if task_of(task).several:
        kept = np.flatnonzero(targets.any(axis=0))
        targets = np.ascontiguousarray(targets[:, kept])
    else:
        kept, places = np.unique(targets, return_inverse=True)
        targets, task = places.astype(targets.dtype), "binary" if len(kept) == 2 else "multi-class"
    classes = tuple(seen.classes[c] for c in kept)
    return replace(dataset, subgraphs=replace(seen, targets=targets, classes=classes, task=task))
