"""Vectors of patches: walks over a patch through a bidirectional LSTM (paper, appendix A.2, algorithm 2).

a = W sum over walks of (sum over the steps of a walk of [forward state ; backward state]).

Compiled loops compute the LSTM on a CPU (:mod:`subgnn.models.subgnn.lstm_cpu`), and cuDNN on a GPU
(:mod:`subgnn.models.subgnn.lstm_gpu`); elsewhere, :class:`torch.nn.LSTM` does.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from subgnn.models.subgnn.lstm_cpu import compiled_states
from subgnn.models.subgnn.lstm_gpu import gpu_states
from subgnn.models.subgnn.walks import Walks


class PatchEncoder(nn.Module):
    """Patches to vectors; one encoder serves all layers and sides.

    *Differs from the paper:* a linear map takes the 2 d numbers of both directions to d; the paper does not say how.

    Shapes:
        d: width of node and patch vectors.
    """

    def __init__(self, dim: int, *, lstm_layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.lstm = nn.LSTM(
            dim,
            dim,
            num_layers=lstm_layers,
            dropout=dropout if lstm_layers > 1 else 0.0,
            bidirectional=True,
            batch_first=True,
        )
        self.project = nn.Linear(2 * dim, dim)

    def forward(self, table: Tensor, walks: Walks) -> Tensor:
        """Encode patches.

        Shapes:
            table: (T, d). returns: (patches, d).
        """
        states = lstm_states(self.lstm, table, walks)  # (steps, 2 d)
        total = states.new_zeros(walks.num_patches, states.shape[1]).index_add(0, walks.owner, states)
        encoded: Tensor = self.project(total)
        return encoded


def lstm_states(lstm: nn.LSTM, table: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions at every step.

    Args:
        lstm: bidirectional; its dropout acts between its layers, in training.
        table: node vectors.

    Shapes:
        table: (T, d). returns: (steps, 2 d).
    """
    if table.device.type == "cuda":
        return gpu_states(lstm, table, walks)
    inputs = table.index_select(0, walks.nodes)
    if table.device.type == "cpu" and table.dtype == torch.float32:
        return compiled_states(lstm, inputs, walks)
    packed = PackedSequence(inputs[walks.places], torch.tensor(walks.sizes))
    states: Tensor = lstm(packed)[0].data
    return states
