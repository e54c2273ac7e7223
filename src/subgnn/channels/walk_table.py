"""Walks from single nodes, in a table: the walk from a subgraph is the mean of those from its nodes.

Over an undirected graph, g_u(v) = p_u(v) / pi(v) is symmetric in u and v. No two nodes outside the *core* are
neighbours, so that walks from and to them follow from those of their neighbours,

    g_u(v) = (1 - a) [u = v] / pi(u) + a sum over w of P(u, w) g_w(v),

and the table has the nodes of the core alone: 11,135 of 21,521 in PPI-BP. With it, a diffusion takes a quarter of the
time of :func:`~subgnn.channels.diffusion.diffuse`, with errors as small.
"""

import threading
import weakref
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.diffusion import Walks, diffuse
from subgnn.kernels.diffusion import sum_walks
from subgnn.parallel.memory import share
from subgnn.ragged import Ragged
from subgnn.storage.arrays import Format, encode_arrays, read_arrays
from subgnn.storage.cache import cache_limit, cache_path, lookup, store
from subgnn.storage.files import json_digest

LEAST_EDGES = 2**17
"""Entries of the smallest graph with a table: over smaller ones, walks take little time."""
_MOST_NUMBERS = 2**27  # in a table: 512 MiB
_STEP = 64  # rows that are computed at a time
_WORTH_READING = 1_000  # walks that take longer than to read and verify a table
_FEW_NEIGHBORS = 12  # of nodes outside the core: from these, sums have a row for each neighbour
_MOST_MEMBERS = 64  # of the mean subgraph; sums over more nodes take longer than walks
_FILE = Format("subgnn-walks", "table of walks", "many predictions of one run write one", "remove it")


class WalkTable:
    """Diffusions of node sets, from the table once it is there.

    The table costs one walk for each node of the core, so it is computed once that many walks have been asked for, or
    step by step by :meth:`advance`. The cache folder keeps it.
    """

    def __init__(self, walks: Walks, damping: float, core: NDArray[np.int32]) -> None:
        self._walks, self._damping, self._core = walks, damping, core
        place, outside = np.full(walks.graph.num_nodes, -1, np.int32), np.ones(walks.graph.num_nodes, np.bool_)
        outside[core] = False
        others = np.flatnonzero(outside)
        place[core], place[others] = np.arange(len(core)), -1 - np.arange(len(others))
        self._nodes = core, others, place
        graph, degrees = walks.graph, walks.degrees[others]
        over = np.divide(damping, degrees, out=np.zeros(len(others)), where=degrees > 0)
        links = Ragged(graph.neighbors, graph.offsets).take(others)
        weights = 1.0 if walks.weights is None else Ragged(walks.weights, graph.offsets).take(others).values
        self._links = links.offsets, place[links.values], over[links.row_ids] * weights
        self._own = np.where(degrees > 0, 1 - damping, 1) / walks.chance(damping)[others]
        self._path = cache_path("diffusions", json_digest([walks.graph.content_hash, "single nodes", damping]))
        self._asked, self._done, self._lock = 0, 0, threading.Lock()
        self._begun: NDArray[np.float32] | None = None
        self._ratios: NDArray[np.float32] | None = None
        _TABLES.add(self)

    def __call__(self, sets: Ragged) -> NDArray[np.float32]:
        self._asked += len(sets)
        if self._begun is None and self._asked >= (_WORTH_READING if self._path.exists() else len(self._core)):
            while not self.advance():
                pass
        if self._ratios is None or len(sets.values) > _MOST_MEMBERS * len(sets):
            return diffuse(self._walks, sets, self._damping)
        return sum_walks(sets, self._nodes, self._links, self._own, self._ratios)

    def advance(self) -> bool:
        """Read the table from the cache folder, or compute a few of its rows; whether it is complete."""
        with self._lock:
            if self._begun is None:
                path, shape = self._path, (len(self._core),) * 2
                self._ratios = lookup(
                    path, lambda: read_arrays(path, _FILE, mapped="c").array("ratios", np.float32, shape)
                )
                self._begun = np.empty(shape, np.float32) if self._ratios is None else self._ratios
            if self._ratios is None:
                rows = slice(self._done, self._done + _STEP)
                some = Ragged.from_rows(self._core[rows, None])
                self._begun[rows] = diffuse(self._walks, some, self._damping)[:, self._core]
                self._done += len(some)
                if self._done == len(self._core):
                    self._ratios = self._begun
                    if cache_limit():
                        store(self._path, encode_arrays({"ratios": self._ratios}, _FILE))
            return self._ratios is not None


_TABLES: weakref.WeakSet[WalkTable] = weakref.WeakSet()


def advance_tables() -> bool:
    """Compute a few rows of tables that have been asked for walks; whether all are complete."""
    return all(table.advance() for table in list(_TABLES))


def core_nodes(offsets: NDArray[np.int64], neighbors: NDArray[np.int32]) -> NDArray[np.int32]:
    """All nodes but those with few neighbours, and fewer than each of them; ties are broken by the lower node."""
    degrees = np.diff(offsets)
    rank = np.empty(len(degrees), np.int64)
    rank[np.argsort(degrees, kind="stable")] = np.arange(len(degrees))
    lowest, linked = np.full(len(degrees), len(degrees)), degrees > 0
    if linked.any():
        lowest[linked] = np.minimum.reduceat(rank[neighbors], offsets[:-1][linked])
    return np.flatnonzero((rank >= lowest) | (degrees > _FEW_NEIGHBORS)).astype(np.int32)


@lru_cache(maxsize=8)
def walk_table(walks: Walks, damping: float) -> WalkTable | None:
    """The table of walks over a graph; None if the graph is directed, too small or too large."""
    graph, most = walks.graph, min(_MOST_NUMBERS, share(0.25) // 4)
    if graph.directed or len(graph.neighbors) < LEAST_EDGES or graph.num_nodes**2 > 8 * most:
        return None
    core = core_nodes(*graph.csr)
    return WalkTable(walks, damping, core) if len(core) ** 2 <= most else None
