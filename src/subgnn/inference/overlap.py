"""Find known subgraphs by the nodes that they cover, without a model.

======== ===================================================================================================
by       distance of two subgraphs
======== ===================================================================================================
nodes    1 - (nodes of both) / (nodes of either), the Jaccard distance
place    1 - cosine of their bags of nodes spread one hop, less the mean of the known subgraphs: those in the
         same part of the graph are near, also if they share few nodes (:mod:`subgnn.models.novelty`)
======== ===================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.errors import UserError
from subgnn.inference.nearest import Found
from subgnn.models.kernel_machines.views import bag_of_nodes
from subgnn.models.novelty import Comparison, spread_entries
from subgnn.parallel.memory import share
from subgnn.ragged import Ragged

By = Literal["place", "nodes", "class"]
_DIGITS = 9  # of distances that count as equal
_ENTRY_BYTES = 40  # of the rows of known subgraphs, with copies while they are made


class Overlap:
    """Known subgraphs, ready for queries by ``nodes`` or ``place``; the graph is undirected."""

    def __init__(self, graph: Graph, known: Ragged, by: By) -> None:
        self._known = len(known)
        self._distances = _jaccard(graph, known) if by == "nodes" else _by_place(graph, known)

    def find(self, subgraphs: Ragged, top: int) -> Found:
        """The nearest known subgraphs and their distances; ties are broken by position."""
        if top < 1:
            raise UserError(f"cannot find {top} neighbours", where="top", hint="accepted: 1 or more")
        top = min(top, self._known)
        places, distances = np.empty((len(subgraphs), top), np.int64), np.empty((len(subgraphs), top))
        size = max(1, int(share(0.05)) // (32 * max(1, self._known)))
        for begin in range(0, len(subgraphs), size):
            rows = np.arange(begin, min(begin + size, len(subgraphs)))
            found = self._distances(subgraphs.take(rows)).clip(min=0).round(_DIGITS)
            order = np.argsort(found, axis=1, kind="stable")[:, :top]
            places[rows], distances[rows] = order, np.take_along_axis(found, order, axis=1)
        return places, distances


def _jaccard(graph: Graph, known: Ragged) -> Callable[[Ragged], NDArray[np.float64]]:
    columns, sizes = bag_of_nodes(known, graph.num_nodes).T.tocsr(), known.lengths

    def distances(subgraphs: Ragged) -> NDArray[np.float64]:
        both = (bag_of_nodes(subgraphs, graph.num_nodes) @ columns).toarray().astype(np.float64)
        found: NDArray[np.float64] = 1 - both / (subgraphs.lengths[:, None] + sizes - both)
        return found

    return distances


def _by_place(graph: Graph, known: Ragged) -> Callable[[Ragged], NDArray[np.float64]]:
    needed = _ENTRY_BYTES * spread_entries(graph, known)
    if needed > share(0.5):
        what = f"the neighbours of {len(known):,} known subgraphs take {needed / 2**30:.1f} GiB"
        raise UserError(what, where="search", hint="pass --by nodes or --by class, or raise --memory")
    compared = Comparison(graph, known)
    return lambda subgraphs: 1 - compared.cosines(subgraphs)
