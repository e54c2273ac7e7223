"""The edges of a graph among the nodes of a set, found without marking all N nodes.

Both a row of the graph and the set are sorted, so the shorter is looked up in the longer: a hub with a million
neighbours costs a set of twenty nodes twenty look-ups.
"""

from __future__ import annotations

import numpy as np

from subgnn.kernels.arrays import Array
from subgnn.kernels.compile import compiled


@compiled
def lower_bound(row: Array, lo: int, hi: int, wanted: int) -> int:
    """First place in ``row[lo:hi]`` whose value is at least ``wanted``."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if row[middle] < wanted:
            lo = middle + 1
        else:
            hi = middle
    return lo


@compiled
def contains(row: Array, lo: int, hi: int, wanted: int) -> bool:
    """Whether ``wanted`` is in the sorted ``row[lo:hi]``."""
    place = lower_bound(row, lo, hi, wanted)
    return place < hi and row[place] == wanted


@compiled
def inside_row(offsets: Array, neighbors: Array, members: Array, node: int, out: Array) -> int:
    """Write the places in ``members`` of the neighbours of ``node`` to ``out``; returns how many there are."""
    lo, hi = offsets[node], offsets[node + 1]
    found = 0
    if hi - lo <= len(members):
        start = 0
        for e in range(lo, hi):
            start = lower_bound(members, start, len(members), neighbors[e])
            if start == len(members):
                break
            if members[start] == neighbors[e]:
                out[found] = start
                found += 1
    else:
        for j in range(len(members)):
            lo = lower_bound(neighbors, lo, hi, members[j])
            if lo == hi:
                break
            if neighbors[lo] == members[j]:
                out[found] = j
                found += 1
    return found


@compiled
def induced_csr(offsets: Array, neighbors: Array, members: Array) -> tuple[Array, Array]:
    """The induced subgraph in CSR form, its nodes numbered by their place in ``members``."""
    size = len(members)
    local_offsets = np.zeros(size + 1, np.int64)
    row = np.empty(size, np.int32)
    local_neighbors = np.empty(max(4 * size, 16), np.int32)
    total = 0
    for i in range(size):
        found = inside_row(offsets, neighbors, members, members[i], row)
        if total + found > len(local_neighbors):
            grown = np.empty(2 * (total + found), np.int32)
            grown[:total] = local_neighbors[:total]
            local_neighbors = grown
        local_neighbors[total : total + found] = row[:found]
        total += found
        local_offsets[i + 1] = total
    return local_offsets, local_neighbors[:total]
