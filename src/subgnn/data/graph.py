"""The base graph G = (V, E), in CSR form."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.strings import NodeNames, find_node
from subgnn.errors import DataError, DataWarning, excerpt
from subgnn.kernels.build_csr import directed_csr, transpose, undirected_csr

MAX_NODES = 2**31 - 1


def plausible_nodes(evidence: int) -> int:
    """The largest number of nodes that ids alone may imply, given this many edges or mentions of nodes.

    One line ``0 2000000000`` must not reserve sixteen gigabytes; a larger graph declares its size in the card or in
    nodes.tsv.
    """
    return min(MAX_NODES, 10_000_000 + 100 * evidence)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Counts of edges removed to make a graph simple."""

    self_loops: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A simple graph; immutable, its nodes are 0..N-1.

    Make one with :meth:`from_edges`, which checks its input; the constructor trusts its arrays. An undirected graph
    holds every edge in the rows of both its ends, a directed one in the row of its tail.

    Shapes:
        offsets: (N + 1,) int64. neighbors: (entries,) int32, each row sorted.
        weights: (entries,) float32 or None. features: (N, F) floats or None.

    ``oriented`` is the directed graph that this one is the undirected form of, where it is one.

    Example:
        >>> g = Graph.from_edges([0, 1], [1, 2])
        >>> g.num_nodes, g.num_edges, g.neighbors_of(1).tolist()
        (3, 2, [0, 2])
    """

    offsets: NDArray[np.int64]
    neighbors: NDArray[np.int32]
    weights: NDArray[np.float32] | None = None
    features: NDArray[Any] | None = None
    names: NodeNames | None = None
    directed: bool = False
    dropped: Dropped = Dropped()
    known_hash: str = ""
    oriented: Graph | None = None

    def __post_init__(self) -> None:
        for name in ("offsets", "neighbors", "weights", "features"):
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
    ) -> Graph:
        """Check edges and build the graph; self loops and repeated edges are dropped, counted and warned of.

        An undirected edge may be given in one orientation or in both. Of repeated edges the weight of the first is
        kept.

        Args:
            tails, heads: the ends of the edges, integers from 0.
            num_nodes: N; by default as many as ids, names or features need.
            weights: one finite number for each edge.
            features: N x F finite numbers.
            names: a name for each node.
            directed: keep orientations.

        Raises:
            DataError: for ids, weights, features or names that do not fit.
        """
        u, v = _node_ids(tails, "tails"), _node_ids(heads, "heads")
        if len(u) != len(v):
            raise DataError(f"{len(u)} tails but {len(v)} heads", where="edges")
        w = None if weights is None else _weights(weights, len(u))
        n = _num_nodes(u, v, num_nodes, features, names)
        keep = u != v
        loops = int(len(keep) - np.count_nonzero(keep))
        if loops:
            u, v, w = u[keep], v[keep], None if w is None else w[keep]
        if directed:
            offsets, neighbors, places = directed_csr(u, v, n)
            repeats = len(u) - len(neighbors)
        else:
            offsets, neighbors, places, mirrored = undirected_csr(u, v, n)
            repeats = len(u) - len(neighbors) // 2 - mirrored
        graph = cls(
            offsets=offsets,
            neighbors=neighbors,
            weights=None if w is None else w[places],
            features=None if features is None else _copy_if_writable(check_features(features, n)),
            names=names,
            directed=directed,
            dropped=Dropped(loops, repeats),
        )
        if loops or repeats:
            warnings.warn(f"dropped {loops:,} self loops and {repeats:,} repeated edges", DataWarning, stacklevel=2)
        return graph

    def __repr__(self) -> str:
        features = 0 if self.features is None else self.features.shape[1]
        parts = [
            f"{self.num_nodes:,} nodes",
            f"{self.num_edges:,} edges",
            *(["directed"] if self.directed else []),
            *(["weighted"] if self.weights is not None else []),
            *([f"{features:,} features"] if features else []),
            *(["named"] if self.names is not None else []),
        ]
        return f"Graph({', '.join(parts)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """The graph itself, as nothing can change it; scikit-learn copies the parameters of an estimator often."""
        return self

    @property
    def num_nodes(self) -> int:
        """N."""
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

    def neighbors_of(self, node: int) -> NDArray[np.int32]:
        """The neighbours of a node, sorted; in a directed graph those its edges point at."""
        return self.neighbors[self.offsets[node] : self.offsets[node + 1]]

    def row_of(self, written: str) -> int:
        """The row of a node, by name, or by row number where there are no names; ``#12`` is row 12.

        Raises:
            DataError: where the text matches no node, or several.

        Example:
            >>> Graph.from_edges([0], [1], names=NodeNames.of(["7157", "1"])).row_of("1")
            1
        """
        node = find_node(written, self.num_nodes, self.names)
        if node is None or node < 0:
            what = "is not a node of the graph" if node is None else "names several nodes"
            hint = (
                "nodes are written by name, or by row number, as #12" if self.names else "nodes are row numbers, from 0"
            )
            raise DataError(f"{excerpt(written)} {what}", where="graph", hint=hint)
        return node

    def edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32] | None]:
        """tails, heads and weights, each edge once; an undirected one from its smaller end."""
        tails = np.repeat(np.arange(self.num_nodes, dtype=np.int32), np.diff(self.offsets))
        if self.directed:
            return tails, self.neighbors, self.weights
        once = tails < self.neighbors
        return tails[once], self.neighbors[once], None if self.weights is None else self.weights[once]

    def reverse(self) -> Graph:
        """The graph with every edge reversed; an undirected graph is its own reverse."""
        if not self.directed:
            return self
        offsets, neighbors, places = transpose(*self.csr)
        weights = None if self.weights is None else self.weights[places]
        return replace(self, offsets=offsets, neighbors=neighbors, weights=weights, known_hash="")

    def undirected(self) -> Graph:
        """The same graph without orientations, for components and borders; ``oriented`` refers to this one."""
        if not self.directed:
            return self
        tails, heads, weights = self.edges()
        offsets, neighbors, places, _ = undirected_csr(tails, heads, self.num_nodes)
        weights = None if weights is None else weights[places]
        plain = replace(self, offsets=offsets, neighbors=neighbors, weights=weights, directed=False, known_hash="")
        return replace(plain, oriented=self)

    @property
    def content_hash(self) -> str:
        """SHA-256 of all that a model depends on: edges, weights, features and orientation, not names."""
        return self.known_hash or self.compute_hash()

    def compute_hash(self) -> str:
        """Compute the content hash from the arrays."""
        digest = hashlib.sha256(f"graph {self.num_nodes} {int(self.directed)}".encode())
        for name, array in (("o", self.offsets), ("n", self.neighbors), ("w", self.weights), ("f", self.features)):
            if array is not None:
                digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


LARGEST_FEATURE = 1e30
"""The largest magnitude of a feature; networks compute in 32 bits, which end at 3e38."""


def check_features(features: Any, num_nodes: int, where: str = "features") -> NDArray[Any]:
    """Features as floats, one row for each node, all finite and no larger than :data:`LARGEST_FEATURE`."""
    array = np.asarray(features)
    if array.dtype.kind not in "fiub":
        raise DataError(f"features of type {array.dtype}", where=where, hint="numbers are accepted")
    if array.ndim != 2:
        raise DataError(f"features of shape {array.shape}", where=where, hint=f"accepted: ({num_nodes}, F)")
    if len(array) != num_nodes:
        what = f"{len(array)} rows, but the graph has {num_nodes} nodes"
        hint = "one row for each node is needed"
        raise DataError(what, where=where, hint=hint)
    if array.dtype.kind != "f":
        array = array.astype(np.float32)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    step = max(1, 2**22 // max(1, array.shape[1]))
    for begin in range(0, len(array), step):
        # NaN is not within bounds either; the bound has 64 bits, so that features of 16 bits are compared in these.
        bad = np.argwhere(~(np.abs(array[begin : begin + step]) <= np.float64(LARGEST_FEATURE)))
        if len(bad):
            row, column = int(bad[0][0]) + begin, int(bad[0][1])
            what = f"{array[row, column]} at row {row}, column {column}"
            hint = "features must be finite: fill or drop missing values"
            hint = f"accepted: up to {LARGEST_FEATURE:g}; scale it" if np.isfinite(array[row, column]) else hint
            raise DataError(what, where=where, hint=hint)
    return array


def _node_ids(ids: Any, where: str) -> NDArray[np.int32]:
    array = np.asarray(ids)
    if array.size == 0:
        return np.empty(0, np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(
            f"ids of type {array.dtype} and shape {array.shape}", where=where, hint="a list of integers is accepted"
        )
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= MAX_NODES:
        raise DataError(f"node {low if low < 0 else high}", where=where, hint=f"ids run from 0 to {MAX_NODES - 1}")
    return array.astype(np.int32, copy=False)


def _weights(weights: Any, num_edges: int) -> NDArray[np.float32]:
    array = np.asarray(weights)
    if array.dtype.kind not in "fiu" or array.shape != (num_edges,):
        what = f"weights of type {array.dtype} and shape {array.shape}"
        hint = f"{num_edges} numbers needed"
        raise DataError(what, where="weights", hint=hint)
    with np.errstate(over="ignore"):
        array = array.astype(np.float32, copy=False)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise DataError(f"weight {array[bad[0]]} of edge {bad[0]}", where="weights", hint="weights must be finite")
    return array


def _copy_if_writable(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array that the caller could still change; a read-only one, such as a memory map, is not copied."""
    return array.copy() if array.flags.writeable else array


def _num_nodes(u: NDArray[Any], v: NDArray[Any], given: int | None, features: Any, names: NodeNames | None) -> int:
    needed = 1 + max(int(u.max(initial=-1)), int(v.max(initial=-1)))
    if given is None:
        known = len(names) if names is not None else 0 if features is None else len(features)
        given = max(needed, known)
    if given < needed:
        raise DataError(f"node {needed - 1} in a graph of {given} nodes", where="edges", hint=f"ids run 0..{given - 1}")
    if given > MAX_NODES:
        raise DataError(f"{given} nodes", where="num_nodes", hint=f"at most {MAX_NODES} are supported")
    if names is not None and len(names) != given:
        raise DataError(f"{len(names)} names for {given} nodes", where="names", hint="one name for each node is needed")
    return given
