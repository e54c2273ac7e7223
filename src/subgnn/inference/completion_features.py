"""Features of a pair of a subgraph S and a node v outside of it, which predict whether v is a member of S.

f_v is the number of known subgraphs t = 1, ..., T that contain v; :mod:`subgnn.channels.diffusion` defines p_S, pi and
the lift l_S.

=========== ==========================================================================================================
name        value
=========== ==========================================================================================================
diffusion   log(p_S(v) + 10^-7): how often a random walk from S ends at v
lift        l_S(v) = log(1 + p_S(v) / pi(v)): the same, compared with chance
degree      log(1 + d_v)
paths       log(1 + sum over neighbours w of v of |N(w) & S| / log(2 + d_w)): common neighbours, as by Adamic and Adar
frequency   log(1 + f_v)
together    log(1 + 10 / (|S| sqrt(1 + f_v)) sum over u in S of |{t: u, v in t}| / sqrt(max(1, f_u)))
overlap     log(10^-3 + sum over t with v of |S & t|^2 / (|S| |t|)): known subgraphs that overlap S
nearby      log(1 + sum over t with v of max(0, mean of l_S over t - mean of l_S)^2): known subgraphs near S
=========== ==========================================================================================================

The last four ignore a known subgraph if S is a part of it with at least half of its nodes: it is taken for S itself, so
that a known subgraph that lost some members is completed as if it were unknown. While the model is fitted, they ignore
the group of S as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.channels import diffusion
from subgnn.data.graph import Graph
from subgnn.kernels.diffusion import COLUMNS, chebyshev_series
from subgnn.ragged import Ragged

Floats = NDArray[np.float64]

GROUPS: dict[str, tuple[str, ...]] = {
    "diffusion": ("diffusion", "lift", "degree"),
    "common_neighbours": ("paths",),
    "known_subgraphs": ("frequency", "together", "overlap", "nearby"),
}
"""Features by what they are computed from, in their order."""
NAMES = tuple(name for names in GROUPS.values() for name in names)
DAMPING = 0.5
_SMALLEST_P, _SMALLEST_OVERLAP, _TOGETHER_SCALE = 1e-7, 1e-3, 10.0
_REACHED = 1000
_GATHERED = 2**22  # neighbours to gather at once
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class DiffusedSubgraph:
    """A subgraph and its diffusion.

    Shapes:
        nodes: (|S|,) sorted. ratios: (N,) float32, p_S / pi. reached: (k,), the 1,000 nodes where a walk from S ends
        most often, or those that local push finds.
    """

    nodes: NDArray[np.int32]
    ratios: NDArray[np.float32]
    reached: NDArray[np.int64]


class PairFeatures:
    """Computes features of pairs, in an undirected graph with known subgraphs."""

    def __init__(self, graph: Graph, known: Ragged) -> None:
        self.graph, self.known = graph, known
        self.degrees = np.diff(graph.offsets)
        ones = np.ones(len(known.values), np.float32)
        shape = (len(known), graph.num_nodes)
        self._known = scipy.sparse.csr_array((ones, known.values.astype(np.int32), known.offsets), shape=shape)
        self._containing = self._known.T.tocsr()  # (N, T)
        self._frequency = np.bincount(known.values, minlength=graph.num_nodes)
        self._chance = diffusion.walks_of(graph).chance(DAMPING)

    def diffuse(self, subgraphs: Ragged) -> Iterator[DiffusedSubgraph]:
        """Compute the diffusions of subgraphs, a few at a time."""
        walks, num_nodes = diffusion.walks_of(self.graph), self.graph.num_nodes
        for begin in range(0, len(subgraphs), COLUMNS):
            some = subgraphs.take(np.arange(begin, min(begin + COLUMNS, len(subgraphs))))
            if self.is_exact:
                for nodes, ratios in zip(some, diffusion.diffuse(walks, some, DAMPING), strict=True):
                    yield DiffusedSubgraph(nodes, ratios, np.argsort(-ratios * self._chance, kind="stable")[:_REACHED])
                continue
            edges, most = diffusion.PUSH_EDGES, diffusion.PUSH_NODES
            near, values = diffusion.diffuse_nearby(walks, some, DAMPING, edges=edges, most=most)
            for i, nodes in enumerate(some):
                ratios = np.zeros(num_nodes, np.float32)
                ratios[near[i]] = values[near.offsets[i] : near.offsets[i + 1]]
                yield DiffusedSubgraph(nodes, ratios, near[i].astype(np.int64))

    @property
    def is_exact(self) -> bool:
        """Whether diffusions are computed at all nodes, and all nodes are candidates."""
        return self.graph.num_nodes <= diffusion.EXACT_NODES

    def candidates(self, query: DiffusedSubgraph) -> NDArray[np.int64]:
        """The candidates, sorted: all nodes outside of S or, in a large graph, those near S."""
        nodes = np.arange(self.graph.num_nodes) if self.is_exact else self.near(query)
        return nodes[~np.isin(nodes, query.nodes)]

    def near(self, query: DiffusedSubgraph, *, unused: NDArray[np.int64] = _NONE) -> NDArray[np.int64]:
        """The nodes that a walk from S reaches and those of known subgraphs that overlap S, unless unused; sorted."""
        overlaps = self._overlaps(query.nodes)
        overlaps[unused] = 0
        members = self.known.take(np.flatnonzero(overlaps)).values
        return np.unique(np.concatenate([query.reached, members.astype(np.int64)]))

    def links(self, subgraph: NDArray[np.int32], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of neighbours in S of each node."""
        return self._links(subgraph)[nodes]

    def table(self, query: DiffusedSubgraph, nodes: NDArray[np.int64], *, unused: NDArray[np.int64] = _NONE) -> Floats:
        """The features of nodes outside of S (nodes, features), as :data:`NAMES`, without the unused subgraphs."""
        size, ratios, sizes = len(query.nodes), query.ratios.astype(np.float64), np.maximum(self.known.lengths, 1)
        overlaps = self._overlaps(query.nodes)
        unused = np.union1d(unused, np.flatnonzero((overlaps == size) & (2 * size >= sizes)))
        frequency = self._frequency - np.bincount(self.known.take(unused).values, minlength=self.graph.num_nodes)
        rare = self._overlaps(query.nodes, 1 / np.sqrt(np.maximum(frequency[query.nodes], 1)))
        lifts = np.log1p(ratios)
        near = np.maximum(0, self._known @ lifts / sizes - lifts.mean()) ** 2
        for values in (overlaps, rare, near):
            values[unused] = 0
        shared = self._containing[nodes] @ np.stack([rare, overlaps**2 / (size * sizes), near], axis=1)  # (nodes, 3)
        columns = {
            "diffusion": np.log(ratios[nodes] * self._chance[nodes] + _SMALLEST_P),
            "lift": lifts[nodes],
            "degree": np.log1p(self.degrees[nodes]),
            "paths": np.log1p(self._over_neighbours(self._links(query.nodes) / np.log(2 + self.degrees), nodes)),
            "frequency": np.log1p(frequency[nodes]),
            "together": np.log1p(_TOGETHER_SCALE * shared[:, 0] / (size * np.sqrt(1 + frequency[nodes]))),
            "overlap": np.log(_SMALLEST_OVERLAP + shared[:, 1]),
            "nearby": np.log1p(shared[:, 2]),
        }
        return np.stack([columns[name] for name in NAMES], axis=1)

    def _overlaps(self, nodes: NDArray[np.int32], weights: Floats | None = None) -> Floats:
        """The number of nodes, or the sum of their weights, in each known subgraph (T,)."""
        given = np.ones(len(nodes)) if weights is None else weights
        return np.asarray(given @ self._containing[nodes], np.float64)

    def _links(self, subgraph: NDArray[np.int32]) -> NDArray[np.int64]:
        """The number of neighbours in S of all nodes (N,)."""
        rows = Ragged(self.graph.neighbors, self.graph.offsets).take(subgraph)
        return np.bincount(rows.values, minlength=self.graph.num_nodes)

    def _over_neighbours(self, values: Floats, nodes: NDArray[np.int64]) -> Floats:
        """The sum of values (N,) over the neighbours of each node (nodes,)."""
        if self.is_exact:  # a product with the whole graph: D D^-1 A
            degrees, column = self.degrees.astype(np.float32), values[:, None].astype(np.float32)
            means = chebyshev_series(*self.graph.csr, None, degrees, column, np.array([0.0, 1.0]))
            return np.asarray((means[:, 0] * degrees)[nodes], np.float64)
        found, ends = np.empty(len(nodes)), np.cumsum(self.degrees[nodes])
        begin = 0
        while begin < len(nodes):
            before = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + _GATHERED, side="right")))
            rows = Ragged(self.graph.neighbors, self.graph.offsets).take(nodes[begin:end])
            found[begin:end] = np.bincount(rows.row_ids, values[rows.values], minlength=end - begin)
            begin = end
        return found
