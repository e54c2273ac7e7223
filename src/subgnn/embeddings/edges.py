"""Edges to learn from, edges held out, and pairs that are no edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.kernels.build_csr import undirected_csr
from subgnn.kernels.sampling import sample_non_edges
from subgnn.rng import stream, stream_key


@dataclass(frozen=True, slots=True, eq=False)
class EdgeSplit:
    """A graph cut for link prediction.

    offsets and neighbors are the message-passing graph: the training edges, each in both directions. A held-out edge is
    in neither, and it is no training example; val_non_edges are as many pairs that no edge of the whole graph joins,
    uniform ones, and val_matched others, of nodes drawn by degree: degrees alone tell the first from edges, not these.

    Shapes:
        train: (2, n). val, val_non_edges, val_matched: (2, m). All int32.
    """

    offsets: NDArray[np.int64]
    neighbors: NDArray[np.int32]
    train: NDArray[np.int32]
    val: NDArray[np.int32]
    val_non_edges: NDArray[np.int32]
    val_matched: NDArray[np.int32]

    @property
    def csr(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The message-passing graph, as the kernels take it."""
        return self.offsets, self.neighbors


def split_edges(graph: Graph, *, val_fraction: float, seed: int) -> EdgeSplit:
    """Hold out a uniform part of the edges.

    Args:
        graph: undirected.
        val_fraction: of the edges; one at least is held out, and one at least is left.

    Raises:
        DataError: where the graph has fewer than two edges, or no two nodes without one.
    """
    tails, heads, _ = graph.edges()
    edges = np.stack([tails, heads])
    count = edges.shape[1]
    if count < 2:
        raise DataError(f"a graph of {count} edges", where="pretrain", hint="learning and selection need one edge each")
    held_out = min(max(1, round(val_fraction * count)), count - 1)
    order = stream(seed, "pretrain/split").permutation(count)
    val, train = edges[:, order[:held_out]], edges[:, np.sort(order[held_out:])]
    everyone = np.arange(graph.num_nodes, dtype=np.int32)
    pairs = sample_non_edges(*graph.csr, everyone, pairs=held_out, key=stream_key(seed, "pretrain/val"))
    matched = sample_non_edges(*graph.csr, graph.neighbors, pairs=held_out, key=stream_key(seed, "pretrain/matched"))
    if not pairs.shape[1]:
        what = "hardly two nodes without an edge between them"
        raise DataError(what, where="pretrain", hint="link prediction has nothing to tell apart in a complete graph")
    offsets, neighbors, _, _ = undirected_csr(train[0], train[1], graph.num_nodes)
    return EdgeSplit(offsets, neighbors, train, val, pairs, graph.neighbors[matched])
