"""Similarity by hops: gamma = reached / (1 + d), d the mean hops of a component's nodes to an anchor (section 4.2).

The mean is over the nodes that reach the anchor, and gamma is multiplied by their fraction; it is 0 if none does.

Searches go from shared anchors across the graph. A search serves 64 sources and passes over the whole graph; on a
large one it is stored in the cache folder, because predictions need hops from the same shared anchors and landmarks.
A file for 64 sources has a byte for each node and source. Only the wanted rows are read: every :data:`BLOCK` rows have
a checksum, which is compared then.

Most own anchors are near, and :func:`~subgnn.kernels.distances.near_hops` finds them; for the pairs it leaves
open, searches go from the nodes of components or from the anchors, whichever are fewer. With ``prepare.own_hops =
"bounded"`` an open pair has the least of its bound and the detour by a landmark, one of the nodes with most neighbours:
d(u, a) <= min over l of d(u, l) + d(l, a) (Potamias et al., 2009).
"""

import hashlib
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import numba
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from subgnn.channels.channel import NodeAnchors, OwnAnchors, Similarity, Work
from subgnn.data.graph import Graph
from subgnn.errors import DataError, MemoryLimitError
from subgnn.kernels.arrays import Array, compiled_parallel, frozen
from subgnn.kernels.distances import (
    BYTES_A_NODE,
    NO_PATH,
    UNBOUNDED,
    WORD,
    hop_distances,
    hops_to_all,
    near_hops,
    pair_distances,
)
from subgnn.parallel.memory import limit, share, workers
from subgnn.ragged import Ragged, runs
from subgnn.storage.arrays import Format, encode_arrays, read_arrays
from subgnn.storage.cache import cache_limit, cache_path, lookup, store

LARGE = 5_000_000
"""The fewest entries of a graph's rows for which searches are stored; on smaller graphs they take under a second."""
BLOCK = 64
_STORED = Format("subgnn-hops", "file of hops", "measuring subgraphs of a large graph writes one", "remove it")
TABLE_AT_ONCE = 64_000_000  # numbers of a table of hops to shared anchors, each an int32
OWN_AT_ONCE = 1_000_000  # components
PAIRS_AT_ONCE = 2_000_000
OPEN_AT_ONCE = 8_000_000
_BYTES_DRAWN = 48  # of a drawn anchor while equal ones are found
HOP_CUTOFF, HOP_EDGES = 4, 1024
"""Bounded hops are exact up to this many, as far as two searches of this many edges each can reach."""
LANDMARKS = 64
"""How many nodes with the most neighbours the detours of bounded hops pass through."""
_BYTES_OPEN = 640  # of an open pair: its ends, its slot, and the hops of both ends to 64 landmarks
_SMALL = 2_000_000  # entries; in a smaller graph a search across it costs less than many small ones
_EDGES = 1024


def hops_from(work: Work, sources: NDArray[np.int32], nodes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Hops (T, S) from each source to each node, -1 where there is no path."""
    if not (work.cache and len(work.graph.neighbors) >= LARGE and cache_limit() > 0):
        return hop_distances(*work.graph.csr, sources, nodes).T
    room = BYTES_A_NODE * work.graph.num_nodes + WORD * work.graph.num_nodes
    fits = room <= share(0.5)
    words = [sources[begin : begin + WORD] for begin in range(0, len(sources), WORD)]
    with ThreadPoolExecutor(workers(room, int(numba.get_num_threads()))) as pool:
        return np.concatenate(list(pool.map(lambda word: _hops_of_word(work, word, nodes, fits=fits), words)), axis=1)


def _hops_of_word(work: Work, sources: Array, nodes: Array, *, fits: bool) -> NDArray[np.int32]:
    """Hops (T, S) from at most 64 sources: from the cache folder, or by a search that is kept there if it fits."""
    # The file is a function of the edges and of the sources, in their order.
    key = hashlib.sha256(work.graph.content_hash.encode() + np.ascontiguousarray(sources, "<i4").tobytes())
    path = cache_path("hops", key.hexdigest())
    found = lookup(path, lambda: _read(path, work.graph.num_nodes, nodes, len(sources)))
    if found is None and fits:
        table = hops_to_all(*work.graph.csr, sources)
        # An empty table says that some paths are too long for a byte.
        kept = np.empty((0, len(sources)), np.uint8) if table is None else table
        sums = [zlib.crc32(kept[begin : begin + BLOCK].data) for begin in range(0, len(kept), BLOCK)]
        store(path, encode_arrays({"hops": kept, "sums": np.array(sums, np.int64)}, _STORED))
        found = None if table is None else _as_hops(table[nodes])
    if found is None or len(found) < len(nodes):
        return hop_distances(*work.graph.csr, sources, nodes).T
    return found


def _read(path: Path, num_nodes: int, nodes: NDArray[np.int32], width: int) -> NDArray[np.int32]:
    """The rows of given nodes, verified; none if the file has no rows."""
    file = read_arrays(path, _STORED, mapped="r", verify=False)
    rows = num_nodes if len(file.arrays.get("hops", ())) else 0
    hops = file.array("hops", np.uint8, (rows, width))
    sums = file.array("sums", np.int64, (-(-rows // BLOCK),))
    if not rows:
        return np.empty((0, width), np.int32)
    for block in np.unique(nodes // BLOCK).tolist():
        if zlib.crc32(hops[block * BLOCK : (block + 1) * BLOCK].data) != sums[block]:
            raise DataError("the content does not match its checksum", where=str(path))
    return _as_hops(hops[nodes])


def _as_hops(stored: NDArray[np.uint8]) -> NDArray[np.int32]:
    return np.where(stored == NO_PATH, -1, stored.astype(np.int32))


def shared_hops(work: Work, components: Ragged, anchors: list[NodeAnchors]) -> list[NDArray[np.float32]]:
    """Similarities of every component to shared anchor nodes, for every layer; a few words of sources at a time."""
    nodes, slots = np.unique(components.values, return_inverse=True)
    shape = len(components), len(nodes)
    members = scipy.sparse.csr_array((np.ones(len(slots), np.int64), slots, components.offsets), shape)
    sources = np.concatenate([a.nodes for a in anchors])
    gamma = np.empty((len(components), len(sources)), np.float32)
    most = min(WORD * searches_at_once(work.graph), min(TABLE_AT_ONCE, share(0.05) // 4) // max(1, len(nodes)))
    for part in work.pieces(len(sources), step=WORD, most=most, what="hops to shared anchors"):
        hops = hops_from(work, sources[part], nodes)
        counts, sums = members @ (hops >= 0).astype(np.int32), members @ np.maximum(hops, 0)
        distance, reached = sums / np.maximum(counts, 1), counts / components.lengths[:, None]
        gamma[:, part] = reached.astype(np.float32) / (1 + distance.astype(np.float32))
    cuts = np.cumsum([len(a.nodes) for a in anchors])[:-1]
    return [np.ascontiguousarray(layer) for layer in np.split(gamma, cuts, axis=1)]


def own_hops(work: Work, components: Ragged, anchors: list[OwnAnchors]) -> list[NDArray[np.float32]]:
    """Similarities of every component to its own anchors, for every layer, a block of components at a time."""
    shape = (len(components), len(anchors), anchors[0].nodes.shape[1])
    gamma = np.zeros(shape, np.float32)
    at_once = min(OWN_AT_ONCE, max(1, share(0.1) // (_BYTES_DRAWN * max(1, shape[1] * shape[2]))))
    for begin in range(0, len(components), at_once):
        rows = slice(begin, min(begin + at_once, len(components)))
        present = anchors[0].present[rows]
        keys = np.stack([a.nodes[rows] for a in anchors], axis=1).reshape(len(present), -1).astype(np.int64)
        keys += np.arange(len(present), dtype=np.int64)[:, None] * work.graph.num_nodes
        distinct, inverse = np.unique(keys[present], return_inverse=True)
        owner, nodes = np.divmod(distinct, work.graph.num_nodes)
        wanted = Ragged.from_lengths(nodes.astype(np.int32), np.bincount(owner, minlength=len(present)))
        some = components.take(np.arange(rows.start, rows.stop))
        distance, reached = distances_to(work, some, wanted, done=rows.start, total=len(components))
        gamma[rows][present] = (reached / (1 + distance))[inverse.reshape(-1)].reshape(-1, *shape[1:])
    return [np.ascontiguousarray(gamma[:, layer]) for layer in range(shape[1])]


HOPS = Similarity(measure={NodeAnchors: shared_hops, OwnAnchors: own_hops}, searches=True)


_Pairs = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
"""Pairs whose distance is not known yet: places among the wanted nodes, nodes, anchors, and upper bounds."""


def distances_to(
    work: Work, components: Ragged, wanted: Ragged, *, done: int = 0, total: int | None = None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Distance of each component to its wanted nodes, and the fraction of its nodes that reach them, end to end.

    ``wanted`` has a sorted row for each component; ``done`` and ``total`` count the components in all, for progress.
    """
    sums, counts = (np.zeros(len(wanted.values), np.int64) for _ in range(2))
    open_pairs: list[_Pairs] = []
    at_once = min(OPEN_AT_ONCE, max(1, share(0.15) // _BYTES_OPEN))
    # Cut the wanted nodes of very large components: the component of each unit, and the bounds of its wanted nodes.
    fit = np.maximum(1, PAIRS_AT_ONCE // np.maximum(components.lengths, 1))
    units = -(-wanted.lengths // fit)
    owner = np.repeat(np.arange(len(wanted), dtype=np.int64), units)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(units) - units, units)
    bounds = np.append(wanted.offsets[owner] + within * fit[owner], len(wanted.values))
    cutoff, cap = 2 if len(work.graph.neighbors) < _SMALL else UNBOUNDED, _EDGES
    if work.settings.own_hops == "bounded":
        cutoff, cap = HOP_CUTOFF, HOP_EDGES

    def report(measured: int) -> None:
        share_done = len(components) * measured // max(1, len(owner))
        work.on_progress("hops to own anchors", done + share_done, total or len(components))

    for run in runs(components.lengths[owner] * np.diff(bounds), PAIRS_AT_ONCE):
        report(run.start)
        end = run.stop
        nodes, first = components.take(owner[run]), int(bounds[run.start])
        anchors = Ragged(wanted.values[first : bounds[end]], bounds[run.start : end + 1] - first)
        hops, still_open = near_hops(*work.graph.csr, nodes, anchors, cutoff=cutoff, cap=cap)
        # A run for each anchor, over the nodes of its component.
        sizes = np.repeat(nodes.lengths, anchors.lengths)
        starts, known = np.cumsum(sizes) - sizes, (hops >= 0) & ~still_open
        sums[first : bounds[end]] += np.add.reduceat(np.where(known, hops, 0), starts, dtype=np.int64)
        counts[first : bounds[end]] += np.add.reduceat(known, starts, dtype=np.int64)
        if still_open.any():
            places = np.flatnonzero(still_open)
            slots = np.searchsorted(starts, places, side="right") - 1
            members = nodes.values[nodes.offsets[anchors.row_ids[slots]] + places - starts[slots]]
            open_pairs.append((slots + first, members, anchors.values[slots], hops[places]))
        if open_pairs and (end == len(owner) or sum(len(pairs[0]) for pairs in open_pairs) >= at_once):
            slots, found = _far(work, open_pairs)
            np.add.at(sums, slots, found)
            np.add.at(counts, slots, 1)
            open_pairs = []
    report(len(owner))
    reached = counts / np.repeat(components.lengths, wanted.lengths)
    return (sums / np.maximum(counts, 1)).astype(np.float32), reached.astype(np.float32)


def _far(work: Work, pairs: list[_Pairs]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The positions and hops of the open pairs that are joined by a path."""
    slots, nodes, anchors, bounds = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    if work.settings.own_hops == "bounded":
        # An upper bound: the shortest detour by a landmark.
        ends, places = np.unique(np.concatenate([nodes, anchors]), return_inverse=True)
        table = frozen(hops_from(work, landmark_nodes(work.graph, LANDMARKS), ends), np.int32)
        hops = bounds.copy()
        _least_detour(len(hops), table, *(frozen(side, np.int64) for side in np.split(places.reshape(-1), 2)), hops)
        return slots[hops != UNBOUNDED], hops[hops != UNBOUNDED]
    # Searches across the graph, one from each distinct node of the end that has fewer.
    near, far = (anchors, nodes) if len(np.unique(anchors)) < len(np.unique(nodes)) else (nodes, anchors)
    order = np.argsort(near, kind="stable")
    sources, first = np.unique(near[order], return_index=True)
    rows = np.append(first, len(order)).astype(np.int64)
    hops = np.empty(len(order), np.int32)
    at_once = searches_at_once(work.graph)
    step = WORD * at_once
    most = None if at_once == numba.get_num_threads() else step
    for part in work.pieces(len(sources), step=step, most=most, what="hops to far own anchors"):
        here = slice(int(rows[part.start]), int(rows[part.stop]))
        targets = Ragged(far[order[here]], rows[part.start : part.stop + 1] - here.start)
        hops[order[here]] = pair_distances(*work.graph.csr, sources[part], targets).values
    return slots[hops >= 0], hops[hops >= 0]


def searches_at_once(graph: Graph) -> int:
    """How many 64-source searches run at once: one per thread, as memory allows; refuses if none fits."""
    marks = BYTES_A_NODE * graph.num_nodes
    needed = marks + graph.offsets.nbytes + graph.neighbors.nbytes
    if needed > limit():
        what = f"one search needs {needed / 1e9:.1f} GB, but the limit is {limit() / 1e9:.1f} GB"
        hint = "raise --memory, lower --processes, or drop the position and neighborhood channels"
        raise MemoryLimitError(what, where="--memory", hint=hint)
    return workers(marks, int(numba.get_num_threads()))


@lru_cache(maxsize=2)
def landmark_nodes(graph: Graph, count: int) -> NDArray[np.int32]:
    """The nodes with the most neighbours, ties broken by smaller id; cached, because every channel needs them."""
    return np.argsort(-np.diff(graph.offsets), kind="stable")[:count].astype(np.int32)


@compiled_parallel
def _least_detour(begin: int, end: int, table: Array, left: Array, right: Array, out: Array) -> None:
    for i in range(begin, end):
        for k in range(table.shape[1]):
            there, back = table[left[i], k], table[right[i], k]
            if there >= 0 and back >= 0 and there + back < out[i]:
                out[i] = there + back
