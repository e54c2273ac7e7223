"""psi of the structure channel: walks over a patch through a bidirectional LSTM (paper, appendix A.2, algorithm 2).

a = W sum over walks of (sum over the true steps of a walk of [forward state ; backward state]).
"""

from __future__ import annotations

from torch import Tensor, nn

from subgnn.models.subgnn.walk_lstm import lstm_states
from subgnn.models.subgnn.walks import Walks


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
        states = lstm_states(self.lstm, table, walks)  # (steps, 2 d)
        total = states.new_zeros(walks.num_patches, states.shape[1]).index_add(0, walks.owner, states)
        encoded: Tensor = self.project(total)
        return encoded
