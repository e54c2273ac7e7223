"""Build sorted CSR rows from edges in any order: in memory in linear time, or by buckets that fit in memory.

For edges that do not fit, a *record* is one entry of the future graph: row, neighbour and, if there are weights, the
weight's bits, as unsigned 32-bit numbers. The highest bit of the neighbour says that the edge was given from its other
end. Records are sorted into buckets of consecutive rows, then each bucket by itself. Rows are counted in *cells* of
:data:`CELL` consecutive nodes, which is fine enough to cut buckets of nearly equal size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subgnn.kernels.arrays import Array, compiled, csr, frozen


@compiled
def _scatter(keys: Array, payload: Array, places: Array, n: int) -> tuple[Array, Array, Array]:
    """Order ``payload`` and ``places`` by ``keys``, keeping the order of equal keys; returns offsets by key as well."""
    offsets = np.zeros(n + 1, np.int64)
    for i in range(len(keys)):
        offsets[keys[i] + 1] += 1
    for v in range(n):
        offsets[v + 1] += offsets[v]
    fill = offsets[:-1].copy()
    out, out_places = np.empty_like(payload), np.empty_like(places)
    for i in range(len(keys)):
        at = fill[keys[i]]
        fill[keys[i]] += 1
        out[at] = payload[i]
        out_places[at] = places[i]
    return offsets, out, out_places


@compiled
def _expand(offsets: Array) -> Array:
    """The row of every entry."""
    rows = np.empty(offsets[-1], np.int32)
    for v in range(len(offsets) - 1):
        rows[offsets[v] : offsets[v + 1]] = v
    return rows


@compiled
def _drop_repeats(offsets: Array, neighbors: Array, places: Array) -> tuple[Array, Array, Array]:
    """Keep the first of equal neighbours of a row."""
    kept_offsets = np.zeros_like(offsets)
    kept, kept_places = np.empty_like(neighbors), np.empty_like(places)
    count = 0
    for v in range(len(offsets) - 1):
        for e in range(offsets[v], offsets[v + 1]):
            if e == offsets[v] or neighbors[e] != neighbors[e - 1]:
                kept[count] = neighbors[e]
                kept_places[count] = places[e]
                count += 1
        kept_offsets[v + 1] = count
    return kept_offsets, kept[:count].copy(), kept_places[:count].copy()


@compiled
def _count_mirrored(offsets: Array, neighbors: Array, places: Array, flipped: Array) -> int:
    """How many edges of a half graph were given in both orientations."""
    count = 0
    for v in range(len(offsets) - 1):
        e = offsets[v]
        while e < offsets[v + 1]:
            first, u = flipped[places[e]], neighbors[e]
            both = False
            while e < offsets[v + 1] and neighbors[e] == u:
                both |= flipped[places[e]] != first
                e += 1
            count += both
    return count


@compiled
def _mirror(offsets: Array, neighbors: Array, places: Array) -> tuple[Array, Array, Array]:
    """Both orientations of the edges of a half graph, whose every neighbour is larger than its row.

    Row v becomes the smaller nodes that point at v, then the larger ones it points at: sorted as it stands.
    """
    n = len(offsets) - 1
    full = np.zeros(n + 1, np.int64)
    for v in range(n):
        full[v + 1] += offsets[v + 1] - offsets[v]
    for e in range(len(neighbors)):
        full[neighbors[e] + 1] += 1
    for v in range(n):
        full[v + 1] += full[v]
    fill = full[:-1].copy()
    out, out_places = np.empty(2 * len(neighbors), np.int32), np.empty(2 * len(neighbors), np.int64)
    # Rows are visited in rising order, so a row has received all smaller nodes when its own turn comes.
    for v in range(n):
        for e in range(offsets[v], offsets[v + 1]):
            u = neighbors[e]
            out[fill[v]], out_places[fill[v]] = u, places[e]
            fill[v] += 1
            out[fill[u]], out_places[fill[u]] = v, places[e]
            fill[u] += 1
    return full, out, out_places


def _sorted_rows(tails: Array, heads: Array, num_nodes: int) -> tuple[Array, Array, Array]:
    """Two stable counting sorts, by head and then by tail, leave every row sorted without comparing anything."""
    places = np.arange(len(tails), dtype=np.int64)
    by_head, tails, places = _scatter(
        frozen(heads, np.int32), frozen(tails, np.int32), frozen(places, np.int64), num_nodes
    )
    heads = _expand(by_head)
    return _scatter(frozen(tails, np.int32), frozen(heads, np.int32), frozen(places, np.int64), num_nodes)


def directed_csr(tails: Array, heads: Array, num_nodes: int) -> tuple[Array, Array, Array]:
    """CSR of the edges ``tails[i] -> heads[i]``: rows sorted, repeats dropped.

    Returns:
        offsets, neighbors, and for each kept entry the ``i`` of the first edge it stands for.
    """
    return _drop_repeats(*_sorted_rows(tails, heads, num_nodes))


def undirected_csr(tails: Array, heads: Array, num_nodes: int) -> tuple[Array, Array, Array, int]:
    """CSR of undirected edges, without self loops: each in both rows, rows sorted, repeats dropped.

    Returns:
        offsets, neighbors, for each entry the ``i`` of the first edge it stands for, and how many edges were given in
        both orientations.
    """
    low, high = np.minimum(tails, heads), np.maximum(tails, heads)
    offsets, neighbors, places = _sorted_rows(low, high, num_nodes)
    mirrored = _count_mirrored(offsets, neighbors, places, frozen(tails > heads, np.bool_))
    return (*_mirror(*_drop_repeats(offsets, neighbors, places)), mirrored)


@compiled
def _other_weights(
    offsets: Array, neighbors: Array, kept: Array, tails: Array, heads: Array, weights: Array
) -> tuple[int, int, int]:
    count, first, at = 0, -1, -1
    for i in range(len(tails)):
        begin, end = offsets[tails[i]], offsets[tails[i] + 1]
        place = begin + np.searchsorted(neighbors[begin:end], heads[i])
        if kept[place] != weights[i]:
            if count == 0:
                first, at = i, place
            count += 1
    return count, first, at


def other_weights(rows: tuple[Array, Array, Array], tails: Array, heads: Array, weights: Array) -> tuple[int, int, int]:
    """How many edges have another weight than the one that is kept for their pair, as they repeat an earlier edge.

    Args:
        rows: offsets, neighbors and weights of the graph that is made of the edges.

    Returns:
        Their number, the place of the first of them, and the place of its entry in the rows.
    """
    offsets, neighbors = frozen(rows[0], np.int64), frozen(rows[1], np.int32)
    ends = frozen(tails, np.int32), frozen(heads, np.int32)
    return _other_weights(offsets, neighbors, frozen(rows[2], np.float32), *ends, frozen(weights, np.float32))


def transpose(offsets: Array, neighbors: Array, num_heads: int | None = None) -> tuple[Array, Array, Array]:
    """The same edges, read from their heads: sorted rows of in-neighbours, and the old place of each edge.

    Args:
        num_heads: how many rows the result has, if heads and tails are numbered separately.
    """
    forward, heads = csr(offsets, neighbors)
    rows = len(forward) - 1 if num_heads is None else num_heads
    return _scatter(heads, _expand(forward), frozen(np.arange(len(heads)), np.int64), rows)


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
    """Records of the edges that are not self loops, in their order.

    Args:
        leaving, entering: (cells,) int64, long enough for every node; the edges that leave and enter a cell are added.

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
