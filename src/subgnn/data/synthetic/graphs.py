"""Parts that synthetic recipes share: checks of settings, labels, base graphs and planting (paper, appendix B)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SPLITS
from subgnn.errors import DataError
from subgnn.kernels.arrays import Array, compiled
from subgnn.kernels.build_csr import undirected_csr
from subgnn.kernels.draws import open_stream, uniform_below
from subgnn.ragged import Ragged

MAX_EDGES = 500_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A generated graph, sorted subgraphs, their labels, and the properties by name that these follow from."""

    graph: Graph
    subgraphs: Ragged
    labels: list[str]
    properties: dict[str, Array]


def binned(graph: Graph, subgraphs: Ragged, name: str, values: Array, *, bins: int, where: str) -> Draft:
    """A draft whose labels are the bins of a property, 0 the lowest: about equal in size, equal values in one bin."""
    order = np.argsort(values, kind="stable")
    steps = np.flatnonzero(np.diff(values[order])) + 1
    what = f"there are only {len(steps) + 1} different values for {bins} bins"
    hint = "use fewer bins, a wider range of targets, or more subgraphs"
    require(len(steps) + 1 >= bins, what, where=where, hint=hint)
    cuts, used = np.empty(bins - 1, np.int64), 0
    for k, wanted in enumerate(np.cumsum(class_sizes(len(values), bins))[:-1].tolist()):
        possible = steps[used : len(steps) - (bins - 2 - k)]
        place = int(np.abs(possible - wanted).argmin())
        cuts[k], used = possible[place], used + place + 1
    labels = np.empty(len(values), np.int64)
    labels[order] = np.searchsorted(cuts, np.arange(len(values)), side="right")
    return Draft(graph, subgraphs, list(map(str, labels.tolist())), {name: np.asarray(values)})


def require(condition: bool, what: str, *, where: str, hint: str) -> None:
    """Raise :class:`DataError` unless the condition holds."""
    if not condition:
        raise DataError(what, where=where, hint=hint)


def check_subgraphs(num_subgraphs: int, bins: int) -> None:
    """Refuse fewer subgraphs than classes or splits."""
    least = max(bins, len(SPLITS))
    hint = f"at least {least} are needed, one for each class and each split"
    require(num_subgraphs >= least, f"{num_subgraphs} subgraphs for {bins} classes", where="num_subgraphs", hint=hint)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a dataset whose labels are bins of a property; the defaults are the paper's."""

    num_nodes: int = 5_000
    num_subgraphs: int = 250
    subgraph_size: int = 20
    bins: int = 3

    def __post_init__(self) -> None:
        require(self.bins >= 2, f"{self.bins} bins", where="bins", hint="at least 2 are needed to tell subgraphs apart")
        check_subgraphs(self.num_subgraphs, self.bins)
        what = f"subgraphs of {self.subgraph_size} nodes in a graph of {self.num_nodes}"
        hint = f"2 to {self.num_nodes - 1} is accepted"
        require(2 <= self.subgraph_size < self.num_nodes, what, where="subgraph_size", hint=hint)


def class_sizes(count: int, bins: int) -> NDArray[np.int64]:
    """The number of subgraphs in each bin, equal to within one."""
    return np.diff(np.arange(bins + 1, dtype=np.int64) * count // bins)


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


def barabasi_albert_edges(num_nodes: int, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Tails and heads of a Barabasi-Albert graph."""
    require(1 <= m < num_nodes, f"m is {m} for {num_nodes} nodes", where="m", hint="1 to num_nodes - 1 is accepted")
    what, hint = f"{num_nodes:,} nodes of {m} edges", f"at most {MAX_EDGES // m:,} with this m"
    require(num_nodes <= MAX_EDGES // m, what, where="num_nodes", hint=hint)
    return attach_preferentially(num_nodes, m, stream_word(rng))


def barabasi_albert(num_nodes: int, m: int, rng: np.random.Generator) -> Graph:
    """A connected Barabasi-Albert graph of m (num_nodes - m) edges, grown from a star of m + 1 nodes around node 0."""
    return Graph.from_edges(*barabasi_albert_edges(num_nodes, m, rng), num_nodes=num_nodes)


SmallGraphs = tuple[Array, Array, Array]
"""Small graphs, numbered end to end: graph i has the nodes offsets[i] to offsets[i + 1] - 1; and tails and heads."""


def end_to_end(graphs: Iterable[tuple[int, Array | list[int], Array | list[int]]]) -> SmallGraphs:
    """Lay graphs, each given as its number of nodes, tails and heads, end to end."""
    sizes, *ends = zip(*graphs, strict=True)
    offsets = np.append(0, np.cumsum(sizes))
    tails, heads = (np.concatenate([np.add(*pair) for pair in zip(offsets[:-1], part, strict=True)]) for part in ends)
    return offsets, tails, heads


def with_edges(graph: Graph, tails: Array, heads: Array, *, more_nodes: int = 0) -> Graph:
    """The graph with more edges; one that is there already stays one edge."""
    old_tails, old_heads, _ = graph.edges()
    ends = np.concatenate([old_tails, tails]), np.concatenate([old_heads, heads])
    offsets, neighbors, _, _ = undirected_csr(*ends, graph.num_nodes + more_nodes)
    return Graph(offsets, neighbors)


def plant(graph: Graph, small: SmallGraphs, nodes: Array) -> Graph:
    """PLANT: lay small graphs onto ``nodes``, one for each of theirs, as the union of node and edge sets."""
    return with_edges(graph, nodes[small[1]], nodes[small[2]])
