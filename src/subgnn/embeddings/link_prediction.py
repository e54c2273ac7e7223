"""What GIN and GraphSAINT share in link prediction: edges to learn from, message passing, and the encoder."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from subgnn.channels.channel import each_array
from subgnn.config.settings import PretrainSettings
from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.kernels.build_csr import transpose, undirected_csr
from subgnn.kernels.draws import sample_non_edges
from subgnn.ragged import runs
from subgnn.rng import stream, stream_key

_ENTRIES_AT_A_TIME = 2**24
_SPREAD = 0.3

LAYERS = 2
"""Layers of an encoder."""
MATCHED = 0.25
"""The share of non-edges that join nodes drawn by degree, like the ends of edges; the others join uniform nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeSplit:
    """A graph split for link prediction; pairs are (2, n)."""

    offsets: NDArray[np.int64]  # of the message-passing graph: the training edges, each in both directions
    neighbors: NDArray[np.int32]
    train: NDArray[np.int32]
    val: NDArray[np.int32]
    val_non_edges: NDArray[np.int32]  # uniform pairs that no edge of the whole graph joins, separated by degrees alone
    val_matched: NDArray[np.int32]  # such pairs of nodes drawn by degree, which degrees do not separate from edges

    @property
    def csr(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        return self.offsets, self.neighbors

    def rows(self, run: slice) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        offsets = self.offsets[run.start : run.stop + 1]
        return offsets - offsets[0], self.neighbors[offsets[0] : offsets[-1]]

    def draw_non_edges(
        self, settings: PretrainSettings, step: int, *, uniform: NDArray[np.int32], by_degree: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Pairs without an edge for a step: places in ``uniform``, and for a share :data:`MATCHED` in ``by_degree``."""
        count = round(MATCHED * settings.batch_size)
        keys = [stream_key(settings.seed, f"pretrain/{kind}/{step}") for kind in ("non-edges", "matched")]
        return (
            sample_non_edges(*self.csr, uniform, pairs=settings.batch_size - count, key=keys[0]),
            sample_non_edges(*self.csr, by_degree, pairs=count, key=keys[1]),
        )


def split_edges(graph: Graph, *, val_fraction: float, seed: int) -> EdgeSplit:
    """Hold out a part of the edges of an undirected graph: at least one, and not all."""
    tails, heads, _ = graph.edges()
    edges = np.stack([tails, heads])
    count = edges.shape[1]
    if count < 2:
        raise DataError(f"the graph has {count} edges", where="pretrain", hint="training and validation need one each")
    held_out = min(max(1, round(val_fraction * count)), count - 1)
    order = stream(seed, "pretrain/split").permutation(count)
    val, train = edges[:, order[:held_out]], edges[:, np.sort(order[held_out:])]
    everyone = np.arange(graph.num_nodes, dtype=np.int32)
    pairs = sample_non_edges(*graph.csr, everyone, pairs=held_out, key=stream_key(seed, "pretrain/val"))
    matched = sample_non_edges(*graph.csr, graph.neighbors, pairs=held_out, key=stream_key(seed, "pretrain/matched"))
    if not pairs.shape[1]:
        what = "almost all pairs of nodes are joined by an edge"
        raise DataError(what, where="pretrain", hint="link prediction needs pairs of nodes without an edge")
    offsets, neighbors, _, _ = undirected_csr(train[0], train[1], graph.num_nodes)
    return EdgeSplit(offsets, neighbors, train, val, pairs, graph.neighbors[matched])


def _sparse(offsets: Tensor, columns: Tensor, weights: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        # PyTorch warns once that sparse tensors are in beta and not checked; the operations used here are tested.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(offsets, columns, weights, shape, check_invariants=False)


def _tensors(offsets: Any, columns: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor]:
    starts, ends = (torch.from_numpy(np.array(array, np.int32)) for array in (offsets, columns))
    return starts, ends, torch.from_numpy(np.array(weights, np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """Weighted messages from the vectors of a layer below to those of the layer above; takes PyG's ``edge_index``.

    ``adjacency @ x`` takes O(rows x d) memory, where gathered messages would take O(edges x d). ``back``, the
    transposed matrix, gives the gradient; PyTorch's backward pass took nine times as long. ``rows`` tells which of
    the n vectors below belong to the rows, and ``loops`` (rows, 1) the weight of a node's own vector.
    """

    matrix: Tensor
    back: Tensor | None
    rows: slice
    loops: Tensor | None = None

    @classmethod
    def of(
        cls,
        offsets: NDArray[np.int64],
        columns: NDArray[np.int32],
        weights: NDArray[np.float32],
        *,
        num_columns: int,
        rows: slice,
        loops: NDArray[np.float32] | None = None,
        gradient: bool = True,
    ) -> Self:
        shape = len(offsets) - 1, num_columns
        back = None
        if gradient:
            turned, heads, places = transpose(offsets, columns, num_columns)
            back = _sparse(*_tensors(turned, heads, weights[places]), shape[::-1])
        own = None if loops is None else torch.from_numpy(loops[:, None])
        return cls(_sparse(*_tensors(offsets, columns, weights), shape), back, rows, own)

    @classmethod
    def symmetric(cls, offsets: Tensor, columns: Tensor) -> Self:
        """From CSR tensors (int32) of an undirected graph, with messages of weight 1: its own transpose."""
        size = len(offsets) - 1
        matrix = _sparse(offsets, columns, torch.ones(len(columns), device=columns.device), (size, size))
        return cls(matrix, matrix, slice(0, size))

    def to(self, device: torch.device) -> Self:
        return each_array(lambda part: part.to(device), self)

    def __matmul__(self, x: Tensor) -> Tensor:
        return self.plus(x, self.loops)

    def plus(self, x: Tensor, loops: Tensor | None) -> Tensor:
        """A x, and the rows' own vectors times ``loops``: (rows, 1), or (1,) learned."""
        # Sparse products have no half precision on a CPU.
        return _multiply(self.matrix, self.back, x.float(), self.rows, loops)


def _product(matrix: Tensor, x: Tensor) -> Tensor:
    """A x; on a CPU, sums over bags take less than half the time of PyTorch's sparse product."""
    if x.device.type != "cpu":
        return matrix @ x
    columns, begins, weights = matrix.col_indices(), matrix.crow_indices(), matrix.values()
    x = x.detach()
    return functional.embedding_bag(
        columns, x, begins, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


class _Product(torch.autograd.Function):
    """y = A x + loops x[rows], with A^T given for the gradient."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, back: Tensor | None, x: Tensor, rows: slice, loops: Tensor | None) -> Tensor:
        ctx.back, ctx.rows = back, rows
        ctx.save_for_backward(*(() if loops is None else (x, loops)))
        total = _product(matrix, x)
        return total if loops is None else total.addcmul_(x[rows], loops)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient, of_x, of_loops = gradients[0].contiguous(), None, None
        x, loops = ctx.saved_tensors or (gradient, None)
        if ctx.needs_input_grad[2]:
            of_x = _product(ctx.back, gradient)
            if loops is not None:
                of_x[ctx.rows].addcmul_(gradient, loops)
        if ctx.needs_input_grad[4]:
            of_loops = torch.dot(gradient.view(-1), x[ctx.rows].reshape(-1)).view(1)
        return None, None, of_x, None, of_loops


# PyTorch leaves ``apply`` without types.
_multiply = cast("Callable[..., Tensor]", _Product.apply)


class NodeInputs(nn.Module):
    """x_v of each node: a row of a learned table (one-hot features), or the given features through a linear map."""

    def __init__(self, num_nodes: int, width: int, features: NDArray[np.float32] | None = None) -> None:
        super().__init__()
        self.features: Tensor
        self.map: nn.Linear | None = None
        if features is None:
            self.table = nn.Parameter(torch.randn(num_nodes, width) * _SPREAD)
        else:
            self.register_buffer("features", torch.from_numpy(features), persistent=False)
            self.map = nn.Linear(features.shape[1], width)

    def forward(self, nodes: Tensor | slice) -> Tensor:
        known = self.table if self.map is None else self.features
        rows = known[nodes] if isinstance(nodes, slice) else known.index_select(0, nodes)
        return rows if self.map is None else cast(Tensor, self.map(rows))


class Encoder(nn.Module):
    """z = layers(x): relu and dropout between layers, nothing after the last.

    A layer is called with the vectors below and an :class:`Adjacency`. The score of a pair is z_u . z_v / sqrt(d) +
    b, with a learned b, so that the vectors need not say how rare edges are.
    """

    def __init__(self, inputs: NodeInputs, layers: list[nn.Module], dropout: float) -> None:
        super().__init__()
        self.inputs, self.layers, self.dropout = inputs, nn.ModuleList(layers), dropout
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, nodes: Tensor, adjacencies: list[Adjacency]) -> Tensor:
        """Vectors of the rows of the last adjacency; ``nodes`` are the columns of the first."""
        x: Tensor = self.inputs(nodes)
        for i, (layer, adjacency) in enumerate(zip(self.layers, adjacencies, strict=True)):
            x = layer(x, adjacency)
            if i + 1 < len(self.layers):
                x = functional.dropout(functional.relu(x), self.dropout, self.training)
        return x

    def score(self, vectors: Tensor, pairs: Tensor) -> Tensor:
        """z_u . z_v / sqrt(d) + b, of pairs (2, m) of vectors (n, d)."""
        products: Tensor = (vectors.index_select(0, pairs[0]) * vectors.index_select(0, pairs[1])).sum(dim=1)
        return products / math.sqrt(vectors.shape[1]) + self.bias


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """One step of link prediction: input nodes (n,), pairs (2, m) of places in the last rows, targets, weights (m,)."""

    nodes: Tensor
    adjacencies: list[Adjacency]
    pairs: Tensor
    targets: Tensor
    weights: Tensor

    @classmethod
    def of(cls, nodes: Any, adjacencies: list[Adjacency], edges: Any, others: Any, weights: Any = None) -> Self:
        """From arrays of nodes, of pairs that are edges, and of others; without weights, all count the same."""
        pairs = torch.from_numpy(np.concatenate([edges, others], axis=1).astype(np.int64))
        targets = (torch.arange(pairs.shape[1]) < edges.shape[1]).float()
        given = torch.ones(pairs.shape[1]) if weights is None else torch.from_numpy(weights)
        return cls(torch.from_numpy(nodes.astype(np.int64)), adjacencies, pairs, targets, given)

    def to(self, device: torch.device) -> Self:
        return each_array(lambda part: part.to(device), self)


Rows = Callable[[slice], Adjacency]


@torch.no_grad()
def embed_all(encoder: Encoder, rows: Rows, offsets: NDArray[np.int64], device: torch.device) -> Tensor:
    """The vector z of every node (N, d) from all its neighbours, layer by layer, some rows at a time."""
    encoder.eval()
    x: Tensor = encoder.inputs(slice(None))
    for i, layer in enumerate(encoder.layers):
        x = torch.cat([layer(x, rows(run).to(device)) for run in runs(np.diff(offsets), _ENTRIES_AT_A_TIME)])
        x = functional.relu(x) if i + 1 < len(encoder.layers) else x
    return x
