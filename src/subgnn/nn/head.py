"""The classifier that ends every model: three linear layers, relu and dropout between."""

from __future__ import annotations

from torch import Tensor, nn


class Head(nn.Module):
    """Subgraph vectors to outputs.

    Shapes:
        in: (n, width). out: (n, outputs).
    """

    def __init__(self, width: int, outputs: int, *, hidden: tuple[int, int] = (64, 32), dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, hidden[0]),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden[0], hidden[1]),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden[1], outputs),
        )

    def forward(self, z: Tensor) -> Tensor:
        """Logits, or one value for regression."""
        out: Tensor = self.layers(z)
        return out
