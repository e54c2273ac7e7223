"""Add and remove edges of a graph, also at the borders of subgraphs.

A :class:`~subgnn.data.graph.Graph` is immutable: every function returns a new one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from subgnn.data.graph import Graph
from subgnn.data.synthetic.base_graphs import stream_word
from subgnn.errors import DataError
from subgnn.kernels import shapes
from subgnn.kernels.arrays import Array, compiled, csr, frozen, sets
from subgnn.kernels.build_csr import undirected_csr
from subgnn.kernels.draws import open_stream, uniform_below
from subgnn.kernels.induced import contains
from subgnn.ragged import Ragged


def _keys(tails: Array, heads: Array, num_nodes: int) -> Array:
    """One number for each edge, the same in both orientations."""
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
        removed: tails and heads of edges of the graph to remove.

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


def subgraphs_of_nodes(subgraphs: Ragged, num_nodes: int) -> Ragged:
    """For each node, the subgraphs it belongs to, in ascending order.

    Example:
        >>> [row.tolist() for row in subgraphs_of_nodes(Ragged.from_rows([[0, 2], [2]]), 3)]
        [[0], [], [0, 1]]
    """
    order = np.argsort(subgraphs.values, kind="stable")
    counts = np.bincount(subgraphs.values, minlength=num_nodes)
    return Ragged.from_lengths(subgraphs.row_ids[order].astype(np.int32), counts)


def _parts(graph: Graph) -> Array:
    """The number of the connected part that each node is in."""
    n = graph.num_nodes
    matrix = csr_array((np.ones(len(graph.neighbors), np.int8), graph.neighbors, graph.offsets), shape=(n, n))
    # Every edge is there in both directions, and strong components are found without a transposed copy.
    part: Array = connected_components(matrix, connection="strong")[1]
    return part


def largest_part(graph: Graph, subgraphs: Ragged) -> tuple[Graph, Ragged]:
    """The largest connected part of a graph and what subgraphs have in it, nodes of both renumbered in one way.

    Example:
        >>> g, s = largest_part(Graph.from_edges([1, 2], [2, 3], num_nodes=4), Ragged.from_rows([[0, 1], [2, 3]]))
        >>> g.num_nodes, [row.tolist() for row in s]
        (3, [[0], [1, 2]])
    """
    part = _parts(graph)
    kept = part == np.argmax(np.bincount(part))
    if kept.all():
        return graph, subgraphs
    ids = (np.cumsum(kept) - 1).astype(np.int32)
    tails, heads, _ = graph.edges()
    inside = kept[tails]
    inner = kept[subgraphs.values]
    lengths = np.bincount(subgraphs.row_ids[inner], minlength=len(subgraphs))
    small = Graph.from_edges(ids[tails[inside]], ids[heads[inside]], num_nodes=int(kept.sum()))
    return small, Ragged.from_lengths(ids[subgraphs.values[inner]], lengths)


_PARTNER_DRAWS = 64  # random partners tried before only nodes of no subgraph are looked at


@compiled
def _all_short(owned: Array, lo: int, hi: int, short: Array) -> bool:
    """Whether every subgraph in ``owned[lo:hi]`` still lacks an edge."""
    for j in range(lo, hi):  # noqa: SIM110
        if short[owned[j]] == 0:
            return False
    return True


@compiled
def _share(owned: Array, begin: Array, u: int, v: int) -> bool:
    """Whether two nodes lie in one subgraph; both lists of subgraphs are sorted."""
    i, j = begin[u], begin[v]
    while i < begin[u + 1] and j < begin[v + 1]:
        if owned[i] == owned[j]:
            return True
        if owned[i] < owned[j]:
            i += 1
        else:
            j += 1
    return False


@compiled
def _find_partner(
    u: Any, graph: tuple[Array, Array], members: tuple[Array, Array, Array], short: Array, added: set[Any], state: Array
) -> Any:
    """A node that an edge from ``u`` can lead to without giving a subgraph more than it lacks; -1 if there is none."""
    (offsets, neighbors), (owned, begin, free) = graph, members
    n = len(offsets) - 1
    start = uniform_below(state, len(free)) if len(free) else 0
    for t in range(_PARTNER_DRAWS + len(free)):
        v = uniform_below(state, n) if t < _PARTNER_DRAWS else free[(start + t) % len(free)]
        if v == u or _share(owned, begin, u, v) or not _all_short(owned, begin[v], begin[v + 1], short):
            continue
        key = min(u, v) * n + max(u, v)
        if key not in added and not contains(neighbors, offsets[u], offsets[u + 1], v):
            return v
    return -1


@compiled
def _draw_border_edges(
    graph: tuple[Array, Array],
    subgraphs: tuple[Array, Array],
    members: tuple[Array, Array, Array],
    short: Array,
    key: np.uint64,
) -> tuple[Array, Array]:
    """Draw edges round by round, one for each subgraph that is short of edges; ``short`` ends at what is missing.

    ``members`` is, for each node, the subgraphs it belongs to (values and offsets), and the nodes of no subgraph.
    """
    (offsets, _), (values, rows), (owned, begin, _) = graph, subgraphs, members
    n, count = len(offsets) - 1, len(rows) - 1
    state = open_stream(key, 0)
    room = 1024
    tails, heads = np.empty(room, np.int32), np.empty(room, np.int32)
    added: set[Any] = {np.int64(-1)}
    total, stuck = 0, np.zeros(count, np.bool_)
    going = True
    while going:
        going = False
        for s in range(count):
            if short[s] == 0 or stuck[s]:
                continue
            size = rows[s + 1] - rows[s]
            start = uniform_below(state, size)
            u, v = np.int64(-1), np.int64(-1)
            for t in range(size):
                u = np.int64(values[rows[s] + (start + t) % size])
                if _all_short(owned, begin[u], begin[u + 1], short):
                    v = _find_partner(u, graph, members, short, added, state)
                    if v >= 0:
                        break
            if v < 0:
                stuck[s] = True
                continue
            if total == room:
                room *= 2
                tails, heads = np.append(tails, np.empty_like(tails)), np.append(heads, np.empty_like(heads))
            tails[total], heads[total] = u, v
            total += 1
            added.add(min(u, v) * n + max(u, v))
            for w in (u, v):
                for j in range(begin[w], begin[w + 1]):
                    short[owned[j]] -= 1
            going = True
    return tails[:total], heads[:total]


def add_border_edges(graph: Graph, subgraphs: Ragged, missing: Array, rng: np.random.Generator) -> Graph:
    """Add edges such that exactly ``missing[i]`` more leave subgraph i; internal edges stay as they are.

    An edge leads from a random node of a subgraph to a random node outside, and counts for every subgraph that either
    end belongs to.

    Raises:
        DataError: where there are not enough pairs left; the message says how many edges could be added.

    Example:
        >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> g = add_border_edges(path, Ragged.from_rows([[0, 1]]), np.array([2]), np.random.default_rng(0))
        >>> g.num_edges
        5
    """
    belongs = subgraphs_of_nodes(subgraphs, graph.num_nodes)
    free = np.flatnonzero(belongs.lengths == 0)
    short = np.array(missing, np.int64)
    members = (*sets(belongs), frozen(free, np.int64))
    tails, heads = _draw_border_edges(csr(*graph.csr), sets(subgraphs), members, short, stream_word(rng))
    if short.any():
        worst = int(np.argmax(short))
        shape = shapes(*graph.csr, subgraphs)
        asked, possible = int(missing[worst]), int(missing[worst] - short[worst])
        most = (shape.cut_edges[worst] + possible) / (shape.nodes[worst] * (graph.num_nodes - shape.nodes[worst]))
        what = f"{asked:,} more edges should leave subgraph {worst}, and {possible:,} can"
        hint = f"its cut ratio can be {most:.5f}; lower the largest target, or use fewer or smaller subgraphs"
        raise DataError(what, where="cut ratio", hint=hint)
    return with_edges(graph, tails, heads)
