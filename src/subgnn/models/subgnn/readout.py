"""READOUT: from the components of a subgraph to the subgraph (paper, section 4.1)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

Reduction = Literal["sum", "mean", "max", "attention"]


def segment_reduce(values: Tensor, owner: Tensor, count: int, how: str) -> Tensor:
    """The sum, mean or max of the rows that belong to the same owner; every owner has at least one.

    Shapes:
        values: (rows, d). owner: (rows,). returns: (count, d).
    """
    reduce = {"sum": "sum", "mean": "mean", "max": "amax"}[how]
    out = values.new_zeros(count, values.shape[1])
    return out.scatter_reduce(0, owner[:, None].expand_as(values), values, reduce, include_self=False)


class Readout(nn.Module):
    """Components to subgraphs: sum, mean, max, or additive attention.

    Attention: weights are the softmax over a subgraph's components of v . tanh(W z_c + b).
    """

    def __init__(self, how: Reduction, dim: int, *, hidden: int = 32) -> None:
        super().__init__()
        self.how = how
        self.attend = (
            nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 1)) if how == "attention" else None
        )

    def forward(self, z: Tensor, subgraph: Tensor, count: int) -> Tensor:
        """Shapes: z: (C, d). subgraph: (C,). returns: (count, d)."""
        if self.attend is None:
            return segment_reduce(z, subgraph, count, self.how)
        logits = self.attend(z)
        highest = segment_reduce(logits, subgraph, count, "max")[subgraph]
        weights = torch.exp(logits - highest.detach())
        weights = weights / segment_reduce(weights, subgraph, count, "sum")[subgraph]
        return segment_reduce(weights * z, subgraph, count, "sum")
