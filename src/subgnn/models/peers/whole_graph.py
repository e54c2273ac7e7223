"""The whole graph and sets of its nodes, as networks that pass messages over all nodes take them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.data.graph import Graph
from subgnn.embeddings.link_prediction import Adjacency
from subgnn.ragged import Ragged


class WholeGraph:
    """The graph as message passing takes it: ``graph @ m`` is A m.

    A is a matrix of zeros and ones between two scalings, A_uv = rows_u columns_v for neighbours u, v. The matrix is
    symmetric, and serves the gradient as well.
    """

    def __init__(self, graph: Graph, adjacency: Literal["mean", "sum", "symmetric"]) -> None:
        self.graph, self.device = graph, torch.device("cpu")
        degrees = np.maximum(np.diff(graph.offsets), 1).astype(np.float32)
        self._rows = {"mean": 1 / degrees, "sum": None, "symmetric": degrees**-0.5}[adjacency]
        self._columns = self._rows if adjacency == "symmetric" else None

    def to(self, device: torch.device | str) -> None:
        if torch.device(device) != self.device:
            self.device = torch.device(device)
            for name in ("matrix", "scales"):
                self.__dict__.pop(name, None)

    @cached_property
    def matrix(self) -> Adjacency:
        offsets, columns = (torch.from_numpy(array.astype(np.int32)).to(self.device) for array in self.graph.csr)
        return Adjacency.symmetric(offsets, columns)

    @cached_property
    def scales(self) -> tuple[Tensor | None, Tensor | None]:
        """The scalings of rows and columns (N, 1), None for 1."""

        def put(scale: NDArray[Any] | None) -> Tensor | None:
            return None if scale is None else torch.from_numpy(scale[:, None]).to(self.device)

        return put(self._rows), put(self._columns)

    def __matmul__(self, messages: Tensor) -> Tensor:
        rows, columns = self.scales
        return _scaled(self.matrix @ _scaled(messages, columns), rows)

    def send(self, messages: Tensor, block: Adjacency, *, tails: Tensor, heads: Tensor) -> Tensor:
        """The part of A m at the nodes ``heads`` that messages of the nodes ``tails`` add, over some edges."""
        rows, columns = self.scales
        given = _scaled(messages, None if columns is None else columns[tails])
        return _scaled(block @ given, None if rows is None else rows[heads])


def _scaled(x: Tensor, scale: Tensor | None) -> Tensor:
    return x if scale is None else x * scale


@dataclass(frozen=True, slots=True, eq=False)
class NodeSetBatch:
    """Node sets of a graph, sorted."""

    graph: WholeGraph
    nodes: Ragged

    @property
    def places(self) -> Tensor:
        """The nodes laid end to end (total,)."""
        return torch.from_numpy(self.nodes.values.astype(np.int64)).to(self.graph.device)

    @property
    def subgraph(self) -> Tensor:
        """For each of them, the set it stands in (total,)."""
        return torch.from_numpy(self.nodes.row_ids).to(self.graph.device)


class NodeSetSource:
    """Subgraphs as sets of nodes of the whole graph."""

    def __init__(self, graph: WholeGraph, nodes: Ragged) -> None:
        self.graph, self.nodes = graph, nodes

    @property
    def device(self) -> torch.device:
        return self.graph.device

    def __len__(self) -> int:
        return len(self.nodes)

    def to(self, device: torch.device | str) -> Self:
        self.graph.to(device)
        return self

    def batch(self, rows: NDArray[np.int64]) -> NodeSetBatch:
        return NodeSetBatch(self.graph, self.nodes.take(rows))
