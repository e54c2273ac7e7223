"""The training loop.

Selection: higher validation micro-F1, then lower validation loss, then the earlier epoch; the test split is not touched
here. Every epoch's batches and dropout follow the seed and the epoch alone, so a run that goes on
after an interruption gives the same weights as one that was not interrupted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import torch
from lightning.fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config import TrainingSettings
from subgnn.data.subgraphs import Task
from subgnn.errors import UserError
from subgnn.rng import stream, stream_key
from subgnn.training.metrics import loss, metrics

State = dict[str, Any]


class Source(Protocol):
    """Subgraphs as tensors; a model takes what :meth:`batch` gives."""

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""

    def __len__(self) -> int: ...

    def to(self, device: torch.device | str) -> Self:
        """Move all tensors to a device, in place."""

    def batch(self, rows: Tensor) -> Any:
        """The chosen subgraphs, in the given order."""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """What the loop learns from and selects on."""

    inputs: Source
    targets: Tensor
    task: Task
    train: NDArray[np.int64]
    val: NDArray[np.int64]


@dataclass(slots=True)
class Progress:
    """How far training has come; all of it is in the checkpoint that ``--resume`` reads."""

    epoch: int = 0
    best_epoch: int = -1
    best: tuple[float, float] = (-math.inf, math.inf)
    best_metrics: dict[str, float] = field(default_factory=dict)
    best_state: State = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """The fields by name, as they are saved."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def fit(
    model: nn.Module,
    examples: Examples,
    settings: TrainingSettings,
    *,
    seed: int,
    fabric: Fabric,
    resume: State | None = None,
    after_epoch: Callable[[dict[str, Any], Progress, Callable[[], State]], None] | None = None,
) -> Progress:
    """Train, and return the best epoch's weights and metrics.

    Args:
        resume: what ``state()`` gave ``after_epoch`` in an earlier run.
        after_epoch: called with the epoch's record, the progress, and a function that gives all state.
    """
    optimizer = torch.optim.Adam(
        [p for p in model.parameters() if p.requires_grad], lr=settings.lr, weight_decay=settings.weight_decay
    )
    wrapped, optimizer = fabric.setup(model, optimizer)
    wrapped.mark_forward_method("embed")
    weights = _class_weights(examples, settings).to(fabric.device) if settings.class_weights else None
    progress = Progress()
    if resume is not None:
        model.load_state_dict(resume["model"])
        optimizer.load_state_dict(resume["optimizer"])
        progress = Progress(**resume["progress"])

    def state() -> State:
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "progress": progress.plain()}

    with torch.random.fork_rng(devices=[fabric.device] if fabric.device.type == "cuda" else []):
        for epoch in range(progress.epoch, settings.epochs):
            begin = time.perf_counter()
            for group in optimizer.param_groups:
                group["lr"] = _rate(settings, epoch)
            train_loss = _train_epoch(wrapped, optimizer, examples, settings, weights, seed, epoch, fabric)
            if not math.isfinite(train_loss):
                hint = "lower training.lr, or clip gradients with training.clip"
                raise UserError(f"the loss became {train_loss} in epoch {epoch}", where="train", hint=hint)
            val_loss, val = evaluate(wrapped, examples, examples.val, settings.batch_size, weights)
            score = (val.get("micro_f1", -val_loss), -val_loss)
            if score > (progress.best[0], -progress.best[1]):
                progress.best, progress.best_epoch = (score[0], val_loss), epoch
                progress.best_metrics = {"loss": val_loss, **val}
                progress.best_state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
            progress.epoch = epoch + 1
            progress.seconds.append(time.perf_counter() - begin)
            if after_epoch is not None:
                record = {"epoch": epoch, "train_loss": train_loss, "val_loss": val_loss}
                after_epoch(record | {f"val_{k}": v for k, v in val.items()}, progress, state)
            if settings.patience and epoch - progress.best_epoch >= settings.patience:
                break
    return progress


def _rate(settings: TrainingSettings, epoch: int) -> float:
    if settings.schedule == "constant":
        return settings.lr
    return settings.lr * 0.5 * (1 + math.cos(math.pi * epoch / max(1, settings.epochs)))


def _class_weights(examples: Examples, settings: TrainingSettings) -> Tensor:
    targets = examples.targets[torch.from_numpy(examples.train)]
    if examples.task == "multi-label":
        positive = targets.float().sum(dim=0).clamp(min=1)
        return (len(targets) - positive) / positive
    counts = torch.bincount(targets.long()).float().clamp(min=1)
    return len(targets) / (len(counts) * counts)


def _train_epoch(
    model: Any,
    optimizer: Any,
    examples: Examples,
    settings: TrainingSettings,
    weights: Tensor | None,
    seed: int,
    epoch: int,
    fabric: Fabric,
) -> float:
    torch.manual_seed(stream_key(seed, f"dropout/{epoch}"))
    order = stream(seed, f"batches/{epoch}").permutation(examples.train)
    model.train()
    total = torch.zeros((), device=fabric.device)
    for begin in range(0, len(order), settings.batch_size):
        rows = torch.from_numpy(order[begin : begin + settings.batch_size]).to(fabric.device)
        optimizer.zero_grad()
        value = loss(model(examples.inputs.batch(rows)), examples.targets[rows], examples.task, weights)
        fabric.backward(value)
        if settings.clip:
            fabric.clip_gradients(model, optimizer, max_norm=settings.clip, error_if_nonfinite=False)
        optimizer.step()
        total += value.detach() * len(rows)
    return float(total) / len(order)


@torch.no_grad()
def outputs_of(model: Any, inputs: Source, rows: NDArray[np.int64], batch_size: int) -> Tensor:
    """The network's outputs for the chosen subgraphs, in evaluation mode."""
    model.eval()
    device = inputs.device
    parts = [
        model(inputs.batch(torch.from_numpy(rows[i : i + batch_size]).to(device)))
        for i in range(0, len(rows), batch_size)
    ]
    return torch.cat(parts).float()


def evaluate(
    model: Any, examples: Examples, rows: NDArray[np.int64], batch_size: int, weights: Tensor | None = None
) -> tuple[float, dict[str, float]]:
    """Loss and metrics on the chosen subgraphs."""
    outputs = outputs_of(model, examples.inputs, rows, max(batch_size, 256))
    targets = examples.targets[torch.from_numpy(rows).to(examples.targets.device)]
    return float(loss(outputs, targets, examples.task, weights)), metrics(outputs, targets, examples.task)
