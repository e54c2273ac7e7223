"""The base graph G = (V, E), in CSR form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from subgnn.data.strings import NodeNames, find_node
from subgnn.data.values import check_features, check_node_ids, check_num_nodes, check_times, check_types, check_weights
from subgnn.errors import DataError, choices, counted, excerpt, warn
from subgnn.kernels.build_csr import directed_csr, other_weights, transpose, undirected_csr
from subgnn.ragged import hashed

ATTRIBUTES = {
    "weights": "edge weights",
    "direction": "direction of edges",
    "types": "edge types",
    "times": "edge times",
    "features": "node features",
}
"""What a graph may have beside nodes and edges, in words: a model says which of them it uses."""

Repeated = Literal["first", "last", "sum", "mean", "max", "count"]
"""What becomes of the weights of edges that join the same two nodes."""
TO_JOIN = "; to join them, pass"


@dataclass(frozen=True, slots=True)
class Dropped:
    """Counts of edges removed to make a graph simple."""

    self_loops: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A simple graph; immutable, its nodes are 0..N-1.

    Make one with :meth:`from_edges`, which checks its input; the constructor trusts its arrays. An undirected graph
    holds every edge in the rows of both its ends, a directed one in the row of its tail. Edges may have times, numbers
    of any unit.

    If edges have types, ``layers`` are the graphs of one type each, in the order of their names, ``types``, without
    names and features. The graph itself is their union, in which a pair is joined by the earliest edge, of equals that
    of the first type.

    Example:
        >>> g = Graph.from_edges([0, 1], [1, 2])
        >>> g.num_nodes, g.num_edges, g.neighbors_of(1).tolist()
        (3, 2, [0, 2])
    """

    offsets: NDArray[np.int64]  # (N + 1,)
    neighbors: NDArray[np.int32]  # (entries,), each row sorted
    weights: NDArray[np.float32] | None = None  # (entries,)
    features: NDArray[Any] | None = None  # (N, F) floats
    names: NodeNames | None = None
    directed: bool = False
    dropped: Dropped = Dropped()
    known_hash: str = ""
    oriented: Graph | None = None  # the directed graph that this one is the undirected form of
    times: NDArray[Any] | None = None  # (entries,) int64 or float64
    types: tuple[str, ...] = ()
    layers: tuple[Graph, ...] = ()

    def __post_init__(self) -> None:
        for name in ("offsets", "neighbors", "weights", "features", "times"):
            array = getattr(self, name)
            if array is not None and array.flags.writeable:
                # A view: the caller may go on writing to the array.
                view = array.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    @classmethod
    def from_edges(
        cls,
        tails: Any,
        heads: Any,
        *,
        num_nodes: int | None = None,
        weights: Any = None,
        features: Any = None,
        names: NodeNames | None = None,
        directed: bool = False,
        times: Any = None,
        types: Any = None,
        repeated: Repeated | None = None,
    ) -> Graph:
        """Check edges and build the graph; self loops and repeated edges are dropped, counted and warned of.

        An undirected edge may be given in one orientation or in both. Of repeated edges the earliest is kept, with its
        weight; without times, the first. Edges of different types do not repeat each other. With ``repeated``, the
        weights of repeated edges become one: their sum, for instance, or their number, ``count``, which needs no
        weights. Such an edge is as old as the latest of them, so that no weight is known before its time.

        Example:
            >>> g = Graph.from_edges([0, 0, 1], [1, 1, 2], types=["binds", "inhibits", "binds"])
            >>> g.num_edges, g.types, g.of_type("binds").num_edges, g.of_type("inhibits").num_edges
            (2, ('binds', 'inhibits'), 2, 1)
        """
        u, v = check_node_ids(tails, "tails"), check_node_ids(heads, "heads")
        if len(u) != len(v):
            raise DataError(f"there are {len(u)} tails but {len(v)} heads", where="edges")
        checked_weights = None if weights is None else check_weights(weights, len(u))
        given = _Edges(u, v, checked_weights, None if times is None else check_times(times, len(u)))
        codes, kinds = (None, ()) if types is None else check_types(types, len(u))
        n = check_num_nodes(u, v, num_nodes, features, names)
        if repeated not in (None, *get_args(Repeated)):
            raise DataError(excerpt(str(repeated)), where="--repeated", hint=choices(str(repeated), get_args(Repeated)))
        if repeated not in (None, "first", "count") and weights is None:
            what = f"the edges have no weights to take the {repeated} of"
            raise DataError(what, where="--repeated", hint="name the column of weights, or pass --repeated count")
        how: Repeated = repeated or "first"
        if how == "count":
            given = replace(given, weights=np.ones(len(u), np.float32))
        if codes is not None:
            order = np.argsort(codes, kind="stable")
            given, codes = given.take(order), codes[order]
        lines: list[str] | None = [] if repeated is None else None
        known: dict[str, Any] = {"directed": directed, "names": names, "how": how}
        graph, loops, repeats = given.build(n, **known, lines=lines if codes is None else None)
        if codes is not None:
            each = [given.take(codes == code) for code in range(len(kinds))]
            built = [edges.build(n, **known, lines=lines) for edges in each]
            repeats = sum(of_type for _, _, of_type in built)
            graph = replace(graph, types=kinds, layers=tuple(layer for layer, _, _ in built))
        lines = lines or []
        if loops or (repeats and how == "first"):
            lines.insert(0, dropped_line(loops, repeats if how == "first" else 0))
        if repeats and how != "first":
            lines.append(f"{counted(repeats, 'repeated edge')} joined: the weight is the {how} of theirs")
        for line in lines:
            warn(line)
        if features is not None and (features := check_features(features, n)).flags.writeable:
            features = features.copy()  # which the caller could still change
        return replace(graph, features=features, names=names, dropped=Dropped(loops, repeats))

    def __repr__(self) -> str:
        features = 0 if self.features is None else self.features.shape[1]
        parts = {
            f"{self.num_nodes:,} nodes, {self.num_edges:,} edges": True,
            "directed": self.directed,
            "weighted": self.weights is not None,
            f"{len(self.types):,} edge types": bool(self.types),
            "dated": self.times is not None,
            f"{features:,} features": features > 0,
            "named": self.names is not None,
        }
        return f"Graph({', '.join(text for text, there in parts.items() if there)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """The graph itself, as nothing can change it; scikit-learn copies the parameters of an estimator often."""
        return self

    @property
    def num_nodes(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_edges(self) -> int:
        """Edges, an undirected one counted once."""
        return len(self.neighbors) if self.directed else len(self.neighbors) // 2

    @property
    def density(self) -> float:
        """Edges over pairs of nodes (ordered pairs where the graph is directed)."""
        pairs = self.num_nodes * (self.num_nodes - 1)
        return len(self.neighbors) / pairs if pairs else 0.0

    @property
    def csr(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Offsets and neighbors: the arguments of the kernels."""
        return self.offsets, self.neighbors

    @property
    def attributes(self) -> tuple[str, ...]:
        """What the graph has beside nodes and edges: keys of :data:`ATTRIBUTES`, in their order."""
        wide = self.features is not None and self.features.shape[1] > 0
        has = (self.weights is not None, self.directed, bool(self.types), self.times is not None, wide)
        return tuple(name for name, there in zip(ATTRIBUTES, has, strict=True) if there)

    def neighbors_of(self, node: int) -> NDArray[np.int32]:
        """The neighbours of a node, sorted; in a directed graph those its edges point at."""
        return self.neighbors[self.offsets[node] : self.offsets[node + 1]]

    def row_of(self, written: str) -> int:
        """The row of a node, by name, or by row number where there are no names; ``#12`` is row 12."""
        node = find_node(written, self.num_nodes, self.names)
        if node is None or node < 0:
            what = "is not a node of the graph" if node is None else "names several nodes"
            named = "write nodes by name, or by row number, such as #12"
            hint = named if self.names else "nodes are row numbers, from 0"
            raise DataError(f"{excerpt(written)} {what}", where="graph", hint=hint)
        return node

    def find(self, written: str) -> tuple[int | None, bool]:
        """The node of a text, as :func:`find_node` finds it, and whether only the case differs."""
        node = find_node(written, self.num_nodes, self.names)
        if node is not None or self.names is None:
            return node, False
        return self.names.find_ignoring_case(written), True

    def knows(self, written: str) -> bool:
        """Whether a text names one or more nodes, ignoring case if necessary."""
        return self.find(written)[0] is not None

    def edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32] | None]:
        """tails, heads and weights, each edge once; an undirected one from its smaller end."""
        tails = np.repeat(np.arange(self.num_nodes, dtype=np.int32), np.diff(self.offsets))
        if self.directed:
            return tails, self.neighbors, self.weights
        once = tails < self.neighbors
        return tails[once], self.neighbors[once], None if self.weights is None else self.weights[once]

    def edge_columns(self) -> dict[str, NDArray[Any]]:
        """All edges with what they have: columns ``tail``, ``head``, and ``weight``, ``type`` and ``time`` if any."""
        if self.layers:
            parts = [layer.edge_columns() for layer in self.layers]
            columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            return columns | {"type": np.repeat(np.array(self.types), [len(part["tail"]) for part in parts])}
        tails, heads, weights = self.edges()
        columns = {"tail": tails, "head": heads} | ({} if weights is None else {"weight": weights})
        if self.times is None:
            return columns
        rows = np.repeat(np.arange(self.num_nodes, dtype=np.int32), np.diff(self.offsets))
        return columns | {"time": self.times if self.directed else self.times[rows < self.neighbors]}

    def reverse(self) -> Graph:
        """The graph with every edge reversed; an undirected graph is its own reverse."""
        if not self.directed:
            return self
        offsets, neighbors, places = transpose(*self.csr)
        layers = tuple(layer.reverse() for layer in self.layers)
        return replace(self._with_entries(offsets, neighbors, places), layers=layers)

    def undirected(self) -> Graph:
        """The same graph without orientations, for components and borders; ``oriented`` refers to this one."""
        if not self.directed:
            return self
        tails, heads, weights = self.edges()
        plain, _, _ = _Edges(tails, heads, weights, self.times).build(self.num_nodes, directed=False)
        layers = tuple(layer.undirected() for layer in self.layers)
        entries = {name: getattr(plain, name) for name in ("offsets", "neighbors", "weights", "times")}
        return replace(self, **entries, directed=False, known_hash="", oriented=self, layers=layers)

    def of_type(self, name: str) -> Graph:
        if name not in self.types:
            hint = choices(name, self.types) if self.types else "the edges of this graph have no types"
            raise DataError(f"no edge type {excerpt(name)}", where="graph", hint=hint)
        return replace(self.layers[self.types.index(name)], names=self.names, features=self.features)

    def until(self, time: float) -> Graph:
        """The graph as it was at a time, that is without its later edges; nodes and types stay."""
        if self.times is None:
            raise DataError("the edges have no times", where="graph", hint="a time for each edge is needed")
        kept = self.times <= time
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[self.offsets]
        graph = self._with_entries(offsets, self.neighbors[kept], np.flatnonzero(kept))
        layers = tuple(layer.until(time) for layer in self.layers)
        return replace(graph, layers=layers, oriented=None if self.oriented is None else self.oriented.until(time))

    def with_nodes(self, num_nodes: int) -> Graph:
        """The graph with further nodes, which have no edges; their names and features are up to the caller."""
        offsets = np.append(self.offsets, np.full(num_nodes - self.num_nodes, self.offsets[-1]))
        layers = tuple(layer.with_nodes(num_nodes) for layer in self.layers)
        oriented = None if self.oriented is None else self.oriented.with_nodes(num_nodes)
        return replace(self, offsets=offsets, known_hash="", layers=layers, oriented=oriented)

    def _with_entries(self, offsets: NDArray[np.int64], neighbors: NDArray[np.int32], places: NDArray[Any]) -> Graph:
        """The graph with other rows, whose entries are those of this one at ``places``; layers are left as they are."""
        weights, times = (None if array is None else array[places] for array in (self.weights, self.times))
        return replace(self, offsets=offsets, neighbors=neighbors, weights=weights, times=times, known_hash="")

    @property
    def content_hash(self) -> str:
        """SHA-256 of all that numbers are computed from: edges with all they have, features, orientation; not names."""
        return self.known_hash or self.compute_hash()

    @property
    def names_hash(self) -> str:
        return "" if self.names is None else self.names.content_hash

    def compute_hash(self) -> str:
        arrays = ((name[0], getattr(self, name)) for name in ("offsets", "neighbors", "weights", "features", "times"))
        digest = hashed(f"graph {self.num_nodes} {int(self.directed)}", arrays)
        for name, layer in zip(self.types, self.layers, strict=True):
            digest.update(f"type {name!r} {layer.compute_hash()}".encode())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class _Edges:
    """Edges as they are given, checked one by one."""

    tails: NDArray[np.int32]
    heads: NDArray[np.int32]
    weights: NDArray[np.float32] | None
    times: NDArray[Any] | None

    def take(self, chosen: NDArray[Any]) -> _Edges:
        weights, times = (None if array is None else array[chosen] for array in (self.weights, self.times))
        return _Edges(self.tails[chosen], self.heads[chosen], weights, times)

    def aggregated(self, how: Repeated, *, directed: bool) -> _Edges:
        """One edge for each pair, in the order of pairs; of edges in the order of time, the last has the time."""
        import pandas as pd

        ends = np.stack([self.tails, self.heads])
        tails, heads = ends if directed else np.sort(ends, axis=0)
        weights = np.asarray(self.weights, np.float64)
        table = pd.DataFrame({"tail": tails, "head": heads, "weight": weights, "time": self.times})
        pairs = table.groupby(["tail", "head"], as_index=False)
        found = pairs.agg({"weight": "sum" if how == "count" else how, "time": "last"})
        joined = check_weights(found["weight"].to_numpy(), len(found))
        times = None if self.times is None else found["time"].to_numpy()
        return _Edges(found["tail"].to_numpy(), found["head"].to_numpy(), joined, times)

    def build(
        self,
        num_nodes: int,
        *,
        directed: bool,
        names: NodeNames | None = None,
        lines: list[str] | None = None,
        how: Repeated = "first",
    ) -> tuple[Graph, int, int]:
        """The simple graph, and how many loops and repeats were dropped; ``lines`` gets one about other weights."""
        edges, keep = self, self.tails != self.heads
        loops = int(len(keep) - np.count_nonzero(keep))
        if loops:
            edges = edges.take(keep)
        if edges.times is not None:
            edges = edges.take(np.argsort(edges.times, kind="stable"))
        if how != "first":
            if not directed:
                # Edges that are all given from both ends, with the same weight and time, count from the smaller one.
                ends, more = (edges.tails, edges.heads), [a for a in (edges.weights, edges.times) if a is not None]
                there, back = (np.lexsort((*more, b, a)) for a, b in (ends, ends[::-1]))
                pairs = (ends, ends[::-1], *((array, array) for array in more))
                if all(np.array_equal(a[there], b[back]) for a, b in pairs):
                    edges = edges.take(edges.tails < edges.heads)
            joined = edges.aggregated(how, directed=directed)
            graph, _, _ = joined.build(num_nodes, directed=directed)
            return graph, loops, len(edges.tails) - len(joined.tails)
        if directed:
            offsets, neighbors, places = directed_csr(edges.tails, edges.heads, num_nodes)
            repeats = len(edges.tails) - len(neighbors)
        else:
            offsets, neighbors, places, mirrored = undirected_csr(edges.tails, edges.heads, num_nodes)
            repeats = len(edges.tails) - len(neighbors) // 2 - mirrored
        weights, times = (None if array is None else array[places] for array in (edges.weights, edges.times))
        several = len(edges.tails) > len(neighbors) // (2 - directed)
        if several and lines is not None and edges.weights is not None and weights is not None:
            again = np.ones(len(edges.tails), np.bool_)
            again[places] = False
            u, v, w = edges.tails[again], edges.heads[again], edges.weights[again]
            count, edge = other_weights((offsets, neighbors, weights), u, v, w)
            if count:
                line = other_weights_line(count, edge, names, "first" if self.times is None else "earliest")
                lines.append(f"{line}{TO_JOIN} --repeated sum (or mean, max, last, count)")
        return Graph(offsets, neighbors, weights, directed=directed, times=times), loops, repeats


def dropped_line(loops: int, repeats: int) -> str:
    """The line about self loops and repeated edges that were dropped."""
    counts = ((loops, "self loop"), (repeats, "repeated edge"))
    return "dropped " + " and ".join(counted(count, noun) for count, noun in counts if count)


def other_weights_line(count: int, edge: tuple[int, int, float, float], names: NodeNames | None, kept: str) -> str:
    """A warning about edges repeated with different weights; ``edge`` is one: ends, kept weight, own weight."""
    tail, head = (excerpt(str(node) if names is None else names[node]) for node in edge[:2])
    example = f"{tail} - {head}: {edge[2]:g}, not {edge[3]:g}"
    what = "repeated edges have different weights" if count > 1 else "repeated edge has a different weight"
    return f"{count:,} {what}; the {kept} is kept ({example})"
