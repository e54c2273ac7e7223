"""Hop distances by breadth-first search from many sources at once, 64 sources per machine word.

Bit ``s`` of ``seen[v]`` says that source ``s`` has reached node ``v``; bit ``s`` of ``front[v]`` that it did so at the
last level. One pass over the edges then advances 64 searches. A level is pushed along the edges of the few active
nodes, or pulled by the nodes that some source has still to reach, whichever touches fewer edges.

Memory is 32 bytes a node and thread, and one int32 for each wanted pair: never N x N.
"""

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
_PUSH_ADVANTAGE = 4  # a pulled edge is cheaper than a pushed one: sequential writes, and rows are left early
Search = tuple[Array, Array, Array]
"""The words ``seen``, ``front`` and ``reached`` (newly, at this level) of every node."""


@compiled
def _start(n: int, sources: Array) -> tuple[Search, Array, np.uint64, int]:
    """A search with source ``s`` at its node, its queue, the word of all sources, and the number of active nodes."""
    seen, front, queue = np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.empty(2 * n, np.int32)
    count = 0
    for s in range(len(sources)):
        v = sources[s]
        if front[v] == 0:
            queue[count] = v
            count += 1
        front[v] |= np.uint64(1) << np.uint64(s)
        seen[v] = front[v]
    return (seen, front, np.zeros(n, np.uint64)), queue, ~np.uint64(0) >> np.uint64(WORD - len(sources)), count


@compiled
def _advance(graph: Csr, full: np.uint64, search: Search, queue: Array, count: int) -> int:
    """Advance by one level: fill ``front`` and ``queue`` with the newly reached nodes, and return their number."""
    offsets, neighbors = graph
    seen, front, reached = search
    n = len(seen)
    push_cost = 0
    for i in range(count):
        push_cost += offsets[queue[i] + 1] - offsets[queue[i]]
    pull_cost = n
    if push_cost * _PUSH_ADVANTAGE > n:
        for v in range(n):
            if seen[v] != full:
                pull_cost += offsets[v + 1] - offsets[v]
    found = 0
    if push_cost * _PUSH_ADVANTAGE <= pull_cost:
        # Newly reached nodes go behind the active ones in the same queue: there is room for both.
        for i in range(count):
            v = queue[i]
            bits = front[v]
            for e in range(offsets[v], offsets[v + 1]):
                u = neighbors[e]
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
                for e in range(offsets[u], offsets[u + 1]):
                    new |= front[neighbors[e]]
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


@compiled_parallel
def _hop_distances(
    begin: int, end: int, graph: Csr, sources: Array, targets: Array, max_depth: int, out: Array
) -> None:
    search, queue, full, count = _start(len(graph[0]) - 1, sources[begin:end])
    front = search[1]
    open_pairs = (end - begin) * len(targets)
    depth = 0
    while True:
        for t in range(len(targets)):
            bits = front[targets[t]]
            if bits != 0:
                for s in range(end - begin):
                    if (bits >> np.uint64(s)) & np.uint64(1):
                        out[t, begin + s] = depth
                        open_pairs -= 1
        if open_pairs == 0 or count == 0 or depth >= max_depth:
            break
        depth += 1
        count = _advance(graph, full, search, queue, count)


@compiled_parallel
def _pair_distances(begin: int, end: int, graph: Csr, sources: Array, targets: Sets, out: Array) -> None:
    values, rows = targets
    search, queue, full, count = _start(len(graph[0]) - 1, sources[begin:end])
    front = search[1]
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
        if pending == 0 or count == 0:
            break
        depth += 1
        count = _advance(graph, full, search, queue, count)


def _word_bounds(num_sources: int) -> Array:
    """Cut the sources into as few words as hold them, evenly."""
    return even_bounds(num_sources, -(-num_sources // WORD)) if num_sources else frozen([0], np.int64)


def hop_distances(offsets: Array, neighbors: Array, sources: Array, targets: Array | None = None) -> Array:
    """Hops (S, T) from every source to every target, by default all nodes; -1 where there is no path."""
    sources, graph = frozen(sources, np.int32), csr(offsets, neighbors)
    wanted = frozen(np.arange(len(offsets) - 1) if targets is None else targets, np.int32)
    out = np.full((len(wanted), len(sources)), UNREACHED, np.int32)
    if out.size:
        _hop_distances(_word_bounds(len(sources)), graph, sources, wanted, _NO_LIMIT, out)
    return out.T


def hops_to_all(offsets: Array, neighbors: Array, sources: Array) -> Array | None:
    """Hop distance (N, S) from every source to every node, one byte each; None if one exceeds :data:`DEEPEST`."""
    sources, graph = frozen(sources, np.int32), csr(offsets, neighbors)
    every = frozen(np.arange(len(offsets) - 1, dtype=np.int32), np.int32)
    out = np.full((len(every), len(sources)), NO_PATH, np.uint8)
    # A node further away has one at this distance on its path.
    _hop_distances(_word_bounds(len(sources)), graph, sources, every, DEEPEST + 1, out)
    deeper = ((out[begin : begin + _ROWS] == DEEPEST + 1).any() for begin in range(0, len(out), _ROWS))
    return None if any(deeper) else out


def pair_distances(offsets: Array, neighbors: Array, sources: Array, targets: Ragged) -> Ragged:
    """Hops from each source to its own row of targets, laid out as they are; -1 where there is no path."""
    sources, graph = frozen(sources, np.int32), csr(offsets, neighbors)
    out = np.full(len(targets.values), UNREACHED, np.int32)
    if out.size:
        _pair_distances(_word_bounds(len(sources)), graph, sources, sets(targets), out)
    return Ragged(out, targets.offsets)
