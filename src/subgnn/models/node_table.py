"""A table of node embeddings, of the nodes that subgraphs have; it grows when prediction meets others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.embeddings.sources import node_vectors
from subgnn.models.spec import Checkpoint
from subgnn.ragged import Ragged
from subgnn.training.loop import State


def begin(
    graph: Graph,
    subgraphs: SubgraphSet,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    vectors: NDArray[np.float32] | None = None,
) -> State:
    """``nodes``, sorted, and ``table``, their embeddings."""
    nodes = np.unique(subgraphs.nodes.values)
    table = node_vectors(recipe.embeddings, nodes, num_nodes=graph.num_nodes, seed=seed, table=vectors)
    return {"nodes": torch.from_numpy(nodes), "table": torch.from_numpy(table)}


def problems(checkpoint: Checkpoint, num_nodes: int) -> Iterator[str]:
    """What is wrong with nodes and table, as they were read from a file."""
    nodes, table = checkpoint.weights["nodes"].numpy(), checkpoint.weights["table"]
    if nodes.dtype != np.int32 or nodes.ndim != 1 or not in_order(nodes, num_nodes):
        yield "the nodes of its table are not in order, or not in the graph"
    if tuple(table.shape) != (len(nodes), checkpoint.spec.embeddings.dim) or table.dtype != torch.float32:
        yield f"its table is {tuple(table.shape)}, not a row for each node"


def in_order(nodes: NDArray[Any], end: int) -> bool:
    """Whether ids rise, from 0 on, and stay below ``end``."""
    return not len(nodes) or bool(nodes[0] >= 0 and nodes[-1] < end and (nodes[1:] > nodes[:-1]).all())


def cover(checkpoint: Checkpoint, graph: Graph, nodes: Ragged, vectors: NDArray[np.float32] | None) -> Checkpoint:
    """The checkpoint with rows for nodes it has not met: the embeddings they had before training."""
    known = checkpoint.weights["nodes"].numpy()
    wanted = np.union1d(known, nodes.values).astype(np.int32)
    if len(wanted) == len(known):
        return checkpoint
    settings = checkpoint.spec.embeddings
    table = node_vectors(settings, wanted, num_nodes=graph.num_nodes, seed=checkpoint.spec.seed, table=vectors)
    table[np.searchsorted(wanted, known)] = checkpoint.weights["table"].numpy()
    added = {"nodes": torch.from_numpy(wanted), "table": torch.from_numpy(table)}
    return replace(checkpoint, weights=checkpoint.weights | added)


def places(checkpoint: Checkpoint, nodes: Ragged) -> Ragged:
    """Node sets as places in the table, which covers them."""
    found = np.searchsorted(checkpoint.weights["nodes"].numpy(), nodes.values)
    return Ragged(found.astype(np.int64), nodes.offsets)
