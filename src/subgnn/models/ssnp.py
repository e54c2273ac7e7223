"""SSNP: message passing over the whole graph, and a sampled neighbourhood of the subgraph beside its nodes.

Jacob, Louis and Salehi-Abari, "Stochastic subgraph neighborhood pooling for subgraph classification", CIKM 2023. The
layers are those of :mod:`subgnn.models.message_passing` with one set of weights, so that vectors of nodes do not depend
on the subgraph. From every node of a subgraph S start M walks of m uniform steps; the nodes outside of S that they
visit are its border sample. The vectors of S and of the border sample are pooled apart and laid side by side, and a
linear layer gives the outputs.

*Differs from the paper:* prediction takes one fixed sample, a function of the seed and of the nodes of S alone, where
the published one walks anew at each call. Training walks anew in every step (the paper's online views), or takes one of
``message_passing.views`` fixed samples at random for each subgraph and step; the paper's pre-computed views show all of
them in each epoch instead, which is as many more epochs. All nodes of S start walks, and there is no further network
between pooling and the linear layer, both options of the paper.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.data.graph import Graph
from subgnn.kernels.draws import node_set_keys
from subgnn.kernels.uniform_walks import walk_from_members
from subgnn.models.message_passing import MessagePassing, MessagePassingModel, NodeSetBatch, Pass, pool
from subgnn.models.spec import Checkpoint, ModelSpec
from subgnn.ragged import Ragged
from subgnn.rng import stream_key


class Ssnp(MessagePassing):
    """The network."""

    def __init__(self, table: Tensor, spec: ModelSpec) -> None:
        super().__init__(table, spec, ratio=None, width=2 * spec.model.layers * table.shape[1])
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        self.settings, self.seed = spec.message_passing, spec.seed
        self._found: Pass | None = None

    def train(self, mode: bool = True) -> Ssnp:
        """Forget the pass that is kept for prediction."""
        self._found = None
        return super().train(mode)

    def embed(self, batch: NodeSetBatch) -> Tensor:
        """Shapes: returns: (n, 2 L d)."""
        found, how = self._pass_of(batch), self.settings.pool
        border = self._border(batch)
        parts = [
            pool(self.vectors_at(found, part.places), part.subgraph, len(part.nodes), how)
            for part in (batch, NodeSetBatch(batch.graph, border))
        ]
        return torch.cat(parts, dim=1)

    def _pass_of(self, batch: NodeSetBatch) -> Pass:
        """The pass over the graph; in prediction it is kept while the weights stay as they are."""
        nobody = torch.zeros(batch.graph.graph.num_nodes, dtype=torch.bool, device=batch.graph.device)
        if self.training:
            return self.whole_pass(batch.graph, nobody)
        if self._found is None:
            with torch.no_grad():
                self._found = self.whole_pass(batch.graph, nobody).without("x", "arrived")
        return self._found

    def _border(self, batch: NodeSetBatch) -> Ragged:
        """The border sample of each subgraph: view 0 in prediction, another in each training step."""
        settings, nodes = self.settings, batch.nodes
        if self.training and not settings.views:
            keys = node_set_keys(int(torch.randint(2**62, ())), nodes)
        else:
            view = torch.zeros(len(nodes), dtype=torch.int64)
            if self.training:
                view = torch.randint(settings.views, (len(nodes),))
            keys = np.zeros(len(nodes), np.uint64)
            for v in view.unique().tolist():
                own = np.flatnonzero(view.numpy() == v)
                keys[own] = node_set_keys(stream_key(self.seed, f"ssnp/walks/{v}"), nodes.take(own))
        return border_sample(batch.graph.graph, nodes, walks=settings.walks, length=settings.walk_length, keys=keys)


def border_sample(graph: Graph, subgraphs: Ragged, *, walks: int, length: int, keys: NDArray[np.uint64]) -> Ragged:
    """The nodes outside of each subgraph that walks from its nodes visit, sorted, each once.

    Example:
        In the path 0 - 1 - 2, the only step from 0 leads to 1, and a second one to 0 or 2.

        >>> path, keys = Graph.from_edges([0, 1], [1, 2]), np.arange(2, dtype=np.uint64)
        >>> [row.tolist() for row in border_sample(path, Ragged.from_rows([[0], [0, 1]]), walks=9, length=2, keys=keys)]
        [[1, 2], [2]]
    """
    number = graph.num_nodes
    visited = walk_from_members(*graph.csr, subgraphs, walks=walks, length=length, keys=keys)
    members = subgraphs.row_ids * number + subgraphs.values
    met = np.unique(subgraphs.row_ids[:, None, None] * number + visited)
    border = met[~np.isin(met, members, assume_unique=True)]
    counts = np.bincount(border // number, minlength=len(subgraphs))
    return Ragged.from_lengths((border % number).astype(np.int32), counts)


class SsnpModel(MessagePassingModel):
    """SSNP."""

    def network(self, checkpoint: Checkpoint) -> Ssnp:
        """The network over the checkpoint's table."""
        return Ssnp(checkpoint.weights["table"], checkpoint.spec)
