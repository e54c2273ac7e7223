"""The classifier that ends a network, and networks that end with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.models.spec import Checkpoint, ModelSpec, Weights


def make_head(spec: ModelSpec, width: int) -> Head:
    """The classifier that ends a network, for vectors of a width."""
    return Head(width, spec.num_outputs, hidden=spec.model.head, dropout=spec.model.dropout)


class Head(nn.Module):
    """Subgraph vectors to outputs.

    A head that corrects takes a baseline's scores as the last columns, and adds to them what its layers make of all
    others. Its last layer starts at 0, so that it begins as the baseline.

    Shapes:
        in: (n, width), and with scores (n, width + outputs). out: (n, outputs).
    """

    def __init__(
        self,
        width: int,
        outputs: int,
        *,
        hidden: tuple[int, int] = (64, 32),
        dropout: float = 0.0,
        corrects: bool = False,
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
        if not self.corrects:
            out: Tensor = self.layers(z)
            return out
        correction: Tensor = self.layers(z[:, : self.width])
        return z[:, self.width :] + correction


class HeadedNetwork(nn.Module, ABC):
    """A network whose outputs are head(embed(batch)); a subclass sets ``head`` and defines ``embed``."""

    head: Head

    @abstractmethod
    def embed(self, batch: Any) -> Tensor:
        """The vector of each subgraph (n, width)."""

    def forward(self, batch: Any) -> Tensor:
        """Logits, or one value for regression (n, outputs)."""
        out: Tensor = self.head(self.embed(batch))
        return out


class Standardise(nn.Module):
    """Statistics (n, F) as the training split sees them: less the mean, over the deviation."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, state: Weights) -> None:
        super().__init__()
        for name in ("mean", "deviation"):
            self.register_buffer(name, torch.as_tensor(state[f"standardise.{name}"]))

    def forward(self, statistics: Tensor) -> Tensor:
        return ((statistics - self.mean) / self.deviation).float()


class StatisticsHead(HeadedNetwork):
    """head(standardised statistics); it also holds the training subgraphs."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        state = checkpoint.weights
        self.standardise = Standardise(state)
        for name in ("nodes", "offsets", "times"):
            if name in state:
                self.register_buffer(name, torch.as_tensor(state[name]))
        self.head = make_head(checkpoint.spec, len(self.standardise.mean))

    def embed(self, statistics: NDArray[np.float64]) -> Tensor:
        out: Tensor = self.standardise(torch.as_tensor(statistics, device=self.standardise.mean.device))
        return out
