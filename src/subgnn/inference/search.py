"""Find the known subgraphs nearest to new ones: by place in the graph, by nodes, or by the vectors of a run.

Distances by ``nodes`` are 1 - (nodes of both) / (nodes of either), the Jaccard distance; by ``place`` 1 - cosine of
their bags of nodes spread one hop, less the mean of the known subgraphs (:mod:`subgnn.models.novelty`), so that those
in the same part of the graph are near, also if they share few nodes; by ``class`` those of vectors (:class:`Nearest`).

The known subgraphs are the training and validation splits of the run's dataset and, on request, test. Place and nodes
need no model. Vectors are computed at first use and stored in the cache folder; only those of training subgraphs were
influenced by their labels.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError, UserError, choices, excerpt
from subgnn.inference.answers import AnswerTable, Files, Query, chunk_size
from subgnn.inference.predictor import Predictor, names_of
from subgnn.inference.records import checkpoint_hash
from subgnn.models.kernel_machines.views import bag_of_nodes
from subgnn.models.novelty import Comparison, spread_entries
from subgnn.parallel.memory import share
from subgnn.ragged import Ragged
from subgnn.storage.arrays import Format, encode_arrays, read_arrays
from subgnn.storage.cache import cache_limit, cache_path, lookup, store
from subgnn.storage.files import json_digest
from subgnn.storage.tables import Column

By = Literal["place", "nodes", "class"]
_STORED = Format(
    "subgnn-subgraph-vectors", "file of subgraph vectors", "the first search in a run writes one", "remove it"
)
_SHOWN = 20  # shared nodes that are named
_DIGITS = 9  # of distances by place or nodes that count as equal
_ENTRY_BYTES = 40  # of the rows of known subgraphs, with copies while they are made

_LINE = 1e-8  # of squares of vectors: that of the smaller direction which is rounding
_COSINE_DIGITS = 12  # of cosines; those beyond are rounding
Found = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Places among the known vectors and distances, the nearest first: (n, k) each, k being ``top`` or, where there are
fewer, the number of known vectors; -1 and NaN for a query that is NaN."""
_TITLES = {"rank": int, "row": int, "nearest": str, "label": str, "split": str, "distance": float}
_TITLES |= {"shared": int, "shared_nodes": str}
Hits = list[dict[str, Any]]
"""The subgraphs found for a query, nearest first: the columns of the answer by title."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How many known subgraphs to find, whether to include test, and how to compare."""

    top: int = 10
    test: bool = False
    by: By = "place"

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            hint = choices(self.by, get_args(By))
            raise UserError(f"unknown way to compare {excerpt(self.by)}", where="by", hint=hint)


class Overlap:
    """Known subgraphs, ready for queries by ``nodes`` or ``place``; the graph is undirected."""

    def __init__(self, graph: Graph, known: Ragged, by: By) -> None:
        self._graph, self._known, self._compared = graph, len(known), None
        if by == "place":
            needed = _ENTRY_BYTES * spread_entries(graph, known)
            if needed > share(0.5):
                what = f"the neighbours of {len(known):,} known subgraphs take {needed / 2**30:.1f} GiB"
                raise UserError(what, where="search", hint="pass --by nodes or --by class, or raise --memory")
            self._compared = Comparison(graph, known)
        else:
            self._columns, self._sizes = bag_of_nodes(known, graph.num_nodes).T.tocsr(), known.lengths

    def find(self, subgraphs: Ragged, top: int) -> Found:
        """The nearest known subgraphs and their distances; ties are broken by position."""
        rows = np.ones(len(subgraphs), bool)
        return _find(lambda some: self._distances(subgraphs.take(some)), rows, np.arange(self._known), top)

    def _distances(self, subgraphs: Ragged) -> NDArray[np.float64]:
        if self._compared is not None:
            found = 1 - self._compared.cosines(subgraphs)
        else:
            both = (bag_of_nodes(subgraphs, self._graph.num_nodes) @ self._columns).toarray().astype(np.float64)
            found = np.asarray(1 - both / (subgraphs.lengths[:, None] + self._sizes - both))
        return found.clip(min=0).round(_DIGITS)


class Nearest:
    """Known vectors (m, width), ready for queries; those with NaN are never found.

    The distance of a query q from a known vector k is 1 - cos(q - m, k - m), m being the mean of the known ones, whose
    subtraction tells similar vectors apart. The cosine with a vector of zeros is 0. Known vectors on a line, such as
    scores of two classes with a constant sum, have no cosines but 1 and -1: there it is |q - k|. Pairs are compared in
    64 bits, each by itself, so the answer to a query does not depend on other queries.
    """

    def __init__(self, known: NDArray[Any]) -> None:
        vectors = _checked(known, "known vectors")
        self.present = np.flatnonzero(~np.isnan(vectors).any(axis=1))
        points = vectors[self.present].astype(np.float64)
        self.mean = points.mean(axis=0) if len(points) else np.zeros(points.shape[1])
        self.on_a_line = False
        if len(points) > 1 and points.shape[1] <= 2:
            spread = np.linalg.eigvalsh((points - self.mean).T @ (points - self.mean))
            self.on_a_line = len(spread) == 1 or bool(spread[0] <= _LINE * spread[-1])
        self.known, self.lengths = self._points(points)

    def find(self, queries: Any, top: int = 10) -> Found:
        """Find the nearest known vectors for each query; ties are broken by position."""
        vectors = _checked(queries, "queries")
        if vectors.shape[1] != self.known.shape[1]:
            what = f"the vectors have {vectors.shape[1]} numbers, but the known ones have {self.known.shape[1]}"
            raise DataError(what, where="queries", hint="use vectors from the same run")
        there = np.asarray(np.isfinite(vectors).all(axis=1))
        return _find(lambda some: self._distances(vectors[some].astype(np.float64)), there, self.present, top)

    def _distances(self, queries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distances of queries from all known vectors that are present."""
        points, lengths = self._points(queries)
        if self.on_a_line:
            return np.asarray(cdist(points, self.known))
        # Half the squared distance of vectors of length one.
        cosines = np.where(lengths * self.lengths.T > 0, 1 - cdist(points, self.known, "sqeuclidean") / 2, 0.0)
        return np.asarray((1 - cosines).round(_COSINE_DIGITS))

    def _points(self, vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Vectors as they are compared, for cosines of length one, and their lengths (n, 1)."""
        points = vectors - self.mean
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        return points if self.on_a_line else points / np.where(lengths > 0, lengths, 1), lengths


def nearest_vectors(queries: Any, known: Any, *, top: int = 10) -> Found:
    """Find the nearest known vectors (m, width) for each query (n, width): positions and distances, nearest first.

    Example:
        >>> places, distances = nearest_vectors([[1.0, 0.2]], [[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]], top=1)
        >>> places.tolist(), distances.round(3).tolist()
        ([[1]], [[0.009]])
    """
    return Nearest(known).find(queries, top)


def _find(
    distances_of: Callable[[NDArray[np.int64]], NDArray[np.float64]], there: NDArray[Any], known: NDArray[Any], top: int
) -> Found:
    """The nearest of the ``known`` places, by the distances of queries (q,) from all of them (q, known)."""
    if top < 1:
        raise UserError(f"cannot find {top} neighbours", where="top", hint="accepted: 1 or more")
    top = min(top, len(known))
    places, distances = np.full((len(there), top), -1, np.int64), np.full((len(there), top), np.nan)
    queries, size = np.flatnonzero(there & (top > 0)), max(1, int(share(0.05)) // (32 * max(1, len(known))))
    for begin in range(0, len(queries), size):
        some = queries[begin : begin + size]
        for row, values in zip(some, distances_of(some), strict=True):
            near = np.flatnonzero(values <= np.partition(values, top - 1)[top - 1])
            near = near[np.argsort(values[near], kind="stable")[:top]]
            places[row], distances[row] = known[near], values[near]
    return places, distances


def _checked(vectors: Any, noun: str) -> NDArray[np.float32]:
    """Vectors as a table of 32-bit numbers, each finite or NaN."""
    table = np.asarray(vectors)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        what = f"got an array of shape {table.shape} and type {table.dtype}"
        raise DataError(what, where=noun, hint="accepted: numbers, one row per vector")
    with np.errstate(over="ignore"):
        found: NDArray[np.float32] = table.astype(np.float32, copy=False)
    infinite = np.isinf(found).any(axis=1)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise DataError("a number is infinite in 32 bits", where=f"{noun}: row {row}", hint="scale the vectors")
    return found


class KnownSubgraphs:
    """The subgraphs of a run's dataset, and their vectors; parts that were computed stay if work is given up."""

    def __init__(self, predictor: Predictor, subgraphs: SubgraphSet | None, *, part: int | None = None) -> None:
        self._predictor, self._lock = predictor, threading.Lock()
        self.part = part or chunk_size(predictor.spec)
        self.subgraphs = subgraphs
        self._parts: list[NDArray[np.float32]] = []
        self._vectors: NDArray[np.float32] | None = None
        self._path = Path()  # in the cache
        self._finders: dict[SearchOptions, tuple[NDArray[np.int64], Overlap | Nearest]] = {}

    def __len__(self) -> int:
        return 0 if self.subgraphs is None else len(self.subgraphs)

    def places(self, *, test: bool = False) -> NDArray[np.int64]:
        """The positions of the known subgraphs in the dataset: all, or all but test."""
        if self.subgraphs is None or self.subgraphs.splits is None or test:
            return np.arange(len(self))
        return np.flatnonzero(self.subgraphs.splits != SPLITS.index("test"))

    def vectors(self) -> NDArray[np.float32]:
        while self._vectors is None:
            self.advance()
        return self._vectors

    def advance(self) -> bool:
        """Read the vectors from the cache, or compute the next part of them; return whether all are there."""
        with self._lock:
            if self._vectors is None and self.subgraphs is not None:
                nodes = self._predictor.rows(self.subgraphs)
                if not self._parts and cache_limit():
                    key = json_digest([checkpoint_hash(self._predictor), nodes.digest])
                    path = self._path = cache_path("subgraph_vectors", key)
                    shape = len(nodes), None
                    self._vectors = lookup(path, lambda: read_arrays(path, _STORED).array("vectors", np.float32, shape))
                if self._vectors is None:
                    done = sum(map(len, self._parts))
                    part = np.arange(done, min(done + self.part, len(nodes)))
                    self._parts.append(self._predictor.embeddings(nodes.take(part)))
                    if done + len(part) == len(nodes):
                        self._vectors, self._parts = np.concatenate(self._parts), []
                        if cache_limit():
                            store(self._path, encode_arrays({"vectors": self._vectors}, _STORED))
            return self._vectors is not None

    def find(self, subgraphs: Ragged, options: SearchOptions) -> Found:
        """Find the nearest known subgraphs: their positions in the dataset, and distances."""
        places, finder = self.prepare(options)
        if isinstance(finder, Nearest):
            found, distances = finder.find(self._predictor.embeddings(subgraphs), options.top)
        else:
            found, distances = finder.find(subgraphs, options.top)
        return np.where(found >= 0, places[found], -1), distances

    def is_ready(self, options: SearchOptions) -> bool:
        """Whether the first query would be answered as fast as later ones."""
        return self._vectors is not None if options.by == "class" else replace(options, top=1) in self._finders

    def prepare(self, options: SearchOptions) -> tuple[NDArray[np.int64], Overlap | Nearest]:
        """Compute what a search needs of the known subgraphs: their positions, and what finds the nearest of them."""
        options = replace(options, top=1)  # how many are found does not matter
        if options not in self._finders:
            nodes, places = self._required.nodes, self.places(test=options.test)
            if not len(places):
                raise DataError("every subgraph is in the test split", where="search", hint="pass --include-test")
            finder: Overlap | Nearest
            if options.by == "class":
                finder = Nearest(self.vectors()[places])
            else:
                finder = Overlap(self._predictor.graph, nodes.take(places), options.by)
            self._finders[options] = places, finder
        return self._finders[options]

    @property
    def _required(self) -> SubgraphSet:
        if self.subgraphs is None:
            raise DataError("no labelled subgraphs", where="search", hint="say where the dataset is with --data")
        return self.subgraphs

    def hits(
        self, subgraphs: Ragged, options: SearchOptions, describe: Callable[[int], dict[str, Any]] | None = None
    ) -> Iterator[Hits]:
        """The subgraphs found for each: rank, description, distance to six digits, and the nodes that both have."""
        describe = describe or self.describe
        for nodes, places, distances in zip(subgraphs, *self.find(subgraphs, options), strict=True):
            found: Hits = []
            for place, distance in zip(places.tolist(), distances.tolist(), strict=True):
                if place >= 0:
                    about = {"rank": len(found) + 1, **describe(place), "distance": float(f"{distance:.6g}")}
                    both = np.intersect1d(nodes, self._required.nodes[place]).tolist()
                    names = [*names_of(self._predictor.graph, both[:_SHOWN]), *["..."] * (len(both) > _SHOWN)]
                    found.append(about | {"shared": len(both), "shared_nodes": ";".join(names)})
            yield found

    def describe(self, place: int) -> dict[str, Any]:
        """The row, name (or nodes), label and split of a known subgraph."""
        subgraphs = self._required
        nodes, names = subgraphs.nodes[place].tolist(), subgraphs.names
        name = "-".join(names_of(self._predictor.graph, nodes)) if names is None else names[place]
        label = subgraphs.label_text(place) or None
        return {"row": place, "nearest": name, "label": label, "split": self.split(place)}

    def split(self, place: int) -> str | None:
        splits = self._required.splits
        return None if splits is None else SPLITS[splits[place]]


def search(known: KnownSubgraphs, query: Query, options: SearchOptions) -> Iterator[tuple[int, Hits]]:
    """The known subgraphs nearest to each subgraph of a table; none for one without nodes in the graph."""
    query.refuse_empty()
    known.prepare(options)
    answers = query.answered(known.part, lambda nodes: known.hits(nodes, options))
    return ((row, found or []) for row, found in answers)


def search_table(known: KnownSubgraphs, query: Query, options: SearchOptions) -> AnswerTable:
    """One row per subgraph found (:func:`search`)."""
    columns = [Column(title, kind) for title, kind in _TITLES.items()]
    lists = ((row, [list(hit.values()) for hit in found]) for row, found in search(known, query, options))
    return AnswerTable.of_lists(query, columns, lists)


def open_search(run: Path, files: Files, options: SearchOptions) -> tuple[KnownSubgraphs, Query]:
    """Open a run or an export to search in, and read the queries of a file."""
    opened = files.open(run)
    known = KnownSubgraphs(opened.predictor, opened.subgraphs)
    query = files.read(opened.predictor)
    if opened.predictor.as_of_step is not None and options.by == "place":
        files.reading.on_note("places are compared on the graph as it is now; --by class compares as of each time")
    return known, query
