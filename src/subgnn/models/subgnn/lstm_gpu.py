"""The LSTM over walks on a GPU: one kernel a layer forwards and one backwards (:mod:`subgnn.kernels.lstm_gpu`).

Inputs are projected at every step, though many steps stand on one node: to add up the gradients of projections would
take longer. Where there are no such kernels (no Triton, a wide state, another precision), cuDNN computes the LSTM.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from subgnn.kernels import lstm_gpu as kernels
from subgnn.models.subgnn.walks import Walks

_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def gpu_states(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions at every step.

    Shapes:
        table: (T, d). returns: (steps, 2 d).
    """
    inputs: Tensor = _Lookup.apply(table, walks)  # type: ignore[no-untyped-call]
    if not walks.sizes:
        return inputs.new_zeros(0, 2 * lstm.hidden_size)
    if inputs.dtype == torch.float32 and kernels.runs_on(inputs.device, lstm.hidden_size):
        return _kernel_states(lstm, inputs, walks)
    states: Tensor = lstm(PackedSequence(inputs, torch.tensor(walks.sizes)))[0].data
    return states


def _kernel_states(lstm: nn.LSTM, inputs: Tensor, walks: Walks) -> Tensor:
    """As :func:`gpu_states`, from the vectors of all steps, (steps, d)."""
    layout = kernels.Layout(walks.first, walks.lengths)
    for layer in range(lstm.num_layers):
        parameters = [getattr(lstm, f"{name}_l{layer}{end}") for name in _PARAMETERS for end in ("", "_reverse")]
        inputs = _Layer.apply(inputs, layout, torch.is_grad_enabled(), *parameters)  # type: ignore[no-untyped-call]
        if layer + 1 < lstm.num_layers:
            inputs = nn.functional.dropout(inputs, lstm.dropout, lstm.training)
    return inputs


class _Layer(torch.autograd.Function):
    """All steps of both directions of one layer, from its inputs and the parameters of :class:`torch.nn.LSTM`."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, layout: kernels.Layout, keep: bool, *parameters: Tensor) -> Tensor:
        w = torch.cat(parameters[:2])  # (8 d, in)
        u = torch.stack(parameters[2:4])  # (2, 4 d, d)
        bias = torch.cat(parameters[4:6]).add_(torch.cat(parameters[6:]))
        states, kept = kernels.forward(torch.addmm(bias, inputs, w.T), u, layout, keep=keep)
        ctx.save_for_backward(inputs, w, u)
        ctx.kept, ctx.layout = kept, layout
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs, w, u = ctx.saved_tensors
        of_gates, of_bias = kernels.backward(grads[0].contiguous(), u, ctx.layout, ctx.kept)
        d = u.shape[2]
        # One product for each direction: a batched one would not divide the steps among processors.
        pairs = zip(torch.split(of_gates, 4 * d, dim=1), torch.split(ctx.kept.before, d, dim=1), strict=True)
        of_u = [of_sums.T @ before for of_sums, before in pairs]
        of_w = torch.split(of_gates.T @ inputs, 4 * d)
        # Two copies: gradients are changed in place.
        of_biases = [*torch.split(of_bias, 4 * d), *torch.split(of_bias.clone(), 4 * d)]
        return of_gates @ w, None, None, *of_w, *of_u, *of_biases


class _Lookup(torch.autograd.Function):
    """The vectors of all steps, with a gradient in a fixed order that does not sort steps by node: they are sorted.

    Shapes:
        table: (T, d). returns: (steps, d).
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, walks: Walks) -> Tensor:
        ctx.walks, ctx.count = walks, len(table)
        return table.index_select(0, walks.nodes).index_select(0, walks.places)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        walks, (grad,) = ctx.walks, grads
        totals = nn.functional.embedding_bag(walks.by_node, grad.contiguous(), walks.node_starts, mode="sum")
        return grad.new_zeros(ctx.count, grad.shape[1]).index_copy_(0, walks.nodes, totals), None
