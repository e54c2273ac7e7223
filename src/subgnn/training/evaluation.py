"""What a network learns from, and how good its outputs are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
import torch
from lightning.fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor

from subgnn.data.subgraphs import Task
from subgnn.training.global_batch import share_of
from subgnn.training.metrics import loss, metrics


class Source(Protocol):
    """Subgraphs as tensors; a model takes what :meth:`batch` gives."""

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""

    def __len__(self) -> int: ...

    def to(self, device: torch.device | str) -> Self:
        """Move all tensors to a device, in place."""

    def batch(self, rows: NDArray[np.int64]) -> Any:
        """The chosen subgraphs, in the given order."""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """What the loop learns from and selects on.

    ``redrawn`` are the same subgraphs measured against further draws of anchors; with ``ensemble``, outputs are judged
    by their mean over all draws, and by the first draw alone without. Real-valued targets are standardised; ``unit`` is
    their deviation in units of the label.
    """

    inputs: Source
    targets: Tensor
    task: Task
    train: NDArray[np.int64]
    val: NDArray[np.int64]
    redrawn: list[Source] = field(default_factory=list)
    ensemble: bool = False
    num_classes: int = 0
    unit: float = 1.0

    def of_epoch(self, epoch: int) -> Source:
        """The draw of anchors an epoch trains on: they take turns."""
        return [self.inputs, *self.redrawn][epoch % (1 + len(self.redrawn))]

    @property
    def judged(self) -> list[Source]:
        """The draws that validation and test are the mean of."""
        return [self.inputs, *(self.redrawn if self.ensemble else [])]


@torch.no_grad()
def outputs_of(model: Any, inputs: Source, rows: NDArray[np.int64], batch_size: int) -> Tensor:
    """The network's outputs for the chosen subgraphs, in evaluation mode."""
    model.eval()
    parts = [model(inputs.batch(rows[i : i + batch_size])) for i in range(0, len(rows), batch_size)]
    return torch.cat(parts).float()


@torch.no_grad()
def vectors_of(model: Any, inputs: Source, batch_size: int = 256) -> NDArray[np.float32]:
    """z_S of all subgraphs, in evaluation mode.

    Shapes:
        returns: (n, width).
    """
    model.eval()
    rows = np.arange(len(inputs))
    batches = (inputs.batch(rows[i : i + batch_size]) for i in range(0, len(rows), batch_size))
    return torch.cat([model.embed(batch).float().cpu() for batch in batches]).numpy()


def evaluate(
    model: Any,
    examples: Examples,
    rows: NDArray[np.int64],
    batch_size: int,
    weights: Tensor | None = None,
    *,
    fabric: Fabric | None = None,
) -> tuple[float, dict[str, float]]:
    """Loss and metrics on the chosen subgraphs.

    Args:
        fabric: where given, its ranks share the subgraphs out, and each has the outputs of all.
    """
    of_all = outputs_of if fabric is None or fabric.world_size == 1 else partial(_gathered_outputs, fabric)
    draws = [of_all(model, inputs, rows, max(batch_size, 256)) for inputs in examples.judged]
    outputs = torch.stack(draws).mean(dim=0)
    targets = examples.targets[torch.from_numpy(rows).to(examples.targets.device)]
    found = metrics(outputs, targets, examples.task, unit=examples.unit)
    return float(loss(outputs, targets, examples.task, weights)), found


def _gathered_outputs(fabric: Fabric, model: Any, inputs: Source, rows: NDArray[np.int64], batch_size: int) -> Tensor:
    """As :func:`outputs_of`, each rank for a share of the subgraphs."""
    share = share_of(len(rows), fabric.global_rank, fabric.world_size)
    outputs = outputs_of(model, inputs, rows[share.begin : share.end], batch_size)
    if share.whole:
        return outputs
    placed = outputs.new_zeros(len(rows), outputs.shape[1])
    placed[share.begin : share.end] = outputs
    gathered: Tensor = fabric.all_reduce(placed, reduce_op="sum")
    return gathered
