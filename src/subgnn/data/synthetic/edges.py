"""Add and remove edges of a graph: inside subgraphs, at their borders, and between parts that are not connected.

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

_DRAWS = 1_000  # random nodes tried before all are looked at


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


def connect_parts(graph: Graph, subgraphs: Ragged, rng: np.random.Generator, *, regions: Array) -> Graph:
    """Connect each part of the graph to its largest part by one edge that lies inside no subgraph.

    A part whose nodes share a subgraph with every other node stays disconnected.

    Args:
        subgraphs: node sets whose internal edges stay as they are.
        regions: a number for each node; the new edges stay within a region.
    """
    part = _parts(graph)
    sizes = np.bincount(part)
    if len(sizes) == 1:
        return graph
    largest = int(np.argmax(sizes))
    belongs = subgraphs_of_nodes(subgraphs, graph.num_nodes)
    # The first node of every part gets the edge.
    firsts = np.unique(part, return_index=True)[1]
    tails, heads = [], []
    for tail in np.delete(firsts, largest).tolist():
        near = np.flatnonzero((part == largest) & (regions == regions[tail]))
        excluded = {node for s in belongs[tail] for node in subgraphs[int(s)].tolist()}
        head = _draw_outside(near, excluded, rng)
        if head is not None:
            tails.append(tail)
            heads.append(head)
    return with_edges(graph, np.array(tails, np.int32), np.array(heads, np.int32))


def _draw_outside(nodes: Array, excluded: set[int], rng: np.random.Generator) -> int | None:
    """A random node that is not excluded; None if there is none."""
    for _ in range(_DRAWS if len(nodes) else 0):
        node = int(nodes[rng.integers(len(nodes))])
        if node not in excluded:
            return node
    return next((node for node in nodes.tolist() if node not in excluded), None)


@compiled
def _choose_pairs(
    graph: tuple[Array, Array], subgraphs: tuple[Array, Array], wanted: Array, key: np.uint64, room: int
) -> tuple[Array, Array, Array]:
    """Pairs of nodes whose edge is to be added (sign 1) or removed (sign -1)."""
    (offsets, neighbors), (values, rows) = graph, subgraphs
    tails, heads, signs = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int8)
    count = 0
    for s in range(len(rows) - 1):
        state = open_stream(key, s)
        members = values[rows[s] : rows[s + 1]]
        size = len(members)
        pairs = size * (size - 1) // 2
        # Pairs with an edge are gathered from the front, those without from the back.
        first, second = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
        present, absent = 0, 0
        for i in range(size):
            for j in range(i + 1, size):
                u, v = members[i], members[j]
                if contains(neighbors, offsets[u], offsets[u + 1], v):
                    at = present
                    present += 1
                else:
                    absent += 1
                    at = pairs - absent
                first[at], second[at] = u, v
        sign = 1 if present < wanted[s] else -1
        lo = present if sign == 1 else 0
        left = absent if sign == 1 else present
        for _ in range(abs(wanted[s] - present)):
            j = lo + uniform_below(state, left)
            left -= 1
            tails[count], heads[count], signs[count] = first[j], second[j], sign
            first[j], second[j] = first[lo + left], second[lo + left]
            count += 1
    return tails[:count], heads[:count], signs[:count]


def set_internal_edges(graph: Graph, subgraphs: Ragged, wanted: Array, rng: np.random.Generator) -> Graph:
    """Give subgraph i ``wanted[i]`` internal edges: pairs drawn at random gain or lose their edge.

    Any two subgraphs may share one node at most.

    Example:
        >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
        >>> g = set_internal_edges(path, Ragged.from_rows([[0, 1, 2]]), np.array([3]), np.random.default_rng(0))
        >>> g.neighbors_of(0).tolist(), g.num_edges
        ([1, 2], 4)
    """
    room = int(np.abs(wanted - shapes(*graph.csr, subgraphs).edges).sum())
    tails, heads, signs = _choose_pairs(
        csr(*graph.csr), sets(subgraphs), frozen(wanted, np.int64), stream_word(rng), room
    )
    gains, loses = signs > 0, signs < 0
    return with_edges(graph, tails[gains], heads[gains], removed=(tails[loses], heads[loses]))


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
