"""Breadth-first search from many sources at once, 64 sources a machine word.

Bit ``s`` of ``seen[v]`` says that source ``s`` has reached node ``v``; bit ``s`` of ``front[v]`` that it did so at the
last level. One pass over the edges then advances 64 searches. A level is pushed along out-edges of the few active
nodes, or pulled along in-edges of the nodes that some source has still to reach, whichever touches fewer edges.

Memory is 32 bytes a node and thread, and one int32 for each wanted pair: never N x N.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, csr, frozen
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.ragged import Ragged

WORD = 64
BYTES_A_NODE = 32
UNREACHED = -1
_NO_LIMIT = np.iinfo(np.int32).max
_PUSH_ADVANTAGE = 4  # a pulled edge is cheaper than a pushed one: sequential writes, and rows are left early


@compiled
def _popcount(x: np.uint64) -> Any:
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _start(sources: Array, seen: Array, front: Array, queue: Array) -> int:
    """Put source ``s`` at its node; returns the number of active nodes."""
    count = 0
    for s in range(len(sources)):
        v = sources[s]
        if front[v] == 0:
            queue[count] = v
            count += 1
        front[v] |= np.uint64(1) << np.uint64(s)
        seen[v] = front[v]
    return count


@compiled
def _advance(
    out_offsets: Array,
    out_neighbors: Array,
    in_offsets: Array,
    in_neighbors: Array,
    full: np.uint64,
    seen: Array,
    front: Array,
    reached: Array,
    queue: Array,
    count: int,
) -> int:
    """One level: fills ``front`` and ``queue`` with what is newly reached, and returns how many nodes that is."""
    n = len(seen)
    push_cost = 0
    for i in range(count):
        push_cost += out_offsets[queue[i] + 1] - out_offsets[queue[i]]
    pull_cost = n
    if push_cost * _PUSH_ADVANTAGE > n:
        for v in range(n):
            if seen[v] != full:
                pull_cost += in_offsets[v + 1] - in_offsets[v]
    found = 0
    if push_cost * _PUSH_ADVANTAGE <= pull_cost:
        # Newly reached nodes go behind the active ones in the same queue: there is room for both.
        for i in range(count):
            v = queue[i]
            bits = front[v]
            for e in range(out_offsets[v], out_offsets[v + 1]):
                u = out_neighbors[e]
                new = bits & ~seen[u]
                if new != 0:
                    if reached[u] == 0:
                        queue[n + found] = u
                        found += 1
                    reached[u] |= new
    else:
        for u in range(n):
            missing = full & ~seen[u]
            if missing != 0:
                new = np.uint64(0)
                for e in range(in_offsets[u], in_offsets[u + 1]):
                    new |= front[in_neighbors[e]]
                    if new & missing == missing:
                        break
                new &= missing
                if new != 0:
                    reached[u] = new
                    queue[n + found] = u
                    found += 1
    for i in range(count):
        front[queue[i]] = 0
    for i in range(found):
        u = queue[n + i]
        queue[i] = u
        front[u] = reached[u]
        seen[u] |= reached[u]
        reached[u] = 0
    return found


@compiled
def _full_word(bits: int) -> np.uint64:
    if bits == 64:
        return ~np.uint64(0)
    return (np.uint64(1) << np.uint64(bits)) - np.uint64(1)


@compiled_parallel
def _hop_distances(
    out_offsets: Array,
    out_neighbors: Array,
    in_offsets: Array,
    in_neighbors: Array,
    sources: Array,
    targets: Array,
    bounds: Array,
    max_depth: int,
    out: Array,
) -> None:
    n = len(out_offsets) - 1
    for t in prange(len(targets)):
        out[t] = UNREACHED
    for w in prange(len(bounds) - 1):
        lo, hi = bounds[w], bounds[w + 1]
        seen, front, reached = np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        queue = np.empty(2 * n, np.int32)
        full = _full_word(hi - lo)
        count = _start(sources[lo:hi], seen, front, queue)
        open_pairs = (hi - lo) * len(targets)
        depth = 0
        while True:
            for t in range(len(targets)):
                bits = front[targets[t]]
                if bits != 0:
                    open_pairs -= _popcount(bits)
                    for s in range(hi - lo):
                        if (bits >> np.uint64(s)) & np.uint64(1):
                            out[t, lo + s] = depth
            if open_pairs == 0 or count == 0 or depth >= max_depth:
                break
            depth += 1
            count = _advance(
                out_offsets, out_neighbors, in_offsets, in_neighbors, full, seen, front, reached, queue, count
            )


@compiled_parallel
def _pair_distances(
    out_offsets: Array,
    out_neighbors: Array,
    in_offsets: Array,
    in_neighbors: Array,
    sources: Array,
    values: Array,
    rows: Array,
    bounds: Array,
    max_depth: int,
    out: Array,
) -> None:
    n = len(out_offsets) - 1
    for w in prange(len(bounds) - 1):
        lo, hi = bounds[w], bounds[w + 1]
        seen, front, reached = np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        queue = np.empty(2 * n, np.int32)
        full = _full_word(hi - lo)
        count = _start(sources[lo:hi], seen, front, queue)
        pending = rows[hi] - rows[lo]
        place, bit = np.empty(pending, np.int64), np.empty(pending, np.uint64)
        for s in range(lo, hi):
            for i in range(rows[s], rows[s + 1]):
                place[i - rows[lo]] = i
                bit[i - rows[lo]] = np.uint64(1) << np.uint64(s - lo)
        depth = 0
        while True:
            kept = 0
            for p in range(pending):
                if front[values[place[p]]] & bit[p]:
                    out[place[p]] = depth
                else:
                    place[kept], bit[kept] = place[p], bit[p]
                    kept += 1
            pending = kept
            if pending == 0 or count == 0 or depth >= max_depth:
                break
            depth += 1
            count = _advance(
                out_offsets, out_neighbors, in_offsets, in_neighbors, full, seen, front, reached, queue, count
            )


def _word_bounds(num_sources: int) -> Array:
    """Cut the sources into as few words as hold them, evenly."""
    words = -(-num_sources // WORD)
    return frozen(np.linspace(0, num_sources, words + 1).round(), np.int64) if words else frozen([0], np.int64)


def _both_ways(
    offsets: Array, neighbors: Array, reverse: tuple[Array, Array] | None
) -> tuple[Array, Array, Array, Array]:
    forward = csr(offsets, neighbors)
    return (*forward, *(forward if reverse is None else csr(*reverse)))


def hop_distances(
    offsets: Array,
    neighbors: Array,
    sources: Array,
    targets: Array | None = None,
    *,
    max_depth: int | None = None,
    reverse: tuple[Array, Array] | None = None,
) -> Array:
    """Hop distance from every source to every target; -1 where there is no path, or none within ``max_depth``.

    Args:
        offsets, neighbors: the graph; for a directed one, its out-edges.
        sources: nodes to start from, repeats allowed.
        targets: nodes to read off; all nodes when not given. The search stops once they are all reached.
        max_depth: do not look further than this.
        reverse: offsets and neighbors of the in-edges, for a directed graph.

    Shapes:
        sources: (S,). targets: (T,). returns: (S, T) int32, a transposed view.

    Example:
        A path 0 - 1 - 2 and an isolated node 3.

        >>> hop_distances(np.array([0, 1, 3, 4, 4]), np.array([1, 0, 2, 1]), np.array([0, 2])).tolist()
        [[0, 1, 2, -1], [2, 1, 0, -1]]
    """
    sources = frozen(sources, np.int32)
    wanted = frozen(np.arange(len(offsets) - 1) if targets is None else targets, np.int32)
    out = np.empty((len(wanted), len(sources)), np.int32)
    limit = _NO_LIMIT if max_depth is None else max_depth
    if out.size:
        _hop_distances(
            *_both_ways(offsets, neighbors, reverse), sources, wanted, _word_bounds(len(sources)), limit, out
        )
    return out.T


def pair_distances(
    offsets: Array,
    neighbors: Array,
    sources: Array,
    targets: Ragged,
    *,
    max_depth: int | None = None,
    reverse: tuple[Array, Array] | None = None,
) -> Ragged:
    """Hop distance from each source to targets of its own; -1 where there is no path, or none within ``max_depth``.

    The searches of a word stop as soon as all their wanted pairs are reached.

    Args:
        sources: nodes to start from, repeats allowed.
        targets: row ``s`` holds the nodes wanted from source ``s``, in any order.
        max_depth, reverse: as in :func:`hop_distances`.

    Returns:
        Distances laid out as ``targets``, int32.
    """
    sources = frozen(sources, np.int32)
    out = np.full(len(targets.values), UNREACHED, np.int32)
    limit = _NO_LIMIT if max_depth is None else max_depth
    values, rows = frozen(targets.values, np.int32), frozen(targets.offsets, np.int64)
    if out.size:
        _pair_distances(
            *_both_ways(offsets, neighbors, reverse), sources, values, rows, _word_bounds(len(sources)), limit, out
        )
    return Ragged(out, targets.offsets)
