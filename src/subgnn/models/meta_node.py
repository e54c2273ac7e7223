"""MN-GIN and MN-GAT: one meta node a subgraph, joined to exactly its nodes (paper, section 5 and appendix D).

The graph with all meta nodes is embedded by link prediction (:mod:`subgnn.models.links`), and the vector of its meta
node stands for a subgraph. All subgraphs get a meta node, whatever their split; labels play no part.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.models.known_subgraphs import distinct, state
from subgnn.models.links import link_vectors
from subgnn.ragged import Ragged
from subgnn.rng import stream_key
from subgnn.training.loop import State


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


def begin(
    graph: Graph,
    subgraphs: SubgraphSet,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    vectors: NDArray[np.float32] | None = None,
) -> State:
    """Embed the graph and its meta nodes, and keep the vectors of the meta nodes."""
    nodes = distinct(subgraphs.nodes)
    embedded = link_vectors(
        *with_meta_nodes(graph, nodes),
        graph.num_nodes + len(nodes),
        dim=recipe.embeddings.dim,
        attention=recipe.method == "mn-gat",
        settings=recipe.baseline,
        key=stream_key(seed, "baselines/links"),
        device=device,
    )
    return state(nodes, embedded[graph.num_nodes :].numpy())
