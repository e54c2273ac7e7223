"""Views of subgraphs: rows of numbers, one for each node of the graph, that linear models are fitted to.

======== ========================================================== =======
name     the row of a subgraph S                                    centred
======== ========================================================== =======
bag      B: 1 for each node of S                                    no
one-hop  B D^-1/2 A D^-1/2: the bag spread one hop; weights are 1   no
lift     l_S: the lift of its diffusion, with the weights of edges  yes
======== ========================================================== =======

A centred view is less its mean over the training split; this is done by the model, so that a view is a function of the
graph and the nodes of a subgraph alone, and is computed once for many splits.

Bags are sparse: nothing of size N x N, and no column for a node that no training subgraph gives a value. A lift has a
value at every node; by local push (:mod:`subgnn.channels.diffusion`), at those with the largest ones.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from subgnn.channels.diffusion import lifts, nearest_lifts, walks_of
from subgnn.config.settings import BaselineSettings
from subgnn.data.graph import Graph
from subgnn.errors import UserError
from subgnn.parallel.memory import share
from subgnn.parallel.progress import OnProgress
from subgnn.ragged import Ragged

SPARSE = ("bag", "one-hop")
LIFT = "lift"
EXACT_NUMBERS = 2**28
"""Lifts of all subgraphs at all nodes up to which ``baseline.diffusion = "auto"`` is exact; 1 GiB."""
GRAM_ROWS = 6000
"""Subgraphs up to which all their inner products are kept."""
Matrix = Any
"""A scipy CSR array, or a dense array, (n, columns)."""


def bag_of_nodes(nodes: Ragged, num_nodes: int) -> sparse.csr_array:
    """B: 1 where a node is in a subgraph.

    Shapes:
        returns: (n, N).
    """
    ones = np.ones(len(nodes.values))
    return sparse.csr_array((ones, nodes.values.astype(np.int32), nodes.offsets), shape=(len(nodes), num_nodes))


def spread_one_hop(bag: sparse.csr_array, graph: Graph) -> sparse.csr_array:
    """B D^-1/2 A D^-1/2; a node without neighbours spreads nothing.

    Shapes:
        bag, returns: (n, N).
    """
    degrees = np.diff(graph.offsets)
    scale = np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1)), 0.0)
    # The rows of the nodes that are there alone: one subgraph need not cost what the graph does.
    nodes, columns = np.unique(bag.indices, return_inverse=True)
    narrow = sparse.csr_array((bag.data * scale[bag.indices], columns, bag.indptr), shape=(bag.shape[0], len(nodes)))
    rows = Ragged(graph.neighbors, graph.offsets).take(nodes)
    size = (len(nodes), graph.num_nodes)
    spread = narrow @ sparse.csr_array((np.ones(len(rows.values)), rows.values, rows.offsets), shape=size)
    return (spread * scale[None, :]).tocsr()


def sparse_views(graph: Graph, nodes: Ragged, views: Sequence[str]) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Bags side by side, as they are and with the rows of each scaled to length one.

    Shapes:
        returns: (n, views N) twice; the entries of both are in the same places.
    """
    bag = bag_of_nodes(nodes, graph.num_nodes)
    parts = [bag if view == "bag" else spread_one_hop(bag, graph) for view in views]
    scaled = []
    for part in parts:
        length = np.sqrt(part.multiply(part).sum(axis=1))
        scaled.append(part * (1 / np.where(length > 0, length, 1.0))[:, None])
    return sparse.hstack(parts, format="csr"), sparse.hstack(scaled, format="csr")


def columns_of(rows: sparse.csr_array, columns: NDArray[np.int64]) -> sparse.csr_array:
    """The chosen columns of sparse rows, in their order.

    Shapes:
        rows: (n, all columns). columns: sorted. returns: (n, columns).
    """
    # 32-bit places: the only ones all solvers take.
    place = np.full(rows.shape[1], -1, np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    kept = place[rows.indices] >= 0
    starts = np.concatenate([[0], np.cumsum(kept)])[rows.indptr].astype(np.int32)
    return sparse.csr_array((rows.data[kept], place[rows.indices[kept]], starts), shape=(rows.shape[0], len(columns)))


@dataclass(frozen=True, slots=True)
class LiftSettings:
    """How lifts are computed: the settings of ``[baseline]``, with every choice made but that between dampings."""

    dampings: tuple[float, ...]
    exact: bool
    edges: int
    nodes: int

    @classmethod
    def of(cls, settings: BaselineSettings, dampings: tuple[float, ...]) -> LiftSettings:
        """Those of a section ``[baseline]``; several dampings are computed at once where it leaves them open."""
        exact = settings.diffusion == "exact"
        return cls(dampings, exact, settings.push_edges, settings.push_nodes)


@dataclass(frozen=True, slots=True, eq=False)
class Lifts:
    """l_S of subgraphs for one damping, with their inner products.

    Shapes:
        rows: (n, N), dense float32 if exact, else sparse. squared: (n,) float64, squared lengths of rows.
    """

    rows: Matrix
    squared: NDArray[np.float64]
    _gram: list[NDArray[np.float32]] = field(default_factory=list)

    def products(self, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
        """l_i . l_j of chosen subgraphs; all are computed at once and kept where there are few.

        Shapes:
            returns: (rows, others).
        """
        if self.rows.shape[0] > GRAM_ROWS:
            return _product(self.rows[rows], self.rows[others]).astype(np.float64)
        if not self._gram:
            self._gram.append(_product(self.rows, self.rows))
        return self._gram[0][np.ix_(rows, others)].astype(np.float64)

    @property
    def nbytes(self) -> int:
        """Memory of the rows and of the inner products."""
        n = self.rows.shape[0]
        dense = isinstance(self.rows, np.ndarray)
        return (self.rows.nbytes if dense else 2 * self.rows.data.nbytes) + (4 * n * n if n <= GRAM_ROWS else 0)


def _product(rows: Matrix, others: Matrix) -> NDArray[np.float32]:
    found = rows @ others.T
    return np.asarray(found.toarray() if sparse.issparse(found) else found, np.float32)


def compute_lifts(
    graph: Graph, nodes: Ragged, settings: LiftSettings, *, on_progress: OnProgress | None = None
) -> dict[float, Lifts]:
    """The lifts of subgraphs, by damping.

    Raises:
        UserError: if exact ones do not fit in half of the memory limit.
    """
    found = {}
    if settings.exact:
        size = 4 * len(nodes) * graph.num_nodes * len(settings.dampings)
        if size > share(0.5):
            what = f"exact lifts of {len(nodes):,} subgraphs at {graph.num_nodes:,} nodes take {size / 1e9:,.1f} GB"
            hint = 'set baseline.diffusion = "push" or one baseline.damping, or raise --memory'
            raise UserError(what, where="baseline.diffusion", hint=hint)
        dense = lifts(walks_of(graph), nodes, settings.dampings, on_progress=on_progress)
        for damping, rows in zip(settings.dampings, dense, strict=True):
            found[damping] = Lifts(rows, np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        return found
    for damping in settings.dampings:
        nearest, values = nearest_lifts(
            walks_of(graph), nodes, damping, edges=settings.edges, most=settings.nodes, on_progress=on_progress
        )
        size = (len(nodes), graph.num_nodes)
        rows = sparse.csr_array((values, nearest.values.astype(np.int32), nearest.offsets), shape=size)
        rows.sort_indices()
        found[damping] = Lifts(rows, np.asarray(rows.multiply(rows).sum(axis=1), np.float64))
    return found


class LiftCache:
    """Lifts that were computed last, so that fits to other splits of the same subgraphs share them.

    It holds as many as fit in a fifth of the memory limit.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[str, dict[float, Lifts]] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self,
        graph: Graph,
        nodes: Ragged,
        settings: LiftSettings,
        *,
        keep: bool = False,
        on_progress: OnProgress | None = None,
    ) -> dict[float, Lifts]:
        """:func:`compute_lifts`, or what is left of an equal call.

        Args:
            keep: leave them in the cache.
        """
        if not keep and not self._found:
            return compute_lifts(graph, nodes, settings, on_progress=on_progress)
        key = hashlib.sha256(f"{graph.content_hash} {settings}".encode())
        for array in (nodes.values, nodes.offsets):
            key.update(np.ascontiguousarray(array).data)
        name = key.hexdigest()
        with self._lock:
            if name in self._found:
                self._found.move_to_end(name)
                return self._found[name]
        found = compute_lifts(graph, nodes, settings, on_progress=on_progress)
        if keep:
            with self._lock:
                self._found[name] = found
                while self._found and sum(one.nbytes for by in self._found.values() for one in by.values()) > share(
                    0.2
                ):
                    self._found.popitem(last=False)
        return found


LIFTS = LiftCache()
"""The lifts of this process."""
