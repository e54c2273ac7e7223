"""psi of the structure channel: walks over a patch through a bidirectional LSTM (paper, appendix A.2, algorithm 2).

a = W sum over walks of (sum over the true steps of a walk of [forward state ; backward state]).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

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
        total = table.new_zeros(walks.num_patches, self.project.in_features)
        for steps, patches in zip(walks.steps, walks.patches, strict=True):
            states, _ = self.lstm(table[steps])  # (walks, length, 2 d)
            total = total.index_add(0, patches, states.sum(dim=1))
        encoded: Tensor = self.project(total)
        return encoded


class Walks(nn.Module):
    """Walks as buffers, those of equal length together, so that no step is padding.

    Args:
        rows: the walks of all patches, as places in the node table; empty ones are left out.
        per_patch: how many walks a patch has.
    """

    def __init__(self, rows: Ragged, per_patch: int) -> None:
        super().__init__()
        self.num_patches = len(rows) // per_patch
        lengths = torch.from_numpy(rows.lengths)
        values = torch.from_numpy(rows.values)
        starts = torch.from_numpy(rows.offsets[:-1].copy())
        self._names: list[str] = []
        for length in sorted(set(lengths.tolist()) - {0}):
            chosen = torch.nonzero(lengths == length).squeeze(1)
            steps = values[starts[chosen][:, None] + torch.arange(length)]
            self.register_buffer(f"steps_{length}", steps.long())
            self.register_buffer(f"patches_{length}", chosen // per_patch)
            self._names.append(str(length))

    @property
    def steps(self) -> list[Tensor]:
        """For each length, (walks, length) places in the table."""
        return [self.get_buffer(f"steps_{name}") for name in self._names]

    @property
    def patches(self) -> list[Tensor]:
        """For each length, the patch of each walk."""
        return [self.get_buffer(f"patches_{name}") for name in self._names]
