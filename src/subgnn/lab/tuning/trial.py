"""One trial of a search: a recipe trained and scored on folds, or on validation, without test subgraphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from statistics import fmean
from typing import Any, Literal

import numpy as np

from subgnn.api.train_recipe import train, with_metric
from subgnn.config.settings import AutoSettings, Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.subgraphs import SPLITS
from subgnn.errors import DataError
from subgnn.models.registry import trainable_model_of
from subgnn.parallel.progress import ignore
from subgnn.rng import stream
from subgnn.storage.files import temporary_folder
from subgnn.task import task_of
from subgnn.training.options import Callbacks
from subgnn.training.portfolio import CrossValidation

Splitting = Literal["stored", "random"]
FOLDS = AutoSettings().folds
"""Folds that a trial is scored on by default, as many as a portfolio has."""
OnStep = Callable[[int, float], None]
"""Called with the epochs so far and the score so far; it may raise to end the trial."""


@dataclass(slots=True)
class TrialResult:
    """Score, loss and selected epoch of each training of a trial: one for each seed, or for each seed and fold."""

    scores: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    selected: list[int] = field(default_factory=list)

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
    seeds: int = 1,
    folds: int = FOLDS,
    split: Splitting = "stored",
    device: str = "auto",
    cache: bool = True,
    on_step: OnStep = ignore,
) -> TrialResult:
    """Train a recipe with seeds 0, 1 and so on, and score each training at the epoch that validation selects.

    Args:
        dataset: without test subgraphs (:func:`without_test`).
        folds: all subgraphs are dealt into as many folds as a portfolio deals them; the recipe is trained without each
            fold, on a part of the others with another part for validation, and scored on it. With other seeds, the
            folds are others. 0: it is trained once a seed, and scored on validation.
        split: without folds: ``stored``, the dataset's training and validation subgraphs; or ``random``, these divided
            at random for each seed.
        on_step: called after each epoch with its number, counted over all trainings from 1, and the mean of the scores
            of finished trainings and the best validation score of this one so far.
    """
    recipe = with_metric(recipe, dataset.subgraphs)
    result, metric = TrialResult(), task_of(dataset.subgraphs.task).selection_metric(recipe.training.select_by)
    for done, (seed, seen) in enumerate(_trainings(dataset, seeds, folds, split)):
        on_epoch = _best_so_far(metric, result.scores, on_step, steps=done * max_epochs(recipe))
        with temporary_folder("subgnn-trial") as folder:
            callbacks, run = Callbacks(on_epoch=on_epoch), folder / "run"
            found = train(seen, recipe, run, seed=seed, device=device, cache=cache, callbacks=callbacks, report=False)
        score = found.scores("test" if folds else "val")[metric]
        if math.isnan(score):
            what = f"{metric} of {'a fold' if folds else 'validation'} is undefined"
            raise DataError(what, where=dataset.name, hint="are all targets equal there?")
        result.scores.append(score)
        result.losses.append(found.val["loss"])
        result.selected.append(found.selected_epoch)
    return result


def _trainings(dataset: Dataset, seeds: int, folds: int, split: Splitting) -> Iterator[tuple[int, Dataset]]:
    """Seed and dataset of each training of a trial; with folds, the one that is held out is the test split."""
    for seed in range(seeds):
        if folds:
            pool = CrossValidation.of(dataset, AutoSettings(), 0)
            for splits in pool.folds(seed, folds):
                yield seed, replace(pool.dataset, subgraphs=replace(pool.dataset.subgraphs, splits=splits))
        else:
            yield seed, dataset if split == "stored" else split_at_random(dataset, seed)


def _best_so_far(metric: str, finished: Sequence[float], on_step: OnStep, *, steps: int) -> Callable[[Any], None]:
    """A callback of epochs: the best one by the rule of the training loop, averaged with finished trainings."""
    best, numbers, done = (-math.inf, -math.inf, 0.0), count(steps + 1), list(finished)

    def on_epoch(record: dict[str, Any]) -> None:
        nonlocal best
        score, loss = float(record[f"val_{metric}"]), float(record["val_loss"])
        rank = -loss if metric == "r2" else -math.inf if math.isnan(score) else score
        best = max(best, (rank, -loss, score), key=lambda one: one[:2])
        on_step(next(numbers), fmean([*done, best[2]]))

    return on_epoch


def max_epochs(recipe: Recipe) -> int:
    """The most epochs of one training: those of all candidates, or of all networks (training.members)."""
    return recipe.training.epochs * trainable_model_of(recipe).num_fits(recipe)


def score_kind(folds: int) -> str:
    """The word for a trial's score."""
    return "out-of-fold" if folds else "validation"


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


def split_at_random(dataset: Dataset, seed: int) -> Dataset:
    """The same subgraphs, divided between training and validation at random, in the same numbers.

    Subgraphs of equal nodes stay together: with several of them, the numbers may differ a little.
    """
    subgraphs = dataset.subgraphs
    wanted = len(subgraphs.indices("val"))
    rows: dict[bytes, list[int]] = {}
    for row, nodes in enumerate(subgraphs.nodes):
        rows.setdefault(nodes.tobytes(), []).append(row)
    units = list(rows.values())
    if len(units) < 2:
        hint = "training and validation need at least one each"
        raise DataError("all subgraphs have the same nodes", where=dataset.name, hint=hint)
    splits = np.full(len(subgraphs), SPLITS.index("train"), np.int8)
    taken = 0
    for unit in stream(seed, "tune/split").permutation(len(units))[1:]:  # at least one is left for training
        if taken >= wanted:
            break
        splits[units[unit]] = SPLITS.index("val")
        taken += len(units[unit])
    return replace(dataset, subgraphs=replace(subgraphs, splits=splits))
