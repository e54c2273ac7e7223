"""What a trained run keeps between questions, so that the next answer is quick."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.models.subgnn import Inputs, SubGNN
from subgnn.models.subgnn.batches import Batch
from subgnn.prepare.measure import Prepared


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What does not change between calls: a network over a table of nodes, their vectors, and those of its anchors.

    Shapes:
        table: (T,). nodes: (T, d). anchors: by draw, as :meth:`SubGNN.anchor_vectors` gives them.
    """

    table: NDArray[np.int32]
    model: SubGNN
    nodes: Tensor
    anchors: list[list[list[Tensor]]]

    @classmethod
    @torch.no_grad()
    def of(cls, model: SubGNN, table: NDArray[np.int32], *, draws: int) -> Kept:
        """Compute what is kept."""
        nodes = model.node_vectors()
        return cls(table, model, nodes, [model.anchor_vectors(nodes, draw) for draw in range(draws)])

    def knows(self, nodes: NDArray[np.int32], num_nodes: int) -> bool:
        """Whether all these nodes, of a graph of so many, are in the table."""
        return len(self.table) == num_nodes or bool(np.isin(nodes, self.table, assume_unique=True).all())

    @torch.no_grad()
    def embed(self, batch: Batch) -> Tensor:
        """z_S: :meth:`SubGNN.embed`, without computing again what is kept.

        Shapes:
            returns: (n, width).
        """
        model, nodes = self.model, self.nodes
        z = model.pass_messages(
            batch,
            model.component_vectors(batch, nodes),
            gammas=model.similarities(batch, nodes.dtype),
            anchors=self.anchors[batch.draw],
        )
        return model.read_out(batch, z)

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """Logits: :meth:`SubGNN.forward`, without computing again what is kept.

        Shapes:
            returns: (n, outputs).
        """
        answers: Tensor = self.model.head(self.embed(batch))
        return answers


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Subgraphs as a network takes them, for each draw of anchors, and the networks."""

    kept: list[Kept]
    inputs: list[Inputs]
    prepared: list[Prepared]

    def voices(self) -> Iterator[tuple[SubGNN, Inputs, Prepared]]:
        """What is asked and about what, for each network and draw of anchors: an answer is the mean over them."""
        for kept in self.kept:
            for inputs, prepared in zip(self.inputs, self.prepared, strict=True):
                yield kept.model, inputs, prepared
