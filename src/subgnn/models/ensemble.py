"""Several networks whose answer is the mean of theirs; beyond the paper."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class Committee(nn.Module):
    """Networks of one shape, asked together.

    Shapes:
        out: (n, outputs), the mean of the members' logits.
    """

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, batch: Any) -> Tensor:
        """Logits; one value for regression."""
        return torch.stack([member(batch) for member in self.members]).mean(dim=0)
