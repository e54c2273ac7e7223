"""AVG and GC: the vector of a subgraph pools vectors of its nodes (paper, section 5).

AVG is the mean of the nodes' embeddings, z_S = 1/|S| sum over u in S of x_u. GC takes each subgraph as a separate
graph: GIN over its nodes and the edges among them, sum pooling, head (Xu et al., 2019); it sees nothing else of G.

*Differs from the paper:* it adapts a published example for MUTAG (appendix D), with batch normalisation between more
layers; here there is none, and model.layers is their number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from subgnn.config.settings import MethodSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.embeddings.encoders import gin_layers
from subgnn.embeddings.link_prediction import Adjacency
from subgnn.embeddings.sources import PRETRAINED, moved_vectors, node_vectors
from subgnn.kernels.arrays import Csr
from subgnn.kernels.induced import induced_graph
from subgnn.models.examples import HostSource, Source
from subgnn.models.heads import HeadedNetwork
from subgnn.models.interface import Settings, TrainingData, Vectors, View
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import PaperBaselineSettings, TensorModel, is_sorted_below
from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class NodeBatch:
    """Subgraphs laid end to end.

    Shapes:
        nodes: (total,) int64 places in the node table. starts: (n,) where each subgraph begins. subgraph: (total,).
        offsets: (total + 1,) int32. neighbors: (directed edges,) int32 places in ``nodes``. weights: (total,), or None.
    """

    nodes: Tensor
    starts: Tensor
    subgraph: Tensor
    offsets: Tensor
    neighbors: Tensor
    weights: Tensor | None = None


class NodeSets(HostSource):
    """The nodes of each subgraph, as places in the node table, with their induced graph and weights if given."""

    def __init__(self, places: Ragged, induced: Csr | None = None, weights: NDArray[np.float32] | None = None) -> None:
        self.nodes, self.weights = places, weights
        offsets, neighbors = induced or (np.zeros(len(places.values) + 1, np.int64), np.empty(0, np.int32))
        self.degrees, self.edges = np.diff(offsets).astype(np.int32), Ragged(neighbors, offsets[places.offsets])

    def batch(self, rows: NDArray[np.int64]) -> NodeBatch:
        chosen, near = Ragged(np.arange(len(self.nodes.values)), self.nodes.offsets).take(rows), self.edges.take(rows)
        places, subgraph, starts = chosen.values, chosen.row_ids, chosen.offsets[:-1]
        offsets = np.zeros(len(places) + 1, np.int32)
        np.cumsum(self.degrees[places], out=offsets[1:])
        neighbors = near.values + (starts - self.nodes.offsets[rows]).astype(np.int32)[near.row_ids]
        arrays = [self.nodes.values[places], starts, subgraph, offsets, neighbors]
        arrays += [] if self.weights is None else [self.weights[places]]
        return NodeBatch(*(torch.from_numpy(array).to(self.device) for array in arrays))


class _Pooled(HeadedNetwork):
    """A table of node embeddings, and the head."""

    nodes: Tensor

    def __init__(self, checkpoint: Checkpoint) -> None:
        spec, weights = checkpoint.spec, checkpoint.weights
        super().__init__(spec, weights["table"].shape[1])
        self.register_buffer("nodes", weights["nodes"])
        self.table = nn.Parameter(weights["table"].clone(), requires_grad=spec.embeddings.trainable)


class Average(_Pooled):
    """The mean of node embeddings, and the head."""

    def embed(self, batch: NodeBatch) -> Tensor:
        return functional.embedding_bag(batch.nodes, self.table, batch.starts, mode="mean")


class GraphClassifier(_Pooled):
    """h_u <- relu(MLP((1 + eps) h_u + sum over neighbours v in S of h_v)), then z_S = sum over u in S of h_u."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        dim, count = self.table.shape[1], checkpoint.spec.model.layers
        mlps = (nn.Sequential(nn.Linear(dim, dim), nn.ReLU(inplace=True), nn.Linear(dim, dim)) for _ in range(count))
        self.layers = nn.ModuleList(gin_layers(mlps, extra="paper", feature="the baseline gc"))

    def embed(self, batch: NodeBatch) -> Tensor:
        h = functional.embedding(batch.nodes, self.table)
        adjacency = Adjacency.symmetric(batch.offsets, batch.neighbors)
        for layer in self.layers:
            h = torch.relu_(layer(h, adjacency))
        return h.new_zeros(len(batch.starts), h.shape[1]).index_add(0, batch.subgraph, h)


class NodePooling(TensorModel):
    """A model with a table of embeddings of the nodes that subgraphs have; it grows in prediction.

    ``takes_edges``: the network takes the edges among the nodes of each subgraph.
    """

    takes_edges = False
    on_new_graph = "the vector of a new node is the mean of its neighbours' vectors"
    trains_on_many_devices = True
    settings: tuple[type[MethodSettings], ...] = (PaperBaselineSettings,)

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``nodes``, sorted, and ``table``, their embeddings."""
        return self.table(recipe, np.unique(data.subgraphs.nodes.values), data.graph.num_nodes, data.seed, data.vectors)

    def table(self, settings: Settings, nodes: NDArray[np.int32], number: int, seed: int, vectors: Vectors) -> Weights:
        """The vectors that nodes start from, and the nodes; ``number`` is that of all nodes of the graph."""
        table = node_vectors(settings.embeddings, nodes, num_nodes=number, seed=seed, table=vectors)
        return {"nodes": torch.from_numpy(nodes), "table": torch.from_numpy(table)}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Source:
        places = np.searchsorted(checkpoint.weights["nodes"].numpy(), nodes.values).astype(np.int64)
        return NodeSets(Ragged(places, nodes.offsets), induced_graph(*graph.csr, nodes) if self.takes_edges else None)

    def extend(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged, vectors: Vectors) -> Checkpoint:
        """New nodes get the embeddings they would have started from."""
        known = checkpoint.weights["nodes"].numpy()
        wanted = np.union1d(known, nodes.values).astype(np.int32)
        if len(wanted) == len(known):
            return checkpoint
        added = self.table(checkpoint.spec, wanted, graph.num_nodes, checkpoint.spec.seed, vectors)
        added["table"][np.searchsorted(wanted, known)] = checkpoint.weights["table"]
        return replace(checkpoint, weights=checkpoint.weights | added)

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """A table of all nodes of the new graph, so that none is drawn at random."""
        known = checkpoint.weights["nodes"].numpy(), checkpoint.weights["table"].numpy()
        table = moved_vectors(checkpoint.spec.embeddings, match, seed=checkpoint.spec.seed, table=vectors, known=known)
        nodes = np.arange(match.graph.num_nodes, dtype=np.int32)
        moved = {"nodes": torch.from_numpy(nodes), "table": torch.from_numpy(table)}
        return replace(checkpoint, weights=checkpoint.weights | moved)

    def uses_embeddings(self, settings: Settings) -> bool:
        return True

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        nodes, table = checkpoint.weights["nodes"].numpy(), checkpoint.weights["table"]
        if not is_sorted_below(nodes, graph.num_nodes):
            yield "the nodes of its table are not in order, or not in the graph"
        if tuple(table.shape) != (len(nodes), checkpoint.spec.embeddings.dim) or table.dtype != torch.float32:
            yield f"its table is {tuple(table.shape)}, not a row for each node"


class AverageModel(NodePooling):
    """AVG."""

    network = Average
    needs_edges = False

    def sees(self, settings: Settings) -> View:
        """The nodes; pretrained embeddings also tell what is around them."""
        return "surroundings" if settings.embeddings.source in PRETRAINED else "nodes"


class GraphClassificationModel(NodePooling):
    """GC."""

    network = GraphClassifier
    extra = "paper"
    takes_edges = True
