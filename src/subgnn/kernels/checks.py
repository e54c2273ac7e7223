"""Check rows of node ids that were read from a file, before the other kernels trust them.

These kernels stay within their arrays whatever the values are, as long as the offsets rise from 0 to the number of
values.
"""

from __future__ import annotations

import secrets

import numpy as np

from subgnn.kernels.arrays import Array, Sets, compiled, compiled_parallel, frozen, num_chunks, sets
from subgnn.ragged import Ragged


@compiled
def _mix(x: np.uint64) -> np.uint64:
    """The finaliser of MurmurHash3, a bijection of 64 bits in which each bit of the input moves half of the output."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@compiled_parallel
def _check(
    begin: int,
    end: int,
    rows: Sets,
    weights: Array,
    limit: int,
    graph: bool,
    key: np.uint64,
    cuts: Array,
    bad: Array,
    sums: Array,
) -> None:
    values, offsets = rows
    for chunk in range(begin, end):
        total = np.uint64(0)
        for row in range(cuts[chunk], cuts[chunk + 1]):
            lo, hi = offsets[row], offsets[row + 1]
            # Two plain loops, without a way out in the middle: the processor takes several values at once.
            good = True
            for i in range(lo, hi):
                value = np.int64(values[i])
                good &= (value >= 0) & (value < limit) & ((i == lo) | (values[i - 1] < values[i]))
                good &= (not graph) | (value != row)
            if not good:
                bad[chunk] = row
                break
            for i in range(lo, hi if graph else lo):
                value = np.int64(values[i])
                low, high = (value, row) if value < row else (row, value)
                mixed = _mix((np.uint64(low) << np.uint64(32) | np.uint64(high)) ^ key)
                if len(weights) > 0:
                    mixed = _mix(mixed ^ np.uint64(weights[i]))
                total += mixed if row == low else np.uint64(0) - mixed
        sums[chunk] = total


def _checked(rows: Ragged, weights: Array, limit: int, *, graph: bool) -> tuple[int | None, bool]:
    offsets = sets(rows)[1]
    chunks = num_chunks(len(rows))
    inner = np.searchsorted(offsets, np.linspace(0, offsets[-1], chunks + 1)[1:-1])
    cuts = np.concatenate([[0], np.minimum(inner, len(rows)), [len(rows)]]).astype(np.int64)
    bad, sums = np.full(chunks, -1, np.int64), np.zeros(chunks, np.uint64)
    key = np.uint64(secrets.randbits(64))
    _check(chunks, sets(rows), frozen(weights, np.uint32), limit, graph, key, cuts, bad, sums)
    first = bad[bad >= 0]
    return (int(first[0]) if len(first) else None), not len(first) and int(sums.sum()) == 0


def first_bad_set(rows: Ragged, limit: int) -> int | None:
    """The first row that is not a sorted set of ids from 0 to ``limit`` - 1.

    Args:
        rows: its offsets must rise from 0 to the number of values.

    Example:
        >>> first_bad_set(Ragged.from_rows([[1, 2], [0, 3]]), 3)
        1
    """
    return _checked(rows, np.empty(0, np.uint32), limit, graph=False)[0]


def check_neighbors(rows: Ragged, weights: Array | None = None) -> tuple[int | None, bool]:
    """The first node whose neighbours no simple graph can have, and whether every edge is in the rows of both ends.

    Neighbours must be sorted, without repeats, nodes of the graph and other than the node itself. For the second
    question, each entry (u, v) with u < v adds a random function of u, v and the weight to a sum, and each (v, u) takes
    it away: the sum is 0 for a symmetric graph, and for another one with a probability of about 2^-64.

    Args:
        rows: the neighbours of each node; the offsets must rise from 0 to the number of values.

    Shapes:
        weights: (entries,) float32, the same in both directions if the graph is symmetric.

    Example:
        >>> check_neighbors(Ragged.from_rows([[1], [0, 2], [1]])), check_neighbors(Ragged.from_rows([[1], [0, 2], []]))
        ((None, True), (None, False))
    """
    bits = np.empty(0, np.uint32) if weights is None else np.ascontiguousarray(weights, np.float32).view(np.uint32)
    return _checked(rows, bits, len(rows), graph=True)
