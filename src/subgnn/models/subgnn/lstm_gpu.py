"""The LSTM over walks on a GPU, by cuDNN in single precision, in a way that a CUDA graph can capture."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from subgnn.models.subgnn.walks import Walks

_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@contextmanager
def single_precision() -> Iterator[None]:
    """Let cuDNN compute an LSTM in full single precision: by default it rounds inputs of products to 10 bits (TF32)."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


def gpu_states(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions at every step.

    Layers are computed one by one, with torch's dropout between them: that of cuDNN cannot be captured. Gradients are
    of single precision if :func:`single_precision` holds while they are computed.

    Shapes:
        table: (T, d). returns: (steps, 2 d).
    """
    if not walks.sizes:
        return table.new_zeros(0, 2 * lstm.hidden_size)
    states: Tensor = _Lookup.apply(table, walks)  # type: ignore[no-untyped-call]
    sizes = torch.tensor(walks.sizes)
    for layer in range(lstm.num_layers):
        zeros = states.new_zeros(2, walks.sizes[0], lstm.hidden_size)
        weights = [getattr(lstm, f"{name}_l{layer}{end}") for end in ("", "_reverse") for name in _PARAMETERS]
        with warnings.catch_warnings(), single_precision():
            warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk")
            states = torch.lstm(states, sizes, (zeros, zeros), weights, True, 1, 0.0, lstm.training, True)[0]
        if layer + 1 < lstm.num_layers:
            states = nn.functional.dropout(states, lstm.dropout, lstm.training)
    return states


class _Lookup(torch.autograd.Function):
    """The vectors of all steps, with a gradient that adds up in a fixed order and does not sort steps by node.

    Shapes:
        table: (T, d). returns: (steps, d).
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, walks: Walks) -> Tensor:
        ctx.walks, ctx.count = walks, len(table)
        return table.index_select(0, walks.nodes).index_select(0, walks.places)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        walks, grad = ctx.walks, grads[0].contiguous()
        by_node = nn.functional.embedding_bag(walks.by_node, grad, walks.node_starts, mode="sum")
        return grad.new_zeros(ctx.count, grad.shape[1]).index_copy_(0, walks.nodes, by_node), None
