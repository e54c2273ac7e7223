"""k-hop borders: B_k(c), the nodes within k hops of a node set, the set itself excluded (paper, section 3.2).

A 2-hop border of a dense graph is nearly all of V, so it can be sampled without being stored: each thread explores one
set at a time in a buffer of its own. For a directed graph pass its undirected form.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, csr, frozen, num_chunks, sets
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.kernels.draws import item_keys, open_stream, uniform_below
from subgnn.kernels.row_borders import sample_row_borders
from subgnn.ragged import Ragged


@compiled
def explore(offsets: Array, neighbors: Array, members: Array, hops: int, mark: Array, stamp: int, queue: Array) -> int:
    """Put ``members`` and then their ``hops``-hop border into ``queue``, each marked with ``stamp``; returns how many.

    The last level of a search that has already met much of the graph is pulled: every node not yet met looks for one
    neighbour that is.
    """
    n = len(offsets) - 1
    for i in range(len(members)):
        queue[i] = members[i]
        mark[members[i]] = stamp
    begin, end = 0, len(members)
    for _ in range(hops):
        push_cost = 0
        for i in range(begin, end):
            push_cost += offsets[queue[i] + 1] - offsets[queue[i]]
        level_end = end
        if push_cost > 8 * (n - end):
            # New nodes are marked after the sweep, so that they are not taken for the level before them.
            for v in range(n):
                if mark[v] != stamp:
                    for e in range(offsets[v], offsets[v + 1]):
                        if mark[neighbors[e]] == stamp:
                            queue[level_end] = v
                            level_end += 1
                            break
            for i in range(end, level_end):
                mark[queue[i]] = stamp
        else:
            for i in range(begin, end):
                for e in range(offsets[queue[i]], offsets[queue[i] + 1]):
                    v = neighbors[e]
                    if mark[v] != stamp:
                        mark[v] = stamp
                        queue[level_end] = v
                        level_end += 1
        begin, end = end, level_end
        if begin == end or end == n:
            break
    return end


@compiled
def _sorted_border(members: Array, mark: Array, stamp: int, queue: Array, end: int) -> Array:
    """The explored nodes that are not members, in rising order: a few are sorted, many swept up from the marks."""
    size = end - len(members)
    if size * 48 < len(mark):
        return np.sort(queue[len(members) : end])
    border = np.empty(size, np.int32)
    found, member = 0, 0
    for v in range(len(mark)):
        if member < len(members) and members[member] == v:
            member += 1
        elif mark[v] == stamp:
            border[found] = v
            found += 1
    return border


@compiled_parallel
def _border_sizes(
    offsets: Array, neighbors: Array, values: Array, rows: Array, hops: int, bounds: Array, sizes: Array
) -> None:
    n = len(offsets) - 1
    for chunk in prange(len(bounds) - 1):
        mark, queue = np.zeros(n, np.int32), np.empty(n, np.int32)
        for c in range(bounds[chunk], bounds[chunk + 1]):
            members = values[rows[c] : rows[c + 1]]
            sizes[c] = explore(offsets, neighbors, members, hops, mark, c + 1, queue) - len(members)


@compiled_parallel
def _border_sets(
    offsets: Array, neighbors: Array, values: Array, rows: Array, hops: int, bounds: Array, starts: Array, out: Array
) -> None:
    n = len(offsets) - 1
    for chunk in prange(len(bounds) - 1):
        mark, queue = np.zeros(n, np.int32), np.empty(n, np.int32)
        for c in range(bounds[chunk], bounds[chunk + 1]):
            members = values[rows[c] : rows[c + 1]]
            end = explore(offsets, neighbors, members, hops, mark, c + 1, queue)
            out[starts[c] : starts[c + 1]] = _sorted_border(members, mark, c + 1, queue, end)


@compiled_parallel
def _sample_borders(
    offsets: Array,
    neighbors: Array,
    values: Array,
    rows: Array,
    hops: int,
    bounds: Array,
    keys: Array,
    sizes: Array,
    out: Array,
) -> None:
    n = len(offsets) - 1
    draws = out.shape[1]
    for chunk in prange(len(bounds) - 1):
        mark, queue = np.zeros(n, np.int32), np.empty(n, np.int32)
        for c in range(bounds[chunk], bounds[chunk + 1]):
            members = values[rows[c] : rows[c + 1]]
            end = explore(offsets, neighbors, members, hops, mark, c + 1, queue)
            size = end - len(members)
            sizes[c] = size
            if size == 0:
                continue
            # Draws are ranks in the sorted border, so they do not depend on how it was explored.
            border = _sorted_border(members, mark, c + 1, queue, end)
            state = open_stream(keys[c], 0)
            for i in range(draws):
                out[c, i] = border[uniform_below(state, size)]


def _bounds(items: int) -> Array:
    return frozen(np.linspace(0, items, num_chunks(items) + 1).round(), np.int64)


def border_sets(offsets: Array, neighbors: Array, components: Ragged, *, hops: int = 1) -> Ragged:
    """The border of every component, sorted.

    Example:
        On the path 0 - 1 - 2 - 3, the border of {1} is {0, 2}, and {0, 2, 3} at two hops.

        >>> path = np.array([0, 1, 3, 5, 6]), np.array([1, 0, 2, 1, 3, 2])
        >>> [border_sets(*path, Ragged.from_rows([[1]]), hops=k)[0].tolist() for k in (1, 2)]
        [[0, 2], [0, 2, 3]]
    """
    graph, bounds = csr(offsets, neighbors), _bounds(len(components))
    values, rows = sets(components)
    sizes = np.zeros(len(components), np.int64)
    _border_sizes(*graph, values, rows, hops, bounds, sizes)
    borders = Ragged.from_lengths(np.empty(int(sizes.sum()), np.int32), sizes)
    _border_sets(*graph, values, rows, hops, bounds, frozen(borders.offsets, np.int64), borders.values)
    return borders


def sample_borders(
    offsets: Array, neighbors: Array, components: Ragged, *, hops: int, draws: int, key: int | Array
) -> tuple[Ragged, Array]:
    """Draw nodes uniformly, with replacement, from the border of every component, without storing the borders.

    Args:
        hops: k of the border B_k.
        draws: how many nodes to draw for a component; one with an empty border gets none.
        key: a stream key, or one key per component (:func:`~subgnn.kernels.draws.node_set_keys`).

    Returns:
        The draws, a row per component, and the size of each border.
    """
    values, rows = sets(components)
    count = len(components)
    sizes, out = np.zeros(count, np.int64), np.empty((count, draws), np.int32)
    graph, keys = csr(offsets, neighbors), item_keys(key, count)
    if hops == 1:
        sample_row_borders(*graph, values, rows, keys, sizes, out)
    else:
        _sample_borders(*graph, values, rows, hops, _bounds(count), keys, sizes, out)
    drawn = sizes > 0
    return Ragged.from_lengths(out[drawn].reshape(-1), np.where(drawn, draws, 0)), sizes
