"""A sparse matrix of message weights, multiplied without building a message an edge."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.kernels.build_csr import transpose


def _sparse(offsets: Any, columns: Any, weights: Any, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        # Said once a process: that sparse tensors are in beta, and that they are not checked. What is used of them is
        # tested here.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(
            torch.from_numpy(np.array(offsets, np.int32)),
            torch.from_numpy(np.array(columns, np.int32)),
            torch.from_numpy(np.array(weights, np.float32)),
            shape,
            check_invariants=False,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """Weighted messages from the vectors of a layer below to those of the layer above; takes PyG's ``edge_index``.

    ``adjacency @ x`` is the sum of weight x vector over the messages of each row: O(rows x d) memory, where messages
    gathered one by one would take O(edges x d). With the transposed matrix beside it the gradient is one more such
    product; the backward pass that PyTorch has for it took some nine times as long (2.7 M entries, on a CPU).

    Shapes:
        matrix: (rows, n) CSR. back: (n, rows) CSR, or None where no gradient is wanted.
        rows: which of the n vectors below belong to the rows. loops: (rows, 1) weight of a node's own vector, or None.
    """

    matrix: Tensor
    back: Tensor | None
    rows: slice
    loops: Tensor | None = None

    @classmethod
    def of(
        cls,
        offsets: NDArray[np.int64],
        columns: NDArray[np.int32],
        weights: NDArray[np.float32],
        *,
        num_columns: int,
        rows: slice,
        loops: NDArray[np.float32] | None = None,
        gradient: bool = True,
    ) -> Self:
        """From CSR arrays."""
        shape = len(offsets) - 1, num_columns
        back = None
        if gradient:
            turned, heads, places = transpose(offsets, columns, num_columns)
            back = _sparse(turned, heads, weights[places], shape[::-1])
        own = None if loops is None else torch.from_numpy(loops[:, None])
        return cls(_sparse(offsets, columns, weights, shape), back, rows, own)

    def to(self, device: torch.device) -> Adjacency:
        """The same on another device."""
        back = None if self.back is None else self.back.to(device)
        return Adjacency(self.matrix.to(device), back, self.rows, None if self.loops is None else self.loops.to(device))

    def __matmul__(self, x: Tensor) -> Tensor:
        # Sparse products know no half precision on a CPU.
        x = x.float()
        total: Tensor = self.matrix @ x if self.back is None else _multiply(self.matrix, self.back, x)
        return total if self.loops is None else total + self.loops * x[self.rows]


class _Product(torch.autograd.Function):
    """y = A x, with dx = A^T dy from the transposed matrix given."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, back: Tensor, x: Tensor) -> Tensor:
        ctx.back = back
        return matrix @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.back @ gradients[0].contiguous()


# PyTorch leaves ``apply`` without types.
_multiply = cast("Callable[[Tensor, Tensor, Tensor], Tensor]", _Product.apply)
