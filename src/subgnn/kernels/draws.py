"""Random numbers inside compiled loops, and samples of a graph: members, neighbours, nodes on walks, non-edges.

The generator is SplitMix64. A stream is a ``uint64`` array of one element, its state; every draw advances it. Streams
are keyed by their purpose (a node, a walk, a component), never by the thread, so a sample is a function of the graph,
the arguments and the key alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgnn.kernels.arrays import Array, Csr, Sets, compiled, compiled_parallel, csr, frozen, sets
from subgnn.kernels.induced import contains
from subgnn.ragged import Ragged

Key = int | Array
"""One key for all items, or one for each."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW_32 = np.uint64(0xFFFFFFFF)
_S27, _S30, _S31, _S32, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32), np.uint64(11)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53
_TRIES = 100  # at a pair that is not an edge


@compiled
def scramble(x: np.uint64) -> np.uint64:
    """The SplitMix64 finaliser: a bijection of 64-bit words that leaves no trace of the input's pattern."""
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@compiled
def open_stream(key: np.uint64, index: int) -> Array:
    """A fresh stream for item ``index`` under ``key``."""
    state = np.empty(1, np.uint64)
    state[0] = scramble(scramble(key) ^ scramble(np.uint64(index) * _GOLDEN + _MIX_1))
    return state


@compiled
def uniform_word(state: Array) -> np.uint64:
    """64 random bits."""
    state[0] += _GOLDEN
    return scramble(state[0])


@compiled
def uniform_unit(state: Array) -> float:
    """A float in [0, 1)."""
    return np.float64(uniform_word(state) >> _S11) * _TO_UNIT


@compiled
def uniform_below(state: Array, n: int) -> Any:
    """An integer in 0..n-1, exactly uniform (Lemire's multiply and reject), for 0 < n < 2^31."""
    bound = np.uint64(n)
    product = (uniform_word(state) >> _S32) * bound
    low = product & _LOW_32
    if low < bound:
        threshold = (np.uint64(0x100000000) - bound) % bound
        while low < threshold:
            product = (uniform_word(state) >> _S32) * bound
            low = product & _LOW_32
    return np.int64(product >> _S32)


@compiled
def _node_set_keys(key: np.uint64, family: Sets, out: Array) -> None:
    values, offsets = family
    for row in range(len(offsets) - 1):
        digest = scramble(key)
        for i in range(offsets[row], offsets[row + 1]):
            digest = scramble(digest + _GOLDEN + np.uint64(values[i]))
        out[row] = digest


def node_set_keys(key: int, rows: Ragged) -> Array:
    """One 64-bit key per sorted node set (rows,), of the set alone: no prediction depends on the batch."""
    out = np.empty(len(rows), np.uint64)
    _node_set_keys(np.uint64(key), sets(rows), out)
    return out


def item_keys(key: Key, items: int) -> Array:
    """The keys given for each item, or one for each made of a single key; a read-only uint64 array."""
    if isinstance(key, np.ndarray):
        return frozen(key, np.uint64)
    spread = np.empty(items, np.uint64)
    _spread(np.uint64(key), spread)
    return frozen(spread, np.uint64)


@compiled
def _spread(key: np.uint64, out: Array) -> None:
    for i in range(len(out)):
        out[i] = scramble(scramble(key) ^ scramble(np.uint64(i) * _GOLDEN + _MIX_2))


@compiled_parallel
def _sample_members(begin: int, end: int, family: Sets, keys: Array, out: Array) -> None:
    values, rows = family
    for r in range(begin, end):
        state = open_stream(keys[r], 0)
        for i in range(out.shape[1]):
            out[r, i] = values[rows[r] + uniform_below(state, rows[r + 1] - rows[r])]


def sample_members(rows: Ragged, *, draws: int, key: Key) -> Array:
    """Draw ``draws`` nodes uniformly, with replacement, from every set, none of them empty; (sets, draws) int32."""
    out = np.empty((len(rows), draws), np.int32)
    _sample_members(len(rows), sets(rows), item_keys(key, len(rows)), out)
    return out


@compiled_parallel
def _normal_rows(begin: int, end: int, key: np.uint64, nodes: Array, out: Array) -> None:
    for i in range(begin, end):
        state = open_stream(key, nodes[i])
        for j in range(0, out.shape[1], 2):
            # Box and Muller: two uniform numbers give two normal ones.
            radius = np.sqrt(-2.0 * np.log(1.0 - uniform_unit(state)))
            angle = 2.0 * np.pi * uniform_unit(state)
            out[i, j] = radius * np.cos(angle)
            if j + 1 < out.shape[1]:
                out[i, j + 1] = radius * np.sin(angle)


def normal_rows(key: int, nodes: Array, dim: int) -> Array:
    """Standard normal vectors of nodes (n, dim) float32, a function of the node and the key alone."""
    out = np.empty((len(nodes), dim), np.float32)
    _normal_rows(len(nodes), np.uint64(key), frozen(nodes, np.int64), out)
    return out


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


def sample_neighbors(offsets: Array, neighbors: Array, rows: Array, *, fraction: float, key: int) -> Block:
    """A uniform sample of ceil(fraction x degree) neighbours of each row, of the key and the node alone."""
    import pandas as pd

    wanted = frozen(rows, np.int32)
    degrees = (offsets[1:] - offsets[:-1])[wanted]
    starts = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum(np.minimum(np.ceil(fraction * degrees).astype(np.int64), degrees), out=starts[1:])
    entries = np.empty(int(starts[-1]), np.int32)
    _sample_rows(len(wanted), csr(offsets, neighbors), wanted, np.uint64(key), frozen(starts, np.int64), entries)
    places, nodes = pd.factorize(np.concatenate([wanted, entries]))  # in the order in which nodes are met
    return Block(starts, places[len(wanted) :].astype(np.int32), nodes)


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
    """The nodes met by simple random walks from uniform roots, sorted; a walk that cannot go on stays where it is."""
    out = np.empty((roots, length + 1), np.int32)
    _visit(roots, csr(offsets, neighbors), item_keys(key, roots), length, out)
    seen = np.zeros(len(offsets) - 1, np.bool_)
    seen[out.reshape(-1)] = True
    return np.flatnonzero(seen).astype(np.int32)


def induced_block(offsets: Array, neighbors: Array, members: Array) -> tuple[Block, Array]:
    """The subgraph induced by a large sorted set of nodes, and the place in ``neighbors`` of each of its entries."""
    nodes = frozen(members, np.int32)
    place = np.full(len(offsets) - 1, -1, np.int32)
    place[nodes] = np.arange(len(nodes), dtype=np.int32)
    rows = Ragged(neighbors, offsets).take(nodes)
    inside = place[rows.values] >= 0
    entries = (np.repeat(offsets[nodes] - rows.offsets[:-1], rows.lengths) + np.arange(len(rows.values)))[inside]
    return Block(np.append(0, np.cumsum(inside))[rows.offsets], place[rows.values[inside]], nodes), entries


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
    """Uniform ordered pairs (2, pairs) of different nodes that no edge joins, with replacement, as places in ``nodes``.

    A node that occurs twice is drawn twice as often. Fewer pairs are returned if nearly all are edges.
    """
    out, found = np.empty((2, pairs), np.int32), np.zeros(pairs, np.bool_)
    if len(nodes) > 1:
        _draw_non_edges(pairs, csr(offsets, neighbors), frozen(nodes, np.int32), item_keys(key, pairs), out, found)
    return np.ascontiguousarray(out[:, found])
