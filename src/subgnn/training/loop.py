"""The training loop.

Selection: the higher validation score by training.select_by, micro-F1 by default, then the lower validation loss, then
the earlier epoch, among the epochs from training.select_from on; the test split is not used here. Every epoch's batches
and dropout depend on the seed and the epoch only, so a run that continues after an interruption gives the same weights
as one that was not interrupted. On N ranks, the batch of a step has N times training.batch_size subgraphs, drawn as one
process would draw it.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config.settings import TrainingSettings
from subgnn.errors import UserError
from subgnn.models.examples import PaddableSource, evaluate, state_of, validation_score
from subgnn.rng import stream, stream_key
from subgnn.training.devices import Fabric, outputs_over_ranks
from subgnn.training.steps import Fitting, GraphedOutputs, GraphedSteps, Steps, adam, set_rate

State = dict[str, Any]


@dataclass(slots=True)
class Progress:
    """The progress of a training: epochs done and the best one; ``--resume`` reads it from a file."""

    epoch: int = 0
    best_epoch: int = -1
    best: tuple[float, float] = (-math.inf, math.inf)
    best_metrics: dict[str, float] = field(default_factory=dict)
    best_state: State = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    train_losses: list[float] = field(default_factory=list)
    val_losses: list[float] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def select(self, epoch: int, model: nn.Module, loss: float, metrics: dict[str, float], *, select_by: str) -> None:
        """Make an epoch the best one, by its loss and metrics on validation."""
        self.best_epoch, self.best = epoch, validation_score(loss, metrics, select_by)
        self.best_metrics = {"loss": loss, **metrics}
        self.best_state = state_of(model)


AfterEpoch = Callable[[dict[str, Any], Progress, Callable[[], State]], None]
"""Called with an epoch's record, the progress, and a function that returns the whole state."""


def run_epochs(
    model: nn.Module,
    fitting: Fitting,
    *,
    resume: State | None = None,
    after_epoch: AfterEpoch | None = None,
    first_as_it_is: bool = False,
) -> Progress:
    """Train, and return the best epoch's weights and metrics.

    With ``first_as_it_is``, epoch 0 takes no step, so that the initial network can be selected, too: the baseline
    itself, for a network that corrects one. A lower loss alone does not replace it: as between candidates, a model that
    was fitted in one go is preferred to the best of many epochs.
    """
    examples, settings, fabric = fitting.examples, fitting.settings, fitting.fabric
    graphed = fabric.device.type == "cuda" and isinstance(examples.inputs, PaddableSource) and fabric.world_size == 1
    wrapped, optimizer = fabric.setup(model, adam(model, settings, graphed_on=fabric.device if graphed else None))
    if fabric.world_size > 1:
        wrapped.mark_forward_method("embed")
    plain = Steps(wrapped, optimizer, fitting)
    captured = GraphedSteps(plain) if graphed else None
    step, compute = captured or plain, outputs_over_ranks(fabric)
    if captured is not None:
        compute = GraphedOutputs(captured.stream)
    progress = Progress() if resume is None else _restore(resume, model, optimizer, fabric)

    def state() -> State:
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "progress": progress.plain()}

    first = min(settings.select_from, settings.epochs - 1)
    with torch.random.fork_rng(devices=[fabric.device] if fabric.device.type == "cuda" else []):
        for epoch in range(progress.epoch, settings.epochs):
            # Before the epoch, since the progress of an earlier run may have used up the patience.
            if settings.patience and epoch - 1 - max(progress.best_epoch, first - 1) >= settings.patience:
                break
            begin = time.perf_counter()
            set_rate(optimizer, _rate(settings, progress))
            if first_as_it_is and epoch == 0:
                train, size = examples.train, settings.batch_size
                train_loss, _ = evaluate(wrapped, examples, train, size, compute=compute)
            else:
                train_loss = _train_epoch(wrapped, step, fitting, epoch)
            _require_finite("the loss", train_loss, epoch)
            judged = evaluate(wrapped, examples, examples.val, settings.batch_size, compute=compute)
            val_loss, val = fabric.broadcast(judged)  # so that all ranks select the same epoch, and stop together
            _require_finite("the validation loss", val_loss, epoch)
            score = (validation_score(val_loss, val, examples.select_by)[0], -val_loss)
            in_one_go = first_as_it_is and progress.best_epoch == 0
            if epoch >= first and score > (progress.best[0], math.inf if in_one_go else -progress.best[1]):
                progress.select(epoch, model, val_loss, val, select_by=examples.select_by)
            progress.epoch = epoch + 1
            progress.train_losses.append(train_loss)
            progress.val_losses.append(val_loss)
            progress.seconds.append(time.perf_counter() - begin)
            if after_epoch is not None:
                after_epoch(epoch_record(epoch, train_loss, val_loss, val), progress, state)
    return progress


def epoch_record(epoch: int, train_loss: float, val_loss: float, val: dict[str, float]) -> dict[str, Any]:
    """The record of an epoch: a line of metrics.jsonl."""
    record = {"epoch": epoch, "train_loss": train_loss, "val_loss": val_loss}
    return record | {f"val_{name}": value for name, value in val.items()}


def _restore(state: State, model: nn.Module, optimizer: Any, fabric: Fabric) -> Progress:
    """Load the state of an interrupted training, and return its progress."""
    try:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        for group in optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"] = group["lr"].to(fabric.device)
        return Progress(**state["progress"])
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        hint = "remove last.safetensors to start from the beginning"
        raise UserError("the saved progress does not fit the run", where="--resume", hint=hint) from error


def _require_finite(what: str, value: float, epoch: int) -> None:
    if not math.isfinite(value):
        hint = "lower training.lr, or clip gradients with training.clip"
        raise UserError(f"{what} became {value} in epoch {epoch}", where="train", hint=hint)


_PLATEAU_EPOCHS, _PLATEAU_FALL, _LOWEST_RATE = 10, 1e-4, 5e-5


def _rate(settings: TrainingSettings, progress: Progress) -> float:
    rate, best, waited = settings.lr, math.inf, 0
    if settings.schedule == "plateau":
        for loss in progress.train_losses if settings.plateau == "train loss" else progress.val_losses:
            best, waited = (loss, 0) if loss < best * (1 - _PLATEAU_FALL) else (best, waited + 1)
            if waited > _PLATEAU_EPOCHS:
                rate, waited = max(rate * settings.plateau_factor, min(rate, _LOWEST_RATE)), 0
    return rate


def _train_epoch(model: Any, step: Steps | GraphedSteps, fitting: Fitting, epoch: int) -> float:
    examples = fitting.examples
    torch.manual_seed(stream_key(fitting.seed, f"dropout/{epoch}"))
    order = stream(fitting.seed, f"batches/{epoch}").permutation(np.tile(examples.train, fitting.settings.repeats))
    model.train()
    total = torch.zeros((), device=examples.targets.device)
    for rows in batches(order, fitting.batch_size):
        total += step(examples.inputs, rows) * len(rows)
    return float(fitting.fabric.all_reduce(total, reduce_op="sum")) / len(order)


def batches(order: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """Consecutive batches; a single last subgraph, which has no variance for batch norm, joins the batch before.

    Example:
        >>> [len(rows) for rows in batches(np.arange(9), 4)]
        [4, 5]
    """
    begins = list(range(0, len(order), size))
    if len(begins) > 1 and len(order) - begins[-1] == 1:
        begins.pop()
    return [order[begin:end] for begin, end in pairwise([*begins, len(order)])]
