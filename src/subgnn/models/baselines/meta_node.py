"""MN-GIN and MN-GAT: one meta node for each subgraph, joined to exactly its nodes (paper, section 5 and appendix D).

The graph with all meta nodes is embedded by link prediction, and the vector of its meta node stands for a subgraph. All
subgraphs get a meta node, whatever their split; labels play no part.

Link prediction is compact: each step draws edges to predict and, from the others, edges to send messages over, so that
no edge is predicted from itself. Two layers of GIN or GAT over a learned table; the score of a pair is the dot product
of its vectors; as many uniform pairs of nodes stand for absent edges.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.errors import UserError, extra_package
from subgnn.models.baselines.known_subgraphs import KnownSubgraphsModel
from subgnn.models.interface import TrainingData
from subgnn.ragged import Ragged
from subgnn.rng import stream_key

GAT_HEADS = 4
_STEPS, _RATE = 300, 1e-2
_BATCH = 4096  # edges to predict in one step
_EDGES = 200_000  # edges to send messages over in one step
_MOST_PREDICTED = 0.1  # of all edges, in one step


class MetaNodeModel(KnownSubgraphsModel):
    """MN-GIN, or MN-GAT with attention."""

    extra = "paper"

    def __init__(self, *, attention: bool) -> None:
        self.attention = attention

    def embed(self, data: TrainingData, recipe: Recipe, nodes: Ragged) -> NDArray[np.float32]:
        graph = data.graph
        vectors = link_vectors(
            *with_meta_nodes(graph, nodes),
            graph.num_nodes + len(nodes),
            dim=recipe.embeddings.dim,
            attention=self.attention,
            key=stream_key(data.seed, "baselines/links"),
            device=data.device,
        )
        return cast("NDArray[np.float32]", vectors[graph.num_nodes :].numpy())


def with_meta_nodes(graph: Graph, nodes: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The edges of G, and of each meta node N + s to the nodes of subgraph s; every edge once.

    Example:
        >>> tails, heads = with_meta_nodes(Graph.from_edges([0, 1], [1, 2]), Ragged.from_rows([[0, 2], [1]]))
        >>> list(zip(tails.tolist(), heads.tolist()))
        [(0, 1), (1, 2), (3, 0), (3, 2), (4, 1)]
    """
    tails, heads, _ = graph.edges()
    metas = graph.num_nodes + nodes.row_ids
    return np.concatenate([tails, metas]).astype(np.int64), np.concatenate([heads, nodes.values]).astype(np.int64)


class LinkEncoder(nn.Module):
    """Two layers of GIN, or of GAT with four heads side by side, over a learned table.

    Batch normalisation takes the statistics of the pass at hand, never running ones: sums over a sample of the edges
    are smaller than sums over all, so that the last pass, over all of them, stays comparable with training.
    """

    def __init__(self, num_nodes: int, dim: int, *, attention: bool) -> None:
        super().__init__()
        with extra_package("torch_geometric", extra="paper", feature="the meta-node baselines"):
            from torch_geometric.nn import GATConv, GINConv
        if attention and dim % GAT_HEADS:
            hint = f"accepted: a multiple of {GAT_HEADS}, the number of heads"
            raise UserError(f"embeddings.dim is {dim}", where="mn-gat", hint=hint)
        self.table = nn.Parameter(torch.randn(num_nodes, dim) / dim**0.5)
        self.layers = nn.ModuleList(
            GATConv(dim, dim // GAT_HEADS, heads=GAT_HEADS) if attention else GINConv(_mlp(dim), train_eps=True)
            for _ in range(2)
        )
        self.norm = nn.BatchNorm1d(dim, track_running_stats=False)

    def forward(self, edges: Tensor) -> Tensor:
        hidden = self.norm(torch.relu(self.layers[0](self.table, edges)))
        return cast(Tensor, self.layers[1](hidden, edges))


def _mlp(dim: int) -> nn.Sequential:
    norm = nn.BatchNorm1d(dim, track_running_stats=False)
    return nn.Sequential(nn.Linear(dim, dim), norm, nn.ReLU(), nn.Linear(dim, dim))


def link_vectors(
    tails: NDArray[np.int64],
    heads: NDArray[np.int64],
    num_nodes: int,
    *,
    dim: int,
    attention: bool,
    key: int,
    device: torch.device,
) -> Tensor:
    """Vectors of all nodes of an undirected graph (num_nodes, dim), on the CPU.

    Args:
        tails, heads: every edge once.
        key: seeds the table, the layers and all draws.
    """
    edges = torch.from_numpy(np.stack([tails, heads])).to(device)

    def both_ways(some: Tensor) -> Tensor:
        return torch.cat([some, some.flip(0)], dim=1)

    count = edges.shape[1]
    predicted = max(1, min(_BATCH, int(_MOST_PREDICTED * count)))
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(key)
        encoder = LinkEncoder(num_nodes, dim, attention=attention).to(device)
        optimizer = torch.optim.Adam(encoder.parameters(), lr=_RATE)
        for _ in range(_STEPS):
            order = torch.randperm(count, device=device)
            there = edges[:, order[:predicted]]
            messages = edges[:, order[predicted : predicted + _EDGES]]
            absent = torch.randint(num_nodes, there.shape, device=device)
            optimizer.zero_grad()
            vectors, pairs = encoder(both_ways(messages)), torch.cat([there, absent], dim=1)
            scores = (vectors[pairs[0]] * vectors[pairs[1]]).sum(dim=1) / dim**0.5
            wanted = torch.zeros_like(scores)
            wanted[:predicted] = 1.0
            functional.binary_cross_entropy_with_logits(scores, wanted).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            return cast(Tensor, encoder(both_ways(edges))).cpu()
