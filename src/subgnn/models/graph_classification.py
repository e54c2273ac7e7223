"""GC: each subgraph as a graph of its own; GIN, sum pooling, head (paper, section 5; Xu et al., 2019).

The network sees a subgraph's nodes and the edges among them, and nothing else of G.

*Differs from the paper:* it adapts a published example for MUTAG (appendix D), with batch normalisation between more
layers; here there is none, and model.layers says how many.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from subgnn.data.graph import Graph
from subgnn.errors import MissingExtra
from subgnn.models import node_table
from subgnn.models.induced_graphs import induced_graphs
from subgnn.models.sources import NodeBatch, NodeSets
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn import Head
from subgnn.ragged import Ragged


class GraphClassifier(nn.Module):
    """h_u <- relu(MLP((1 + eps) h_u + sum over neighbours v in S of h_v)), then z_S = sum over u in S of h_u."""

    nodes: Tensor

    def __init__(self, nodes: Tensor, table: Tensor, head: Head, *, layers: int, trainable: bool) -> None:
        super().__init__()
        try:
            from torch_geometric.nn import GINConv
        except ImportError:
            raise MissingExtra("torch_geometric", extra="baselines", feature="the baseline gc") from None
        dim = table.shape[1]
        self.register_buffer("nodes", nodes)
        self.table = nn.Parameter(table.clone(), requires_grad=trainable)
        self.layers = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim)), train_eps=True)
            for _ in range(layers)
        )
        self.head = head

    def embed(self, batch: NodeBatch) -> Tensor:
        """Shapes: returns: (n, d)."""
        h = self.table[batch.nodes]
        for layer in self.layers:
            h = torch.relu(layer(h, batch.edges))
        return h.new_zeros(len(batch.starts), h.shape[1]).index_add(0, batch.subgraph, h)

    def forward(self, batch: NodeBatch) -> Tensor:
        """Shapes: returns: (n, outputs)."""
        out: Tensor = self.head(self.embed(batch))
        return out


def inputs(checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> NodeSets:
    """The nodes of each subgraph and the edges among them."""
    return NodeSets(node_table.places(checkpoint, nodes), induced_graphs(graph, nodes).edges())


def module(checkpoint: Checkpoint) -> GraphClassifier:
    """The network over the checkpoint's table; model.layers says how deep."""
    recipe, weights = checkpoint.spec, checkpoint.weights
    width = weights["table"].shape[1]
    head = Head(width, checkpoint.spec.num_outputs, hidden=recipe.model.head, dropout=recipe.model.dropout)
    return GraphClassifier(
        weights["nodes"],
        weights["table"],
        head,
        layers=recipe.model.layers,
        trainable=recipe.embeddings.trainable,
    )
