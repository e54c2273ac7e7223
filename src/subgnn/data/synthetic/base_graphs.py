"""Random base graphs, and small graphs to place in them (paper, appendix B).

Barabasi-Albert: each new node adds m edges to nodes drawn in proportion to their degree. Duplication-divergence: each
new node copies a random one and keeps each of its edges with probability p.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import lgamma
from typing import cast

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.synthetic.recipe import check_range, require
from subgnn.errors import DataError
from subgnn.kernels.arrays import Array, compiled
from subgnn.kernels.draws import open_stream, uniform_below, uniform_unit

MAX_EDGES = 500_000_000
MAX_COPIED_EDGES = 50_000_000
_MAX_TRIES = 5_000
_TOLERANCE = 0.02  # of the number of edges


def stream_word(rng: np.random.Generator) -> np.uint64:
    """A key for a compiled loop, drawn from a named stream."""
    return np.uint64(rng.integers(2**64, dtype=np.uint64))


@compiled
def attach_preferentially(num_nodes: int, m: int, key: np.uint64) -> tuple[Array, Array]:
    """Edges of a Barabasi-Albert graph grown from a star of m + 1 nodes."""
    state = open_stream(key, 0)
    total = m * (num_nodes - m)
    tails, heads = np.empty(total, np.int32), np.empty(total, np.int32)
    for i in range(m):
        tails[i], heads[i] = 0, i + 1
    count = m
    for v in range(m + 1, num_nodes):
        first = count
        while count < first + m:
            # An end of a random edge is a node drawn in proportion to its degree.
            e = uniform_below(state, 2 * first)
            u = tails[e] if e < first else heads[e - first]
            repeated = False
            for j in range(first, count):
                repeated |= tails[j] == u
            if not repeated:
                tails[count], heads[count] = u, v
                count += 1
    return tails, heads


@compiled
def copy_and_diverge(num_nodes: int, retention: float, most: int, key: np.uint64) -> tuple[Array, Array, int]:
    """Edges of a duplication-divergence graph, and their number; -1 where they would be more than ``most``.

    The half edges of a node are a linked list: ``last[v]`` is its newest one, ``before[h]`` the one before h. Half
    edges 2i and 2i + 1 are the two sides of edge i, and ``ends`` is where each leads.
    """
    state = open_stream(key, 0)
    room = 4 * num_nodes
    ends, before = np.empty(2 * room, np.int32), np.empty(2 * room, np.int64)
    last = np.full(num_nodes, -1, np.int64)
    ends[0], ends[1], before[0], before[1] = 1, 0, -1, -1
    last[0], last[1] = 0, 1
    count, v = 1, 2
    while v < num_nodes:
        h = last[uniform_below(state, v)]
        first = count
        while h >= 0:
            if uniform_unit(state) < retention:
                if count == most:
                    return ends[:0], ends[:0], -1
                if count == room:
                    room *= 2
                    grown_ends, grown_before = np.empty(2 * room, np.int32), np.empty(2 * room, np.int64)
                    grown_ends[: 2 * count], grown_before[: 2 * count] = ends[: 2 * count], before[: 2 * count]
                    ends, before = grown_ends, grown_before
                u = ends[h]
                ends[2 * count], before[2 * count] = u, last[v]
                ends[2 * count + 1], before[2 * count + 1] = v, last[u]
                last[v], last[u] = 2 * count, 2 * count + 1
                count += 1
            h = before[h]
        if count > first:
            v += 1
    return ends[: 2 * count : 2].copy(), ends[1 : 2 * count : 2].copy(), count


def barabasi_albert_edges(num_nodes: int, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Tails and heads of a Barabasi-Albert graph."""
    require(1 <= m < num_nodes, f"m is {m} for {num_nodes} nodes", where="m", hint="1 to num_nodes - 1 is accepted")
    most = MAX_EDGES // m
    require(
        num_nodes <= most, f"{num_nodes:,} nodes of {m} edges", where="num_nodes", hint=f"at most {most:,} with this m"
    )
    return attach_preferentially(num_nodes, m, stream_word(rng))


def barabasi_albert(num_nodes: int, m: int, rng: np.random.Generator) -> Graph:
    """A Barabasi-Albert graph of m (num_nodes - m) edges, grown from a star of m + 1 nodes; connected.

    Args:
        num_nodes: nodes; 0 is the centre of the star.
        m: edges that each new node adds.

    Example:
        >>> g = barabasi_albert(10, 2, np.random.default_rng(0))
        >>> g.num_nodes, g.num_edges
        (10, 16)
    """
    return Graph.from_edges(*barabasi_albert_edges(num_nodes, m, rng), num_nodes=num_nodes)


def duplication_divergence_edges(
    num_nodes: int, retention: float, rng: np.random.Generator, *, max_edges: int = MAX_COPIED_EDGES
) -> tuple[Array, Array] | None:
    """Tails and heads of a duplication-divergence graph, the edge 0 - 1 first; None beyond ``max_edges``."""
    require(
        num_nodes >= 2, f"{num_nodes} nodes", where="num_nodes", hint="a duplication-divergence graph begins with 2"
    )
    _check_retention(retention)
    tails, heads, count = copy_and_diverge(num_nodes, retention, max_edges, stream_word(rng))
    return None if count < 0 else (tails, heads)


def _check_retention(retention: float) -> None:
    require(0 < retention <= 1, f"retention is {retention}", where="retention", hint="accepted: above 0, up to 1")


def _check_growth(num_nodes: int, retention: float) -> None:
    """Refuse at once what would grow beyond all memory: n nodes get about n^(2p) / Gamma(2p + 2) edges and more."""
    ladder = np.arange(1, 101) / 100
    edges = np.exp(2 * ladder * np.log(num_nodes) - np.array([lgamma(2 * p + 2) for p in ladder]))
    fitting = ladder[edges <= MAX_COPIED_EDGES]
    what = f"retention {retention:g} gives {num_nodes:,} nodes more than {MAX_COPIED_EDGES:,} edges"
    hint = f"up to {fitting.max(initial=0.0):g} is possible for so many nodes"
    require(retention <= fitting.max(initial=0.0), what, where="retention", hint=hint)


def duplication_divergence(
    num_nodes: int,
    retention: float,
    rng: np.random.Generator,
    *,
    num_edges: int | None = None,
) -> Graph:
    """A duplication-divergence graph, grown from one edge; connected, for a copy that keeps no edge is drawn again.

    The number of edges varies several-fold from draw to draw: the first few copies decide it. *Differs from the
    paper:* where ``num_edges`` is given, graphs are drawn until one has about that many, which is the model given its
    number of edges.

    Args:
        num_nodes: nodes; 0 and 1 are the first edge.
        retention: probability p that a copy keeps an edge.
        num_edges: about how many edges are wanted, within 2 %; by default any number.

    Raises:
        DataError: where no draw has about as many edges; the message says how many they have.
    """
    _check_retention(retention)
    if num_edges is None:
        _check_growth(num_nodes, retention)
        edges = duplication_divergence_edges(num_nodes, retention, rng)
        what = f"this draw has more than {MAX_COPIED_EDGES:,} edges"
        hint = "lower it, or take fewer nodes or another seed"
        require(edges is not None, what, where="retention", hint=hint)
        return Graph.from_edges(*cast("tuple[Array, Array]", edges), num_nodes=num_nodes)
    least, most = int(np.ceil(num_edges * (1 - _TOLERANCE))), int(num_edges * (1 + _TOLERANCE))
    what = f"{num_edges:,} edges for {num_nodes:,} nodes"
    hint = f"{num_nodes - 1:,} to {MAX_COPIED_EDGES:,} is accepted"
    require(num_nodes - 1 <= num_edges <= MAX_COPIED_EDGES, what, where="num_edges", hint=hint)
    seen = []
    for _ in range(_MAX_TRIES):
        edges = duplication_divergence_edges(num_nodes, retention, rng, max_edges=most)
        if edges is not None and len(edges[0]) >= least:
            return Graph.from_edges(*edges, num_nodes=num_nodes)
        seen.append(most if edges is None else len(edges[0]))
    low, high = np.quantile(seen, [0.25, 0.75]).astype(int)
    what = f"none of {_MAX_TRIES:,} graphs with retention {retention} has {least:,} to {most:,} edges"
    hint = f"half of them have {low:,} to {high:,}{' or more' if high == most else ''}; ask for that many"
    raise DataError(what, where="num_edges", hint=hint)


@dataclass(frozen=True, slots=True, eq=False)
class SmallGraphs:
    """Small graphs, their nodes numbered end to end: graph i has the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.

    Shapes:
        offsets: (graphs + 1,) int64. tails, heads: (edges,) int64, both ends of an edge in one graph.

    Example:
        >>> p = SmallGraphs.of([(3, [0, 1], [1, 2]), (2, [0], [1])])
        >>> p.offsets.tolist(), p.tails.tolist(), p.heads.tolist()
        ([0, 3, 5], [0, 1, 3], [1, 2, 4])
    """

    offsets: Array
    tails: Array
    heads: Array

    @classmethod
    def of(cls, graphs: Iterable[tuple[int, Array | list[int], Array | list[int]]]) -> SmallGraphs:
        """Lay graphs, each given as its number of nodes, tails and heads, end to end."""
        offsets, tails, heads = [0], [], []
        for size, own_tails, own_heads in graphs:
            tails.append(np.asarray(own_tails, np.int64) + offsets[-1])
            heads.append(np.asarray(own_heads, np.int64) + offsets[-1])
            offsets.append(offsets[-1] + size)
        none = [np.empty(0, np.int64)]
        return cls(np.array(offsets, np.int64), np.concatenate(tails or none), np.concatenate(heads or none))

    @property
    def num_nodes(self) -> int:
        """Nodes of all graphs."""
        return int(self.offsets[-1])

    def __len__(self) -> int:
        return len(self.offsets) - 1


def complete_graphs(
    count: int, size: int, rng: np.random.Generator, *, min_density: float = 1.0, max_density: float = 1.0
) -> SmallGraphs:
    """Complete graphs, thinned at random to densities spread evenly over a range.

    The path 0 - 1 - ... - (size - 1) is never thinned, so the graphs are connected.

    Raises:
        DataError: for densities that no connected graph of this size has.
    """
    if min_density < max_density or min_density != 1.0:
        check_range(min_density, max_density, where="density of the planted graphs", least=2 / size, most=1.0)
    left, right = np.triu_indices(size, 1)
    optional = np.flatnonzero(right - left > 1)
    path = np.flatnonzero(right - left == 1)
    edges = np.rint(rng.uniform(min_density, max_density, count) * len(left)).astype(np.int64)
    graphs = []
    for wanted in edges.tolist():
        kept = np.concatenate([path, rng.choice(optional, max(0, wanted - len(path)), replace=False)])
        graphs.append((size, left[kept], right[kept]))
    return SmallGraphs.of(graphs)
