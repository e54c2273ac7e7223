r"""The two encoders of pretraining and their batches: GIN, and GCN on GraphSAINT's samples (paper, appendix).

*GIN* (Xu et al., "How powerful are graph neural networks?", 2019):

.. math:: x'_v = \mathrm{MLP}\big((1 + \epsilon)\, x_v + \sum_{u \in N(v)} x_u\big)

In a step, the sum runs over a uniform sample of a fraction of N(v) and is weighted by degree / sample size, so that its
expectation is the sum over all neighbours; the final vectors are computed from all of them. A step holds the sampled
neighbourhoods of the ends of its pairs, a block a layer. *Differs from the paper:* the sum is divided by the square
root of the degree. Degrees run from one to thousands, and so would the sums.

*GraphSAINT* (Zeng et al., 2020): a step works on the subgraph induced by the nodes of random walks from uniform roots.
With p_v and p_uv the probabilities that a sample holds a node or an edge, as counted in samples drawn beforehand,
messages and losses are weighted so that, in expectation, they equal those on the whole graph:

.. math:: x'_v = \sum_{u \in N(v) \cup v} \frac{p_v}{p_{uv}} \, \frac{W x_u}{\sqrt{(d_v + 1)(d_u + 1)}},
          \qquad L = \sum_{uv} \frac{\ell_{uv}}{p_{uv}}

with p_uu = p_u for the loop that GCN adds (Kipf and Welling, 2017), and degrees d in the whole graph. *Differs from the
paper:* batch normalisation between layers; without it, a graph of hubs and leaves took much longer to give more than
degrees (docs/concepts.md). *Differs from GraphSAINT:* the task is link prediction, so losses are weighted by edges. A
pair that is no edge counts 1 / (p_u p_v) where its ends are uniform, 1 where they are drawn by degree. Each sample adds
itself to the counts it is weighted by, so nothing is divided by 0.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config.settings import PretrainSettings
from subgnn.embeddings.link_prediction import LAYERS, Adjacency, Batch, EdgeSplit, Encoder, NodeInputs
from subgnn.errors import extra_package
from subgnn.kernels.draws import Block, induced_block, sample_neighbors, walk_nodes
from subgnn.rng import stream, stream_key

_DAMPING = 0.5  # the power of the degree that GIN's sum over neighbours is divided by
_SAMPLES_BEFOREHAND = 50
_LARGEST_WEIGHT = 10.0
_ROOTS = 2000  # walks of a sample


def gin_encoder(
    num_nodes: int, dim: int, settings: PretrainSettings, features: NDArray[np.float32] | None = None
) -> Encoder:
    """A stack of PyG's GIN layers, each with an MLP of one hidden layer and batch normalisation."""
    hidden = settings.hidden
    mlps = (
        nn.Sequential(nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, width))
        for width in [hidden] * (LAYERS - 1) + [dim]
    )
    layers = gin_layers(mlps, extra="pyg", feature="pretraining")
    return Encoder(NodeInputs(num_nodes, hidden, features), layers, settings.dropout)


def gin_layers(mlps: Iterable[nn.Module], *, extra: str, feature: str) -> list[nn.Module]:
    """PyG's GIN layers, one for each MLP, initialised again; an :class:`Adjacency` stands for the edges."""
    with extra_package("torch_geometric", extra=extra, feature=feature):
        from torch_geometric.nn import GINConv

    class Layer(GINConv):  # type: ignore[misc]
        def forward(self, x: Tensor, adjacency: Adjacency) -> Any:
            return self.nn(adjacency.plus(x, 1 + self.eps))

    return [Layer(mlp, train_eps=True) for mlp in mlps]


class GINSampler:
    """Batches of training edges, as many non-edges, and the sampled neighbourhoods of their ends."""

    def __init__(self, split: EdgeSplit, settings: PretrainSettings) -> None:
        self.split, self.settings = split, settings
        self.degrees = np.diff(split.offsets)
        self.everyone = np.arange(len(self.degrees), dtype=np.int32)

    def rows(self, run: slice) -> Adjacency:
        offsets, columns = self.split.rows(run)
        weights = self._weights(np.arange(run.start, run.stop), offsets)
        return Adjacency.of(offsets, columns, weights, num_columns=len(self.everyone), rows=run, gradient=False)

    def batch(self, step: int) -> Batch:
        settings, seed = self.settings, self.settings.seed
        chosen = stream(seed, f"pretrain/edges/{step}").integers(self.split.train.shape[1], size=settings.batch_size)
        edges = self.split.train[:, chosen]
        neighbors = self.split.neighbors
        uniform, matched = self.split.draw_non_edges(settings, step, uniform=self.everyone, by_degree=neighbors)
        pairs = np.concatenate([edges, uniform, neighbors[matched]], axis=1)
        ends, places = np.unique(pairs, return_inverse=True)
        adjacencies: list[Adjacency] = []
        nodes = ends.astype(np.int32)
        for layer in reversed(range(LAYERS)):
            key = stream_key(seed, f"pretrain/neighbors/{step}/{layer}")
            block = sample_neighbors(*self.split.csr, nodes, fraction=settings.fraction, key=key)
            rows, weights = slice(0, len(nodes)), self._weights(nodes, block.offsets)
            entries = block.offsets, block.columns, weights
            adjacencies.insert(0, Adjacency.of(*entries, num_columns=len(block.nodes), rows=rows))
            nodes = block.nodes
        return Batch.of(nodes, adjacencies, *np.split(places.reshape(pairs.shape), [edges.shape[1]], axis=1))

    def _weights(self, rows: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.float32]:
        """For every entry: degree / sample size / degree^damping."""
        taken = np.diff(offsets)
        weights = np.maximum(self.degrees[rows], 1) ** (1 - _DAMPING) / np.maximum(taken, 1)
        return np.repeat(weights.astype(np.float32), taken)


def gcn_encoder(
    num_nodes: int, dim: int, settings: PretrainSettings, features: NDArray[np.float32] | None = None
) -> Encoder:
    """A stack of PyG's GCN layers; the weights of messages come with the adjacency."""
    with extra_package("torch_geometric", extra="pyg", feature="pretraining"):
        from torch_geometric.nn import GCNConv

    class Layer(GCNConv):  # type: ignore[misc]
        """GCN on an adjacency in place of a list of edges, then batch normalisation (in all layers but the last)."""

        def __init__(self, width: int, *, last: bool) -> None:
            super().__init__(settings.hidden, width, normalize=False)
            self.norm = nn.Identity() if last else nn.BatchNorm1d(width)

        def forward(self, x: Tensor, adjacency: Adjacency) -> Any:
            return self.norm(super().forward(x, adjacency))

        def propagate(self, edge_index: Adjacency, size: Any = None, *, x: Tensor, edge_weight: None = None) -> Tensor:
            return edge_index @ x

    layers: list[nn.Module] = [Layer(settings.hidden, last=False) for _ in range(LAYERS - 1)]
    layers.append(Layer(dim, last=True))
    return Encoder(NodeInputs(num_nodes, settings.hidden, features), layers, settings.dropout)


class GraphSAINTSampler:
    """Random-walk samples of the message-passing graph, with the edges of each as examples."""

    def __init__(self, split: EdgeSplit, settings: PretrainSettings) -> None:
        self.split, self.settings = split, settings
        self.roots = np.sqrt(np.diff(split.offsets) + 1).astype(np.float32)
        self.node_counts = np.ones(len(self.roots), np.int32)
        self.edge_counts = np.ones(len(split.neighbors), np.int32)
        for i in range(_SAMPLES_BEFOREHAND):
            block, entries = self._sample(f"beforehand/{i}")
            self.node_counts[block.nodes] += 1
            self.edge_counts[entries] += 1

    def _sample(self, name: str) -> tuple[Block, NDArray[np.int64]]:
        csr, key = self.split.csr, stream_key(self.settings.seed, f"pretrain/walks/{name}")
        return induced_block(*csr, walk_nodes(*csr, roots=_ROOTS, length=self.settings.walk_length, key=key))

    def rows(self, run: slice) -> Adjacency:
        """All neighbours of a run of nodes, and the nodes themselves."""
        (offsets, columns), own = self.split.rows(run), self.roots[run]
        weights, known = 1 / (np.repeat(own, np.diff(offsets)) * self.roots[columns]), {"num_columns": len(self.roots)}
        return Adjacency.of(offsets, columns, weights, **known, rows=run, loops=1 / own**2, gradient=False)

    def batch(self, step: int) -> Batch:
        settings, seed = self.settings, self.settings.seed
        block, entries = self._sample(str(step))
        tails = np.repeat(np.arange(len(block.nodes), dtype=np.int32), np.diff(block.offsets))
        counts = self.node_counts[block.nodes]
        rng = stream(seed, f"pretrain/edges/{step}")
        chosen = rng.integers(len(entries), size=settings.batch_size if len(entries) else 0)
        edges = np.stack([tails[chosen], block.columns[chosen]])
        ends = block.nodes[block.columns]
        uniform, places = self.split.draw_non_edges(settings, step, uniform=block.nodes, by_degree=ends)
        matched = block.columns[places]
        others = np.concatenate([uniform, matched], axis=1)
        weights = [
            _balanced(1 / self.edge_counts[entries[chosen]]),
            _balanced(1 / (counts[uniform[0]] * counts[uniform[1]].astype(np.float64))),
            np.ones(matched.shape[1], np.float32),
        ]
        own = self.roots[block.nodes]
        # GCN's weights, each over the probability that a sample with the node has the edge too.
        messages = counts[tails] / self.edge_counts[entries] / (own[tails] * own[block.columns])
        known = {"num_columns": len(own), "rows": slice(0, len(own)), "loops": 1 / own**2}
        adjacency = Adjacency.of(block.offsets, block.columns, messages, **known)
        return Batch.of(block.nodes, [adjacency] * LAYERS, edges, others, np.concatenate(weights))


def _balanced(weights: NDArray[Any]) -> NDArray[np.float32]:
    """Weights of mean 1; the few largest are cut, so that no rare pair dominates a step."""
    if not len(weights):
        return np.empty(0, np.float32)
    relative = np.minimum(weights / weights.mean(), _LARGEST_WEIGHT)
    return np.asarray(relative / relative.mean(), np.float32)
