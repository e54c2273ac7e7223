"""One optimisation step: as it is, or captured once on a GPU and replayed.

The step of a small network is hundreds of tiny kernels, and starting them costs more than running them. A CUDA graph
starts them all at once; it needs fixed shapes, so batches are filled up to the room that any batch of that size fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor

from subgnn.config import TrainingSettings
from subgnn.data.subgraphs import Task
from subgnn.nn import Inputs
from subgnn.nn.inputs import Choice, Room
from subgnn.training.metrics import loss

_WARM_UP = 3  # steps that run as they are before one is captured


@dataclass(slots=True)
class Steps:
    """Steps on batches of the given examples; calling one returns its loss."""

    model: Any
    optimizer: Any
    inputs: Inputs
    targets: Tensor
    task: Task
    settings: TrainingSettings
    weights: Tensor | None
    fabric: Fabric

    def __call__(self, rows: NDArray[np.int64]) -> Tensor:
        """Train on the chosen subgraphs."""
        return self.advance(self.inputs.choose(rows).to(self.fabric.device))

    def advance(self, choice: Choice) -> Tensor:
        """Forward, backward, clip, update."""
        self.optimizer.zero_grad()
        value = loss(self.model(self.inputs.pick(choice)), self.targets[choice.rows], self.task, self.weights)
        self.fabric.backward(value)
        if self.settings.clip:
            self.fabric.clip_gradients(
                self.model, self.optimizer, max_norm=self.settings.clip, error_if_nonfinite=False
            )
        self.optimizer.step()
        return value.detach()


class GraphedSteps:
    """Steps as CUDA graphs, one for each size of batch.

    The first steps of a size run as they are, on the stream of the capture, and count like all others.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.seen: dict[int, int] = {}
        self.captured: dict[int, _Captured] = {}

    def __call__(self, rows: NDArray[np.int64]) -> Tensor:
        """Train on the chosen subgraphs."""
        size = len(rows)
        if size not in self.captured:
            self.seen[size] = self.seen.get(size, 0) + 1
            if self.seen[size] <= _WARM_UP:
                return self._as_it_is(rows)
            self.captured[size] = self._capture(rows)
        captured = self.captured[size]
        captured.choice.overwrite(self.steps.inputs.choose(rows, captured.room))
        captured.graph.replay()
        return captured.loss.clone()

    def _as_it_is(self, rows: NDArray[np.int64]) -> Tensor:
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            value = self.steps(rows)
        torch.cuda.current_stream().wait_stream(self.stream)
        return value

    def _capture(self, rows: NDArray[np.int64]) -> _Captured:
        room = self.steps.inputs.room(len(rows))
        choice = self.steps.inputs.choose(rows, room).to(self.steps.fabric.device)
        graph = torch.cuda.CUDAGraph()
        self.steps.optimizer.zero_grad()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=self.stream):
            value = self.steps.advance(choice)
        return _Captured(graph, room, choice, value)


@dataclass(frozen=True, slots=True, eq=False)
class _Captured:
    graph: torch.cuda.CUDAGraph
    room: Room
    choice: Choice
    loss: Tensor
