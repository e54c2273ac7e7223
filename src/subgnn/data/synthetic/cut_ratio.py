"""CUT RATIO: the label is a quantile of the share of possible edges to the rest that exist, |B_S| / (|S| |V - S|).

A Barabasi-Albert graph; complete graphs, thinned a little, are planted on random nodes around an edge; then edges from
planted nodes to nodes outside are added until every subgraph has the cut ratio wanted.

*Differs from the paper:* the targets are met exactly. They are assigned in the order of the cut ratios that planting
alone gives, since edges are added and never removed; nothing is planted on hubs.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.synthetic import graphs
from subgnn.errors import DataError
from subgnn.kernels.arrays import Array, Csr, Pair, Sets, Triple, compiled, csr, frozen, sets
from subgnn.kernels.draws import open_stream, uniform_below
from subgnn.kernels.induced import contains, shapes
from subgnn.ragged import Ragged
from subgnn.rng import stream

_TRIES = 400  # starts for one subgraph before giving up
_DRAWS = 200  # draws for one node to plant on
_PARTNER_DRAWS = 64  # random partners tried before only nodes of no subgraph are looked at
_PAPER_OUTSIDE = 4_980  # nodes outside a subgraph of the paper's graph
_PLANTINGS = 20  # how often the complete graphs are planted anew where their cut ratios come out too high
_NEW_EDGES = 5  # of a node of the base graph
_USES = 6  # subgraphs that a node may belong to
_DENSITIES = (0.9, 0.99)  # of the planted graphs
_HUB_SHARE = 5  # nothing is planted on a node with more than a fifth of the edges that may leave a subgraph


@dataclass(frozen=True, slots=True)
class CutRatioSettings(graphs.Sizes):
    """Sizes of CUT RATIO; the defaults give the paper's tables."""

    def __post_init__(self) -> None:
        graphs.Sizes.__post_init__(self)
        what, hint = f"subgraphs of {self.subgraph_size} nodes", "at least 3, which can lack an edge, are needed"
        graphs.require(self.subgraph_size > 2, what, where="subgraph_size", hint=hint)
        what, hint = f"cut ratios up to {self.targets[1]:.3g}", "use more nodes, or smaller subgraphs"
        graphs.require(self.targets[1] <= 1, what, where="cut ratio", hint=hint)

    @property
    def targets(self) -> tuple[float, float]:
        """The smallest and the largest cut ratio wanted: the paper's, or what gives as many edges to a node."""
        scale = _PAPER_OUTSIDE / (self.num_nodes - self.subgraph_size)
        return 0.0053 * scale, 0.0091 * scale


def complete_graphs(count: int, size: int, rng: np.random.Generator) -> graphs.SmallGraphs:
    """Complete graphs, thinned to densities spread evenly over a range, but for the path 0 - 1 - ..."""
    left, right = np.triu_indices(size, 1)
    optional, path = np.flatnonzero(right - left > 1), np.flatnonzero(right - left == 1)
    edges = np.rint(rng.uniform(*_DENSITIES, count) * len(left)).astype(np.int64)
    drawn = []
    for wanted in edges.tolist():
        kept = np.concatenate([path, rng.choice(optional, max(0, wanted - len(path)), replace=False)])
        drawn.append((size, left[kept], right[kept]))
    return graphs.end_to_end(drawn)


@compiled
def _draw_nodes(offsets: Array, neighbors: Array, max_uses: int, max_degree: int, key: np.uint64, out: Array) -> Any:
    """Fill the rows of ``out`` with the two ends of an edge and further nodes; returns how many were found."""
    n, count, size = len(offsets) - 1, out.shape[0], out.shape[1]
    uses, subgraphs, met = np.zeros(n, np.int64), np.empty((n, max_uses), np.int32), np.zeros(count, np.int64)
    taken, attempt = np.zeros(n, np.int64), 0  # as met, the last attempt that took a node, or one of a subgraph
    for s in range(count):
        state = open_stream(key, s)
        found = 0
        for _ in range(_TRIES):
            attempt += 1
            found = 0
            for _ in range(_DRAWS * size):
                u = uniform_below(state, n)
                if found == 1:
                    first = out[s, 0]
                    u = neighbors[offsets[first] + uniform_below(state, offsets[first + 1] - offsets[first])]
                degree = offsets[u + 1] - offsets[u]
                own = subgraphs[u, : uses[u]]
                may_join = uses[u] < max_uses and taken[u] != attempt and not (met[own] == attempt).any()
                if may_join and 0 < degree <= max_degree:
                    met[own] = attempt
                    out[s, found], taken[u] = u, attempt
                    found += 1
                    if found == size:
                        break
            if found == size:
                break
        if found < size:
            return s
        for i in range(size):
            node = out[s, i]
            subgraphs[node, uses[node]] = s
            uses[node] += 1
    return count


def planting_nodes(
    graph: Graph, count: int, *, size: int, rng: np.random.Generator, max_uses: int, max_degree: int
) -> NDArray[np.int32]:
    """Sets of ``size`` random nodes (count, size), of limited degree, the first two of each joined by an edge.

    A node is in ``max_uses`` sets at most, and any two sets share one node at most.
    """
    most = graph.num_nodes * min(max_uses, count) // size
    what = f"{count:,} subgraphs of {size} nodes on {graph.num_nodes:,} nodes, each in {max_uses} at most"
    graphs.require(count <= most, what, where="num_subgraphs", hint=f"at most {most:,} are possible")
    out = np.empty((count, size), np.int32)
    found = _draw_nodes(*csr(*graph.csr), max_uses, max_degree, graphs.stream_word(rng), out)
    if found < count:
        what = f"{found:,} of {count:,} subgraphs of {size} nodes could be found to plant on"
        hint = f"ask for {f'{found:,} or for ' if found else ''}smaller ones, or allow more nodes or more uses per node"
        raise DataError(what, where="num_subgraphs", hint=hint)
    return out


@compiled
def _share(owned: Array, begin: Array, u: int, v: int) -> bool:
    """Whether two nodes lie in one subgraph; both lists of subgraphs are sorted."""
    for i in range(begin[u], begin[u + 1]):  # noqa: SIM110
        if contains(owned, begin[v], begin[v + 1], owned[i]):
            return True
    return False


@compiled
def _find_partner(u: Any, graph: Csr, members: Triple, short: Array, added: set[Any], state: Array) -> Any:
    """A node that an edge from ``u`` can lead to without giving a subgraph more than it lacks; -1 if there is none."""
    (offsets, neighbors), (owned, begin, free) = graph, members
    n = len(offsets) - 1
    start = uniform_below(state, len(free)) if len(free) else 0
    for t in range(_PARTNER_DRAWS + len(free)):
        v = uniform_below(state, n) if t < _PARTNER_DRAWS else free[(start + t) % len(free)]
        if v == u or _share(owned, begin, u, v) or not (short[owned[begin[v] : begin[v + 1]]] > 0).all():
            continue
        key = min(u, v) * n + max(u, v)
        if key not in added and not contains(neighbors, offsets[u], offsets[u + 1], v):
            return v
    return -1


@compiled
def _draw_border_edges(graph: Csr, subgraphs: Sets, members: Triple, short: Array, key: np.uint64) -> Pair:
    """Draw edges round by round, one for each subgraph that is short of edges; ``short`` ends at what is missing.

    ``members`` is, for each node, the subgraphs it belongs to (values and offsets), and the nodes of no subgraph.
    """
    (offsets, _), (values, rows), (owned, begin, _) = graph, subgraphs, members
    n, count = len(offsets) - 1, len(rows) - 1
    state = open_stream(key, 0)
    room = 1024
    tails, heads = np.empty(room, np.int32), np.empty(room, np.int32)
    added: set[Any] = {np.int64(-1)}
    total, stuck = 0, np.zeros(count, np.bool_)
    going = True
    while going:
        going = False
        for s in range(count):
            if short[s] == 0 or stuck[s]:
                continue
            size = rows[s + 1] - rows[s]
            start = uniform_below(state, size)
            u, v = np.int64(-1), np.int64(-1)
            for t in range(size):
                u = np.int64(values[rows[s] + (start + t) % size])
                if (short[owned[begin[u] : begin[u + 1]]] > 0).all():
                    v = _find_partner(u, graph, members, short, added, state)
                    if v >= 0:
                        break
            if v < 0:
                stuck[s] = True
                continue
            if total == room:
                room *= 2
                tails, heads = np.append(tails, np.empty_like(tails)), np.append(heads, np.empty_like(heads))
            tails[total], heads[total] = u, v
            total += 1
            added.add(min(u, v) * n + max(u, v))
            for w in (u, v):
                short[owned[begin[w] : begin[w + 1]]] -= 1
            going = True
    return tails[:total], heads[:total]


def add_border_edges(graph: Graph, subgraphs: Ragged, missing: Array, rng: np.random.Generator) -> Graph:
    """Add edges to random nodes outside such that exactly ``missing[i]`` more leave subgraph i, and none is inside."""
    order = np.argsort(subgraphs.values, kind="stable")
    counts = np.bincount(subgraphs.values, minlength=graph.num_nodes)
    belongs = Ragged.from_lengths(subgraphs.row_ids[order].astype(np.int32), counts)  # the subgraphs of each node
    free = np.flatnonzero(counts == 0)
    short = np.array(missing, np.int64)
    members = (*sets(belongs), frozen(free, np.int64))
    tails, heads = _draw_border_edges(csr(*graph.csr), sets(subgraphs), members, short, graphs.stream_word(rng))
    if short.any():
        worst = int(np.argmax(short))
        shape = shapes(*graph.csr, subgraphs)
        asked, possible = int(missing[worst]), int(missing[worst] - short[worst])
        most = (shape.cut_edges[worst] + possible) / (shape.nodes[worst] * (graph.num_nodes - shape.nodes[worst]))
        what = f"{asked:,} more edges should leave subgraph {worst}, but only {possible:,} can"
        hint = f"its cut ratio can be {most:.5f}; lower the largest target, or use fewer or smaller subgraphs"
        raise DataError(what, where="cut ratio", hint=hint)
    return graphs.with_edges(graph, tails, heads)


def make_cut_ratio(settings: CutRatioSettings, seed: int) -> graphs.Draft:
    """Draw a CUT RATIO graph and its subgraphs."""
    graph = graphs.barabasi_albert(settings.num_nodes, _NEW_EDGES, stream(seed, "synthetic/cut-ratio/base"))
    outside = settings.subgraph_size * (settings.num_nodes - settings.subgraph_size)
    low, high = (round(target * outside) for target in settings.targets)
    # Numbers of edges, spread evenly over low..high and ascending, so that no value occurs in two bins.
    room, bins = high - low + 1, settings.bins
    hint = f"at most {max(room, 1)} bins, or a wider range of targets"
    graphs.require(room >= bins, f"{room} possible values for {bins} bins", where="cut ratio", hint=hint)
    edges = low + np.arange(bins + 1, dtype=np.int64) * room // bins
    parts = zip(edges[:-1], edges[1:] - 1, graphs.class_sizes(settings.num_subgraphs, bins), strict=True)
    targets = np.concatenate([np.linspace(first, last, size).round().astype(np.int64) for first, last, size in parts])
    nodes_rng, graphs_rng = stream(seed, "synthetic/cut-ratio/sites"), stream(seed, "synthetic/cut-ratio/planted")
    count, size, limit = settings.num_subgraphs, settings.subgraph_size, int(targets[-1]) // _HUB_SHARE
    for _ in range(_PLANTINGS):
        nodes = planting_nodes(graph, count, size=size, rng=nodes_rng, max_uses=_USES, max_degree=limit)
        grown = graphs.plant(graph, complete_graphs(count, size, graphs_rng), nodes.reshape(-1))
        subgraphs = Ragged.from_lengths(np.sort(nodes, axis=1).reshape(-1), np.full(count, size))
        leaving = shapes(*grown.csr, subgraphs).cut_edges
        order = np.argsort(leaving, kind="stable")
        missing = np.empty(count, np.int64)
        missing[order] = targets - leaving[order]
        if (missing >= 0).all():
            break
    else:
        hint = "use fewer or smaller subgraphs, or more nodes"
        raise DataError("planting alone gives cut ratios above the targets", where="cut ratio", hint=hint)
    graph = add_border_edges(grown, subgraphs, missing, stream(seed, "synthetic/cut-ratio/edges"))
    cut_ratio = shapes(*graph.csr, subgraphs).cut_ratio
    return graphs.binned(graph, subgraphs, "cut_ratio", cut_ratio, bins=bins, where="cut ratio")
