"""psi of the structure channel: walks over a patch through a bidirectional LSTM (paper, appendix A.2, algorithm 2).

a = W sum over walks of (sum over the true steps of a walk of [forward state ; backward state]).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from subgnn.nn.walk_lstm import Picking, lstm_states
from subgnn.ragged import Ragged


class PatchEncoder(nn.Module):
    """Patches to vectors; one encoder serves all layers and sides.

    *Differs from the paper:* a linear map takes the 2 d numbers of the two directions to d; the paper leaves it open.

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
        states = lstm_states(self.lstm, table[walks.nodes], walks.picking, walks.places, walks.sizes)  # (steps, 2 d)
        total = states.new_zeros(walks.num_patches, states.shape[1]).index_add(0, walks.owner, states)
        encoded: Tensor = self.project(total)
        return encoded


class Walks(nn.Module):
    """Walks as buffers, packed: all first steps, then all second steps, and so on; longer walks first.

    Args:
        rows: the walks of all patches, as places in the node table; empty ones are left out.
        per_patch: how many walks a patch has.

    Shapes:
        nodes: (R,) places in the table of the distinct nodes of all walks. places: (steps,) which of them each step
        stands on. owner: (steps,) the patch of each step. sizes: (longest,) how many walks have a step t.
    """

    nodes: Tensor
    places: Tensor
    owner: Tensor

    def __init__(self, rows: Ragged, per_patch: int) -> None:
        super().__init__()
        self.num_patches = len(rows) // per_patch
        longest_first = np.argsort(-rows.lengths, kind="stable")
        lengths = rows.lengths[longest_first]
        self.sizes = torch.tensor([int((lengths > t).sum()) for t in range(int(lengths.max(initial=0)))])
        walks = [longest_first[: int(size)] for size in self.sizes]
        steps = [rows.values[rows.offsets[walk] + t] for t, walk in enumerate(walks)]
        nodes, places = np.unique(np.concatenate([np.empty(0, np.int64), *steps]), return_inverse=True)
        self.picking = Picking.of(places.astype(np.int64), len(nodes))
        owner = np.concatenate([np.empty(0, np.int64), *walks]) // per_patch
        self.register_buffer("nodes", torch.from_numpy(nodes.astype(np.int64)))
        self.register_buffer("places", torch.from_numpy(self.picking.rows))
        self.register_buffer("owner", torch.from_numpy(owner))
