"""What GIN and GraphSAINT share: the vectors nodes start from, a stack of layers, and its pass over the whole graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from subgnn.embeddings.adjacency import Adjacency

_ENTRIES_AT_A_TIME = 2**24
_SPREAD = 0.3


class NodeInputs(nn.Module):
    """x_v of each node: a row of a learned table (one-hot features), or the given features through a linear map.

    Shapes:
        nodes: (n,). returns: (n, width).
    """

    def __init__(self, num_nodes: int, width: int, features: NDArray[np.float32] | None = None) -> None:
        super().__init__()
        self.features: Tensor
        self.map: nn.Linear | None = None
        if features is None:
            self.table = nn.Parameter(torch.randn(num_nodes, width) * _SPREAD)
        else:
            self.register_buffer("features", torch.from_numpy(features), persistent=False)
            self.map = nn.Linear(features.shape[1], width)

    def forward(self, nodes: Tensor | slice) -> Tensor:
        """Vectors of some nodes, or of all."""
        known = self.table if self.map is None else self.features
        rows = known[nodes] if isinstance(nodes, slice) else known.index_select(0, nodes)
        return rows if self.map is None else cast(Tensor, self.map(rows))


class Encoder(nn.Module):
    """z = layers(x): relu and dropout between layers, nothing after the last.

    A layer is called with the vectors below and an :class:`Adjacency`. The score of a pair is z_u . z_v / sqrt(d) + b:
    divided, so that scores are small in the beginning whatever the width; and with a learned b, so that the vectors
    need not say how rare edges are.
    """

    def __init__(self, inputs: NodeInputs, layers: list[nn.Module], dropout: float) -> None:
        super().__init__()
        self.inputs, self.layers, self.dropout = inputs, nn.ModuleList(layers), dropout
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, nodes: Tensor, adjacencies: list[Adjacency]) -> Tensor:
        """Vectors of the rows of the last adjacency.

        Args:
            nodes: those the columns of the first adjacency stand for.
            adjacencies: one a layer; the rows of one are the columns of the next.
        """
        x: Tensor = self.inputs(nodes)
        for i, (layer, adjacency) in enumerate(zip(self.layers, adjacencies, strict=True)):
            x = layer(x, adjacency)
            if i + 1 < len(self.layers):
                x = functional.dropout(functional.relu(x), self.dropout, self.training)
        return x

    def score(self, vectors: Tensor, pairs: Tensor) -> Tensor:
        """z_u . z_v / sqrt(d) + b.

        Shapes:
            vectors: (n, d). pairs: (2, m). returns: (m,).
        """
        products: Tensor = (vectors.index_select(0, pairs[0]) * vectors.index_select(0, pairs[1])).sum(dim=1)
        return products / math.sqrt(vectors.shape[1]) + self.bias


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """One step of link prediction.

    Shapes:
        nodes: (n,) inputs. pairs: (2, m) places in the last rows. targets, weights: (m,).
    """

    nodes: Tensor
    adjacencies: list[Adjacency]
    pairs: Tensor
    targets: Tensor
    weights: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same on another device."""
        return Batch(
            self.nodes.to(device),
            [adjacency.to(device) for adjacency in self.adjacencies],
            self.pairs.to(device),
            self.targets.to(device),
            self.weights.to(device),
        )


Rows = Callable[[slice], Adjacency]


def _slices(offsets: NDArray[np.int64]) -> Iterator[slice]:
    """Runs of rows of at most some entries each (one row at least)."""
    begin, last = 0, len(offsets) - 1
    while begin < last:
        end = int(np.searchsorted(offsets, offsets[begin] + _ENTRIES_AT_A_TIME, side="right")) - 1
        end = min(max(end, begin + 1), last)
        yield slice(begin, end)
        begin = end


@torch.no_grad()
def embed_all(encoder: Encoder, rows: Rows, offsets: NDArray[np.int64], device: torch.device) -> Tensor:
    """The vector z of every node from all its neighbours, layer by layer, some rows at a time.

    Args:
        rows: the adjacency of a run of rows, its columns all nodes.

    Shapes:
        returns: (N, d).
    """
    encoder.eval()
    x: Tensor = encoder.inputs(slice(None))
    for i, layer in enumerate(encoder.layers):
        x = torch.cat([layer(x, rows(run).to(device)) for run in _slices(offsets)])
        x = functional.relu(x) if i + 1 < len(encoder.layers) else x
    return x
