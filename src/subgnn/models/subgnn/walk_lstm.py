"""A bidirectional LSTM over packed walks.

On a CPU in single precision compiled loops compute it (:mod:`subgnn.models.subgnn.compiled_lstm`). On a GPU both
directions advance together: the second reads each walk from its end, so that equally many walks are left in both.
Elsewhere, and in mixed precision, :class:`torch.nn.LSTM` does.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from subgnn.models.subgnn.compiled_lstm import compiled_states, direction_weights
from subgnn.models.subgnn.walks import Walks


def lstm_states(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions at every step.

    Args:
        lstm: bidirectional; its dropout acts between its layers, in training.
        table: node vectors.

    Shapes:
        table: (T, d). returns: (steps, 2 d).
    """
    inputs = table.index_select(0, walks.nodes)
    plain = not torch.is_autocast_enabled(inputs.device.type)
    if plain and inputs.device.type == "cpu" and inputs.dtype == torch.float32:
        return compiled_states(lstm, inputs, walks)
    if plain and inputs.device.type == "cuda":
        return _fused(lstm, inputs, walks)
    packed = PackedSequence(inputs[walks.places], torch.tensor(walks.sizes))
    states: Tensor = lstm(packed)[0].data
    return states


def _fused(lstm: nn.LSTM, inputs: Tensor, walks: Walks) -> Tensor:
    """On a GPU: both directions of a step are one product and one kernel."""
    places = walks.places
    for layer in range(lstm.num_layers):
        (w_ahead, u_ahead, b_ahead), (w_back, u_back, b_back) = direction_weights(lstm, layer)
        ahead = torch.addmm(b_ahead, inputs, w_ahead.T)[places]  # (steps, 4 d)
        back = torch.addmm(b_back, inputs, w_back.T)[places[walks.back]]
        u = torch.stack([u_ahead.T, u_back.T])  # (2, d, 4 d)
        h, c, states, first = u.new_zeros(2, 0, u.shape[1]), u.new_zeros(2, 0, u.shape[1]), [], 0
        for size in walks.sizes:
            arrived = torch.stack([ahead[first : first + size], back[first : first + size]])
            if first == 0:
                recurrent, c = torch.zeros_like(arrived), u.new_zeros(2, size, u.shape[1])
            else:
                recurrent = torch.bmm(h[:, :size], u)
            cell = _fused_cell(arrived.flatten(0, 1), recurrent.flatten(0, 1), c[:, :size].flatten(0, 1))
            h, c = cell[0].view(2, size, -1), cell[1].view(2, size, -1)
            states.append(h)
            first += size
        both = torch.cat(states, dim=1)  # (2, steps, d)
        inputs = torch.cat([both[0], both[1][walks.back]], dim=1)
        if layer + 1 < lstm.num_layers:
            inputs = nn.functional.dropout(inputs, lstm.dropout, lstm.training)
            places = torch.arange(len(inputs), device=inputs.device)
    return inputs


def _fused_cell(arrived: Tensor, recurrent: Tensor, c: Tensor) -> Any:
    """State and cell after one step: the kernel that :class:`torch.nn.LSTMCell` uses on a GPU."""
    return torch.ops.aten._thnn_fused_lstm_cell(arrived, recurrent, c)
