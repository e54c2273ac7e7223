"""Draws from 1-hop borders by rows alone: no mark for each of N nodes, and the longest row is never walked over.

The border of c is (H - c) and E: H is the longest row among those of c's nodes, E what other rows add to it. Both are
sorted, so the node of a given rank is found by binary search; a hub with a million neighbours costs as many look-ups as
there are draws.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.kernels.draws import open_stream, uniform_below
from subgnn.kernels.induced import contains, lower_bound


@compiled
def _longest(offsets: Array, members: Array) -> int:
    best = members[0]
    for v in members:
        if offsets[v + 1] - offsets[v] > offsets[best + 1] - offsets[best]:
            best = v
    return best


@compiled
def _added(offsets: Array, neighbors: Array, members: Array, hub: int) -> Array:
    """E: the neighbours of other members that are neither members nor neighbours of the hub, sorted, each once."""
    room = 0
    for v in members:
        if v != hub:
            room += offsets[v + 1] - offsets[v]
    found = np.empty(room, np.int32)
    count = 0
    for v in members:
        if v != hub:
            for e in range(offsets[v], offsets[v + 1]):
                w = neighbors[e]
                inside = contains(members, 0, len(members), w)
                if not inside and not contains(neighbors, offsets[hub], offsets[hub + 1], w):
                    found[count] = w
                    count += 1
    found = np.sort(found[:count])
    distinct = 0
    for i in range(count):
        if i == 0 or found[i] != found[i - 1]:
            found[distinct] = found[i]
            distinct += 1
    return found[:distinct]


@compiled_parallel
def sample_row_borders(
    offsets: Array, neighbors: Array, values: Array, rows: Array, keys: Array, sizes: Array, out: Array
) -> None:
    """Fill ``sizes`` with those of the 1-hop borders, and ``out`` with draws: ranks in the sorted border."""
    for c in prange(len(rows) - 1):
        members = values[rows[c] : rows[c + 1]]
        if len(members) == 0:
            continue
        hub = _longest(offsets, members)
        lo, hi = offsets[hub], offsets[hub + 1]
        inner = np.empty(len(members), np.int64)  # where members stand in H
        moved = np.empty(len(members), np.int64)  # the same, less the number of members before
        count = 0
        for v in members:
            place = lower_bound(neighbors, lo, hi, v)
            if place < hi and neighbors[place] == v:
                inner[count], moved[count] = place - lo, place - lo - count
                count += 1
        added = _added(offsets, neighbors, members, hub)
        ranks = np.empty(len(added), np.int64)
        for k in range(len(added)):
            place = lower_bound(neighbors, lo, hi, added[k]) - lo
            ranks[k] = k + place - lower_bound(inner, 0, count, place)
        size = hi - lo - count + len(added)
        sizes[c] = size
        if size == 0:
            continue
        state = open_stream(keys[c], 0)
        for i in range(out.shape[1]):
            rank = uniform_below(state, size)
            k = lower_bound(ranks, 0, len(ranks), rank)
            if k < len(ranks) and ranks[k] == rank:
                out[c, i] = added[k]
            else:
                # The rank among H - c, moved on by the members that stand before it in H.
                place = rank - k
                out[c, i] = neighbors[lo + place + lower_bound(moved, 0, count, place + 1)]
