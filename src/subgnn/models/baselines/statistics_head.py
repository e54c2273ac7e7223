"""The head on statistics of subgraphs, which the model TOPOLOGY offers beside trees."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.models.heads import HeadedNetwork, make_head
from subgnn.models.spec import Checkpoint, Weights


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
