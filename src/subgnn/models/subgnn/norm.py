"""Batch normalisation that also takes a batch of one row."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn
from torch.nn import functional


class BatchNorm(nn.BatchNorm1d):
    """Batch norm; in training, a single row is normalised by the running mean and variance, and does not change them.

    The variance of one row is 0, which nothing can be divided by. The running mean starts at 0 and the running variance
    at 1, so with batches of one row throughout (training.batch_size = 1, or one training subgraph), the module is a
    learned scale and shift.

    Example:
        >>> import torch
        >>> BatchNorm(2)(torch.tensor([[3.0, -1.0]])).detach().round(decimals=3).tolist()
        [[3.0, -1.0]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Shapes: (rows, width), both."""
        if not self.training or len(input) != 1:
            return super().forward(input)
        mean, variance = cast(Tensor, self.running_mean), cast(Tensor, self.running_var)
        return functional.batch_norm(input, mean, variance, self.weight, self.bias, training=False, eps=self.eps)
