"""Diffusion: a random walk from a subgraph, compared with chance; beyond the paper.

For a node set c, s = 1_c / |c|, P = D^-1 A and pi(v) = d_v / sum of d, the diffusion of c and its lift are

    p_c = (1 - a) sum over k of a^k s P^k,      l_c(v) = log(1 + p_c(v) / pi(v))

how much more often a walk that starts in c ends at v than chance. a is the damping, the probability that the walk goes
on before each step. A has the magnitudes of weights; a node without edges, or with edges of weight 0 alone, has a loop
of the mean weight, so that its walk stays there. Over a directed graph walks follow out-edges, or in-edges over its
reverse, and chance is where the same walk from any node ends: pi = (1 - a) sum over k of a^k u P^k, u = 1 / N.

:func:`diffuse` computes p_c / pi at all nodes; errors of p_c sum to about 10^-6 (:mod:`subgnn.kernels.diffusion`).
:func:`diffuse_nearby` follows a bounded number of edges, gives the nodes with the largest lifts, and :func:`push_bound`
says how much may be missing.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.kernels.diffusion import COLUMNS, push, relax
from subgnn.parallel.memory import workers
from subgnn.parallel.progress import OnProgress, ignore, pieces
from subgnn.ragged import Ragged

EXACT_NODES = 2**17
"""The largest graph, in nodes, on which diffusions of a few sets are exact; on larger graphs, local push is used."""
PUSH_EDGES, PUSH_NODES = 1_000_000, 4096
"""The most edges that the local push of a set follows, and the most nodes that it returns."""
TOLERANCE = 1e-6
"""About what the errors of a diffusion sum to."""


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """A graph as random walks see it: its edges, or its out-edges if it is directed.

    ``loop`` is the weight of the loop at a node without edges, and ``volume`` the sum of all degrees, loops included.
    ``back`` has the edges that lead to a node: the graph reversed, or the graph itself if it is undirected.

    Shapes:
        weights: (entries,) float32, or None where all are 1. degrees: (N,) float32, 0 where a walk stays.
    """

    graph: Graph
    weights: NDArray[np.float32] | None
    degrees: NDArray[np.float32]
    loop: float
    volume: float
    back: Graph

    @classmethod
    def of(cls, graph: Graph, back: Graph | None = None) -> Self:
        """The walks over a graph; ``back`` is a directed graph reversed, where it is known."""
        weights, loop = None, 1.0
        degrees = np.diff(graph.offsets).astype(np.float32)
        if graph.weights is not None:
            weights, rows = magnitudes(graph), graph.offsets[:-1][degrees > 0]
            loop = float(weights.mean(dtype=np.float64)) if weights.any() else 1.0
            degrees[degrees > 0] = np.add.reduceat(weights, rows, dtype=np.float64) if len(rows) else 0
        volume = float(degrees.sum(dtype=np.float64)) + loop * int((degrees == 0).sum())
        return cls(graph, weights, degrees, loop, volume, graph.reverse() if back is None else back)

    @lru_cache(maxsize=4)  # noqa: B019 - a few graphs stay, as those of walks_of do
    def chance(self, damping: float) -> NDArray[np.float64]:
        """The distribution pi (N,): the part of a long walk's time at each node; if directed, as the module says."""
        if self.graph.directed:
            start = np.full((1, self.graph.num_nodes, 1), 1 / max(1, self.graph.num_nodes), np.float32)
            return self.solve(start, damping)[0, :, 0].astype(np.float64)
        return np.where(self.degrees > 0, self.degrees, self.loop) / self.volume

    def solve(self, start: NDArray[np.float32], damping: float) -> NDArray[np.float32]:
        """p_c / pi from s / pi, or if the graph is directed, p_c from s, in blocks of sets (:func:`relax`)."""
        graph, weights, loops = self.graph, self.weights, self.degrees == 0
        over: NDArray[np.float64] = np.divide(damping, self.degrees, out=np.zeros(len(loops)), where=~loops)
        omega = 2 / (1 + np.sqrt(1 - damping * damping))
        scale, measure, rate = over, self.degrees, np.sqrt(omega - 1)
        if graph.directed:
            graph, omega, rate = self.back, 1.0, damping
            weights = over[graph.neighbors].astype(np.float32) * (1 if graph.weights is None else magnitudes(graph))
            scale, measure = np.where(loops, 1 / (1 - damping), 1.0), np.ones(len(loops), np.float32)
        most = 2 + int(2 * np.log(TOLERANCE) / np.log(max(rate, 1e-3)))  # twice as many as the rate asks for
        equations = np.where(loops, 1, 1 - damping), scale, measure
        return relax(graph.csr, weights, equations, start, omega=omega, tolerance=TOLERANCE * (1 - rate), most=most)


def magnitudes(graph: Graph) -> NDArray[np.float32]:
    """The weights of a graph without their signs (entries,); not copied where none is below 0."""
    weights: NDArray[np.float32] = np.empty(0, np.float32) if graph.weights is None else graph.weights
    return np.abs(weights) if weights.min(initial=0) < 0 else weights


@lru_cache(maxsize=8)
def _two_ways(graph: Graph) -> tuple[Walks, Walks]:
    back = graph.reverse()
    # Reversing an edge changes what is at a node: results of the two are not to be found for each other.
    back = replace(back, known_hash=hashlib.sha256(f"reverse {graph.content_hash}".encode()).hexdigest())
    return Walks.of(graph, back), Walks.of(back, graph)


_undirected_walks = lru_cache(maxsize=8)(Walks.of)


def walks_of(graph: Graph, way: str = "") -> Walks:
    """The walks over an undirected graph, or ``out`` or ``in``, along or against its directed edges; cached."""
    if not way:
        return _undirected_walks(graph)
    if graph.oriented is None:
        raise ValueError("walks along edges need the direction of edges")
    return _two_ways(graph.oriented)[way == "in"]


def diffuse(walks: Walks, sets: Ragged, damping: float, *, on_progress: OnProgress = ignore) -> NDArray[np.float32]:
    """p_c / pi of every set, at every node (C, N); sets are sorted and not empty."""
    nodes, threads = walks.graph.num_nodes, int(numba.get_num_threads())
    found = np.empty((len(sets), nodes), np.float32)
    inverse = (1 / walks.chance(damping)).astype(np.float32)
    step = COLUMNS * threads
    for part in pieces(len(sets), step=step, most=step, what="diffusion", on_progress=on_progress):
        some = sets.take(np.arange(part.start, part.stop))
        width = COLUMNS if len(some) > 1 else 1
        start = np.zeros((-(-len(some) // width), nodes, width), np.float32)
        first = (1.0 if walks.graph.directed else inverse[some.values]) / some.lengths[some.row_ids]
        start[some.row_ids // width, some.values, some.row_ids % width] = first
        ratios = np.maximum(walks.solve(start, damping), 0).transpose(0, 2, 1).reshape(-1, nodes)[: len(some)]
        found[part] = ratios * inverse if walks.graph.directed else ratios
    return found


def diffuse_values(walks: Walks, values: NDArray[np.float32], damping: float) -> NDArray[np.float32]:
    """The mean of values (N, B) where a walk from each node ends (N, B); the graph is undirected."""
    wide = np.pad(values, ((0, 0), (0, -values.shape[1] % COLUMNS))).reshape(len(values), -1, COLUMNS)
    found = walks.solve(np.ascontiguousarray(wide.transpose(1, 0, 2)), damping)
    return found.transpose(1, 0, 2).reshape(len(values), -1)[:, : values.shape[1]]


def push_bound(walks: Walks, damping: float, edges: int) -> float:
    """How much p_c(v) / pi(v) may exceed the result of :func:`diffuse_nearby`: epsilon times the sum of degrees."""
    return walks.volume / walks.loop / ((1 - damping) * edges)


def diffuse_nearby(
    walks: Walks, sets: Ragged, damping: float, *, edges: int, most: int, on_progress: OnProgress = ignore
) -> tuple[Ragged, NDArray[np.float32]]:
    """The nodes with the largest p_c / pi of every set, the largest first, and these ratios, by local push.

    They are too small by at most :func:`push_bound` (of a directed graph, perhaps by more), and never too large. A walk
    may follow at most ``edges`` edges; weights count in units of their mean.
    """
    epsilon = push_bound(walks, damping, edges) / walks.volume
    chance = walks.chance(damping) if walks.graph.directed else None
    threads = int(numba.get_num_threads())
    # A thread has a table of at most four places of 8 bytes for a node, 72 bytes beside it, and 12 for an edge of a
    # round; there are as many nodes as edges, at most.
    at_once = workers(128 * edges, threads)
    step, limit = (64, None) if at_once == threads else (at_once, at_once)
    scale = walks.volume if chance is None else 1.0
    nodes, ratios, lengths = [np.empty(0, np.int32)], [np.empty(0, np.float32)], np.zeros(len(sets), np.int64)
    for part in pieces(len(sets), step=step, most=limit, what="diffusion", on_progress=on_progress):
        some, walk = sets.take(np.arange(part.start, part.stop)), (walks.loop, float(damping), epsilon)
        found, values, counts = push(
            walks.graph.csr, walks.weights, walks.degrees, some, walk=walk, most=most, chance=chance
        )
        # Copied, so that the larger arrays of this part can be freed.
        there = np.arange(most) < counts[:, None]
        nodes.append(found[there])
        ratios.append((values[there] * scale).astype(np.float32))
        lengths[part] = counts
    return Ragged.from_lengths(np.concatenate(nodes), lengths), np.concatenate(ratios)
