"""DENSITY: the label is a quantile of the density inside the subgraph, 2 |E_S| / (|S| (|S| - 1)).

Made as the paper's authors first did. Subgraphs are the first nodes of breadth-first searches in a Barabasi-Albert
graph. Each in turn gets a random target: edges inside it are removed, or random pairs joined, until its density is near
it; so a later subgraph changes earlier ones, and labels follow the densities of the finished graph. Nodes that lost
their connection to the largest part of the graph are dropped.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from subgnn.data.graph import Graph
from subgnn.data.synthetic import graphs
from subgnn.data.synthetic.graphs import require
from subgnn.kernels.arrays import Array, Csr, Pair, Sets, compiled, csr, frozen, sets
from subgnn.kernels.draws import open_stream, uniform_below
from subgnn.kernels.induced import contains, lower_bound, shapes
from subgnn.ragged import Ragged
from subgnn.rng import stream

_SET_SLOTS = 32  # slots of a Python set of 5 to 18 integers
TOLERANCE = 0.01
MAX_TRIES = 100
_NEW_EDGES = 5  # of a node of the base graph
_DEPTH = 3  # hops of a search
_TARGETS = (0.05, 0.45)  # the lowest and the highest density wanted; others are spread evenly, one for each class
_MAX_SIZE = 2_000  # in larger subgraphs, 100 tries barely change the density


@dataclass(frozen=True, slots=True)
class DensitySettings(graphs.Sizes):
    """Sizes of DENSITY; the defaults give the paper's tables."""

    def __post_init__(self) -> None:
        graphs.Sizes.__post_init__(self)
        what = f"subgraphs of {self.subgraph_size:,} nodes"
        require(self.subgraph_size <= _MAX_SIZE, what, where="subgraph_size", hint=f"at most {_MAX_SIZE:,} is accepted")


@compiled
def _search_from(graph: Csr, starts: Array, max_depth: int, out: Array, lengths: Array) -> None:
    """Fill row s of ``out`` with the nodes that a breadth-first search from ``starts[s]`` reaches first."""
    offsets, neighbors = graph
    seen, depth = np.full(len(offsets) - 1, -1, np.int64), np.empty(out.shape[1], np.int64)
    for s in range(len(starts)):
        out[s, 0], depth[0], seen[starts[s]] = starts[s], 0, s
        found, at = 1, 0
        while at < found < out.shape[1] and depth[at] < max_depth:
            v = out[s, at]
            lo, hi = offsets[v], offsets[v + 1]
            middle = lower_bound(neighbors, lo, hi, v)
            older = neighbors[lo:middle]
            older = older[np.argsort(older % _SET_SLOTS, kind="mergesort")]
            for u in np.append(older, neighbors[middle:hi]):
                if seen[u] != s and found < out.shape[1]:
                    out[s, found], depth[found], seen[u] = u, depth[at] + 1, s
                    found += 1
            at += 1
        lengths[s] = found


def bfs_subgraphs(graph: Graph, count: int, *, size: int, max_depth: int, rng: np.random.Generator) -> Ragged:
    """BFS (paper, appendix B): the first nodes that breadth-first searches from random starts reach, in their order.

    Neighbours are visited in the order in which the authors' networkx lists those of a Barabasi-Albert graph: first
    the older ones, in the order of a small Python set (the id modulo 32), then the newer ones by age.
    """
    starts = rng.integers(graph.num_nodes, size=count)
    out, lengths = np.empty((count, size), np.int32), np.empty(count, np.int64)
    _search_from(csr(*graph.csr), starts, max_depth, out, lengths)
    return Ragged.from_lengths(out[np.arange(size) < lengths[:, None]], lengths)


@compiled
def _edit(graph: Csr, subgraphs: Sets, targets: Array, key: np.uint64) -> Pair:
    """Pairs u n + v of nodes that gain or lose their edge, and the tries of each subgraph."""
    (offsets, neighbors), (values, rows) = graph, subgraphs
    n, count = np.int64(len(offsets) - 1), len(rows) - 1
    flipped: set[Any] = {np.int64(-1)}  # u n + v, for u < v, of pairs that are joined in one graph and not in the other
    tries = np.zeros(count, np.int64)
    for s in range(count):
        state = open_stream(key, s)
        members = values[rows[s] : rows[s + 1]].astype(np.int64)
        size = len(members)
        pairs = size * (size - 1) // 2
        joined = np.zeros((size, size), np.bool_)
        left, right, edges = np.empty(pairs, np.int64), np.empty(pairs, np.int64), 0
        for i in range(size):
            for j in range(i + 1, size):
                u, v = members[i], members[j]
                if contains(neighbors, offsets[u], offsets[u + 1], v) != ((u * n + v) in flipped):
                    joined[i, j], left[edges], right[edges] = True, i, j
                    edges += 1
        while tries[s] < MAX_TRIES and abs(edges / pairs - targets[s]) >= TOLERANCE:
            tries[s] += 1
            if edges / pairs > targets[s]:
                edge = uniform_below(state, edges)
                i, j = left[edge], right[edge]
                edges -= 1
                joined[i, j], left[edge], right[edge] = False, left[edges], right[edges]
            else:
                a, b = uniform_below(state, size), uniform_below(state, size - 1)
                b += 1 if b >= a else 0
                i, j = min(a, b), max(a, b)
                if joined[i, j]:
                    continue
                joined[i, j], left[edges], right[edges] = True, i, j
                edges += 1
            pair = members[i] * n + members[j]
            if pair in flipped:
                flipped.remove(pair)
            else:
                flipped.add(pair)
    flipped.remove(np.int64(-1))
    return np.sort(np.array(list(flipped), np.int64)), tries


def set_densities(graph: Graph, subgraphs: Ragged, targets: Array, rng: np.random.Generator) -> tuple[Graph, Array]:
    """Change random edges inside each subgraph in turn until its density is within .01 of its target, or 100 tries.

    A try removes a random edge, or joins a random pair. Returns the graph, and the tries of each subgraph.
    """
    pairs, tries = _edit(csr(*graph.csr), sets(subgraphs), frozen(targets, np.float64), graphs.stream_word(rng))
    tails, heads, _ = graph.edges()
    joined = np.setxor1d(tails.astype(np.int64) * graph.num_nodes + heads, pairs, assume_unique=True)
    return Graph.from_edges(*np.divmod(joined, graph.num_nodes), num_nodes=graph.num_nodes), tries


def make_density(settings: DensitySettings, seed: int) -> graphs.Draft:
    """Draw a DENSITY graph and its subgraphs."""
    graph = graphs.barabasi_albert(settings.num_nodes, _NEW_EDGES, stream(seed, "synthetic/density/base"))
    starts, size = stream(seed, "synthetic/density/subgraphs"), settings.subgraph_size
    found = bfs_subgraphs(graph, settings.num_subgraphs, size=size, max_depth=_DEPTH, rng=starts)
    subgraphs = Ragged.from_rows([np.sort(row) for row in found])
    draws = stream(seed, "synthetic/density/targets")
    # Each target occurs, and the rest are drawn: even a few subgraphs have all classes.
    drawn = draws.integers(settings.bins, size=settings.num_subgraphs - settings.bins)
    targets = np.linspace(*_TARGETS, settings.bins)
    wanted = draws.permutation(np.concatenate([targets, targets[drawn]]))
    graph, _ = set_densities(graph, subgraphs, wanted, stream(seed, "synthetic/density/edges"))
    # Keep the largest connected part. Strong components are found without a transposed copy of the matrix.
    n, ones = graph.num_nodes, np.ones(len(graph.neighbors), np.int8)
    matrix = csr_array((ones, graph.neighbors, graph.offsets), shape=(n, n))
    part = connected_components(matrix, connection="strong")[1]
    kept = part == np.argmax(np.bincount(part))
    if not kept.all():
        ids = np.where(kept, np.cumsum(kept) - 1, -1)
        tails, heads, _ = graph.edges()
        inside = kept[tails]
        graph = Graph.from_edges(ids[tails[inside]], ids[heads[inside]], num_nodes=int(kept.sum()))
        subgraphs = subgraphs.mapped(ids)
    hint = "use more nodes, fewer subgraphs or a different seed"
    require(bool(subgraphs.lengths.all()), "a subgraph lost its connection to the graph", where="density", hint=hint)
    density = shapes(*graph.csr, subgraphs).density
    return graphs.binned(graph, subgraphs, "density", density, bins=settings.bins, where="density")
