"""S2N: subgraphs as nodes of a graph of subgraphs, and GCN or GCNII on it (ICML 2024).

With M the 0/1 membership of nodes in subgraphs (n x N) and A the adjacency of G, self loops added, W = M A M^T counts
the pairs of a node of S and a node of T that are equal or joined by an edge. W is standardised by the mean and the
deviation of all its entries between training subgraphs, and an edge has the weight, if it is above 0,

    w = (min(z, t + d) - t) / d,  z = (W - mean) / deviation

As t is not negative, subgraphs that share nothing are never joined, so W is computed sparsely, and never kept. The
vector x of a subgraph starts as the sum of its nodes' embeddings (S2N+0), or of what layers inside the subgraph make of
them (S2N+A). Layers on the graph follow, and outputs are a linear function of x + GNN(x). With P the adjacency, self
loops added, symmetrically normalised (inside subgraphs only if ``sub_normalized``), a layer of GCN is relu(P x W), one
of GCNII relu(((1 - alpha) P x + alpha x_0) ((1 - beta) I + beta W)) with beta = log(theta / l + 1) in layer l; if
weights are not shared, x_0 has its own.

*Differs from the paper:* there, all subgraphs that are predicted join the graph together with the training subgraphs,
see each other, and are seen. Here a new subgraph, or a training subgraph that is predicted, joins that graph alone:
edges lead to it from the training subgraphs, which do not see it. The width of all layers, and of a constant input, is
embeddings.dim. A subgraph's degree, by which ``weighted`` divides, is the sum of its nodes' degrees.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self, cast

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from subgnn.config.files import Bounds, Probability
from subgnn.config.settings import MethodSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.kernels.induced import induced_graph, inside_degrees
from subgnn.models.baselines.node_pooling import NodeBatch, NodePooling, NodeSets
from subgnn.models.examples import HostSource
from subgnn.models.interface import Settings, TrainingData, Vectors, View
from subgnn.models.kernel_machines.kernel_machine import moved_landmarks
from subgnn.models.kernel_machines.newton import Floats
from subgnn.models.kernel_machines.views import bag_of_nodes, times_adjacency
from subgnn.models.spec import Checkpoint, Weights
from subgnn.ragged import Ragged

_ROWS = 1024  # of W at a time


@dataclass(frozen=True, slots=True)
class S2NSettings(MethodSettings):
    """S2N; docs/settings.md says what each setting means, and model.layers is the number of layers between subgraphs.

    threshold and span are t and d of the weights above; alpha, theta and shared are for GCNII, in the layers
    between subgraphs and in those inside them.
    """

    section: ClassVar[str] = "s2n"
    convolution: Literal["gcn", "gcnii"] = "gcn"
    threshold: float = 2.0
    span: Annotated[float, Bounds(1e-3, 1000)] = 1.0
    sub_layers: Annotated[int, Bounds(0, 100)] = 0
    edge_dropout: Probability = 0.3
    batch_norm: bool = False
    skip: bool = False
    alpha: tuple[Probability, Probability] = (0.5, 0.5)
    theta: tuple[float, float] = (0.5, 0.5)
    shared: tuple[bool, bool] = (True, True)
    sub_normalized: bool = True
    weighted: bool = False
    constant: float = 0.0


def meetings(graph: Graph, left: Ragged, right: Ragged) -> Iterator[scipy.sparse.csr_array]:
    """M A M^T between two lists of subgraphs, some rows at a time.

    Example:
        In the path 0 - 1 - 2, {0, 1} meets itself four times: twice as a node, twice along the edge.

        >>> path, pairs = Graph.from_edges([0, 1], [1, 2]), Ragged.from_rows([[0, 1], [2]])
        >>> next(meetings(path, pairs, pairs)).toarray().tolist()
        [[4.0, 1.0], [1.0, 1.0]]
    """
    others = bag_of_nodes(right, graph.num_nodes).T.tocsr()
    for begin in range(0, len(left), _ROWS):
        bag = bag_of_nodes(left.take(np.arange(begin, min(begin + _ROWS, len(left)))), graph.num_nodes)
        yield ((times_adjacency(bag, graph) + bag) @ others).tocsr()


def standard_of(graph: Graph, nodes: Ragged) -> Floats:
    """The mean and the deviation of all entries of W between subgraphs (2,); a deviation of 0 is taken as 1."""
    total = squares = 0.0
    for block in meetings(graph, nodes, nodes):
        total, squares = total + block.sum(), squares + (block.data**2).sum()
    mean = total / max(1, len(nodes)) ** 2
    deviation = np.sqrt(max(0.0, squares / max(1, len(nodes)) ** 2 - mean**2))
    return np.array([mean, deviation if deviation > 0 else 1.0])


def edge_weights(counts: Floats, standard: Floats, settings: S2NSettings) -> Floats:
    """Weights w of entries of W; 0 where there is no edge."""
    z = (counts - standard[0]) / standard[1]
    weights = (np.minimum(z, settings.threshold + settings.span) - settings.threshold) / settings.span
    return np.asarray(np.maximum(weights, 0.0))


def edges_between(
    graph: Graph, left: Ragged, right: Ragged, standard: Floats, settings: S2NSettings
) -> scipy.sparse.csr_array:
    """Weights above 0 up to 1 of the edges (left, right) between subgraphs, including a subgraph with itself."""
    blocks = [scipy.sparse.csr_array((0, len(right)))]
    for block in meetings(graph, left, right):
        block.data = edge_weights(block.data, standard, settings)
        block.eliminate_zeros()
        blocks.append(block)
    found = scipy.sparse.vstack(blocks, format="csr")
    found.sort_indices()
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """Weighted edges by the node they lead to, and the weights ``own`` (n,) of self loops.

    Shapes:
        starts: (n,) where the edges of each node begin. targets, sources, weights: (edges,).
    """

    starts: Tensor
    targets: Tensor
    sources: Tensor
    weights: Tensor
    own: Tensor

    @classmethod
    def of(cls, edges: scipy.sparse.csr_array, own: Floats, device: torch.device) -> Self:
        counts = np.diff(edges.indptr)
        places = edges.indptr[:-1], np.repeat(np.arange(len(counts)), counts), edges.indices
        arrays = [*(array.astype(np.int64) for array in places), *(a.astype(np.float32) for a in (edges.data, own))]
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))

    def normalised(self) -> Self:
        """D^-1/2 (A + I) D^-1/2: nodes without a self loop get one of weight 1, degrees are sums of weights."""
        own = torch.where(self.own > 0, self.own, 1.0)
        root = own.index_add(0, self.targets, self.weights).rsqrt()
        return replace(self, weights=root[self.targets] * self.weights * root[self.sources], own=own * root * root)

    def __matmul__(self, x: Tensor) -> Tensor:
        summed = functional.embedding_bag(self.sources, x, self.starts, mode="sum", per_sample_weights=self.weights)
        return summed + self.own[:, None] * x


_OF_TRAINING = {
    "train_nodes": np.int32,
    "train_offsets": np.int64,
    "edge_offsets": np.int64,
    "edge_sources": np.int32,
    "edge_weights": np.float32,
    "standard": np.float64,
}


class Convolution(nn.Module):
    """One layer of GCN, P x W + b, or of GCNII, each before its activation."""

    def __init__(self, width: int, kind: str, *, layer: int, alpha: float, theta: float, shared: bool) -> None:
        super().__init__()
        self.alpha, self.beta = alpha, math.log(theta / layer + 1)
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width)))
        self.bias = nn.Parameter(torch.zeros(width)) if kind == "gcn" else None
        own = kind == "gcnii" and not shared
        self.first_weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width))) if own else None

    def forward(self, p: Adjacency, x: Tensor, first: Tensor) -> Tensor:
        if self.bias is not None:
            return p @ (x @ self.weight) + self.bias
        spread, start = (1 - self.alpha) * (p @ x), self.alpha * first
        if self.first_weight is None:
            spread = spread + start
            return torch.lerp(spread, spread @ self.weight, self.beta)
        start = torch.lerp(start, start @ self.first_weight, self.beta)
        return torch.lerp(spread, spread @ self.weight, self.beta) + start


class S2N(nn.Module):
    """Sums over subgraphs, layers on the graph of subgraphs, and a linear layer."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        spec, weights = checkpoint.spec, checkpoint.weights
        settings = spec.of(S2NSettings)
        kind, width = settings.convolution, weights["table"].shape[1]
        self.dropout, self.edge_dropout = spec.model.dropout, settings.edge_dropout
        self.sub_normalized = settings.sub_normalized
        for name in ("nodes", *_OF_TRAINING):
            self.register_buffer(name, weights[name])
        trainable = spec.embeddings.trainable and not settings.constant
        self.table = nn.Parameter(weights["table"].clone(), requires_grad=trainable)
        inner, outer = range(1, settings.sub_layers + 1), range(1, spec.model.layers + 1)
        names = ("alpha", "theta", "shared")
        between, inside = ({name: getattr(settings, name)[where] for name in names} for where in (0, 1))
        self.inside = nn.ModuleList(Convolution(width, kind, layer=i, **inside) for i in inner)
        self.layers = nn.ModuleList(Convolution(width, kind, layer=i, **between) for i in outer)
        self.skips = nn.ModuleList(nn.Linear(width, width) for _ in outer if settings.skip)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in outer if settings.batch_norm)
        self.linear = nn.Linear(width, spec.num_outputs)

    def embed(self, batch: tuple["JoinedSubgraphs", NDArray[np.int64]]) -> Tensor:
        source, rows = batch
        (members, graph), places = source.in_training(rows) if self.training else source.in_prediction(rows)
        x = torch.cat([self._sum_nodes(nodes) for nodes in members])
        if self.training and self.edge_dropout:  # each edge and self loop is left out with this probability
            kept = (given * (torch.rand_like(given) >= self.edge_dropout) for given in (graph.weights, graph.own))
            graph = replace(graph, **dict(zip(("weights", "own"), kept, strict=True)))
        p = graph.normalised()
        h = x
        for i, layer in enumerate(self.layers):
            out = layer(p, h if i == 0 else self._drop(h), x)
            out = out + self.skips[i](h) if self.skips else out
            h = torch.relu(self.norms[i](out) if self.norms else out)
        return (x + h if self.layers else x)[places]

    def forward(self, batch: tuple["JoinedSubgraphs", NDArray[np.int64]]) -> Tensor:
        return cast(Tensor, self.linear(self._drop(self.embed(batch))))

    def _sum_nodes(self, batch: NodeBatch) -> Tensor:
        weights = cast(Tensor, batch.weights)
        if not self.inside:
            bag = functional.embedding_bag
            return bag(batch.nodes, self.table, batch.starts, mode="sum", per_sample_weights=weights)
        h = first = self.table[batch.nodes]
        starts, sources = batch.offsets[:-1].long(), batch.neighbors.long()
        every = torch.arange(len(h), device=h.device)
        targets = every.repeat_interleave(batch.offsets.diff(), output_size=len(sources))
        p = Adjacency(starts, targets, sources, h.new_ones(len(sources)), h.new_ones(len(h)))
        p = p.normalised() if self.sub_normalized else p
        for i, layer in enumerate(self.inside):
            h = torch.relu(layer(p, h if i == 0 else self._drop(h), first))
        return h.new_zeros(len(batch.starts), h.shape[1]).index_add(0, batch.subgraph, weights[:, None] * h)

    def _drop(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.dropout, self.training)


class S2NModel(NodePooling):
    """S2N."""

    network = S2N
    trains_on_many_devices = False
    settings = (S2NSettings,)

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``nodes`` and ``table`` as of any model that pools nodes, and the graph of the training subgraphs."""
        train = data.subgraphs.nodes.take(data.subgraphs.indices("train"))
        return super().start(data, recipe) | self._joined(data.graph, train, recipe.of(S2NSettings))

    def table(self, settings: Settings, nodes: NDArray[np.int32], number: int, seed: int, vectors: Vectors) -> Weights:
        if not (constant := settings.of(S2NSettings).constant):
            return super().table(settings, nodes, number, seed, vectors)
        return {"nodes": torch.from_numpy(nodes), "table": torch.full((len(nodes), settings.embeddings.dim), constant)}

    def _joined(self, graph: Graph, train: Ragged, settings: S2NSettings) -> Weights:
        standard = standard_of(graph, train)
        edges = edges_between(graph, train, train, standard, settings)
        arrays = (train.values, train.offsets, edges.indptr, edges.indices, edges.data, standard)
        kinds = zip(_OF_TRAINING.items(), arrays, strict=True)
        return {name: torch.from_numpy(np.array(array, dtype)) for (name, dtype), array in kinds}

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        spec, weights, settings = checkpoint.spec, checkpoint.weights, checkpoint.spec.of(S2NSettings)
        if settings.constant:
            nodes = np.arange(match.graph.num_nodes, dtype=np.int32)
            found = replace(checkpoint, weights=weights | self.table(spec, nodes, len(nodes), spec.seed, None))
        else:
            found = super().moved(checkpoint, match, vectors)
        train, _ = moved_landmarks({"nodes": weights["train_nodes"], "offsets": weights["train_offsets"]}, match)
        return replace(found, weights=found.weights | self._joined(match.graph, train, settings))

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> "JoinedSubgraphs":
        return JoinedSubgraphs(self, checkpoint, graph, nodes)

    def members(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> NodeSets:
        """The nodes of subgraphs as places in the table, their weights, and the edges among them."""
        settings = checkpoint.spec.of(S2NSettings)
        places = np.searchsorted(checkpoint.weights["nodes"].numpy(), nodes.values).astype(np.int64)
        weights = np.ones(len(places), np.float32)
        if settings.weighted:
            degrees = 1.0 + np.diff(graph.offsets)[nodes.values]  # with the self loop
            total = np.bincount(nodes.row_ids, degrees, len(nodes))[nodes.row_ids]
            weights = np.sqrt(degrees / total).astype(np.float32)
        edges = induced_graph(*graph.csr, nodes) if settings.sub_layers else None
        return NodeSets(Ragged(places, nodes.offsets), edges, weights)

    def uses_embeddings(self, settings: Settings) -> bool:
        return not settings.of(S2NSettings).constant

    def sees(self, settings: Settings) -> View:
        return "everything" if settings.of(S2NSettings).sub_layers else "surroundings"

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        yield from super().problems(checkpoint, graph)
        arrays = {name: checkpoint.weights[name].numpy() for name in _OF_TRAINING}
        if any(arrays[name].dtype != dtype or arrays[name].ndim != 1 for name, dtype in _OF_TRAINING.items()):
            yield "its graph of training subgraphs has the wrong type or shape"
        nodes, offsets, edge_offsets, sources, weights, standard = arrays.values()
        train, edges = Ragged(nodes, offsets), Ragged(sources, edge_offsets)
        if not train.is_valid or not edges.is_valid or len(train) != len(edges):
            yield "its graph of training subgraphs does not fit them"
        if not np.isin(nodes, checkpoint.weights["nodes"].numpy()).all():
            yield "its training subgraphs have nodes that its table lacks"
        if ((sources < 0) | (sources >= len(train))).any():
            yield "its graph of training subgraphs has an edge to a subgraph that does not exist"
        if len(weights) != len(sources) or not (weights > 0).all():
            yield "its graph of training subgraphs has a weight that is not above 0"
        if len(standard) != 2 or not standard[1] > 0:
            yield "the mean and deviation of its weights are not two numbers, the second above 0"


Joined = tuple[list[NodeBatch], Adjacency]
"""Subgraphs, in one or two parts, and the graph of all of them."""


class JoinedSubgraphs(HostSource):
    """Subgraphs beside the training subgraphs, in one graph of subgraphs."""

    def __init__(self, model: S2NModel, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> None:
        self.nodes, settings = nodes, checkpoint.spec.of(S2NSettings)
        stored = {name: checkpoint.weights[name].numpy() for name in _OF_TRAINING}
        train, standard = Ragged(stored["train_nodes"], stored["train_offsets"]), stored["standard"]
        parts = stored["edge_weights"].astype(np.float64), stored["edge_sources"], stored["edge_offsets"]
        whole = scipy.sparse.coo_array(scipy.sparse.csr_array(parts, shape=(len(train), len(train))))
        other = whole.row != whole.col
        ends = whole.row[other], whole.col[other]
        self.train_edges = scipy.sparse.csr_array((whole.data[other], ends), shape=whole.shape)
        self.train_own = whole.diagonal()
        self.edges = edges_between(graph, nodes, train, standard, settings)
        degrees = inside_degrees(*graph.csr, nodes)[0].values
        inside = np.bincount(nodes.row_ids, 1.0 + degrees, len(nodes)).astype(np.float64)
        self.own = edge_weights(inside, standard, settings)
        place = {row.tobytes(): i for i, row in enumerate(train)}
        self.places = np.array([place.get(np.asarray(row, np.int32).tobytes(), -1) for row in nodes], np.int64)
        self.train, self.members = model.members(checkpoint, graph, train), model.members(checkpoint, graph, nodes)
        self._of_training: Joined | None = None

    def to(self, device: torch.device | str) -> Self:
        self._of_training = None
        return super().to(device)

    def batch(self, rows: NDArray[np.int64]) -> tuple[Self, NDArray[np.int64]]:
        return self, rows

    def in_training(self, rows: NDArray[np.int64]) -> tuple[Joined, Tensor]:
        """The graph of the training subgraphs, and the places of the chosen ones in it."""
        if self._of_training is None:
            adjacency = Adjacency.of(self.train_edges, self.train_own, self.device)
            self._of_training = [self.train.to(self.device).batch(np.arange(len(self.train_own)))], adjacency
        return self._of_training, torch.from_numpy(self.places[rows]).to(self.device)

    def in_prediction(self, rows: NDArray[np.int64]) -> tuple[Joined, slice]:
        """The graph that the chosen subgraphs have joined, and their places in it."""
        edges, none = self.edges[rows], scipy.sparse.csr_array((len(rows), len(rows)))
        blocks = scipy.sparse.block_array([[self.train_edges, None], [edges, none]], format="csr")
        own = np.concatenate([self.train_own, self.own[rows]])
        adjacency = Adjacency.of(scipy.sparse.csr_array(blocks), own, self.device)
        (train, _), _ = self.in_training(rows)
        return ([*train, self.members.to(self.device).batch(rows)], adjacency), slice(len(self.train_own), None)
