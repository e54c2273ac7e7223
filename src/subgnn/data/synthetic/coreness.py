"""CORENESS: the label is a quantile of the mean core number of the nodes inside the induced subgraph.

A duplication-divergence graph; smaller ones are planted on nodes of similar degree, around an edge that they share with
the graph, because the paper's table gives CORENESS a cut ratio that spreads as wide as its mean.

*Differs from the paper:* the base graph is drawn until it has about the paper's number of edges, and a planted graph is
drawn again where its mean core number is equal to one of another class.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.synthetic import graphs
from subgnn.data.synthetic.graphs import require
from subgnn.errors import DataError
from subgnn.kernels.arrays import Array, Csr, compiled, csr, frozen
from subgnn.kernels.draws import open_stream, uniform_below, uniform_unit, uniform_word
from subgnn.kernels.induced import contains, core_numbers, induced_graph, peel
from subgnn.ragged import Ragged
from subgnn.rng import stream

MAX_COPIED_EDGES = 50_000_000
_MAX_DRAWS = 5_000  # of a base graph with the wanted number of edges
_TOLERANCE = 0.02  # of the number of edges
_TRIES = 2_000  # graphs drawn for one set of nodes before giving up
_PAPER_NODES, _PAPER_BASE_EDGES = 5_000, 111_000
_MAX_NODES = 688_000  # n nodes get about n^(2p) / Gamma(2p + 2) edges and more
_RETENTION = 0.7  # p: a copy keeps an edge with this probability
_MIXING = 0.1  # the spread of noise on the logarithm of the degree, by which nodes are brought together


@dataclass(frozen=True, slots=True)
class CorenessSettings(graphs.Sizes):
    """Sizes of CORENESS; the defaults give the paper's tables."""

    num_subgraphs: int = 221

    def __post_init__(self) -> None:
        graphs.Sizes.__post_init__(self)
        most = self.num_nodes // self.subgraph_size
        what = f"{self.num_subgraphs:,} subgraphs of {self.subgraph_size} nodes in a graph of {self.num_nodes:,}"
        require(self.num_subgraphs <= most, what, where="num_subgraphs", hint=f"no node is shared: at most {most:,}")
        what = f"a duplication-divergence graph of {self.num_nodes:,} nodes"
        require(self.num_nodes <= _MAX_NODES, what, where="num_nodes", hint=f"at most {_MAX_NODES:,} are accepted")


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
                    ends, before = np.append(ends, np.empty_like(ends)), np.append(before, np.empty_like(before))
                u = ends[h]
                ends[2 * count], before[2 * count] = u, last[v]
                ends[2 * count + 1], before[2 * count + 1] = v, last[u]
                last[v], last[u] = 2 * count, 2 * count + 1
                count += 1
            h = before[h]
        if count > first:
            v += 1
    return ends[: 2 * count : 2].copy(), ends[1 : 2 * count : 2].copy(), count


def duplication_divergence(
    num_nodes: int, retention: float, rng: np.random.Generator, *, num_edges: int | None = None
) -> Graph:
    """A duplication-divergence graph: each new node copies a random one and keeps each of its edges with probability p.

    Grown from the edge 0 - 1, and connected. *Differs from the paper:* where ``num_edges`` is given, graphs are
    drawn until one has that many, to within 2 %, as the number varies several-fold from draw to draw.
    """
    if num_edges is None:
        tails, heads, count = copy_and_diverge(num_nodes, retention, MAX_COPIED_EDGES, graphs.stream_word(rng))
        what, hint = f"this draw has more than {MAX_COPIED_EDGES:,} edges", "use fewer nodes or a different seed"
        require(count >= 0, what, where="num_nodes", hint=hint)
        return Graph.from_edges(tails, heads, num_nodes=num_nodes)
    least, most = int(np.ceil(num_edges * (1 - _TOLERANCE))), int(num_edges * (1 + _TOLERANCE))
    for _ in range(_MAX_DRAWS):
        tails, heads, count = copy_and_diverge(num_nodes, retention, most, graphs.stream_word(rng))
        if count >= least:
            return Graph.from_edges(tails, heads, num_nodes=num_nodes)
    what = f"none of {_MAX_DRAWS:,} graphs with retention {retention} has {least:,} to {most:,} edges"
    raise DataError(what, where="num_nodes", hint="use a different seed")


class DegreeBlocks:
    """Disjoint blocks of nodes of similar degree, with noise of spread ``mixing``; each has an edge, to plant on."""

    def __init__(self, graph: Graph, size: int, rng: np.random.Generator, *, mixing: float) -> None:
        degree = np.log(np.diff(graph.offsets))
        self._order = np.argsort(degree + mixing * rng.standard_normal(len(degree)), kind="stable")
        self._place = np.argsort(self._order)
        self._graph, self._rng, self._size = graph, rng, size
        self.used = np.zeros(len(degree) // size + 1, np.bool_)
        """Blocks whose nodes are excluded from later exchanges."""

    def __len__(self) -> int:
        return len(self.used) - 1

    def nodes(self, block: int) -> Array | None:
        """The nodes of a block, the first two joined by an edge; a node is exchanged with another block if need be."""
        begin = block * self._size
        members = self._order[begin : begin + self._size]
        for node in self._rng.permutation(members):
            near = self._rng.permutation(self._graph.neighbors_of(int(node)))
            rows = self._place[near] // self._size
            here, elsewhere = near[rows == block], near[(rows != block) & ~self.used[rows]]
            if not len(here) and not len(elsewhere):
                continue
            partner = (here if len(here) else elsewhere)[0]
            if not len(here):
                pair = np.array([self._rng.choice(members[members != node]), partner])
                places = self._place[pair]
                self._order[places], self._place[pair] = pair[::-1], places[::-1]
            rest = self._rng.permutation(members[(members != node) & (members != partner)])
            return np.concatenate([[node, partner], rest])
        return None


CoreGraph = tuple[Array, Array, int]
"""Tails and heads of a graph to plant on some nodes, empty if none fits, and the sum of core numbers then."""


@compiled
def _draw(graph: Csr, nodes: Array, retention: float, sums: tuple[int, int], key: np.uint64) -> CoreGraph:
    """Draw graphs until the nodes, with the edges they have already, get a sum of core numbers within ``sums``."""
    (offsets, neighbors), (low, high), size = graph, sums, len(nodes)
    own = np.zeros((size, size), np.bool_)
    for i in range(size):
        for j in range(size):
            own[i, j] = contains(neighbors, offsets[nodes[i]], offsets[nodes[i] + 1], nodes[j])
    state, cores = open_stream(key, 0), np.empty(size, np.int64)
    for _ in range(_TRIES):
        tails, heads, count = copy_and_diverge(size, retention, MAX_COPIED_EDGES, uniform_word(state))
        adjacent = own.copy()
        for e in range(count):
            adjacent[tails[e], heads[e]] = True
            adjacent[heads[e], tails[e]] = True
        peel((np.append(0, np.cumsum(adjacent.sum(axis=1))), np.nonzero(adjacent)[1].astype(np.int32)), cores)
        total = cores.sum()
        if low <= total <= high:
            return tails, heads, total
    return np.empty(0, np.int32), np.empty(0, np.int32), -1


def draw_core_graph(
    graph: Graph, nodes: Array, *, retention: float, sums: tuple[int, int], rng: np.random.Generator
) -> CoreGraph:
    """A graph to plant on ``nodes``, its edge 0 - 1 on the first two, for core numbers with a sum within ``sums``."""
    return _draw(csr(*graph.csr), frozen(nodes, np.int32), retention, sums, graphs.stream_word(rng))


def make_coreness(settings: CorenessSettings, seed: int) -> graphs.Draft:
    """Draw a CORENESS graph and its subgraphs."""
    num_edges = _PAPER_BASE_EDGES if settings.num_nodes == _PAPER_NODES else None
    draws = stream(seed, "synthetic/coreness/base")
    base = duplication_divergence(settings.num_nodes, _RETENTION, draws, num_edges=num_edges)
    rng, graphs_rng = stream(seed, "synthetic/coreness/sites"), stream(seed, "synthetic/coreness/pieces")
    size = settings.subgraph_size
    sites = DegreeBlocks(base, size, rng, mixing=_MIXING)
    found: list[tuple[Array, CoreGraph]] = []
    chosen, spare = np.split(rng.permutation(len(sites)), [settings.num_subgraphs])
    # Nodes of low degree have few neighbours to take in: they go first, while all are free.
    for site in [*np.sort(chosen).tolist(), *np.sort(spare).tolist()]:
        nodes = sites.nodes(site)
        if nodes is None:
            continue
        sums = size, size * (size - 1)
        found.append((nodes, draw_core_graph(base, nodes, retention=_RETENTION, sums=sums, rng=graphs_rng)))
        sites.used[site] = True
        if len(found) == settings.num_subgraphs:
            break
    else:
        what = f"{len(found):,} of {settings.num_subgraphs:,} subgraphs could be planted"
        raise DataError(what, where="num_subgraphs", hint="ask for fewer subgraphs, or use more nodes")
    order = rng.permutation(len(found)).tolist()
    blocks, drawn = [found[i][0] for i in order], [found[i][1] for i in order]
    # Graphs are drawn again until no two classes share a mean core number.
    rng, totals = stream(seed, "synthetic/coreness/separation"), np.array([total for _, _, total in drawn])
    rising = np.argsort(totals, kind="stable")
    for cut, end in pairwise(np.cumsum(graphs.class_sizes(len(totals), settings.bins)).tolist()):
        below, highest = int(totals[rising[cut - 1]]), int(totals[rising[end - 1]])
        for i in rising[cut:end][totals[rising[cut:end]] == below].tolist():
            wanted = (below + 1, highest if end < len(totals) else size * (size - 1))
            drawn[i] = draw_core_graph(base, blocks[i], retention=_RETENTION, sums=wanted, rng=rng)
            if not len(drawn[i][0]):
                what = f"too many subgraphs have the mean core number {below / size:g} for {settings.bins} classes"
                raise DataError(what, where="core number", hint="use fewer bins or larger subgraphs")
    small = graphs.end_to_end((size, tails, heads) for tails, heads, _ in drawn)
    graph = graphs.plant(base, small, np.concatenate(blocks))
    subgraphs = Ragged.from_rows([np.sort(nodes) for nodes in blocks])
    mean_core = np.bincount(subgraphs.row_ids, core_numbers(*induced_graph(*graph.csr, subgraphs))) / size
    return graphs.binned(graph, subgraphs, "mean_core_number", mean_core, bins=settings.bins, where="core number")
