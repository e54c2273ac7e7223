"""Graphs with some edges more or fewer; a graph itself never changes."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from subgnn.data.graph import Graph
from subgnn.kernels.arrays import Array
from subgnn.kernels.build import undirected_csr
from subgnn.ragged import Ragged

_DRAWS = 1_000


def _keys(tails: Array, heads: Array, num_nodes: int) -> Array:
    """One number an edge, the same in both orientations."""
    return np.minimum(tails, heads).astype(np.int64) * num_nodes + np.maximum(tails, heads)


def with_edges(
    graph: Graph,
    tails: Array,
    heads: Array,
    *,
    num_nodes: int | None = None,
    removed: tuple[Array, Array] | None = None,
) -> Graph:
    """The union of the graph and more edges; an edge that is there already stays one edge.

    Args:
        graph: the graph.
        tails, heads: the new edges, in either orientation, repeats allowed.
        num_nodes: how many nodes the result has; by default as many as the graph.
        removed: tails and heads of edges of the graph that are to go.

    Example:
        >>> with_edges(Graph.from_edges([0], [1]), np.array([1, 1]), np.array([0, 2]), num_nodes=3).num_edges
        2
    """
    old_tails, old_heads, _ = graph.edges()
    if removed is not None:
        kept = np.ones(len(old_tails), np.bool_)
        n = graph.num_nodes
        kept[np.searchsorted(_keys(old_tails, old_heads, n), _keys(*removed, n))] = False
        old_tails, old_heads = old_tails[kept], old_heads[kept]
    offsets, neighbors, _, _ = undirected_csr(
        np.concatenate([old_tails, tails]),
        np.concatenate([old_heads, heads]),
        graph.num_nodes if num_nodes is None else num_nodes,
    )
    return Graph(offsets=offsets, neighbors=neighbors)


def owners(subgraphs: Ragged, num_nodes: int) -> Ragged:
    """For each node, the subgraphs it belongs to, rising.

    Example:
        >>> [row.tolist() for row in owners(Ragged.from_rows([[0, 2], [2]]), 3)]
        [[0], [], [0, 1]]
    """
    order = np.argsort(subgraphs.values, kind="stable")
    counts = np.bincount(subgraphs.values, minlength=num_nodes)
    return Ragged.from_lengths(subgraphs.row_ids[order].astype(np.int32), counts)


def joined(graph: Graph, subgraphs: Ragged, rng: np.random.Generator, *, regions: Array | None = None) -> Graph:
    """The graph with each part that is cut off tied to the largest by one edge that lies inside no subgraph.

    A part whose nodes share a subgraph with every other node stays as it is.

    Args:
        graph: the graph.
        subgraphs: node sets whose inside stays as it is.
        rng: where the draws come from.
        regions: a number for each node; the new edges stay within a region.
    """
    n = graph.num_nodes
    matrix = csr_array((np.ones(len(graph.neighbors), np.int8), graph.neighbors, graph.offsets), shape=(n, n))
    # Every edge is there in both directions, and strong components are found without a transposed copy.
    _, part = connected_components(matrix, connection="strong")
    sizes = np.bincount(part)
    if len(sizes) == 1:
        return graph
    largest = int(np.argmax(sizes))
    belongs = owners(subgraphs, n)
    # Of every part its first node is tied.
    firsts = np.unique(part, return_index=True)[1]
    tails, heads = [], []
    for tail in np.delete(firsts, largest).tolist():
        near = np.flatnonzero(part == largest if regions is None else (part == largest) & (regions == regions[tail]))
        barred = {node for s in belongs[tail] for node in subgraphs[int(s)].tolist()}
        head = _draw_outside(near, barred, rng)
        if head is not None:
            tails.append(tail)
            heads.append(head)
    return with_edges(graph, np.array(tails, np.int32), np.array(heads, np.int32))


def _draw_outside(nodes: Array, barred: set[int], rng: np.random.Generator) -> int | None:
    """A random node that is not barred; None if there is none."""
    for _ in range(_DRAWS if len(nodes) else 0):
        node = int(nodes[rng.integers(len(nodes))])
        if node not in barred:
            return node
    return next((node for node in nodes.tolist() if node not in barred), None)
