"""The classifier that ends every model: three linear layers, relu and dropout between."""

from __future__ import annotations

from torch import Tensor, nn


class Head(nn.Module):
    """Subgraph vectors to outputs.

    A head that corrects takes a baseline's scores as the last columns, and adds to them what its layers make of all
    others. Its last layer starts at 0, so that it begins as the baseline.

    Shapes:
        in: (n, width), and with scores (n, width + outputs). out: (n, outputs).
    """

    def __init__(
        self,
        width: int,
        outputs: int,
        *,
        hidden: tuple[int, int] = (64, 32),
        dropout: float = 0.0,
        corrects: bool = False,
    ) -> None:
        super().__init__()
        self.width, self.corrects = width, corrects
        self.layers = nn.Sequential(
            nn.Linear(width, hidden[0]),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden[0], hidden[1]),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden[1], outputs),
        )
        if corrects:
            for parameter in self.layers[-1].parameters():
                nn.init.zeros_(parameter)

    def forward(self, z: Tensor) -> Tensor:
        """Logits, or one value for regression."""
        if not self.corrects:
            out: Tensor = self.layers(z)
            return out
        correction: Tensor = self.layers(z[:, : self.width])
        return z[:, self.width :] + correction
