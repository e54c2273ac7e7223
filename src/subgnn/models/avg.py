"""AVG: a subgraph is the mean of its nodes' embeddings, z_S = 1/|S| sum over u in S of x_u (paper, section 5)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from subgnn.data.graph import Graph
from subgnn.models import node_table
from subgnn.models.sources import NodeBatch, NodeSets
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn import Head
from subgnn.ragged import Ragged


class Average(nn.Module):
    """The mean of node embeddings, and the head."""

    nodes: Tensor

    def __init__(self, nodes: Tensor, table: Tensor, head: Head, *, trainable: bool) -> None:
        super().__init__()
        self.register_buffer("nodes", nodes)
        self.table = nn.Parameter(table.clone(), requires_grad=trainable)
        self.head = head

    def embed(self, batch: NodeBatch) -> Tensor:
        """Shapes: returns: (n, d)."""
        return functional.embedding_bag(batch.nodes, self.table, batch.starts, mode="mean")

    def forward(self, batch: NodeBatch) -> Tensor:
        """Shapes: returns: (n, outputs)."""
        out: Tensor = self.head(self.embed(batch))
        return out


def inputs(checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> NodeSets:
    """The nodes of each subgraph; the graph's edges are not looked at."""
    return NodeSets(node_table.places(checkpoint, nodes))


def module(checkpoint: Checkpoint) -> Average:
    """The network over the checkpoint's table."""
    recipe, weights = checkpoint.spec, checkpoint.weights
    width = weights["table"].shape[1]
    head = Head(width, checkpoint.spec.num_outputs, hidden=recipe.model.head, dropout=recipe.model.dropout)
    return Average(weights["nodes"], weights["table"], head, trainable=recipe.embeddings.trainable)
