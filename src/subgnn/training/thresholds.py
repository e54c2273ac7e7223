"""Choose the thresholds of a run for the aim of its recipe (``training.threshold``).

They are chosen on predictions for subgraphs that the model was not fitted to: those of the validation split, which has
also selected the epoch, so that they look a little better than they are; or out-of-fold predictions of the training and
validation subgraphs, each by a fit without its fold (``training.threshold_folds``). Test subgraphs have no part in it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from subgnn.config.settings import AutoSettings, TrainingSettings
from subgnn.data.dataset import Dataset
from subgnn.errors import UserError
from subgnn.metrics.thresholds import NONE, Decision, check_aim
from subgnn.task import TaskName, task_of
from subgnn.training.fit import FitResult
from subgnn.training.options import RunOptions
from subgnn.training.portfolio import Pool, PoolFits, Row, judge


def check_threshold(settings: TrainingSettings, task: TaskName, *, devices: int) -> None:
    """Refuse, before any work, an aim that is not understood, or does not fit the task.

    Raises:
        UserError: for that, for one fold, for folds without an aim, and for folds on several devices.
    """
    check_aim(settings.threshold, task)
    if settings.threshold_folds == 1:
        hint = "accepted: 0 for the validation split, or from 2"
        raise UserError("training.threshold_folds is 1", where="recipe", hint=hint)
    if settings.threshold_folds and settings.threshold == NONE:
        what = f"training.threshold_folds is {settings.threshold_folds}, and no threshold is to be chosen"
        raise UserError(what, where="recipe", hint="leave it out, or say for what, as --threshold precision=0.9")
    if settings.threshold_folds and devices > 1:
        hint = "start one process, or leave training.threshold_folds out"
        raise UserError("folds are fitted on one device", where="torchrun", hint=hint)


def with_decision(found: FitResult, dataset: Dataset, options: RunOptions) -> FitResult:
    """The trained model with thresholds for the aim of the recipe; the same without an aim."""
    settings, subgraphs = options.recipe.training, dataset.subgraphs
    if settings.threshold == NONE:
        return found
    targets, spec = np.asarray(subgraphs.targets), found.checkpoint.spec
    if settings.threshold_folds:
        # With the choices that the recipe left open made as in the model, so that fits to folds are like it.
        plain = replace(found.recipe, training=replace(found.recipe.training, threshold=NONE, threshold_folds=0))
        auto = AutoSettings(folds=settings.threshold_folds, repeats=1)
        pool, row = Pool.of(dataset, auto, options.seed), Row(plain.name, plain, repeats=1)
        judge(row, auto, PoolFits(pool, options.device, options.cache), lambda rest, rows, predictions: None)
        scores, truth, chosen_on = np.asarray(row.predictions), np.asarray(pool.subgraphs.targets), "out-of-fold"
    else:
        scores = task_of(spec.task).probabilities(torch.from_numpy(found.outputs["val"])).numpy()
        truth, chosen_on = targets[subgraphs.indices("val")], "validation"
    decision = Decision.choose(
        settings.threshold,
        scores,
        truth,
        task=spec.task,
        classes=spec.classes,
        positive=task_of(spec.task).positive(targets[subgraphs.indices("train")]),
        chosen_on=chosen_on,
    )
    return replace(found, checkpoint=replace(found.checkpoint, spec=replace(spec, decision=decision)))
