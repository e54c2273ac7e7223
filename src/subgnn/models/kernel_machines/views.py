"""Views of subgraphs: rows of numbers that simple models are fitted to.

======== ==================================================================================
name     the row of a subgraph S
======== ==================================================================================
bag      B: 1 for each node of S
one-hop  B D^-1/2 A D^-1/2: the bag spread one hop; with weights of edges if ``diffusion.weighted``
walk     p_S: where a random walk from S ends (its diffusion), with weights of edges
root     sqrt(p_S), whose inner products are Hellinger's affinities
lift     l_S = log(1 + p_S / pi): how much more often it ends at a node than chance
topology 18 statistics of S and its border (:func:`~subgnn.channels.topology.subgraph_statistics`)
======== ==================================================================================

All but the last have a number for each node of the graph. Of a directed graph, walk, root, lift and one-hop exist in
two more forms: ``lift-out`` is that of walks along the edges, and ``lift-in`` that of walks against them. Of edges with
types, ``lift:binds`` is the view ``lift`` of the graph of the edges of the type ``binds``, and ``lift:*`` stands for
those of all types; the same four views have these forms, also along edges and against them (``lift-out:binds``).

A view is a function of the graph and the nodes of a subgraph alone, so it is computed once for many splits. What
depends on the split, such as subtracting the mean of the training subgraphs, is up to the model.

Bags are sparse. A diffusion (:mod:`subgnn.channels.diffusion`) has a value at every node; by local push, at those with
the largest lifts. Those of the subgraphs that a fitted model knows are stored in the cache folder, as they take seconds
to compute and are needed whenever the model is opened.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.channels.diffusion import Walks, diffuse, diffuse_nearby, magnitudes, walks_of
from subgnn.channels.topology import subgraph_statistics
from subgnn.config.files import Count, Damping, Size
from subgnn.config.settings import MethodSettings
from subgnn.data.graph import Graph
from subgnn.data.own_times import at_own_times, join_rows, times_of
from subgnn.errors import DataError, UserError, choices, excerpt
from subgnn.parallel.memory import share
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.ragged import Ragged
from subgnn.storage.arrays import ArrayFile, Arrays, Format
from subgnn.storage.cache import cache_path, cached
from subgnn.storage.files import json_digest

DIFFUSED = ("walk", "root", "lift")
TOPOLOGY = "topology"
WAYS = ("out", "in")
VIEWS = ("bag", "one-hop", *DIFFUSED, TOPOLOGY)
OVER_EDGES = ("one-hop", *DIFFUSED)
"""Views that also exist along and against the edges of a directed graph, and for each edge type."""
ALL_TYPES = "*"
EXACT_NUMBERS = 2**28
"""Pairs of a subgraph and a node up to which ``diffusion.algorithm = "auto"`` is exact; their numbers take 1 GiB."""
PRODUCT_ROWS = 6000
"""Subgraphs up to which all their inner products are kept."""
ROWS_AT_A_TIME = 8192
"""Subgraphs whose products and kernels are in memory at the same time, if the result is kept for all of them."""
_FEW_NUMBERS, _NUMBERS_AT_A_TIME = 2**22, 2**22
Matrix = Any
"""A scipy CSR array, or a dense array, (n, columns)."""


@dataclass(frozen=True, slots=True)
class DiffusionSettings(MethodSettings):
    """Settings of models of random walks (diffusion, profiles, unsupervised); docs/settings.md explains each.

    0 of inverse_penalty and damping tries several values and selects the best on validation. algorithm says how
    diffusions are computed: exact, at all nodes, or push, which follows at most push_edges edges and keeps the
    push_nodes nodes with the largest lifts. weighted and directed are for one-hop and topology alone.
    """

    section: ClassVar[str] = "diffusion"
    views: tuple[str, ...] = ("lift",)
    kernel: Literal["linear", "gaussian"] = "gaussian"
    loss: Literal["squared", "logistic"] = "squared"
    inverse_penalty: float = 0.0
    damping: Damping = 0.6
    algorithm: Literal["auto", "exact", "push"] = "auto"
    push_edges: Count = 1_000_000
    push_nodes: Size = 2_000
    weighted: bool = False
    directed: bool = False


def known_views(accepted: Sequence[str] = VIEWS, *, typed: bool = False) -> tuple[str, ...]:
    """Names of accepted views, also along edges and against them; with ``typed``, those that exist for each type."""
    over_edges = [view for view in OVER_EDGES if view in accepted]
    return (*(over_edges if typed else accepted), *(f"{view}-{way}" for view in over_edges for way in WAYS))


def split_view(view: str) -> tuple[str, str, str]:
    """The kind of a view, the way it follows edges, and their type; the last two are empty if the name has none.

    Example:
        >>> split_view("lift-out:binds"), split_view("one-hop")
        (('lift', 'out', 'binds'), ('one-hop', '', ''))
    """
    name, _, of_type = view.partition(":")
    kind, _, way = name.rpartition("-")
    return (kind, way, of_type) if way in WAYS else (name, "", of_type)


def expand_views(views: tuple[str, ...], graph: Graph) -> tuple[str, ...]:
    """The views with the types of a graph in place of ``*``.

    Example:
        >>> expand_views(("bag", "lift:*"), Graph.from_edges([0, 1], [1, 2], types=["binds", "inhibits"]))
        ('bag', 'lift:binds', 'lift:inhibits')
    """
    found: list[str] = []
    for view in views:
        name, _, of_type = view.partition(":")
        found += [f"{name}:{one}" for one in graph.types] if of_type == ALL_TYPES else [view]
    return tuple(dict.fromkeys(found))


def used_by_view(view: str, *, weighted: bool, directed: bool) -> frozenset[str]:
    """Attributes of a graph that a view uses."""
    kind, way, of_type = split_view(view)
    used = {
        "weights": kind in DIFFUSED or (weighted and kind in ("one-hop", TOPOLOGY)),
        "direction": bool(way) or (directed and kind == TOPOLOGY),
        "types": bool(of_type),
    }
    return frozenset(name for name, is_used in used.items() if is_used)


def used_by_views(settings: DiffusionSettings) -> frozenset[str]:
    """Attributes of a graph that the listed views use."""
    given = {"weighted": settings.weighted, "directed": settings.directed}
    return frozenset().union(*(used_by_view(view, **given) for view in settings.views))


def are_known(views: tuple[str, ...], graph: Graph) -> bool:
    """Whether all views exist, and none stands for several."""
    try:
        check_views(views, graph)
    except UserError:
        return False
    return not any(view.endswith(f":{ALL_TYPES}") for view in views)


def check_views(views: tuple[str, ...], graph: Graph, accepted: Sequence[str] = VIEWS) -> None:
    """Refuse views that do not exist or are listed twice, and statistics alone."""
    for view in views:
        kind, way, of_type = split_view(view)
        plain, known = f"{kind}-{way}" if way else kind, known_views(accepted, typed=bool(of_type))
        if plain not in known:
            raise UserError(f"diffusion.views has {excerpt(view)}", where="recipe", hint=choices(plain, known))
        if way and not (graph.directed or graph.oriented is not None):
            hint = f"accepted for an undirected graph: {', '.join(accepted)}; or read the edges with --directed"
            raise UserError(f"diffusion.views has {view}, but the graph is undirected", where="recipe", hint=hint)
        if of_type and not graph.types:
            what = f"diffusion.views has {excerpt(view)}, but the edges of the graph have no types"
            raise UserError(what, where="recipe", hint=f"leave ':{of_type}' out, or add a column of types to the edges")
        if of_type and of_type not in (ALL_TYPES, *graph.types):
            hint = choices(of_type, (ALL_TYPES, *graph.types))
            raise UserError(f"diffusion.views has {excerpt(view)}", where="recipe", hint=hint)
    if not set(views) - {TOPOLOGY} or len(set(views)) < len(views):
        alone = ", and not topology alone" if TOPOLOGY in accepted else ""
        hint = f"accepted: one or more of {', '.join(accepted)}, each once{alone}"
        raise UserError(f"diffusion.views is {list(views)}", where="recipe", hint=hint)


def bag_of_nodes(nodes: Ragged, num_nodes: int) -> scipy.sparse.csr_array:
    """B (n, N): 1 where a node is in a subgraph."""
    ones = np.ones(len(nodes.values))
    return scipy.sparse.csr_array((ones, nodes.values.astype(np.int32), nodes.offsets), shape=(len(nodes), num_nodes))


def spread_one_hop(
    bag: scipy.sparse.csr_array, graph: Graph, *, weighted: bool = False, way: str = ""
) -> scipy.sparse.csr_array:
    """B D^-1/2 A D^-1/2 (n, N); a node without neighbours spreads nothing.

    Args:
        graph: undirected.
        weighted: A has the magnitudes of weights, if there are any, and D their sums.
        way: ``out`` or ``in``: A has the edges along that way; D is that of A's rows on its left, of A's columns on
            its right.
    """
    weighted = weighted and graph.weights is not None
    walks = walks_of(graph, way) if way or weighted else None
    there, back = (walks.graph, walks.back) if walks is not None else (graph, graph)
    scale = _inverse_roots(there, weighted=weighted)
    # Only the rows of nodes that occur: one subgraph need not cost what the graph does.
    nodes, columns = np.unique(bag.indices, return_inverse=True)
    narrow = scipy.sparse.csr_array(
        (bag.data * scale[bag.indices], columns, bag.indptr), shape=(bag.shape[0], len(nodes))
    )
    rows = Ragged(there.neighbors, there.offsets).take(nodes)
    given = Ragged(magnitudes(there), there.offsets).take(nodes).values if weighted else np.ones(len(rows.values))
    spread = narrow @ scipy.sparse.csr_array((given, rows.values, rows.offsets), shape=(len(nodes), graph.num_nodes))
    return (spread * (scale if back is there else _inverse_roots(back, weighted=weighted))[None, :]).tocsr()


def _inverse_roots(graph: Graph, *, weighted: bool) -> NDArray[np.float64]:
    """d^-1/2 of the rows of a graph (N,), 0 where d is 0."""
    if weighted:
        rows = scipy.sparse.csr_array((magnitudes(graph), graph.neighbors, graph.offsets), shape=(graph.num_nodes,) * 2)
        sums = np.asarray(rows.sum(axis=1, dtype=np.float64))
        found: NDArray[np.float64] = np.divide(1, np.sqrt(sums), out=np.zeros(len(sums)), where=sums > 0)
        return found
    degrees = np.diff(graph.offsets)
    return np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1)), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A view of some subgraphs, with its inner products.

    Shapes:
        values: (n, N) float32, sparse or dense; statistics are (n, F) float64. squared: (n,) float64, squared lengths.
    """

    values: Matrix
    squared: NDArray[np.float64]
    _products: list[NDArray[np.float64]] = field(default_factory=list)

    @classmethod
    def of(cls, values: Matrix) -> Rows:
        if not scipy.sparse.issparse(values):
            return cls(values, np.einsum("ij,ij->i", values, values, dtype=np.float64))
        parts = (values[rows] for rows in row_blocks(values.shape[0]))
        squares = [np.asarray(part.multiply(part).sum(axis=1), np.float64) for part in parts]
        return cls(values, np.concatenate([np.empty(0), *squares]))

    def chosen(self, rows: NDArray[np.int64]) -> Matrix:
        """Chosen rows; all of them, in order, are not copied."""
        return self.values if np.array_equal(rows, np.arange(self.values.shape[0])) else self.values[rows]

    def products(self, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Inner products of chosen rows (rows, others); of few subgraphs, all are computed at once and kept."""
        if self.values.shape[0] > PRODUCT_ROWS:
            return multiply(self.values[rows], self.values[others])
        if not self._products:
            self._products.append(multiply(self.values, self.values))
        return self._products[0][np.ix_(rows, others)]

    @property
    def nbytes(self) -> int:
        n = self.values.shape[0]
        values = self.values.nbytes if isinstance(self.values, np.ndarray) else 2 * self.values.data.nbytes
        return values + (8 * n * n if n <= PRODUCT_ROWS else 0)


def multiply(rows: Matrix, others: Matrix) -> NDArray[np.float64]:
    """Inner products (n, m) of two sets of rows (n, N), (m, N), in double precision: fits amplify rounding."""
    found = np.zeros((rows.shape[0], others.shape[0]))
    if scipy.sparse.issparse(rows):
        turned = others.T.astype(np.float64)
        # A sparse product of many rows would take several times the memory of the dense result.
        for part in row_blocks(len(found)):
            found[part] = (rows[part] @ turned).toarray()
        return found
    step = max(1, _NUMBERS_AT_A_TIME // max(1, *found.shape))
    for columns in (slice(begin, begin + step) for begin in range(0, rows.shape[1], step)):
        one = rows[:, columns].astype(np.float64)
        found += one @ (one if others is rows else others[:, columns].astype(np.float64)).T
    return found


def row_blocks(count: int) -> list[slice]:
    """Consecutive blocks of :data:`ROWS_AT_A_TIME` rows."""
    return [slice(begin, min(begin + ROWS_AT_A_TIME, count)) for begin in range(0, count, ROWS_AT_A_TIME)]


def compute_view(
    graph: Graph,
    nodes: Ragged,
    view: str,
    settings: DiffusionSettings,
    *,
    stored: bool = False,
    on_progress: OnProgress = ignore,
) -> Rows:
    """A view of subgraphs, each as of its own time if it has one.

    ``stored`` reads diffusions from the cache folder or stores them there, unless few or of several times.
    """
    if times_of(nodes) is not None:

        def compute(now: Graph, some: Ragged) -> Matrix:
            return compute_view(now, some, view, settings).values

        return Rows.of(at_own_times(graph, nodes, compute, join_rows))
    kind, way, of_type = split_view(view)
    if of_type:
        graph = graph.layers[graph.types.index(of_type)]
    if kind == TOPOLOGY:
        return Rows.of(subgraph_statistics(graph, nodes, weighted=settings.weighted, directed=settings.directed))
    if kind not in DIFFUSED:
        bag = bag_of_nodes(nodes, graph.num_nodes)
        spread = kind == "one-hop"
        rows = spread_one_hop(bag, graph, weighted=settings.weighted, way=way) if spread else bag
        return Rows.of(rows.astype(np.float32))
    few, walks = len(nodes) * graph.num_nodes <= _FEW_NUMBERS, walks_of(graph, way)
    if few:
        key = nodes.values.astype(np.int32).tobytes(), nodes.offsets.tobytes()
        values: Matrix = _diffuse_few(walks, *key, _of_walks(settings)).copy()
    else:
        values = (_diffuse_stored if stored else _diffuse)(walks, nodes, settings, on_progress)
    numbers = values.data if scipy.sparse.issparse(values) else values
    if kind == "lift":
        np.log1p(numbers, out=numbers)
    else:
        chance = walks.chance(settings.damping).astype(np.float32)
        numbers *= chance[values.indices] if scipy.sparse.issparse(values) else chance
    if kind == "root":
        np.sqrt(numbers, out=numbers)
    return Rows.of(values)


def _of_walks(settings: DiffusionSettings) -> DiffusionSettings:
    """The settings that diffusions depend on; all others have their default."""
    size = settings.push_edges, settings.push_nodes
    return DiffusionSettings(
        damping=settings.damping, algorithm=settings.algorithm, push_edges=size[0], push_nodes=size[1]
    )


def _diffuse(walks: Walks, nodes: Ragged, settings: DiffusionSettings, on_progress: OnProgress = ignore) -> Matrix:
    """Ratios p / pi of subgraphs (n, N): dense if exact, else sparse."""
    graph = walks.graph
    if settings.algorithm == "exact":
        size = 4 * len(nodes) * graph.num_nodes
        if size > share(0.5):
            what = f"exact diffusions of {len(nodes):,} subgraphs to {graph.num_nodes:,} nodes"
            hint = 'set it to "push", or raise --memory'
            raise UserError(f"{what} take {size / 1e9:,.1f} GB", where="diffusion.algorithm", hint=hint)
        return diffuse(walks, nodes, settings.damping, on_progress=on_progress)
    options: dict[str, Any] = {"edges": settings.push_edges, "most": settings.push_nodes, "on_progress": on_progress}
    found, ratios = diffuse_nearby(walks, nodes, settings.damping, **options)
    shape = (len(nodes), graph.num_nodes)
    values = scipy.sparse.csr_array((ratios, found.values.astype(np.int32), found.offsets), shape=shape)
    values.sort_indices()
    return values


_STORED = Format(
    name="subgnn-diffusions",
    noun="file of diffusions",
    make="opening a run with such a model writes one",
    again="remove it",
)
_SPARSE = ("data", "indices", "indptr")  # the arrays of a CSR array


def _diffuse_stored(
    walks: Walks, nodes: Ragged, settings: DiffusionSettings, on_progress: OnProgress = ignore
) -> Matrix:
    shape = len(nodes), walks.graph.num_nodes

    def arrays(found: Matrix) -> Arrays:
        names = _SPARSE if scipy.sparse.issparse(found) else ()
        return {name: getattr(found, name) for name in names} or {"values": found}

    def read(file: ArrayFile) -> Matrix:
        try:
            if "values" in file.arrays:
                return file.arrays["values"].reshape(shape)
            found = scipy.sparse.csr_array(tuple(file.arrays[name] for name in _SPARSE), shape=shape)
            found.check_format(full_check=True)
            return found
        except (KeyError, ValueError) as error:
            raise DataError(f"it does not fit the subgraphs ({error})", where=file.where) from None

    return cached(
        cache_path("diffusions", _key(walks.graph, nodes, _of_walks(settings))),
        _STORED,
        compute=lambda: _diffuse(walks, nodes, settings, on_progress),
        arrays=arrays,
        read=read,
        mapped="c",
    )


def _key(graph: Graph, nodes: Ragged, *settings: object) -> str:
    """A hash of subgraphs and of how they are viewed."""
    return json_digest([graph.content_hash, nodes.digest, *map(str, settings)])


@lru_cache(maxsize=8)
def _diffuse_few(walks: Walks, nodes: bytes, offsets: bytes, settings: DiffusionSettings) -> Matrix:
    """:func:`_diffuse` of a few subgraphs; the last ones are kept, because several models ask for the same."""
    rows = Ragged(np.frombuffer(nodes, np.int32), np.frombuffer(offsets, np.int64))
    return _diffuse(walks, rows, settings)


class ViewCache:
    """The latest views, in a fifth of the memory limit: fits to other splits of the same subgraphs share them."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, Rows] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self,
        graph: Graph,
        nodes: Ragged,
        view: str,
        settings: DiffusionSettings,
        *,
        keep: bool = False,
        stored: bool = False,
        on_progress: OnProgress = ignore,
    ) -> Rows:
        """:func:`compute_view`, or the cached result of an equal call; ``keep`` leaves it in the cache."""
        if not keep and not self._found:
            return compute_view(graph, nodes, view, settings, stored=stored, on_progress=on_progress)
        edges = settings.weighted, settings.directed
        name = _key(graph, nodes, view, _of_walks(settings) if split_view(view)[0] in DIFFUSED else edges)
        with self._lock:
            if name in self._found:
                self._found.move_to_end(name)
                return self._found[name]
        found = compute_view(graph, nodes, view, settings, stored=stored, on_progress=on_progress)
        if keep:
            with self._lock:
                self._found[name] = found
                while sum(rows.nbytes for rows in self._found.values()) > share(0.2):
                    self._found.popitem(last=False)
        return found


CACHE = ViewCache()
"""The views of this process."""
