"""Diffusion: a random walk from a subgraph, compared with chance; beyond the paper.

For a node set c, s = 1_c / |c|, P = D^-1 A and pi(v) = d_v / sum of d, the diffusion of c and its lift are

    p_c = (1 - a) sum over k of a^k s P^k,      l_c(v) = log(1 + p_c(v) / pi(v))

how much more often a walk that starts in c ends at v than chance. It compares c with every node at once: near nodes
count, hubs do not. a is the damping, the probability that the walk goes on before each step.

Weights of edges are in A where the graph has them: their magnitudes, as walks know no sign. A node without edges, or
with edges of weight 0 alone, has a loop of the mean weight, so that its walk stays there; without weights, d_v = 1.

:func:`lifts` computes all of l_c, to an error of 10^-7: relative to that of s, in the norm of p / sqrt(d)
(:mod:`subgnn.kernels.diffusion`). :func:`nearest_lifts` does not visit the whole graph: it follows a bounded number of
edges, gives the nodes with the largest lifts, and its p_c(v) / pi(v) are too small by at most epsilon sum of d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.kernels.diffusion import COLUMNS, chebyshev_series, push
from subgnn.parallel.memory import workers
from subgnn.parallel.progress import OnProgress, pieces
from subgnn.ragged import Ragged

TOLERANCE = 1e-7
"""The part of the Chebyshev series that is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """A graph as random walks see it.

    ``loop`` is the weight of the loop at a node without edges, and ``volume`` the sum of all degrees, loops included.

    Shapes:
        weights: (entries,) float32, or None where all are 1. degrees: (N,) float32, 0 where a walk stays.
    """

    graph: Graph
    weights: NDArray[np.float32] | None
    degrees: NDArray[np.float32]
    loop: float
    volume: float

    @classmethod
    def of(cls, graph: Graph) -> Walks:
        """The walks over an undirected graph."""
        weights, loop = None, 1.0
        degrees = np.diff(graph.offsets).astype(np.float32)
        if graph.weights is not None:
            weights, rows = np.abs(graph.weights), graph.offsets[:-1][degrees > 0]
            loop = float(weights.mean(dtype=np.float64)) if weights.any() else 1.0
            degrees[degrees > 0] = np.add.reduceat(weights, rows, dtype=np.float64) if len(rows) else 0
        volume = float(degrees.sum(dtype=np.float64)) + loop * int((degrees == 0).sum())
        return cls(graph, weights, degrees, loop, volume)

    @property
    def chance(self) -> NDArray[np.float64]:
        """pi, the part of a long walk's time at each node (N,)."""
        return np.where(self.degrees > 0, self.degrees, self.loop) / self.volume


@lru_cache(maxsize=1)
def walks_of(graph: Graph) -> Walks:
    """:meth:`Walks.of`; that of the graph before is kept, as predictions ask for it again and again."""
    return Walks.of(graph)


def coefficients(dampings: Sequence[float]) -> NDArray[np.float64]:
    """Chebyshev coefficients of (1 - a) / (1 - a x) on [-1, 1], until the rest sums to at most :data:`TOLERANCE`.

    Shapes:
        returns: (dampings, K + 1); the largest a decides on K.

    Example:
        >>> float(coefficients([0.6]) @ np.polynomial.chebyshev.chebvander(0.5, 13)[0, :14].round(12)) > 0.57
        True
    """
    a = np.asarray(dampings, np.float64)[:, None]
    root = np.sqrt(1 - a * a)
    rho = a / (1 + root)
    slowest = float(rho.max())
    terms = 1 if slowest == 0 else 1 + int(np.ceil(np.log(TOLERANCE * (1 - slowest) / 2) / np.log(slowest)))
    k = np.arange(terms)
    return np.where(k > 0, 2, 1) * (1 - a) / root * rho**k


def lifts(
    walks: Walks, sets: Ragged, dampings: Sequence[float], *, on_progress: OnProgress | None = None
) -> list[NDArray[np.float32]]:
    """l_c of every set, for several dampings that share the work.

    Args:
        sets: sorted nodes; not empty.
        dampings: values of a, from 0 to below 1.

    Shapes:
        returns: (C, N) for each damping.
    """
    graph, series = walks.graph, coefficients(dampings)
    found = [np.empty((len(sets), graph.num_nodes), np.float32) for _ in dampings]
    ratio = np.float32(1) / walks.chance.astype(np.float32)
    for part in pieces(len(sets), step=COLUMNS, most=COLUMNS, what="diffusion", on_progress=on_progress):
        some = sets.take(np.arange(part.start, part.stop))
        start = np.zeros((graph.num_nodes, len(some)), np.float32)
        start[some.values, some.row_ids] = ratio[some.values] / some.lengths[some.row_ids]
        ratios = chebyshev_series(*graph.csr, walks.weights, walks.degrees, start, series)
        for lift, q in zip(found, ratios, strict=True):
            lift[part] = np.log1p(np.maximum(q, 0, out=q).T)
    return found


def push_bound(damping: float, edges: int) -> float:
    """Epsilon with which the walk of a set follows at most so many edges (of weight 1)."""
    return 1 / ((1 - damping) * edges)


def nearest_lifts(
    walks: Walks, sets: Ragged, damping: float, *, edges: int, most: int, on_progress: OnProgress | None = None
) -> tuple[Ragged, NDArray[np.float32]]:
    """The nodes with the largest lifts of every set, and their lifts, by local push.

    p_c(v) / pi(v) is at most ``push_bound(damping, edges) * walks.volume`` above what its lift says, and never below.

    Args:
        sets: sorted nodes; not empty.
        edges: how many the walk of a set may follow; weights count in units of their mean.
        most: how many nodes to keep for each set.

    Shapes:
        returns: nodes of each set, the largest lift first, and the lifts in their order.
    """
    epsilon = push_bound(damping, edges) / walks.loop
    threads = int(numba.get_num_threads())
    # A thread's table has at most four places of 24 bytes for a node, and there are as many nodes as edges, at most.
    at_once = workers(96 * edges, threads)
    step, limit = (64, None) if at_once == threads else (at_once, at_once)
    nodes, values = [], []
    for part in pieces(len(sets), step=step, most=limit, what="diffusion", on_progress=on_progress):
        some = sets.take(np.arange(part.start, part.stop))
        found, ratios, counts = push(
            *walks.graph.csr,
            walks.weights,
            walks.degrees,
            some,
            loop=walks.loop,
            damping=damping,
            epsilon=epsilon,
            most=most,
        )
        nodes += [row[:count] for row, count in zip(found, counts, strict=True)]
        values += [row[:count] for row, count in zip(ratios, counts, strict=True)]
    lift = np.log1p(walks.volume * np.concatenate([np.empty(0), *values])).astype(np.float32)
    return Ragged.from_rows(nodes), lift
