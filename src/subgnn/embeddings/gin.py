r"""GIN by link prediction (paper, appendix on pretraining; Xu et al., "How powerful are graph neural networks?", 2019).

.. math:: x'_v = \mathrm{MLP}\big((1 + \epsilon)\, x_v + \sum_{u \in N(v)} x_u\big)

In a step, the sum runs over a uniform sample of a fraction of N(v) and is weighted by degree / sample size, so that its
expectation is the sum over all neighbours; the final vectors are computed from all of them. A step holds the sampled
neighbourhoods of the ends of its pairs, a block a layer, and nothing of the rest of the graph.

With ``pretrain.weighted`` x_u is multiplied by the weight of the edge, in units of the mean magnitude of weights.

*Differs from the paper:* the sum is divided by the square root of the degree. Degrees run from one to thousands, and so
would the sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config.settings import PretrainSettings
from subgnn.embeddings.link_prediction import LAYERS, Adjacency, Batch, EdgeSplit, Encoder, NodeInputs
from subgnn.errors import extra_package
from subgnn.kernels.draws import Block, find_entries, sample_neighbors
from subgnn.rng import stream, stream_key

_DAMPING = 0.5  # the power of the degree that the sum over neighbours is divided by


def gin_encoder(
    num_nodes: int, dim: int, settings: PretrainSettings, features: NDArray[np.float32] | None = None
) -> Encoder:
    """A stack of PyG's GIN layers, each with an MLP of one hidden layer and batch normalisation."""

    def mlp(width: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(settings.hidden, settings.hidden),
            nn.BatchNorm1d(settings.hidden),
            nn.ReLU(),
            nn.Linear(settings.hidden, width),
        )

    widths = [settings.hidden] * (LAYERS - 1) + [dim]
    layers = gin_layers((mlp(width) for width in widths), extra="pyg", feature="pretraining")
    return Encoder(NodeInputs(num_nodes, settings.hidden, features), layers, settings.dropout)


def gin_layers(mlps: Iterable[nn.Module], *, extra: str, feature: str) -> list[nn.Module]:
    """PyG's GIN layers, called with vectors and an :class:`Adjacency` in place of a list of edges.

    Args:
        mlps: one a layer; each is initialised again when its layer is made.
        extra, feature: what to install where PyG is missing, and what needs it.
    """
    with extra_package("torch_geometric", extra=extra, feature=feature):
        from torch_geometric.nn import GINConv

    class Layer(GINConv):  # type: ignore[misc]
        def forward(self, x: Tensor, adjacency: Adjacency) -> Any:
            # A slice of all rows would cost a copy of the gradient.
            every = adjacency.rows == slice(0, len(x))
            return super().forward((x, x if every else x[adjacency.rows]), adjacency)

        def propagate(self, edge_index: Adjacency, size: Any = None, *, x: tuple[Tensor, Tensor]) -> Tensor:
            return edge_index @ x[0]

    return [Layer(mlp, train_eps=True) for mlp in mlps]


class GINSampler:
    """Batches of training edges, as many non-edges, and the sampled neighbourhoods of their ends."""

    def __init__(self, split: EdgeSplit, settings: PretrainSettings) -> None:
        self.split, self.settings = split, settings
        self.degrees = np.diff(split.offsets)
        self.everyone = np.arange(len(self.degrees), dtype=np.int32)

    def rows(self, run: slice) -> Adjacency:
        """All neighbours of a run of nodes."""
        begin, end = self.split.offsets[run.start], self.split.offsets[run.stop]
        offsets = self.split.offsets[run.start : run.stop + 1] - begin
        weights = self._weights(np.arange(run.start, run.stop), offsets)
        if self.split.weights is not None:
            weights *= self.split.weights[begin:end]
        columns = self.split.neighbors[begin:end]
        return Adjacency.of(offsets, columns, weights, num_columns=len(self.everyone), rows=run, gradient=False)

    def batch(self, step: int) -> Batch:
        """The batch of a step, a function of the seed and the step alone."""
        settings, seed = self.settings, self.settings.seed
        chosen = stream(seed, f"pretrain/edges/{step}").integers(self.split.train.shape[1], size=settings.batch_size)
        edges = self.split.train[:, chosen]
        neighbors = self.split.neighbors
        uniform, matched = self.split.draw_non_edges(settings, step, uniform=self.everyone, by_degree=neighbors)
        others = np.concatenate([uniform, neighbors[matched]], axis=1)
        pairs = np.concatenate([edges, others], axis=1)
        ends, places = np.unique(pairs, return_inverse=True)
        adjacencies: list[Adjacency] = []
        nodes = ends.astype(np.int32)
        for layer in reversed(range(LAYERS)):
            key = stream_key(seed, f"pretrain/neighbors/{step}/{layer}")
            block = sample_neighbors(*self.split.csr, nodes, fraction=settings.fraction, key=key)
            adjacencies.insert(0, self._adjacency(block, nodes))
            nodes = block.nodes
        return Batch(
            nodes=torch.from_numpy(nodes.astype(np.int64)),
            adjacencies=adjacencies,
            pairs=torch.from_numpy(places.reshape(pairs.shape)),
            targets=torch.cat([torch.ones(edges.shape[1]), torch.zeros(others.shape[1])]),
            weights=torch.ones(pairs.shape[1]),
        )

    def _adjacency(self, block: Block, rows: NDArray[np.int32]) -> Adjacency:
        weights = self._weights(rows, block.offsets)
        if self.split.weights is not None:
            tails = np.repeat(rows, np.diff(block.offsets))
            weights *= self.split.weights[find_entries(*self.split.csr, tails, block.nodes[block.columns])]
        return Adjacency.of(
            block.offsets,
            block.columns,
            weights,
            num_columns=len(block.nodes),
            rows=slice(0, len(rows)),
        )

    def _weights(self, rows: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.float32]:
        """For every entry: degree / sample size / degree^damping."""
        taken = np.diff(offsets)
        degrees = np.maximum(self.degrees[rows], 1)
        weights = degrees ** (1 - _DAMPING) / np.maximum(taken, 1)
        return np.repeat(weights.astype(np.float32), taken)
