"""Edges in any order to sorted CSR rows, in time linear in the edges."""

from __future__ import annotations

import numpy as np

from subgnn.kernels.arrays import Array, csr, frozen
from subgnn.kernels.compile import compiled


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


def transpose(offsets: Array, neighbors: Array, num_heads: int | None = None) -> tuple[Array, Array, Array]:
    """The same edges, read from their heads: sorted rows of in-neighbours, and where each edge stood before.

    Args:
        num_heads: how many rows the result has, where heads and tails are numbered apart.
    """
    forward, heads = csr(offsets, neighbors)
    rows = len(forward) - 1 if num_heads is None else num_heads
    return _scatter(heads, _expand(forward), frozen(np.arange(len(heads)), np.int64), rows)
