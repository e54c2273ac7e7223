"""The classifier that ends a network, and networks that end with it."""

from abc import ABC, abstractmethod
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.models.spec import Checkpoint, ModelSpec


class Head(nn.Module):
    """Subgraph vectors to outputs.

    A head that corrects takes a baseline's scores as the last columns, and adds to them what its layers make of all
    others. Its last layer starts at 0, so that it begins as the baseline.

    Shapes:
        in: (n, width), and with scores (n, width + outputs). out: (n, outputs).
    """

    def __init__(
        self, width: int, outputs: int, *, hidden: tuple[int, int], dropout: float, corrects: bool = False
    ) -> None:
        super().__init__()
        self.width, self.corrects = width, corrects
        self.layers = nn.Sequential(
            nn.Linear(width, hidden[0]),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden[0], hidden[1]),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden[1], outputs),
        )
        if corrects:
            for parameter in self.layers[-1].parameters():
                nn.init.zeros_(parameter)

    def forward(self, z: Tensor) -> Tensor:
        found = cast(Tensor, self.layers(z[..., : self.width]))
        return z[..., self.width :] + found if self.corrects else found


class HeadedNetwork(nn.Module, ABC):
    """A network whose outputs are head(embed(batch)), for vectors of a width; a subclass defines ``embed``."""

    def __init__(self, spec: ModelSpec, width: int) -> None:
        super().__init__()
        self.head = Head(width, spec.num_outputs, hidden=spec.model.head, dropout=spec.model.dropout)

    @abstractmethod
    def embed(self, batch: Any) -> Tensor:
        """The vector of each subgraph (n, width)."""

    def forward(self, batch: Any) -> Tensor:
        return cast(Tensor, self.head(self.embed(batch)))


class StatisticsHead(HeadedNetwork):
    """head((statistics - mean) / deviation), of the training split; it also holds the training subgraphs."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        state = checkpoint.weights
        super().__init__(checkpoint.spec, len(state["standardise.mean"]))
        self.standardise = nn.Module()
        for name in ("mean", "deviation"):
            self.standardise.register_buffer(name, torch.as_tensor(state[f"standardise.{name}"]))
        for name in ("nodes", "offsets", "times"):
            if name in state:
                self.register_buffer(name, torch.as_tensor(state[name]))

    def embed(self, statistics: NDArray[np.float64]) -> Tensor:
        mean, deviation = (self.standardise.get_buffer(name) for name in ("mean", "deviation"))
        return ((torch.as_tensor(statistics, device=mean.device) - mean) / deviation).float()
