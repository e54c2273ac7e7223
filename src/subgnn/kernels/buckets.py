"""Sorting edges that do not fit in memory: into buckets of consecutive rows, then each bucket for itself.

A *record* is one entry of the graph to be: row, neighbour and, where there are weights, the weight's bits, as unsigned
32-bit numbers. The highest bit of the neighbour says that the edge was given from its other end. Rows are counted in
*cells* of :data:`CELL` consecutive nodes, which is fine enough to cut buckets of nearly equal size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subgnn.kernels.arrays import Array, frozen
from subgnn.kernels.compile import compiled

CELL_BITS = 8
CELL = 1 << CELL_BITS
_FLIPPED, _ID = np.uint32(1 << 31), np.uint32((1 << 31) - 1)
_SHORT = 48
_DIGIT = 8


@compiled
def _record(tails: Array, heads: Array, weights: Array, leaving: Array, entering: Array) -> Array:
    width = 3 if len(weights) else 2
    records = np.empty((len(tails), width), np.uint32)
    count = 0
    for i in range(len(tails)):
        if tails[i] == heads[i]:
            continue
        records[count, 0], records[count, 1] = tails[i], heads[i]
        if width == 3:
            records[count, 2] = weights[i]
        count += 1
        leaving[tails[i] >> CELL_BITS] += 1
        entering[heads[i] >> CELL_BITS] += 1
    return records[:count]


def record_edges(tails: Array, heads: Array, weights: Array | None, *, leaving: Array, entering: Array) -> Array:
    """Records of the edges that are no self loops, in their order.

    Args:
        leaving, entering: (cells,) int64, long enough for every node; what leaves and enters a cell is added there.

    Shapes:
        weights: (edges,) float32. Returns: (kept, 2) uint32, or (kept, 3) with weights.
    """
    bits = np.empty(0, np.uint32) if weights is None else np.ascontiguousarray(weights, np.float32).view(np.uint32)
    return _record(frozen(tails, np.int32), frozen(heads, np.int32), frozen(bits, np.uint32), leaving, entering)


@compiled
def _distribute(records: Array, buckets: Array, num_buckets: int, both: bool) -> tuple[Array, Array]:
    offsets = np.zeros(num_buckets + 1, np.int64)
    for i in range(len(records)):
        offsets[buckets[records[i, 0] >> CELL_BITS] + 1] += 1
        if both:
            offsets[buckets[records[i, 1] >> CELL_BITS] + 1] += 1
    for b in range(num_buckets):
        offsets[b + 1] += offsets[b]
    fill = offsets[:-1].copy()
    out = np.empty((offsets[-1], records.shape[1]), np.uint32)
    for i in range(len(records)):
        tail, head = records[i, 0], records[i, 1]
        for _ in range(2 if both else 1):
            b = buckets[(tail & _ID) >> CELL_BITS]
            out[fill[b], 0], out[fill[b], 1] = tail & _ID, head
            if records.shape[1] == 3:
                out[fill[b], 2] = records[i, 2]
            fill[b] += 1
            tail, head = head, np.uint32(tail | _FLIPPED)
    return out, offsets


def distribute(records: Array, buckets: Array, num_buckets: int, *, both: bool) -> tuple[Array, Array]:
    """Records by the bucket of their row, those of a bucket in the order they came in; and where each bucket begins.

    Args:
        buckets: (cells,) int32, the bucket of each cell.
        both: also write the records of the same edges read from their heads.
    """
    return _distribute(frozen(records, np.uint32), frozen(buckets, np.int32), num_buckets, both)


@compiled
def _sort_long(entries: Array, spare: Array, bits: int) -> None:
    """By the upper 32 bits, of which the lower ``bits`` count, keeping the order of equal ones."""
    source, target = entries, spare
    moved = False
    for shift in range(32, 32 + bits, _DIGIT):
        places = np.zeros((1 << _DIGIT) + 1, np.int64)
        for i in range(len(entries)):
            places[((source[i] >> np.uint64(shift)) & np.uint64(255)) + np.uint64(1)] += 1
        for d in range(1 << _DIGIT):
            places[d + 1] += places[d]
        for i in range(len(entries)):
            digit = (source[i] >> np.uint64(shift)) & np.uint64(255)
            target[places[digit]] = source[i]
            places[digit] += 1
        source, target = target, source
        moved = not moved
    if moved:
        entries[:] = spare


@compiled
def _sort_short(entries: Array) -> None:
    for i in range(1, len(entries)):
        entry, j = entries[i], i
        while j > 0 and entries[j - 1] > entry:
            entries[j] = entries[j - 1]
            j -= 1
        entries[j] = entry


@compiled
def _rows(records: Array, first: int, num_rows: int, bits: int) -> tuple[Array, Array, Array, int]:
    offsets = np.zeros(num_rows + 1, np.int64)
    for i in range(len(records)):
        offsets[records[i, 0] - first + 1] += 1
    longest = 0
    for v in range(num_rows):
        longest = max(longest, offsets[v + 1])
        offsets[v + 1] += offsets[v]
    fill = offsets[:-1].copy()
    # Neighbour, place, and whether it is flipped: sorting puts equal neighbours in the order they came in.
    entries = np.empty(len(records), np.uint64)
    for i in range(len(records)):
        row = records[i, 0] - first
        coded = records[i, 1]
        entries[fill[row]] = (np.uint64(coded & _ID) << np.uint64(32)) | np.uint64(2 * i) | np.uint64(coded >> 31)
        fill[row] += 1
    spare = np.empty(longest, np.uint64)
    neighbors = np.empty(len(records), np.int32)
    weights = np.empty(len(records) if records.shape[1] == 3 else 0, np.uint32)
    count, mirrored = 0, 0
    begin: Any = 0
    for v in range(num_rows):
        end = offsets[v + 1]
        if end - begin <= _SHORT:
            _sort_short(entries[begin:end])
        else:
            _sort_long(entries[begin:end], spare[: end - begin], bits)
        e = begin
        while e < end:
            entry, neighbor, both = entries[e], entries[e] >> np.uint64(32), False
            neighbors[count] = neighbor
            if len(weights):
                weights[count] = records[np.int64(entry & np.uint64(0xFFFFFFFF)) >> 1, 2]
            count += 1
            while e < end and entries[e] >> np.uint64(32) == neighbor:
                both |= (entries[e] ^ entry) & np.uint64(1) != np.uint64(0)
                e += 1
            mirrored += int(both and first + v < np.int64(neighbor))
        offsets[v + 1] = count
        begin = end
    return offsets, neighbors[:count], weights[: count if len(weights) else 0], mirrored


def bucket_rows(records: Array, first: int, num_rows: int, *, num_nodes: int) -> tuple[Array, Array, Array, int]:
    """The sorted rows of a bucket, without repeats; of equal entries the first counts.

    Args:
        records: those of the bucket, in the order the edges came in.
        first: its first row.
        num_nodes: N, which neighbours are smaller than.

    Returns:
        offsets (num_rows + 1,), neighbors int32, weights float32 (empty without weights), and how many edges from
        these rows to larger nodes were given in both orientations.
    """
    bits = max(1, (num_nodes - 1).bit_length())
    offsets, neighbors, weights, mirrored = _rows(frozen(records, np.uint32), first, num_rows, bits)
    return offsets, neighbors, weights.view(np.float32), mirrored
