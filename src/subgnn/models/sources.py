"""Subgraphs as tensors for the baselines: a row each, or their nodes and the edges among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.models.subgnn.batches import spans
from subgnn.ragged import Ragged


class Rows:
    """A row of a tensor for each subgraph; a batch is the chosen rows."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    @property
    def device(self) -> torch.device:
        """Where the tensor is."""
        return self.rows.device

    def __len__(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device | str) -> Self:
        """Move the tensor to a device, in place."""
        self.rows = self.rows.to(device)
        return self

    def batch(self, rows: NDArray[np.int64]) -> Tensor:
        """The chosen subgraphs, in the given order."""
        return self.rows[torch.from_numpy(rows).to(self.device)]


@dataclass(frozen=True, slots=True, eq=False)
class NodeBatch:
    """Subgraphs laid end to end.

    Shapes:
        nodes: (total,) int64 places in the node table. starts: (n,) where each subgraph begins. subgraph: (total,).
        edges: (2, directed edges) places in ``nodes``; none leaves its subgraph.
    """

    nodes: Tensor
    starts: Tensor
    subgraph: Tensor
    edges: Tensor


class NodeSets:
    """The nodes of each subgraph, and the edges among them where they are given.

    Args:
        places: the nodes, as places in the node table.
        edges: for each subgraph its directed edges, tail and head in turn, numbered by their place in the subgraph.
    """

    def __init__(self, places: Ragged, edges: Ragged | None = None) -> None:
        given = Ragged(np.empty(0, np.int64), np.zeros(len(places) + 1, np.int64)) if edges is None else edges
        self.first, self.edge_first = np.array(places.offsets), np.array(given.offsets)
        self.nodes, self.ends = _tensor(places.values), _tensor(given.values)

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.nodes.device

    def __len__(self) -> int:
        return len(self.first) - 1

    def to(self, device: torch.device | str) -> Self:
        """Move all tensors to a device, in place."""
        self.nodes, self.ends = self.nodes.to(device), self.ends.to(device)
        return self

    def batch(self, rows: NDArray[np.int64]) -> NodeBatch:
        """The chosen subgraphs, in the given order."""
        places, subgraph = spans(self.first, rows)
        sizes = self.first[rows + 1] - self.first[rows]
        starts = np.cumsum(sizes) - sizes
        ends, owner = spans(self.edge_first, rows)
        at, begin, own, end, shift = (
            _tensor(a).to(self.device) for a in (places, starts, subgraph, ends, starts[owner])
        )
        edges = (self.ends[end] + shift).reshape(-1, 2).T
        return NodeBatch(self.nodes[at], begin, own, edges.contiguous())


def _tensor(array: NDArray[np.int64]) -> Tensor:
    return torch.from_numpy(np.array(array, np.int64))
