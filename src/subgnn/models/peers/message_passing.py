"""Message passing over the whole graph, as GLASS and SSNP share it.

Every node starts from a vector. A layer with the weights W and U maps the vectors x of all nodes to

    m = elu(W x),    y = dropout(GraphNorm(A m)),    x' = U [y ; x]

A is the adjacency D^-1 A, A or D^-1/2 A D^-1/2, without self loops. GraphNorm precedes the first layer; between layers
are GraphNorm, elu and dropout. The vector of a node is [x^(1) ; ... ; x^(L)], the outputs of all layers before these
norms, each after a GraphNorm of its own (jumping knowledge). GLASS has two sets of weights, for labelled nodes and for
others: where a layer has a ratio a,

    m_v = a elu(W1 x_v) + (1 - a) elu(W0 x_v) for a labelled node, a elu(W0 x_v) + (1 - a) elu(W1 x_v) for another,

and U is mixed in the same way. Beyond :data:`BLOCK` nodes, the arrays inside a layer exist for one block of nodes at a
time, and are computed again for the gradient.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint as recompute

from subgnn.config.files import Bounds, Size
from subgnn.config.settings import MethodSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.embeddings.link_prediction import Adjacency
from subgnn.embeddings.sources import node_vectors
from subgnn.errors import UserError
from subgnn.models.examples import HostSource
from subgnn.models.interface import Settings, TrainingData, Vectors, View
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import TensorModel
from subgnn.ragged import Ragged
from subgnn.rng import stream

BLOCK = 2**17
"""Nodes whose intermediate arrays are in memory at the same time."""
_EPSILON = 1e-5
_T = TypeVar("_T")

Moments = tuple[Tensor, Tensor]
"""What GraphNorm subtracts, and what it then multiplies by; (d,) each."""


@dataclass(frozen=True, slots=True)
class MessagePassingSettings(MethodSettings):
    """Message passing over the whole graph (glass, ssnp); docs/settings.md says what each setting means.

    The width is embeddings.dim, layers and dropout are those of [model]. ratio is for glass,
    walks, walk_length and views are for ssnp.
    """

    section: ClassVar[str] = "message_passing"
    inputs: Literal["embeddings", "constant"] = "embeddings"
    adjacency: Literal["mean", "sum", "symmetric"] = "mean"
    pool: Literal["sum", "mean", "max", "size"] = "size"
    ratio: Annotated[float, Bounds(0.5, 1)] = 0.8
    walks: Size = 1
    walk_length: Size = 5
    views: int = 0


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
    def scales(self) -> list[Tensor | None]:
        """The scalings of rows and columns (N, 1), None for 1."""
        given = (self._rows, self._columns)
        return [None if scale is None else torch.from_numpy(scale[:, None]).to(self.device) for scale in given]

    def labels(self, places: Tensor | None = None) -> Tensor:
        """Which nodes are labelled (N,): those at some places, by default none."""
        found = torch.zeros(self.graph.num_nodes, dtype=torch.bool, device=self.device)
        return found if places is None else found.index_fill(0, places, True)

    def __matmul__(self, messages: Tensor) -> Tensor:
        everyone = slice(None)
        return self.send(messages, self.matrix, tails=everyone, heads=everyone)

    def send(self, messages: Tensor, block: Adjacency, *, tails: Tensor | slice, heads: Tensor | slice) -> Tensor:
        """The part of A m at the nodes ``heads`` that messages of the nodes ``tails`` add, over some edges."""
        rows, columns = self.scales
        arrived = block @ (messages if columns is None else messages * columns[tails])
        return arrived if rows is None else arrived * rows[heads]


@dataclass(frozen=True, slots=True, eq=False)
class NodeSetBatch:
    """Node sets of a graph; ``places`` are their nodes laid end to end."""

    graph: WholeGraph
    nodes: Ragged

    @property
    def places(self) -> Tensor:
        return torch.from_numpy(self.nodes.values.astype(np.int64)).to(self.graph.device)


class NodeSetSource(HostSource):
    """Subgraphs as sets of nodes of the whole graph."""

    def __init__(self, graph: WholeGraph, nodes: Ragged) -> None:
        self.graph, self.nodes = graph, nodes

    def to(self, device: torch.device | str) -> Self:
        self.graph.to(device)
        return super().to(device)

    def batch(self, rows: NDArray[np.int64]) -> NodeSetBatch:
        return NodeSetBatch(self.graph, self.nodes.take(rows))


class GraphNorm(nn.Module):
    """w (x - a mean) / sqrt(var + eps) + b, with the mean over all nodes and var = mean of (x - a mean)^2.

    Cai et al., "GraphNorm", 2021. Rows may be normalised by the :meth:`moments` of another pass.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.mean_scale = nn.Parameter(torch.ones(width))

    def moments(self, x: Tensor) -> Moments:
        mean, variance = _mean_and_variance(x)
        rest = mean * (1 - self.mean_scale)
        return mean * self.mean_scale, torch.rsqrt(variance + rest.square() + _EPSILON)

    def forward(self, x: Tensor, moments: Moments) -> Tensor:
        shift, scale = moments
        return torch.addcmul(self.bias - shift * scale * self.weight, x, scale * self.weight)


class _MeanAndVariance(torch.autograd.Function):
    """Mean and variance of each column; torch's own take five times as long on a CPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        mean = x.mean(dim=0)
        total = torch.zeros_like(mean)
        for rows in torch.split(x, BLOCK):
            total += (rows - mean).square_().sum(dim=0)
        ctx.save_for_backward(x, mean)
        return mean, total / len(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        x, mean = ctx.saved_tensors
        of_mean, of_variance = gradients[0] / len(x), gradients[1] * (2 / len(x))
        return torch.addcmul(of_mean - mean * of_variance, x, of_variance)


# PyTorch leaves ``apply`` without types.
_mean_and_variance = cast("Callable[[Tensor], tuple[Tensor, Tensor]]", _MeanAndVariance.apply)


class Dropout(nn.Module):
    """Dropout whose probability is a multiple of 2^-16; drawing such masks takes a sixth of the time on a CPU."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.dropped = round(probability * 2**16)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.dropped:
            return x
        words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device)
        draws = words.random_(-(2**63), None).view(torch.int16)[: x.numel()].view(x.shape)
        kept = draws > self.dropped - 1 - 2**15
        return x * kept * (2**16 / max(1, 2**16 - self.dropped))


class Layer(nn.Module):
    """One layer, in parts, so that they can be applied to some nodes; without a ratio, it has one set of weights."""

    def __init__(self, width: int, *, dropout: float, ratio: float | None, last: bool) -> None:
        super().__init__()
        sets = 1 if ratio is None else 2
        self.ratio = ratio
        self.message = nn.Linear(width, sets * width)
        self.norm = GraphNorm(width)
        self.dropout = Dropout(dropout)
        self.combine = nn.Linear(2 * width, sets * width)
        self.jump = GraphNorm(width)
        self.between = None if last else GraphNorm(width)

    def messages(self, x: Tensor, labelled: Tensor) -> Tensor:
        """The messages m of nodes with vectors x (rows, d) and labels (rows,)."""
        h = functional.elu(self.message(x))
        if self.ratio is None:
            return h
        other, own = h.chunk(2, dim=1)
        weight = torch.where(labelled, self.ratio, 1 - self.ratio)[:, None]
        return torch.lerp(other, own, weight.to(h.dtype))

    def update(self, arrived: Tensor, x: Tensor, labelled: Tensor, moments: Moments) -> Tensor:
        """x', from A m and x, (rows, d) each."""
        c = torch.cat([self.dropout(self.norm(arrived, moments)), x], dim=1)
        if self.ratio is None:
            return cast(Tensor, self.combine(c))
        (other, own), (other_bias, own_bias) = self.combine.weight.chunk(2), self.combine.bias.chunk(2)

        def mixed(rows: Tensor, weight: float) -> Tensor:
            return functional.linear(rows, torch.lerp(other, own, weight), torch.lerp(other_bias, own_bias, weight))

        places = labelled.nonzero()[:, 0]
        return mixed(c, 1 - self.ratio).index_copy(0, places, mixed(c[places], self.ratio))

    def onward(self, out: Tensor, moments: Moments) -> Tensor:
        return cast(Tensor, self.dropout(functional.elu(cast(GraphNorm, self.between)(out, moments))))


@dataclass(frozen=True, slots=True, eq=False)
class LayerPass:
    """The input x, A m and the output of a layer for all nodes (N, d), and the moments of its norms."""

    x: Tensor
    arrived: Tensor
    out: Tensor
    norm: Moments
    jump: Moments
    between: Moments | None


class MessagePassing(nn.Module, ABC):
    """The layers, and a linear map to outputs; ``table`` has a first vector for each node (N, d), or one for all."""

    def __init__(self, checkpoint: Checkpoint, *, labels: bool, width: int) -> None:
        super().__init__()
        spec, start = checkpoint.spec, checkpoint.weights
        self.settings = spec.of(MessagePassingSettings)
        dim, dropout, count = start["table"].shape[1], spec.model.dropout, spec.model.layers
        # Labelled nodes and others have weights of their own.
        constant, ratio = self.settings.inputs == "constant", self.settings.ratio if labels else None
        self.table = nn.Parameter(start["table"].clone(), requires_grad=constant or spec.embeddings.trainable)
        self.first = GraphNorm(dim)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(Layer(dim, dropout=dropout, ratio=ratio, last=i == count - 1) for i in range(count))
        self.output = nn.Linear(width, spec.num_outputs)
        self._kept: tuple[Any, Any] | None = None

    def kept(self, compute: Callable[[], _T]) -> _T:
        """What depends on the weights and the graph alone; prediction keeps it while no weight changes."""
        if self.training:
            return compute()
        version = [(weight._version, weight.data_ptr()) for weight in self.parameters()]
        if self._kept is None or self._kept[0] != version:
            self._kept = None  # its memory is free before the next is computed
            with torch.no_grad():
                self._kept = version, compute()
        return cast(_T, self._kept[1])

    def train(self, mode: bool = True) -> Self:
        if mode:
            self._kept = None
        return super().train(mode)

    @abstractmethod
    def embed(self, batch: NodeSetBatch) -> Tensor:
        """The vector of each subgraph (n, width)."""

    def forward(self, batch: NodeSetBatch) -> Tensor:
        return cast(Tensor, self.output(self.embed(batch)))

    @property
    def stack(self) -> list[Layer]:
        return cast("list[Layer]", list(self.layers))

    def whole_pass(
        self, graph: WholeGraph, labelled: Tensor, *, moments: list[Moments] | None = None
    ) -> tuple[list[LayerPass], list[Moments]]:
        """Pass messages over the whole graph; norms take the given moments in turn, or those of this pass."""
        layers, taken, given = list[LayerPass](), list[Moments](), iter(moments or ())

        def moments_of(norm: GraphNorm, x: Tensor) -> Moments:
            taken.append(norm.moments(x) if moments is None else next(given))
            return taken[-1]

        table = self.table.expand(graph.graph.num_nodes, -1)
        first = moments_of(self.first, table)
        x = in_blocks(lambda rows: self.dropout(self.first(rows, first)), table)
        for layer in self.stack:
            arrived = graph @ in_blocks(layer.messages, x, labelled)
            norm = moments_of(layer.norm, arrived)
            out = in_blocks(partial(layer.update, moments=norm), arrived, x, labelled)
            jump = moments_of(layer.jump, out)
            between = None if layer.between is None else moments_of(layer.between, out)
            layers.append(LayerPass(x, arrived, out, norm, jump, between))
            if between is not None:
                x = in_blocks(partial(layer.onward, moments=between), out)
        return layers, taken

    def vectors_at(self, layers: list[LayerPass], places: Tensor) -> Tensor:
        """The vectors of some nodes after a pass (rows, L d)."""
        pairs = zip(self.stack, layers, strict=True)
        return torch.cat([layer.jump(one.out[places], one.jump) for layer, one in pairs], dim=1)


def in_blocks(function: Callable[..., Tensor], *arrays: Tensor) -> Tensor:
    """Apply a function to rows of arrays, a block at a time; blocks are computed again for the gradient."""
    parts = list(zip(*(torch.split(array, BLOCK) for array in arrays), strict=True))
    if len(parts) == 1:
        return function(*arrays)
    if torch.is_grad_enabled():
        function = partial(recompute, function, use_reentrant=False)
    return torch.cat([function(*part) for part in parts])


def pool(vectors: Tensor, places: Tensor, sets: NodeSetBatch, how: Literal["sum", "mean", "max", "size"]) -> Tensor:
    """Pool the vectors at the places of the nodes of each set, laid end to end (sets, width); 0 for an empty one."""
    starts = torch.from_numpy(sets.nodes.offsets[:-1]).to(vectors.device)
    pooled = functional.embedding_bag(places, vectors, starts, mode="sum" if how == "size" else how)
    if how != "size":
        return pooled
    sizes = torch.from_numpy(np.maximum(sets.nodes.lengths, 1)[:, None]).to(vectors.device)
    return pooled / sizes.to(pooled.dtype).sqrt()


class MessagePassingModel(TensorModel):
    """A model that passes messages over the whole graph; its table has a vector for every node of the graph."""

    settings = (MessagePassingSettings,)
    on_new_graph = "messages pass over the new graph; a new node starts from the mean of its neighbours' vectors"

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        number, settings = data.graph.num_nodes, recipe.embeddings
        if recipe.of(MessagePassingSettings).inputs == "constant":
            table = stream(data.seed, "message passing/constant").standard_normal((1, settings.dim)).astype(np.float32)
        else:
            nodes = np.arange(number, dtype=np.int32)
            table = node_vectors(settings, nodes, num_nodes=number, seed=data.seed, table=data.vectors)
        return {"table": torch.from_numpy(table)}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> NodeSetSource:
        return NodeSetSource(WholeGraph(graph, checkpoint.spec.of(MessagePassingSettings).adjacency), nodes)

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        if not self.uses_embeddings(checkpoint.spec):
            return checkpoint
        table = torch.from_numpy(match.vectors(checkpoint.weights["table"].numpy()))
        return replace(checkpoint, weights=checkpoint.weights | {"table": table})

    def uses_embeddings(self, settings: Settings) -> bool:
        return settings.of(MessagePassingSettings).inputs == "embeddings"

    def sees(self, settings: Settings) -> View:
        return "everything" if self.uses_embeddings(settings) else "shape"

    def check(self, recipe: Recipe, graph: Graph) -> None:
        if not recipe.model.layers:
            raise UserError("model.layers is 0", where=recipe.method, hint="accepted: a whole number from 1")

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        spec, table = checkpoint.spec, checkpoint.weights["table"]
        rows = graph.num_nodes if self.uses_embeddings(spec) else 1
        if tuple(table.shape) != (rows, spec.embeddings.dim) or table.dtype != torch.float32:
            yield f"its table is {tuple(table.shape)}, not {(rows, spec.embeddings.dim)}"
