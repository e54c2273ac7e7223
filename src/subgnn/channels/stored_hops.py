"""Hops from given nodes across a graph; on a large graph, the searches are kept in the cache folder.

A search serves 64 sources (:mod:`subgnn.kernels.distances`) and passes over the whole graph. Predictions need hops from
the same shared anchors and landmarks: they are stored, one file for 64 sources, a byte for each node and source. Only
the wanted rows are read: every :data:`BLOCK` rows have a checksum, which is compared then.
"""

import hashlib
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import Work
from subgnn.errors import DataError
from subgnn.kernels.arrays import Array
from subgnn.kernels.distances import BYTES_A_NODE, NO_PATH, WORD, hop_distances, hops_to_all
from subgnn.parallel.memory import share, workers
from subgnn.storage.arrays import Format, encode_arrays, read_arrays
from subgnn.storage.cache import cache_limit, cache_path, lookup, store

LARGE = 5_000_000
"""The fewest entries of a graph's rows for which searches are stored; on smaller graphs they take under a second."""
BLOCK = 64
_STORED = Format("subgnn-hops", "file of hops", "measuring subgraphs of a large graph writes one", "remove it")


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
    arrays = read_arrays(path, _STORED, mapped="r", verify=False).arrays
    hops, sums = (arrays.get(name, np.empty(0)) for name in ("hops", "sums"))
    rows = len(hops)
    if hops.dtype != np.uint8 or hops.shape[1:] != (width,) or rows not in (0, num_nodes):
        raise DataError(f"it has hops of the shape {hops.shape}", where=str(path))
    if sums.dtype != np.int64 or sums.shape != (-(-rows // BLOCK),):
        raise DataError(f"it has {len(sums)} checksums", where=str(path))
    if not rows:
        return np.empty((0, width), np.int32)
    for block in np.unique(nodes // BLOCK).tolist():
        if zlib.crc32(hops[block * BLOCK : (block + 1) * BLOCK].data) != sums[block]:
            raise DataError("the content does not match its checksum", where=str(path))
    return _as_hops(hops[nodes])


def _as_hops(stored: NDArray[np.uint8]) -> NDArray[np.int32]:
    return np.where(stored == NO_PATH, -1, stored.astype(np.int32))
