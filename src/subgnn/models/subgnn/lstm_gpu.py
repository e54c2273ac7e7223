"""The LSTM over walks on a GPU: one kernel a layer forwards and one backwards (:mod:`subgnn.kernels.lstm_gpu`).

Inputs of the first layer are projected once for each distinct node; the last layer adds up its states as it goes. Where
there are no such kernels (no Triton, a wide state, another precision), cuDNN computes the LSTM.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from subgnn.kernels import lstm_gpu as kernels
from subgnn.models.subgnn.walks import Walks

_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def gpu_totals(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """Sums of the hidden states of both directions over all steps of each patch.

    Shapes:
        table: (T, d). returns: (patches, 2 d).
    """
    if walks.sizes and table.dtype == torch.float32 and kernels.runs_on(table.device, lstm.hidden_size):
        return _kernel_totals(lstm, table.index_select(0, walks.nodes), walks)
    totals = table.new_zeros(walks.num_patches, 2 * lstm.hidden_size)
    if not walks.sizes:
        return totals
    inputs: Tensor = _Lookup.apply(table, walks)  # type: ignore[no-untyped-call]
    return totals.index_add(0, walks.owner, _library_states(lstm, inputs, walks))


def _library_states(lstm: nn.LSTM, inputs: Tensor, walks: Walks) -> Tensor:
    """The states at every step by cuDNN, layer by layer: its own dropout cannot be seeded in a captured step.

    Shapes:
        inputs: (steps, d). returns: (steps, 2 d).
    """
    sizes = torch.tensor(walks.sizes)
    for layer in range(lstm.num_layers):
        zeros = inputs.new_zeros(2, walks.sizes[0], lstm.hidden_size)
        weights = [getattr(lstm, f"{name}_l{layer}{end}") for end in ("", "_reverse") for name in _PARAMETERS]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk")
            inputs = torch.lstm(inputs, sizes, (zeros, zeros), weights, True, 1, 0.0, lstm.training, True)[0]
        if layer + 1 < lstm.num_layers:
            inputs = nn.functional.dropout(inputs, lstm.dropout, lstm.training)
    return inputs


def _kernel_totals(lstm: nn.LSTM, inputs: Tensor, walks: Walks) -> Tensor:
    """As :func:`gpu_totals`, from the vectors of the distinct nodes."""
    for layer in range(lstm.num_layers):
        parameters = [getattr(lstm, f"{name}_l{layer}{end}") for name in _PARAMETERS for end in ("", "_reverse")]
        ends = (layer == 0, layer + 1 == lstm.num_layers)
        inputs = _Layer.apply(inputs, walks, ends, torch.is_grad_enabled(), *parameters)  # type: ignore[no-untyped-call]
        if layer + 1 < lstm.num_layers:
            inputs = nn.functional.dropout(inputs, lstm.dropout, lstm.training)
    return inputs


class _Layer(torch.autograd.Function):
    """All steps of both directions of one layer, from its inputs and the parameters of :class:`torch.nn.LSTM`.

    Args:
        inputs: of the first layer, the vectors of distinct nodes; of others, the states of the layer before.
        ends: whether it is the first layer, and whether it is the last, whose states are added up by patch.
        keep: whether a gradient will be asked for.
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, walks: Walks, ends: tuple[bool, bool], keep: bool, *parameters: Tensor
    ) -> Tensor:
        w = torch.cat(parameters[:2])  # (8 d, in)
        u = torch.stack(parameters[2:4])  # (2, 4 d, d)
        bias = torch.cat(parameters[4:6]).add_(torch.cat(parameters[6:]))
        places = walks.places if ends[0] else None
        projected = torch.addmm(bias, inputs, w.T)
        states, kept = kernels.forward(projected, u, _layout(walks), places=places, summed=ends[1], keep=keep)
        ctx.save_for_backward(inputs, w, u)
        ctx.kept, ctx.walks, ctx.ends = kept, walks, ends
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs, w, u = ctx.saved_tensors
        walks, (first, last), before = ctx.walks, ctx.ends, ctx.kept.before
        of_gates, of_bias = kernels.backward(grads[0].contiguous(), u, _layout(walks), ctx.kept, summed=last)
        d = u.shape[2]
        # One product for each direction: a batched one would not divide the steps among processors.
        pairs = zip(torch.split(of_gates, 4 * d, dim=1), torch.split(before, d, dim=1), strict=True)
        of_u = [of_sums.T @ states for of_sums, states in pairs]
        of_projected = _sum_by_node(of_gates, walks) if first else of_gates
        of_w = torch.split(of_projected.T @ inputs, 4 * d)
        # Two copies: gradients are changed in place.
        of_biases = [*torch.split(of_bias, 4 * d), *torch.split(of_bias.clone(), 4 * d)]
        return of_projected @ w, None, None, None, *of_w, *of_u, *of_biases


def _layout(walks: Walks) -> kernels.Layout:
    return kernels.Layout(walks.first, walks.lengths, walks.order, walks.per_patch)


def _sum_by_node(values: Tensor, walks: Walks) -> Tensor:
    """The sum over the steps on each distinct node, in a fixed order. Shapes: (steps, n); returns: (R, n)."""
    return nn.functional.embedding_bag(walks.by_node, values.contiguous(), walks.node_starts, mode="sum")


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
        walks, (grad,) = ctx.walks, grads
        totals = grad.new_zeros(ctx.count, grad.shape[1])
        return totals.index_copy_(0, walks.nodes, _sum_by_node(grad, walks)), None
