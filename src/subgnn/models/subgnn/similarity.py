"""gamma as a module: the closed form of the paper, or a small network on the same distances."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ClosedSimilarity(nn.Module):
    """gamma = reached / (1 + distance) (paper, section 4.2)."""

    def forward(self, distance: Tensor, reached: Tensor) -> Tensor:
        """Shapes: distance, reached: (C, n_A). returns: (C, n_A)."""
        return reached / (1 + distance)


class LearnedSimilarity(nn.Module):
    """gamma = reached * sigmoid(MLP(distance, 1 / (1 + distance))).

    The paper allows any learned function here (section 4.3); the second input is the closed form.
    """

    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, distance: Tensor, reached: Tensor) -> Tensor:
        """Shapes: distance, reached: (C, n_A). returns: (C, n_A)."""
        inputs = torch.stack([torch.log1p(distance), 1 / (1 + distance)], dim=-1)
        return reached * torch.sigmoid(self.mlp(inputs).squeeze(-1))
