"""Samples of a large graph for training on it: neighbours, nodes on walks, pairs that are not edges.

Random numbers are keyed by the node, walk or pair they are for, never by the thread, so a sample is a function of the
graph, the arguments and the key alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgnn.kernels.arrays import Array, Csr, compiled, compiled_parallel, csr, frozen
from subgnn.kernels.draws import item_keys, open_stream, uniform_below
from subgnn.kernels.induced import contains, lower_bound

_TRIES = 100


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows of a graph, its nodes renumbered: the input of one layer that computes the vectors of some nodes.

    Shapes:
        offsets: (rows + 1,) int64. columns: (entries,) int32, places in nodes.
        nodes: (n,) int32, ids in the graph; the first ones are the rows themselves, in their order.
    """

    offsets: Array
    columns: Array
    nodes: Array


@compiled_parallel
def _sample_rows(begin: int, end: int, graph: Csr, rows: Array, key: np.uint64, starts: Array, out: Array) -> None:
    offsets, neighbors = graph
    for r in range(begin, end):
        lo, hi = offsets[rows[r]], offsets[rows[r] + 1]
        state = open_stream(key, rows[r])
        place, left = starts[r], starts[r + 1] - starts[r]
        # Selection sampling (Knuth, volume 2, 3.4.2 S): each subset of the wanted size is equally likely.
        for e in range(lo, hi):
            if left == hi - e or uniform_below(state, hi - e) < left:
                out[place] = neighbors[e]
                place += 1
                left -= 1
                if left == 0:
                    break


@compiled
def _number(rows: Array, entries: Array, num_nodes: int, columns: Array) -> Array:
    """Number the rows first, then other nodes as they are met; fills ``columns`` and returns the nodes."""
    place = np.full(num_nodes, -1, np.int32)
    nodes = np.empty(min(num_nodes, len(rows) + len(entries)), np.int32)
    count = 0
    for v in rows:
        place[v] = count
        nodes[count] = v
        count += 1
    for i in range(len(entries)):
        v = entries[i]
        if place[v] < 0:
            place[v] = count
            nodes[count] = v
            count += 1
        columns[i] = place[v]
    return nodes[:count]


def sample_neighbors(offsets: Array, neighbors: Array, rows: Array, *, fraction: float, key: int) -> Block:
    """A uniform sample, without replacement, of ceil(fraction x degree) neighbours of each of the rows.

    Args:
        rows: nodes, each once.
        key: a stream key; the draw for a node depends on the key and the node alone.
    """
    wanted = frozen(rows, np.int32)
    degrees = (offsets[1:] - offsets[:-1])[wanted]
    starts = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum(np.minimum(np.ceil(fraction * degrees).astype(np.int64), degrees), out=starts[1:])
    entries = np.empty(int(starts[-1]), np.int32)
    _sample_rows(len(wanted), csr(offsets, neighbors), wanted, np.uint64(key), frozen(starts, np.int64), entries)
    columns = np.empty(len(entries), np.int32)
    nodes = _number(wanted, frozen(entries, np.int32), len(offsets) - 1, columns)
    return Block(starts, columns, nodes)


@compiled_parallel
def _find_entries(begin: int, end: int, graph: Csr, tails: Array, heads: Array, out: Array) -> None:
    offsets, neighbors = graph
    for i in range(begin, end):
        out[i] = lower_bound(neighbors, offsets[tails[i]], offsets[tails[i] + 1], heads[i])


def find_entries(offsets: Array, neighbors: Array, tails: Array, heads: Array) -> Array:
    """The places in ``neighbors`` of edges that are there.

    Shapes:
        tails, heads, returns: (edges,), the last int64.
    """
    out = np.empty(len(tails), np.int64)
    _find_entries(len(tails), csr(offsets, neighbors), frozen(tails, np.int32), frozen(heads, np.int32), out)
    return out


@compiled_parallel
def _visit(begin: int, end: int, graph: Csr, keys: Array, length: int, out: Array) -> None:
    offsets, neighbors = graph
    n = len(offsets) - 1
    for w in range(begin, end):
        state = open_stream(keys[w], 0)
        node = uniform_below(state, n)
        out[w, 0] = node
        for t in range(1, length + 1):
            lo, hi = offsets[node], offsets[node + 1]
            if lo < hi:
                node = neighbors[lo + uniform_below(state, hi - lo)]
            out[w, t] = node


def walk_nodes(offsets: Array, neighbors: Array, *, roots: int, length: int, key: int) -> Array:
    """The nodes met by simple random walks of ``length`` steps from uniform roots, sorted, each once.

    A walk that cannot go on stays where it is (GraphSAINT, Zeng et al., 2020, algorithm 4).
    """
    out = np.empty((roots, length + 1), np.int32)
    _visit(roots, csr(offsets, neighbors), item_keys(key, roots), length, out)
    seen = np.zeros(len(offsets) - 1, np.bool_)
    seen[out.reshape(-1)] = True
    return np.flatnonzero(seen).astype(np.int32)


@compiled_parallel
def _count_inside(begin: int, end: int, graph: Csr, members: Array, place: Array, counts: Array) -> None:
    offsets, neighbors = graph
    for r in range(begin, end):
        count = 0
        for e in range(offsets[members[r]], offsets[members[r] + 1]):
            count += place[neighbors[e]] >= 0
        counts[r] = count


@compiled_parallel
def _fill_inside(
    begin: int, end: int, graph: Csr, members: Array, place: Array, starts: Array, columns: Array, entries: Array
) -> None:
    offsets, neighbors = graph
    for r in range(begin, end):
        i = starts[r]
        for e in range(offsets[members[r]], offsets[members[r] + 1]):
            if place[neighbors[e]] >= 0:
                columns[i], entries[i] = place[neighbors[e]], e
                i += 1


def induced_block(offsets: Array, neighbors: Array, members: Array) -> tuple[Block, Array]:
    """The subgraph induced by a large set of nodes, in time of the sum of their degrees.

    Args:
        members: nodes, sorted, each once.

    Returns:
        The block, whose rows and nodes are the members, and for each of its entries the place in ``neighbors``.
    """
    nodes = frozen(members, np.int32)
    place = np.full(len(offsets) - 1, -1, np.int32)
    place[nodes] = np.arange(len(nodes), dtype=np.int32)
    counts, starts = np.empty(len(nodes), np.int64), np.zeros(len(nodes) + 1, np.int64)
    graph, known = csr(offsets, neighbors), frozen(place, np.int32)
    _count_inside(len(nodes), graph, nodes, known, counts)
    np.cumsum(counts, out=starts[1:])
    columns, entries = np.empty(int(starts[-1]), np.int32), np.empty(int(starts[-1]), np.int64)
    _fill_inside(len(nodes), graph, nodes, known, frozen(starts, np.int64), columns, entries)
    return Block(starts, columns, nodes), entries


@compiled_parallel
def _draw_non_edges(begin: int, end: int, graph: Csr, nodes: Array, keys: Array, out: Array, found: Array) -> None:
    offsets, neighbors = graph
    for i in range(begin, end):
        state = open_stream(keys[i], 0)
        for _ in range(_TRIES):
            a, b = uniform_below(state, len(nodes)), uniform_below(state, len(nodes))
            u, v = nodes[a], nodes[b]
            if u != v and not contains(neighbors, offsets[u], offsets[u + 1], v):
                out[0, i], out[1, i] = a, b
                found[i] = True
                break


def sample_non_edges(offsets: Array, neighbors: Array, nodes: Array, *, pairs: int, key: int) -> Array:
    """Uniform ordered pairs of different nodes that no edge joins, with replacement.

    With the neighbours of a graph for nodes, ends are drawn by degree, as those of its edges are.

    Args:
        nodes: drawn from, with repeats; a node that occurs twice is drawn twice as often.
        pairs: how many; fewer are returned if nearly all pairs are edges.

    Shapes:
        returns: (2, at most pairs) int32, places in nodes.
    """
    out, found = np.empty((2, pairs), np.int32), np.zeros(pairs, np.bool_)
    if len(nodes) > 1:
        _draw_non_edges(pairs, csr(offsets, neighbors), frozen(nodes, np.int32), item_keys(key, pairs), out, found)
    return np.ascontiguousarray(out[:, found])
