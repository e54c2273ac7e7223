"""AVG and GC: the vector of a subgraph pools vectors of its nodes (paper, section 5).

AVG is the mean of the nodes' embeddings, z_S = 1/|S| sum over u in S of x_u. GC takes each subgraph as a separate
graph: GIN over its nodes and the edges among them, sum pooling, head (Xu et al., 2019); it sees nothing else of G.

*Differs from the paper:* it adapts a published example for MUTAG (appendix D), with batch normalisation between more
layers; here there is none, and model.layers is their number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.embeddings.sources import PRETRAINED, node_vectors
from subgnn.errors import MissingExtra
from subgnn.models.examples import Source
from subgnn.models.head import Head
from subgnn.models.induced_graphs import induced_graphs
from subgnn.models.interface import Settings, TrainingData, Vectors, View
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.subgnn.batches import spans
from subgnn.models.tensor_model import HeadedNetwork, TensorModel, head_candidates, is_sorted_below, make_head
from subgnn.ragged import Ragged


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


class Average(HeadedNetwork):
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


class GraphClassifier(HeadedNetwork):
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


class NodePooling(TensorModel):
    """A model with a table of embeddings of the nodes that subgraphs have; it grows in prediction."""

    uses_many_devices = True
    has_tunable_settings = True

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``nodes``, sorted, and ``table``, their embeddings."""
        nodes = np.unique(data.subgraphs.nodes.values)
        number = data.graph.num_nodes
        table = node_vectors(recipe.embeddings, nodes, num_nodes=number, seed=data.seed, table=data.vectors)
        return {"nodes": torch.from_numpy(nodes), "table": torch.from_numpy(table)}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Source:
        """Nodes as places in the table, and what else of the graph the network takes."""
        places = np.searchsorted(checkpoint.weights["nodes"].numpy(), nodes.values).astype(np.int64)
        return NodeSets(Ragged(places, nodes.offsets), self.edges(graph, nodes))

    @abstractmethod
    def edges(self, graph: Graph, nodes: Ragged) -> Ragged | None:
        """For each subgraph the edges that the network takes, as :class:`NodeSets` has them."""

    def extend(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged, vectors: Vectors) -> Checkpoint:
        """New nodes get the embeddings they had before training."""
        known = checkpoint.weights["nodes"].numpy()
        wanted = np.union1d(known, nodes.values).astype(np.int32)
        if len(wanted) == len(known):
            return checkpoint
        spec = checkpoint.spec
        table = node_vectors(spec.embeddings, wanted, num_nodes=graph.num_nodes, seed=spec.seed, table=vectors)
        table[np.searchsorted(wanted, known)] = checkpoint.weights["table"].numpy()
        added = {"nodes": torch.from_numpy(wanted), "table": torch.from_numpy(table)}
        return replace(checkpoint, weights=checkpoint.weights | added)

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        """Frozen and trainable embeddings."""
        return head_candidates(recipe)

    def uses_embeddings(self, settings: Settings) -> bool:
        """Always."""
        return True

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        """Nodes that the graph does not have, or a table that does not fit them."""
        nodes, table = checkpoint.weights["nodes"].numpy(), checkpoint.weights["table"]
        if nodes.dtype != np.int32 or nodes.ndim != 1 or not is_sorted_below(nodes, graph.num_nodes):
            yield "the nodes of its table are not in order, or not in the graph"
        if tuple(table.shape) != (len(nodes), checkpoint.spec.embeddings.dim) or table.dtype != torch.float32:
            yield f"its table is {tuple(table.shape)}, not a row for each node"


class AverageModel(NodePooling):
    """AVG."""

    needs_edges = False

    def sees(self, settings: Settings) -> View:
        """The nodes; pretrained embeddings also tell what is around them."""
        return "surroundings" if settings.embeddings.source in PRETRAINED else "nodes"

    def edges(self, graph: Graph, nodes: Ragged) -> None:
        """None: edges are not used."""

    def network(self, checkpoint: Checkpoint) -> Average:
        """The network over the checkpoint's table."""
        spec, weights = checkpoint.spec, checkpoint.weights
        head = make_head(spec, weights["table"].shape[1])
        return Average(weights["nodes"], weights["table"], head, trainable=spec.embeddings.trainable)


class GraphClassificationModel(NodePooling):
    """GC."""

    extra = "baselines"

    def edges(self, graph: Graph, nodes: Ragged) -> Ragged:
        """The edges among the nodes of each subgraph."""
        return induced_graphs(graph, nodes).edges()

    def network(self, checkpoint: Checkpoint) -> GraphClassifier:
        """The network over the checkpoint's table, of model.layers layers."""
        spec, weights = checkpoint.spec, checkpoint.weights
        head = make_head(spec, weights["table"].shape[1])
        layers, trainable = spec.model.layers, spec.embeddings.trainable
        return GraphClassifier(weights["nodes"], weights["table"], head, layers=layers, trainable=trainable)
