"""Several models for one recipe, fitted in turn; the best on validation is kept.

A recipe may leave a choice open, as whether embeddings are frozen or fine-tuned. Each way to make it is a candidate.
The rule between candidates: higher validation micro-F1; then one that was fitted in one go before one whose epoch was
picked on validation, as the best of many looks flatters; then lower validation loss, then the earlier one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from torch import nn

from subgnn.config.settings import Recipe
from subgnn.errors import UserError
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn.batches import StreamedInputs
from subgnn.training.evaluation import Examples, evaluate
from subgnn.training.global_batch import use_global_batch
from subgnn.training.loop import AfterEpoch, Progress, State, epoch_record, fit
from subgnn.training.lr_finder import find_rate
from subgnn.training.steps import Fitting


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A model to be fitted and the checkpoint it goes into; the name is empty where there is no choice to make.

    ``seed`` is that of its batches and dropout; None for the run's.
    """

    name: str
    model: nn.Module
    checkpoint: Checkpoint
    recipe: Recipe
    seed: int | None = None


@runtime_checkable
class Solvable(Protocol):
    """A model that is fitted in one go, not by gradient steps."""

    def solve(self, examples: Examples) -> None:
        """Learn from the training split."""


def fit_candidate(candidate: Candidate, fitting: Fitting, *, resume: State | None, after_epoch: AfterEpoch) -> Progress:
    """Fit by gradient, or in one go, which counts as one epoch; see :func:`~subgnn.training.loop.fit`."""
    model, examples, settings = candidate.model, fitting.examples, fitting.settings
    if not isinstance(model, Solvable):
        if fitting.fabric.world_size > 1:
            _check_table(model, examples)
            use_global_batch(model)
        if resume is not None:
            fitting = replace(fitting, settings=replace(settings, lr=resume["progress"]["lr"]))
        elif settings.lr_finder:
            fitting = replace(fitting, settings=replace(settings, lr=find_rate(model, fitting)))
        return fit(
            model,
            fitting,
            resume=resume,
            after_epoch=after_epoch,
            first_as_it_is=candidate.checkpoint.baseline is not None,
        )
    if resume is not None:
        return Progress(**resume["progress"])
    begin = time.perf_counter()
    model.to(fitting.fabric.device)
    model.solve(examples)
    progress, record = judge_solved(model, examples, settings.batch_size)
    progress.seconds = [time.perf_counter() - begin]
    after_epoch(record, progress, lambda: {"progress": progress.plain()})
    return progress


def _check_table(model: nn.Module, examples: Examples) -> None:
    """Refuse many devices for a table that is learned by rows: what gathers gradients over ranks takes no sparse ones.

    Raises:
        UserError: where it is so large that it is learned by rows.
    """
    table = getattr(model, "table", None)
    if isinstance(examples.inputs, StreamedInputs) and table is not None and table.requires_grad:
        what = f"a learned table of {table.shape[0]:,} nodes x {table.shape[1]} numbers is trained on one device"
        hint = "set embeddings.trainable=false, take a smaller embeddings.dim or fewer anchors, or leave --devices out"
        raise UserError(what, where="--devices", hint=hint)


def judge_solved(model: nn.Module, examples: Examples, batch_size: int) -> tuple[Progress, dict[str, Any]]:
    """A model that was fitted in one go, and the record of this one epoch."""
    train_loss, _ = evaluate(model, examples, examples.train, batch_size)
    val_loss, val = evaluate(model, examples, examples.val, batch_size)
    progress = Progress(epoch=1)
    progress.select(0, model, val_loss, val)
    return progress, epoch_record(0, train_loss, val_loss, val)


def best_of(fitted: Sequence[Progress]) -> int:
    """Which candidate is kept.

    Example:
        >>> best_of([Progress(best=(0.5, 1.0)), Progress(best=(0.5, 0.9)), Progress(best=(0.5, 0.9))])
        1
        >>> best_of([Progress(best=(0.5, 0.9), epoch=100), Progress(best=(0.5, 1.0), epoch=1)])
        1
    """
    return max(range(len(fitted)), key=lambda i: (fitted[i].best[0], fitted[i].epoch == 1, -fitted[i].best[1], -i))


def comparison(candidates: Sequence[Candidate], fitted: Sequence[Progress], chosen: int) -> dict[str, Any]:
    """What run.json says of the choice: what was tried, how each did on validation, and what was kept."""
    names = [candidate.name for candidate in candidates]
    found: dict[str, Any] = {
        "candidate": names[chosen],
        "candidates": {name: progress.best_metrics for name, progress in zip(names, fitted, strict=True)},
    }
    embeddings = names[chosen].partition(",")[0]
    return found | ({"embeddings": embeddings} if embeddings in ("frozen", "trainable") else {})
