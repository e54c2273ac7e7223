"""Statistics of components and subgraphs, for ``model.topology`` and the topology baseline; beyond the paper.

The channel takes eight of each (:func:`node_set_statistics`), in logarithms where they are skewed. The baseline takes
these and ten more of each subgraph (:func:`subgraph_statistics`), and where it is asked to, six of the weights of edges
and nine of their direction. Standardised with the mean and deviation of the training split.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.diffusion import walks_of
from subgnn.data.graph import Graph
from subgnn.data.own_times import at_own_times, join_rows
from subgnn.kernels import induced
from subgnn.kernels.arrays import Csr
from subgnn.ragged import Ragged, runs
from subgnn.storage.arrays import Format
from subgnn.storage.cache import cache_path, cached

Floats = NDArray[np.float64]
NODE_SET_STATISTICS, SUBGRAPH_STATISTICS = 8, 18
"""How many statistics a node set has, and a subgraph for the topology baseline."""
_OF_WEIGHTS, _OF_DIRECTION = 6, 9
_ENTRIES_AT_ONCE = 2**22
LARGE = 5_000_000
"""The fewest entries of a graph's rows for which core numbers are stored; on smaller graphs they take no second."""
_STORED = Format("subgnn-cores", "file of core numbers", "measuring subgraphs of a large graph writes one", "remove it")


def _row_means(rows: Ragged) -> Floats:
    return np.bincount(rows.row_ids, rows.values, minlength=len(rows)) / rows.lengths


def _row_deviations(rows: Ragged) -> Floats:
    from_mean = rows.values - _row_means(rows)[rows.row_ids]
    return np.sqrt(_row_means(Ragged(from_mean**2, rows.offsets)))


def _row_maxima(rows: Ragged) -> Floats:
    return np.maximum.reduceat(rows.values, rows.offsets[:-1]).astype(np.float64)


@lru_cache(maxsize=1)
def graph_cores(graph: Graph) -> NDArray[Any]:
    """Core numbers in G; those of the last graph are kept for further predictions, those of large ones in the cache."""
    if len(graph.neighbors) < LARGE:
        return induced.core_numbers(*graph.csr)
    return cached(
        cache_path("cores", graph.content_hash),
        _STORED,
        compute=lambda: induced.core_numbers(*graph.csr).astype(np.int32),
        arrays=lambda cores: {"cores": cores},
        read=lambda file: file.array("cores", np.int32, (graph.num_nodes,)),
        mapped="c",
    )


def node_set_statistics(graph: Graph, rows: Ragged) -> Floats:
    """Statistics of every node set (sets, 8)."""
    return _eight(graph, rows)[0]


def _eight(graph: Graph, rows: Ragged) -> tuple[Floats, Csr, Ragged, Ragged, Ragged]:
    """The eight statistics, the induced graphs, and degrees inside, edges to the outside and core numbers inside."""
    own, (inside, border) = induced.induced_graph(*graph.csr, rows), induced.inside_degrees(*graph.csr, rows)
    shape, cores = induced.shapes(*graph.csr, rows), Ragged(induced.core_numbers(*own), rows.offsets)
    columns = [
        np.log(shape.nodes),
        shape.density,
        _row_means(inside),
        np.log1p(_row_means(inside)),
        np.log1p(_row_means(border)),
        np.log1p(1e4 * shape.cut_ratio),
        _row_means(cores),
        _row_means(Ragged(induced.clustering(*own), rows.offsets)),
    ]
    return np.stack(columns, axis=1), own, inside, border, cores


CLUSTERING = "mean clustering inside"
# In the order of the columns; ~ stands before the logarithm of one plus the number.
_NAMES = (
    "number of nodes, density, mean degree inside, ~mean degree inside, ~mean number of edges to the outside, "
    f"~cut ratio per 10 000 pairs, mean core number inside, {CLUSTERING}, deviation of degrees inside, "
    "largest degree inside, ~deviation of edges to the outside, ~most edges of one node to the outside, "
    "largest core number inside, deviation of core numbers inside, mean core number in the graph, "
    "largest core number in the graph, number of components, share of the largest component"
)
_WEIGHT_NAMES = (
    ", ~mean strength inside, ~mean strength across the border, ~mean weight inside, ~mean weight across the border, "
    "~deviation of weights inside, share of the strength inside"
)
_DIRECTION_NAMES = (
    ", ~mean edges that leave, ~mean edges that enter, balance of leaving and entering, share of mutual edges inside, "
    "share of nodes that no edge inside enters, share of nodes that no edge inside leaves, most edges inside that "
    "leave a node, most edges inside that enter a node, deviation of leaving less entering inside"
)


def in_plain_units(table: Floats, *, weighted: bool, directed: bool) -> tuple[list[str], Floats]:
    """Names of :func:`subgraph_statistics` for people, and the statistics without logarithms."""
    names = (_NAMES + _WEIGHT_NAMES * weighted + _DIRECTION_NAMES * directed).split(", ")
    plain = [np.expm1(column) if name[0] == "~" else column for name, column in zip(names, table.T, strict=True)]
    return [name.removeprefix("~") for name in names], np.stack([np.exp(plain[0]), *plain[1:]], axis=1)


def num_statistics(*, weighted: bool, directed: bool) -> int:
    """How many :func:`subgraph_statistics` there are."""
    return SUBGRAPH_STATISTICS + _OF_WEIGHTS * weighted + _OF_DIRECTION * directed


def subgraph_statistics(graph: Graph, rows: Ragged, *, weighted: bool = False, directed: bool = False) -> Floats:
    """The eight :func:`node_set_statistics` and ten more; then statistics of weights and direction, if wanted.

    In order: deviation and maximum of the internal degree, and of the border degree; maximum and deviation of the
    core number inside; mean and maximum of the core number in G; number of components; share of the largest
    component. Rows, none empty, are measured as of their own times, if any.
    """

    def compute(now: Graph, some: Ragged) -> Floats:
        eight, own, inside, border, own_cores = _eight(now, some)
        cores = Ragged(graph_cores(now)[some.values], some.offsets)
        components = induced.components_of(own, some)
        sizes = Ragged.from_lengths(components.nodes.lengths, components.counts)
        more = [
            _row_deviations(inside),
            _row_maxima(inside),
            np.log1p(_row_deviations(border)),
            np.log1p(_row_maxima(border)),
            _row_maxima(own_cores),
            _row_deviations(own_cores),
            _row_means(cores),
            _row_maxima(cores),
            components.counts.astype(np.float64),
            _row_maxima(sizes) / some.lengths,
        ]
        found = [eight, np.stack(more, axis=1)]
        found += [weight_statistics(now, some)] if weighted else []
        found += [direction_statistics(now, some)] if directed else []
        return np.concatenate(found, axis=1)

    return at_own_times(graph, rows, compute, join_rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """The entries of the rows of some members of sets.

    Shapes, each (entries,): place: of the member. owner: its set. inside: whether the neighbour is in the set, too.
    head: the place of that neighbour, if it is.
    """

    place: NDArray[np.int64]
    owner: NDArray[np.int64]
    inside: NDArray[np.bool_]
    head: NDArray[np.int64]
    weights: Floats


def _entries(graph: Graph, rows: Ragged, scale: float = 1.0) -> _Entries:
    """The entries of all members; weights are divided by the scale, and 1 if there are none."""
    taken = Ragged(graph.neighbors, graph.offsets).take(rows.values)
    place = taken.row_ids
    owner = rows.row_ids[place]
    known = rows.row_ids * graph.num_nodes + rows.values
    wanted = owner * graph.num_nodes + taken.values
    head = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    if graph.weights is None:
        weights = np.ones(len(place))
    else:
        weights = np.abs(Ragged(graph.weights, graph.offsets).take(rows.values).values.astype(np.float64)) / scale
    return _Entries(place, owner, known[head] == wanted, head, weights)


def _in_pieces(graph: Graph, rows: Ragged, compute: Callable[[Ragged], list[Floats]]) -> Floats:
    """Compute columns for a few sets at a time: at least one, and as many as fit a bounded number of entries."""
    degrees = np.append(0, np.cumsum(graph.offsets[rows.values + 1] - graph.offsets[rows.values]))
    parts = list(runs(np.diff(degrees[rows.offsets]), _ENTRIES_AT_ONCE)) or [slice(0, 0)]
    some = (rows.take(np.arange(part.start, part.stop)) for part in parts)
    return np.concatenate([np.stack(compute(one), axis=1) for one in some])


def _over(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0))


def weight_statistics(graph: Graph, rows: Ragged) -> Floats:
    """Six statistics of the weights of edges (sets, 6), as magnitudes and in units of their mean over the graph.

    In order: mean strength of nodes inside and across the border, the strength being a sum of weights; mean weight of
    edges inside and across the border; deviation of those inside; share of the strength that is inside. All but the
    last in logarithms. Without weights, all are 1.
    """
    mean = 1.0 if graph.weights is None or not len(graph.weights) else float(np.abs(graph.weights).mean(dtype=float))

    def compute(rows: Ragged) -> list[Floats]:
        found, n = _entries(graph, rows, mean or 1.0), len(rows)
        inner, outer = (
            (np.bincount(found.owner[chosen], found.weights[chosen], n), np.bincount(found.owner[chosen], minlength=n))
            for chosen in (found.inside, ~found.inside)
        )
        squares = np.bincount(found.owner[found.inside], found.weights[found.inside] ** 2, n)
        of_inner, of_outer = _over(inner[0], inner[1]), _over(outer[0], outer[1])
        deviation = np.sqrt(np.maximum(_over(squares, inner[1]) - of_inner**2, 0))
        logged = (inner[0] / rows.lengths, outer[0] / rows.lengths, of_inner, of_outer, deviation)
        return [*map(np.log1p, logged), _over(inner[0], inner[0] + outer[0])]

    return _in_pieces(graph, rows, compute)


def direction_statistics(graph: Graph, rows: Ragged) -> Floats:
    """Nine statistics of the direction of edges (sets, 9); in an undirected graph, every edge goes both ways.

    In order: mean edges of a node that leave the subgraph, and that enter it (both in logarithms); the difference of
    the two over their sum; share of the edges inside whose reverse is there, too; shares of nodes without edges inside
    that enter them, and without any that leave them; the most edges inside that leave one node, and that enter one;
    deviation of the difference of the two.
    """
    there, back = (graph, graph) if graph.oriented is None else (walks_of(graph, way).graph for way in ("out", "in"))

    def compute(rows: Ragged) -> list[Floats]:
        found, n, size = _entries(there, rows), len(rows), len(rows.values)
        entering = _entries(back, rows)
        leave = np.bincount(found.owner[~found.inside], minlength=n).astype(np.float64)
        enter = np.bincount(entering.owner[~entering.inside], minlength=n).astype(np.float64)
        tails, heads = found.place[found.inside], found.head[found.inside]
        mutual = np.isin(tails * size + heads, heads * size + tails)
        inside = np.bincount(found.owner[found.inside], minlength=n).astype(np.float64)
        both = np.bincount(found.owner[found.inside][mutual], minlength=n).astype(np.float64)
        out, into = (np.bincount(ends, minlength=size).astype(np.float64) for ends in (tails, heads))
        given, taken = Ragged(out, rows.offsets), Ragged(into, rows.offsets)
        return [
            np.log1p(leave / rows.lengths),
            np.log1p(enter / rows.lengths),
            np.divide(leave - enter, leave + enter, out=np.zeros(n), where=leave + enter > 0),
            _over(both, inside),
            _row_means(Ragged((into == 0).astype(np.float64), rows.offsets)),
            _row_means(Ragged((out == 0).astype(np.float64), rows.offsets)),
            _row_maxima(given),
            _row_maxima(taken),
            _row_deviations(Ragged(out - into, rows.offsets)),
        ]

    return _in_pieces(graph, rows, compute)
