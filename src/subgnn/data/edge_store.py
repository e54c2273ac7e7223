"""Build a graph on disk, from edge lists larger than memory.

Edges are stored in their order, and counted by the node they leave. Then every edge goes, from each of its ends, into
one of several *buckets*: consecutive rows, few enough to be sorted in memory. The result is that of
:meth:`Graph.from_edges`, entry for entry. It takes at most 24 bytes per edge, 36 with weights, and then the graph.
"""

from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Dropped, Graph, dropped_line, other_weights_line
from subgnn.data.strings import NodeNames
from subgnn.data.values import MAX_NODES, check_weights
from subgnn.errors import warn
from subgnn.kernels.build_csr import CELL, CELL_BITS, FLIPPED, bucket_rows, other_weights
from subgnn.parallel.progress import OnProgress, ignore

MEMORY = 2 * 10**9
_BYTES_PER_ENTRY, _BYTES_PER_ROW, _BYTES_PER_EDGE = 32, 24, 64
# Records of a bucket that fits a processor's cache, which halves the time; and how many buckets are still written to in
# long pieces.
_BUCKET, _BUCKETS = 2**20, 400
_ID = np.uint32(2**31 - 1)  # of a record's neighbour, without the bit that says that the edge is flipped


class EdgeStore:
    """Collects edges in chunks, and builds a graph of memory maps; its files are in ``folder``, which stays."""

    def __init__(self, folder: Path, *, memory: int = MEMORY, on_progress: OnProgress = ignore) -> None:
        self.memory, self.on_progress = memory, on_progress
        self.num_edges = self.num_nodes = self._loops = 0
        self.folder, self._width = folder, 0
        self._leaving, self._entering = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._open("edges", "wb").close()

    def append(self, tails: NDArray[Any], heads: NDArray[Any], weights: NDArray[Any] | None = None) -> None:
        """Add edges, with finite weights for all or for none; with too many nodes they are not stored."""
        if len(tails) == 0:
            return
        self.num_nodes = max(self.num_nodes, 1 + int(tails.max()), 1 + int(heads.max()))
        self.num_edges += len(tails)
        if self.num_nodes > MAX_NODES:
            return
        single = None if weights is None else check_weights(weights, len(tails))
        if self.num_nodes > len(self._leaving) * CELL:
            more = max(-(-self.num_nodes // CELL), 2 * len(self._leaving)) - len(self._leaving)
            self._leaving, self._entering = np.pad(self._leaving, (0, more)), np.pad(self._entering, (0, more))
        kept = tails != heads
        ends = tails[kept], heads[kept]
        for counts, nodes in zip((self._leaving, self._entering), ends, strict=True):
            counts += np.bincount(nodes >> CELL_BITS, minlength=len(counts))
        bits = [] if single is None else [single.view(np.uint32)[kept]]
        records = np.stack([*ends, *bits], axis=1).astype(np.uint32)
        self._width = records.shape[1]
        self._loops += len(tails) - len(records)
        with self._open("edges", "ab") as file:
            file.write(records.data)

    def build(self, num_nodes: int, *, directed: bool = False, names: NodeNames | None = None) -> Graph:
        """Build the graph, and warn of edges that are dropped; the store cannot be used again."""
        cells = self._leaving if directed else self._leaving + self._entering
        num_cells = -(-num_nodes // CELL)
        ends = np.zeros(num_cells + 1, np.int64)
        known = min(num_cells, len(cells))
        ends[1 : known + 1] = cells[:known]
        np.cumsum(ends, out=ends)
        # Group the cells into buckets that can be sorted in half the memory.
        most = min(max(_BUCKET, int(ends[-1]) // _BUCKETS), max(1, self.memory // 2 // _BYTES_PER_ENTRY))
        widest = max(1, self.memory // 4 // _BYTES_PER_ROW // CELL)
        cuts = [0]
        while cuts[-1] < num_cells:
            fits = int(np.searchsorted(ends, ends[cuts[-1]] + most, "right")) - 1
            cuts.append(min(max(fits, cuts[-1] + 1), cuts[-1] + widest, num_cells))
        of_cell = np.repeat(np.arange(len(cuts) - 1, dtype=np.min_scalar_type(len(cuts))), np.diff(cuts))
        fill, done, kept = ends[cuts[:-1]], 0, self.num_edges - self._loops
        most = min(max(1, self.memory // 4 // _BYTES_PER_EDGE), 2**20)
        with self._open("edges", "rb") as edges, self._open("buckets", "wb") as file:
            while len(read := np.fromfile(edges, np.uint32, most * max(2, self._width))):
                self.on_progress("distributing edges", done, kept)
                records = read.reshape(-1, self._width)
                done += len(records)
                if not directed:
                    turned = records.copy()
                    turned[:, 0], turned[:, 1] = records[:, 1], records[:, 0] | FLIPPED
                    records = np.stack([records, turned], axis=1).reshape(-1, self._width)
                buckets = of_cell[records[:, 0] >> CELL_BITS]
                sorted_records = records[np.argsort(buckets, kind="stable")]
                bounds = np.append(0, np.cumsum(np.bincount(buckets, minlength=len(fill))))
                for bucket in np.flatnonzero(np.diff(bounds)):
                    piece = sorted_records[bounds[bucket] : bounds[bucket + 1]]
                    file.seek(int(fill[bucket]) * 4 * self._width)
                    file.write(piece.data)
                    fill[bucket] += len(piece)
        self.on_progress("distributing edges", done, kept)
        (self.folder / "edges").unlink()
        entries, mirrored, others = self._write_rows(np.minimum(np.array(cuts, np.int64) * CELL, num_nodes), ends[cuts])
        (self.folder / "buckets").unlink()
        repeats = kept - entries if directed else kept - entries // 2 - mirrored
        if self._loops or repeats:
            warn(dropped_line(self._loops, repeats))
        if others:
            count = sum(found[0] for found in others)  # an undirected edge is in two rows
            warn(other_weights_line(count if directed else count // 2, others[0][1], names, "first"))
        rows = self._map("offsets", np.int64), self._map("neighbors", np.int32)
        weights = self._map("weights", np.float32) if self._width == 3 else None
        return Graph(*rows, weights, names=names, directed=directed, dropped=Dropped(self._loops, repeats))

    def _write_rows(self, rows: NDArray[np.int64], places: NDArray[np.int64]) -> tuple[int, int, list[Any]]:
        """Sort the buckets, which begin at given rows; their records begin at ``places``.

        Returns the number of entries, and of edges given in both orientations or other weights.
        """
        entries = mirrored = 0
        others: list[Any] = []
        total = int(places[-1])
        with (
            self._open("buckets", "rb") as file,
            self._open("offsets", "wb") as offsets_file,
            self._open("neighbors", "wb") as neighbors_file,
            self._open("weights", "wb") as weights_file,
        ):
            offsets_file.write(np.zeros(1, np.int64).data)
            for bucket in range(len(rows) - 1):
                first, last = (int(row) for row in rows[bucket : bucket + 2])
                begin, end = (int(place) for place in places[bucket : bucket + 2])
                self.on_progress("sorting rows", begin, total)
                records = np.fromfile(file, np.uint32, (end - begin) * max(2, self._width))
                records = records.reshape(-1, max(2, self._width))
                offsets, neighbors, weights, both = bucket_rows(records, first, last - first)
                offsets_file.write((offsets[1:] + entries).data)
                neighbors_file.write(neighbors.data)
                weights_file.write(weights.data)
                entries += len(neighbors)
                mirrored += both
                if self._width == 3 and len(neighbors) < len(records):
                    heads, given = (records[:, 1] & _ID).astype(np.int32), records[:, 2].copy().view(np.float32)
                    tails, sorted_rows = (records[:, 0] - first).astype(np.int32), (offsets, neighbors, weights)
                    count, (tail, head, kept, other) = other_weights(sorted_rows, tails, heads, given)
                    others += [(count, (tail + first, head, kept, other))] if count else []
        self.on_progress("sorting rows", total, total)
        return entries, mirrored, others

    def _open(self, name: str, mode: str) -> IO[bytes]:
        return (self.folder / name).open(mode)

    def _map(self, name: str, dtype: Any) -> NDArray[Any]:
        path = self.folder / name
        return np.memmap(path, dtype, mode="r").view(np.ndarray) if path.stat().st_size else np.empty(0, dtype)
