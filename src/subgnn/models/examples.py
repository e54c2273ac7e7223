"""Subgraphs as networks take them, with targets; outputs and scores of a network on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import TrainingSettings
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import UserError
from subgnn.metrics.weighting import loss_weights, row_weights
from subgnn.ragged import Ragged
from subgnn.task import Standard, TaskName, task_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Source(Protocol):
    """Subgraphs as tensors; a network takes what :meth:`batch` gives."""

    @property
    def device(self) -> Any:
        """The device of batches."""

    def __len__(self) -> int: ...

    def to(self, device: torch.device | str) -> Self:
        """Move to a device, in place."""

    def batch(self, rows: NDArray[np.int64]) -> Any:
        """The chosen subgraphs, in the given order."""


class HostSource:
    """Subgraphs that stay in main memory; ``device`` is that of their batches, or of a network's outputs."""

    nodes: Ragged
    device: Any = "cpu"

    def __len__(self) -> int:
        return len(self.nodes)

    def to(self, device: torch.device | str) -> Self:
        self.device = device
        return self


@runtime_checkable
class PaddableSource(Source, Protocol):
    """Subgraphs whose batches can be padded to fixed shapes, so that a step on them can be captured and replayed."""

    def padded_shape(self, rows: NDArray[np.int64]) -> Hashable:
        """The fixed shapes that the batch of these subgraphs fits into."""

    def positions(self, rows: NDArray[np.int64], shape: Any) -> Any:
        """Positions of the chosen subgraphs, filled up to a fixed shape; the first of its ``tensors`` are the rows."""

    def pick(self, positions: Any) -> Any:
        """The batch of these positions."""


@contextmanager
def single_precision() -> Iterator[None]:
    """Let cuDNN compute an LSTM in full single precision: by default it rounds inputs of products to 10 bits (TF32)."""
    import torch

    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Labelled subgraphs to fit a network to and to select it on.

    Real-valued targets are standardised; ``unit`` is their deviation in units of the label. ``weights`` are those of
    the loss, and ``select_by`` the metric by which epochs and candidates are selected.
    """

    inputs: Source
    targets: Tensor
    task: TaskName
    train: NDArray[np.int64]
    val: NDArray[np.int64]
    num_classes: int = 0
    unit: float = 1.0
    weights: Tensor | None = None
    select_by: str = "micro_f1"

    @classmethod
    def of(
        cls, subgraphs: SubgraphSet, source: Source, standards: dict[str, Standard], training: TrainingSettings
    ) -> Examples:
        """The subgraphs of a dataset, as a network takes them; targets go to the device of the source."""
        weights = loss_weights(training, subgraphs)
        return cls(
            inputs=source,
            targets=target_tensor(subgraphs, standards).to(source.device),
            task=subgraphs.task,
            train=subgraphs.indices("train"),
            val=subgraphs.indices("val"),
            num_classes=subgraphs.num_classes,
            unit=label_unit(standards),
            weights=None if weights is None else weights.to(source.device),
            select_by=task_of(subgraphs.task).selection_metric(training.select_by),
        )

    @property
    def train_weights(self) -> NDArray[np.float64] | None:
        """Weights of the training subgraphs (n,), or of pairs with labels (n, labels); None if all count the same."""
        return row_weights(self.weights, self.targets.cpu().numpy()[self.train])


def target_tensor(subgraphs: SubgraphSet, standards: dict[str, Standard]) -> Tensor:
    """Targets as the loss takes them (n,), or (n, labels); real-valued ones standardised."""
    import torch

    targets = subgraphs.require_labels("train")
    if "target" in standards:
        return torch.from_numpy(standards["target"](targets[:, None])[:, 0])
    return torch.from_numpy(np.array(targets))


def label_unit(standards: dict[str, Standard]) -> float:
    """What 1 of :func:`target_tensor` is in units of the label: the deviation of training labels; 1 for classes."""
    return float(standards["target"].deviation[0]) if "target" in standards else 1.0


def state_of(network: Any) -> dict[str, Any]:
    """A copy of the state of a network, in main memory."""
    state = network.state_dict().items()
    return {name: v.copy() if isinstance(v, np.ndarray) else v.detach().cpu().clone() for name, v in state}


def in_batches(compute: Callable[[Any], Any], inputs: Source, rows: NDArray[np.int64], size: int) -> Iterator[Any]:
    """A network's results for the chosen subgraphs, in batches of a fixed size; one empty batch for none."""
    return (compute(inputs.batch(rows[i : i + size])) for i in range(0, max(1, len(rows)), size))


def outputs_of(network: Any, inputs: Source, rows: NDArray[np.int64], batch_size: int) -> Tensor:
    """The network's outputs for the chosen subgraphs, in evaluation mode."""
    import torch

    network.eval()
    with torch.no_grad():
        return torch.cat([torch.as_tensor(part) for part in in_batches(network, inputs, rows, batch_size)]).float()


Outputs = Callable[[Any, Source, NDArray[np.int64], int], "Tensor"]


def judged_outputs(
    network: Any, examples: Examples, rows: NDArray[np.int64], batch_size: int, *, compute: Outputs = outputs_of
) -> tuple[Tensor, Tensor]:
    """Outputs for the chosen subgraphs, and their targets."""
    import torch

    targets = examples.targets[torch.from_numpy(rows).to(examples.targets.device)]
    return compute(network, examples.inputs, rows, max(batch_size, 256)).to(targets.device), targets


def evaluate(
    network: Any, examples: Examples, rows: NDArray[np.int64], batch_size: int, *, compute: Outputs = outputs_of
) -> tuple[float, dict[str, float]]:
    """Loss and metrics on the chosen subgraphs; ``compute`` gives the outputs, for which ranks may share the work."""
    outputs, targets = judged_outputs(network, examples, rows, batch_size, compute=compute)
    task = task_of(examples.task)
    width = task.num_outputs(examples.num_classes)
    if width and outputs.shape[1:] != (width,):
        what = f"the network returns outputs of shape {tuple(outputs.shape)}"
        hint = f"accepted: ({len(rows)}, {width}), as many columns as spec.num_outputs"
        raise UserError(what, where="train", hint=hint)
    found = task.metrics(outputs, targets, unit=examples.unit, select_by=examples.select_by)
    return float(task.loss(outputs, targets, examples.weights)), found


def validation_score(val_loss: float, val: dict[str, float], select_by: str) -> tuple[float, float]:
    """What candidates and epochs are selected by: the higher first number, then the lower second one.

    Real values are selected by the loss, and so are classes where the metric is undefined, as without a positive one.
    """
    score = -val_loss if "r2" in val else val[select_by]
    return score if score == score else -math.inf, val_loss
