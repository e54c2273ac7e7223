"""Build sorted CSR rows from edges in any order, in memory or by buckets that fit in memory; and check rows.

A *record* is one entry of the future graph: row, neighbour and perhaps the weight's bits, as unsigned 32-bit numbers.
The highest bit of the neighbour says that the edge was given from its other end. Edges that do not fit in memory are
sorted into buckets of consecutive rows, counted in *cells* of :data:`CELL` nodes.

Rows that were read from a file are checked before the other kernels trust them, by kernels that stay within their
arrays whatever the values are, as long as the offsets rise.
"""

import secrets
from typing import Any

import numpy as np
import scipy

from subgnn.errors import DataError
from subgnn.kernels.arrays import Array, Pair, Sets, Triple, compiled, compiled_parallel, frozen, num_chunks, sets
from subgnn.kernels.draws import scramble
from subgnn.ragged import Ragged

CELL_BITS = 8
CELL = 1 << CELL_BITS
FLIPPED, _ID = np.uint32(1 << 31), np.uint32((1 << 31) - 1)
_SHORT = 48
_MOST_RECORDS = 2**31


def directed_csr(tails: Array, heads: Array, num_nodes: int) -> Triple:
    """CSR of the edges ``tails[i] -> heads[i]``, rows sorted, repeats dropped; and the first ``i`` of each entry."""
    offsets, neighbors, places, _ = _sorted_rows(np.stack([tails, heads], axis=1), num_nodes)
    return offsets, neighbors, places


def undirected_csr(tails: Array, heads: Array, num_nodes: int) -> tuple[Array, Array, Array, int]:
    """As :func:`directed_csr`, each edge in both rows; and how many were given in both orientations."""
    records = np.empty((len(tails), 2, 2), np.uint32)
    records[:, 0, 0], records[:, 0, 1], records[:, 1, 0] = tails, heads, heads
    records[:, 1, 1] = np.asarray(tails).astype(np.uint32) | FLIPPED
    offsets, neighbors, places, mirrored = _sorted_rows(records.reshape(-1, 2), num_nodes)
    return offsets, neighbors, places >> 1, mirrored


def _sorted_rows(records: Array, num_nodes: int) -> tuple[Array, Array, Array, int]:
    if len(records) >= _MOST_RECORDS:
        hint = "subgnn data convert builds larger graphs on disk"
        raise DataError(f"{len(records):,} entries do not fit in memory", where="edges", hint=hint)
    offsets, neighbors, places, mirrored = _rows(frozen(records, np.uint32), 0, num_nodes)
    return offsets, neighbors, places.astype(np.int64), mirrored


def transpose(offsets: Array, neighbors: Array, num_heads: int | None = None) -> Triple:
    """The same edges, read from their heads, and their old places; ``num_heads`` rows if heads are apart."""
    rows = len(offsets) - 1
    shape, places = (rows, rows if num_heads is None else num_heads), np.arange(len(neighbors), dtype=np.int64)
    turned = scipy.sparse.csr_array((places, neighbors, offsets), shape=shape).tocsc()
    return turned.indptr.astype(np.int64), turned.indices.astype(np.int32, copy=False), turned.data


def other_weights(rows: Triple, tails: Array, heads: Array, given: Array) -> tuple[int, tuple[int, int, float, float]]:
    """How many edges have other weights than their pairs in ``rows``; and of the first, its ends and both weights."""
    offsets, neighbors, values = rows
    matrix = scipy.sparse.csr_array((values, neighbors, offsets), shape=(len(offsets) - 1, 2**31 - 1))
    kept = np.asarray(matrix[tails, heads]) if len(tails) else values[:0]
    others = np.flatnonzero(kept != given)
    first = others[0] if len(others) else 0
    return len(others), (int(tails[first]), int(heads[first]), float(kept[first]), float(given[first]))


@compiled
def _sort(entries: Array) -> None:
    """Most rows are short: insertion sort takes half the time of NumPy's for them."""
    if len(entries) > _SHORT:
        entries.sort()
        return
    for i in range(1, len(entries)):
        entry, j = entries[i], i
        while j > 0 and entries[j - 1] > entry:
            entries[j] = entries[j - 1]
            j -= 1
        entries[j] = entry


@compiled
def _rows(records: Array, first: int, num_rows: int) -> tuple[Array, Array, Array, int]:
    """Sorted rows, the record that each entry comes from (the first of equal ones), and edges given from both ends."""
    offsets = np.zeros(num_rows + 1, np.int64)
    for i in range(len(records)):
        offsets[records[i, 0] - first + 1] += 1
    for v in range(num_rows):
        offsets[v + 1] += offsets[v]
    fill = offsets[:-1].copy()
    # Neighbour, place, and whether it is flipped: sorting puts equal neighbours in the order they came in.
    entries = np.empty(len(records), np.uint64)
    for i in range(len(records)):
        row = records[i, 0] - first
        coded = records[i, 1]
        entries[fill[row]] = (np.uint64(coded & _ID) << np.uint64(32)) | np.uint64(2 * i) | np.uint64(coded >> 31)
        fill[row] += 1
    neighbors, places = np.empty(len(records), np.int32), np.empty(len(records), np.int32)
    count, mirrored = 0, 0
    begin: Any = 0
    for v in range(num_rows):
        end = offsets[v + 1]
        _sort(entries[begin:end])
        e = begin
        while e < end:
            entry, neighbor, both = entries[e], entries[e] >> np.uint64(32), False
            neighbors[count], places[count] = neighbor, np.int64(entry & np.uint64(0xFFFFFFFF)) >> 1
            count += 1
            while e < end and entries[e] >> np.uint64(32) == neighbor:
                both |= (entries[e] ^ entry) & np.uint64(1) != np.uint64(0)
                e += 1
            mirrored += int(both and first + v < np.int64(neighbor))
        offsets[v + 1] = count
        begin = end
    return offsets, neighbors[:count], places[:count], mirrored


def bucket_rows(records: Array, first: int, num_rows: int) -> tuple[Array, Array, Array, int]:
    """The sorted rows of a bucket whose first row is ``first``; of equal records the first counts.

    Returns offsets, neighbors, weights (perhaps empty), and how many edges were given in both orientations.
    """
    offsets, neighbors, places, mirrored = _rows(frozen(records, np.uint32), first, num_rows)
    weights = records[places, 2] if records.shape[1] == 3 else np.empty(0, np.uint32)
    return offsets, neighbors, weights.view(np.float32), mirrored


@compiled_parallel
def _check(
    begin: int, end: int, rows: Sets, weights: Array, limit: int, graph: bool, key: np.uint64, cuts: Array, out: Pair
) -> None:
    (values, offsets), (bad, sums) = rows, out
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
                mixed = scramble((np.uint64(low) << np.uint64(32) | np.uint64(high)) ^ key)
                if len(weights) > 0:
                    mixed = scramble(mixed ^ np.uint64(weights[i]))
                total += mixed if row == low else np.uint64(0) - mixed
        sums[chunk] = total


def _checked(rows: Ragged, weights: Array, limit: int, *, graph: bool) -> tuple[int | None, bool]:
    offsets = sets(rows)[1]
    chunks = num_chunks(len(rows))
    inner = np.searchsorted(offsets, np.linspace(0, offsets[-1], chunks + 1)[1:-1])
    cuts = np.concatenate([[0], np.minimum(inner, len(rows)), [len(rows)]]).astype(np.int64)
    bad, sums = np.full(chunks, -1, np.int64), np.zeros(chunks, np.uint64)
    key = np.uint64(secrets.randbits(64))
    _check(chunks, sets(rows), frozen(weights, np.uint32), limit, graph, key, cuts, (bad, sums))
    first = bad[bad >= 0]
    return (int(first[0]) if len(first) else None), not len(first) and int(sums.sum()) == 0


def first_bad_set(rows: Ragged, limit: int) -> int | None:
    """The first row that is not a sorted set of ids from 0 to ``limit`` - 1, or None."""
    return _checked(rows, np.empty(0, np.uint32), limit, graph=False)[0]


def check_neighbors(rows: Ragged, weights: Array | None = None) -> tuple[int | None, bool]:
    """The first node whose neighbours no simple graph can have, and whether every edge is in the rows of both ends.

    Neighbours must be sorted, without repeats, nodes of the graph and other than the node itself. For the second
    question, each entry (u, v) with u < v adds a random function of u, v and the weight to a sum, and each (v, u) takes
    it away: the sum is 0 for a symmetric graph, and for another one with a probability of about 2^-64.
    """
    bits = np.empty(0, np.uint32) if weights is None else np.ascontiguousarray(weights, np.float32).view(np.uint32)
    return _checked(rows, bits, len(rows), graph=True)
