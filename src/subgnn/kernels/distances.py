"""Hop distances by breadth-first search from many sources at once, 64 sources a machine word.

Bit ``s`` of ``seen[v]`` says that source ``s`` has reached node ``v``; bit ``s`` of ``front[v]`` that it did so at the
last level. One pass over the edges then advances 64 searches. A level is pushed along out-edges of the few active
nodes, or pulled along in-edges of the nodes that some source has still to reach, whichever touches fewer edges.

Memory is 32 bytes a node and thread, and one int32 for each wanted pair: never N x N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgnn.kernels.arrays import Array, Csr, Sets, compiled, compiled_parallel, csr, even_bounds, frozen, sets
from subgnn.ragged import Ragged

WORD = 64
BYTES_A_NODE = 32
UNREACHED = -1
DEEPEST, NO_PATH = 253, 255
"""The most hops that :func:`hops_to_all` counts, and its mark of a pair without a path."""
_ROWS = 2**16
_NO_LIMIT = np.iinfo(np.int32).max
Search = tuple[Array, Array, Array]
"""The words ``seen``, ``front`` and ``reached`` (newly, at this level) of every node."""
_PUSH_ADVANTAGE = 4  # a pulled edge is cheaper than a pushed one: sequential writes, and rows are left early


@compiled
def _popcount(x: np.uint64) -> Any:
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _start(sources: Array, search: Search, queue: Array) -> int:
    """Put source ``s`` at its node; returns the number of active nodes."""
    seen, front, _ = search
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
def _advance(graph: Csr, reverse: Csr, full: np.uint64, search: Search, queue: Array, count: int) -> int:
    """Advance by one level: fill ``front`` and ``queue`` with the newly reached nodes, and return their number."""
    out_offsets, out_neighbors = graph
    in_offsets, in_neighbors = reverse
    seen, front, reached = search
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
    begin: int, end: int, graph: Csr, reverse: Csr, sources: Array, targets: Array, max_depth: int, out: Array
) -> None:
    n = len(graph[0]) - 1
    search = np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    front = search[1]
    queue = np.empty(2 * n, np.int32)
    full = _full_word(end - begin)
    count = _start(sources[begin:end], search, queue)
    open_pairs = (end - begin) * len(targets)
    depth = 0
    while True:
        for t in range(len(targets)):
            bits = front[targets[t]]
            if bits != 0:
                open_pairs -= _popcount(bits)
                for s in range(end - begin):
                    if (bits >> np.uint64(s)) & np.uint64(1):
                        out[t, begin + s] = depth
        if open_pairs == 0 or count == 0 or depth >= max_depth:
            break
        depth += 1
        count = _advance(graph, reverse, full, search, queue, count)


@compiled_parallel
def _pair_distances(
    begin: int, end: int, graph: Csr, reverse: Csr, sources: Array, targets: Sets, max_depth: int, out: Array
) -> None:
    n = len(graph[0]) - 1
    values, rows = targets
    search = np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    front = search[1]
    queue = np.empty(2 * n, np.int32)
    full = _full_word(end - begin)
    count = _start(sources[begin:end], search, queue)
    pending = rows[end] - rows[begin]
    place, bit = np.empty(pending, np.int64), np.empty(pending, np.uint64)
    for s in range(begin, end):
        for i in range(rows[s], rows[s + 1]):
            place[i - rows[begin]] = i
            bit[i - rows[begin]] = np.uint64(1) << np.uint64(s - begin)
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
        count = _advance(graph, reverse, full, search, queue, count)


def _word_bounds(num_sources: int) -> Array:
    """Cut the sources into as few words as hold them, evenly."""
    return even_bounds(num_sources, -(-num_sources // WORD)) if num_sources else frozen([0], np.int64)


def hop_distances(
    offsets: Array,
    neighbors: Array,
    sources: Array,
    targets: Array | None = None,
    *,
    max_depth: int | None = None,
    reverse: Csr | None = None,
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
    out = np.full((len(wanted), len(sources)), UNREACHED, np.int32)
    limit = _NO_LIMIT if max_depth is None else max_depth
    graph = csr(offsets, neighbors)
    backward = graph if reverse is None else csr(*reverse)
    if out.size:
        _hop_distances(_word_bounds(len(sources)), graph, backward, sources, wanted, limit, out)
    return out.T


def hops_to_all(offsets: Array, neighbors: Array, sources: Array, *, reverse: Csr | None = None) -> Array | None:
    """Hop distance from every source to every node, a byte each; None if one is more than :data:`DEEPEST`.

    Args:
        sources, reverse: as in :func:`hop_distances`.

    Shapes:
        sources: (S,). returns: (N, S) uint8, :data:`NO_PATH` where there is no path.
    """
    sources, graph = frozen(sources, np.int32), csr(offsets, neighbors)
    every = frozen(np.arange(len(offsets) - 1, dtype=np.int32), np.int32)
    out = np.full((len(every), len(sources)), NO_PATH, np.uint8)
    backward = graph if reverse is None else csr(*reverse)
    # A node further away has one at this distance on its path.
    _hop_distances(_word_bounds(len(sources)), graph, backward, sources, every, DEEPEST + 1, out)
    deeper = ((out[begin : begin + _ROWS] == DEEPEST + 1).any() for begin in range(0, len(out), _ROWS))
    return None if any(deeper) else out


def pair_distances(
    offsets: Array,
    neighbors: Array,
    sources: Array,
    targets: Ragged,
    *,
    max_depth: int | None = None,
    reverse: Csr | None = None,
) -> Ragged:
    """Hop distance from each source to its targets; -1 where there is no path, or none within ``max_depth``.

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
    graph = csr(offsets, neighbors)
    backward = graph if reverse is None else csr(*reverse)
    if out.size:
        _pair_distances(_word_bounds(len(sources)), graph, backward, sources, sets(targets), limit, out)
    return Ragged(out, targets.offsets)


@compiled
def _reduce(total: float, reached: int, size: int) -> tuple[float, float]:
    """The distance and the fraction of nodes that reach, of one component and anchor."""
    if reached == 0:
        return 0.0, 0.0
    return total / reached, reached / size


@compiled_parallel
def _reduce_table(
    begin: int, end: int, table: Array, slots: Array, rows: Array, distance: Array, fraction: Array
) -> None:
    columns = table.shape[1]
    for c in range(begin, end):
        total, reached = np.zeros(columns), np.zeros(columns, np.int64)
        for i in range(rows[c], rows[c + 1]):
            for a in range(columns):
                hops = table[slots[i], a]
                if hops >= 0:
                    total[a] += hops
                    reached[a] += 1
        for a in range(columns):
            size = rows[c + 1] - rows[c]
            distance[c, a], fraction[c, a] = _reduce(total[a], reached[a], size)


@compiled_parallel
def _add_runs(
    begin: int,
    end: int,
    hops: Array,
    skip: Array,
    starts: Array,
    sizes: Array,
    first: int,
    sums: tuple[Array, Array],
) -> None:
    total, reached = sums
    for run in range(begin, end):
        at = first + run
        for i in range(starts[run], starts[run] + sizes[run]):
            if hops[i] >= 0 and not skip[i]:
                total[at] += hops[i]
                reached[at] += 1


@compiled
def _add_pairs(hops: Array, slots: Array, sums: tuple[Array, Array]) -> None:
    total, reached = sums
    for i in range(len(hops)):
        if hops[i] >= 0:
            total[slots[i]] += hops[i]
            reached[slots[i]] += 1


@compiled_parallel
def _measures(
    begin: int,
    end: int,
    sums: tuple[Array, Array],
    sizes: Array,
    distance: Array,
    fraction: Array,
) -> None:
    total, reached = sums
    for i in range(begin, end):
        distance[i], fraction[i] = _reduce(float(total[i]), reached[i], sizes[i])


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Sums over the hops of components to anchors: whole numbers, so the order of the additions does not matter.

    Shapes:
        total: (anchors in all,) int64. reached: (anchors in all,) int32.
    """

    total: Array
    reached: Array

    @classmethod
    def zeros(cls, count: int) -> Tally:
        """A tally of nothing."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.int32))

    def add_runs(self, hops: Array, skip: Array, sizes: Array, counts: Array, *, first: int) -> None:
        """Add runs of hops, -1 where there is no path.

        Args:
            hops: for each component and each of its anchors a run, over the nodes of the component.
            skip: hops that are not to be added.
            sizes, counts: nodes and anchors of each component.
            first: the place of the first anchor.
        """
        lengths = np.repeat(sizes, counts)
        starts = np.cumsum(lengths) - lengths
        _add_runs(
            len(lengths),
            frozen(hops, np.int32),
            frozen(skip, np.bool_),
            frozen(starts, np.int64),
            frozen(lengths, np.int64),
            first,
            (self.total, self.reached),
        )

    def add_pairs(self, hops: Array, slots: Array) -> None:
        """Add hops one by one, each to an anchor's place."""
        sums = self.total, self.reached
        _add_pairs(frozen(hops, np.int32), frozen(slots, np.int64), sums)

    def measures(self, sizes: Array) -> tuple[Array, Array]:
        """Distance and the fraction of nodes that reach, as :func:`reduce_table` gives them.

        Args:
            sizes: nodes of each anchor's component.

        Shapes:
            returns: both (anchors in all,) float32.
        """
        distance, fraction = (np.zeros(len(self.total), np.float32) for _ in range(2))
        sums = self.total, self.reached
        _measures(len(self.total), sums, frozen(sizes, np.int64), distance, fraction)
        return distance, fraction


def reduce_table(table: Array, slots: Array, rows: Array) -> tuple[Array, Array]:
    """Distances of components to shared anchors: the mean over the nodes that reach the anchor.

    Args:
        table: hops of each wanted node to each anchor, -1 where there is no path.
        slots, rows: the nodes of the components, as places in ``table``, and where each component begins.

    Shapes:
        table: (nodes, anchors) int32. returns: distance and the fraction of nodes that reach, (C, anchors) float32;
        both are 0 where none does.
    """
    distance = np.zeros((len(rows) - 1, table.shape[1]), np.float32)
    fraction = np.zeros_like(distance)
    _reduce_table(
        len(rows) - 1,
        frozen(table, np.int32),
        frozen(slots, np.int64),
        frozen(rows, np.int64),
        distance,
        fraction,
    )
    return distance, fraction
