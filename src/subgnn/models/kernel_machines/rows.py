"""Views of subgraphs as rows of numbers: computed once for many fits, stored, and multiplied with each other.

Root, lift and walk are functions of the same diffusion, which is shared (``kernel_machines/shared.py``), as are inner
products of all pairs of subgraphs and statistics. Where processes share a folder, diffusions are computed in parts, so
that the processes can divide the work (:func:`shared_pieces`).

Diffusions of the subgraphs that a fitted model knows are stored in the cache folder, as they take seconds to compute
and are needed whenever the model is opened.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.channels.diffusion import Walks, diffuse, diffuse_nearby, walks_of
from subgnn.channels.topology import LARGE, graph_cores, subgraph_statistics
from subgnn.channels.walk_table import walk_table
from subgnn.data.graph import Graph
from subgnn.data.own_times import at_own_times, join_rows, times_of
from subgnn.errors import DataError, MemoryLimitError
from subgnn.kernels.products import Tiles, inner_products, sparse_products
from subgnn.models.kernel_machines.newton import row_blocks
from subgnn.models.kernel_machines.shared import SHARED
from subgnn.models.kernel_machines.views import (
    DIFFUSED,
    TOPOLOGY,
    DiffusionSettings,
    bag_of_nodes,
    split_view,
    spread_one_hop,
    view_and_rows,
)
from subgnn.parallel.memory import share
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.ragged import Ragged
from subgnn.storage.arrays import ArrayFile, Arrays, Format
from subgnn.storage.cache import cache_path, cached
from subgnn.storage.files import json_digest

PRODUCT_ROWS = 6000
"""Subgraphs up to which all their inner products are kept."""
_FEW_NUMBERS, _NUMBERS_AT_A_TIME = 2**22, 2**22
_COLUMNS_AT_A_TIME = 4096
_BLOCKS_IN_GROUP = 4
_DENSE_IS_FASTER = 200.0  # times, for each number: measured on bags and one-hop views
_PART = 512  # subgraphs
_BLOCK, _SPARSE_BLOCK = (32, 256), 1024  # subgraphs
_STORED = Format(
    "subgnn-diffusions", "file of diffusions", "opening a run with such a model writes one", "remove it", version=2
)
Matrix = Any
"""A scipy CSR array, or a dense array, (n, columns)."""
Transform = Callable[[Matrix, slice], Matrix]


class Rows:
    """A view of some subgraphs, computed when it is first needed, and its inner products.

    ``base`` gives what the view is computed from, and ``transform`` some columns of the view from those of the base.
    Inner products are shared under ``key``, if there is one.

    Shapes:
        values: (n, N) float32, sparse or dense; statistics are (n, F) float64. squared: (n,) float64, squared lengths.
    """

    def __init__(
        self, count: int, base: Callable[[], Matrix], transform: Transform | None = None, *, key: str = ""
    ) -> None:
        self._count, self._compute, self._key = count, base, key
        self._transform: Transform = transform or (lambda part, _: part)

    @cached_property
    def _base(self) -> Matrix:
        return self._compute()

    @cached_property
    def values(self) -> Matrix:
        return self._transform(self._base, slice(None))

    @cached_property
    def squared(self) -> NDArray[np.float64]:
        if self._key and self._count <= PRODUCT_ROWS:
            return self._products.diagonal().copy()
        if not scipy.sparse.issparse(self.values):
            return np.asarray(np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64))
        parts = (self.values[rows] for rows in row_blocks(self._count))
        squares = [np.asarray(part.multiply(part).sum(axis=1), np.float64) for part in parts]
        return np.concatenate([np.empty(0), *squares])

    def products(self, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Inner products of chosen rows (rows, others); of few subgraphs, all are computed at once and shared."""
        if self._count > PRODUCT_ROWS:
            return multiply(self.values[rows], self.values[others])
        return self._products[np.ix_(rows, others)]

    def prepare(self, *, products: bool) -> None:
        """Compute what fits share: inner products, or what the view is computed from."""
        _ = self._products if products and self._count <= PRODUCT_ROWS else self._base

    def products_with(self, rows: Matrix, with_mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inner products (k, n) of other rows with all of these, whose inner products with their mean are given (n,).

        Those of dense rows are functions of the two rows alone. They are computed as (v - m) . w + m . w, so that the
        rounding of single precision is beside what rows differ in.
        """
        if scipy.sparse.issparse(self.values):
            return sparse_products(rows, self._turned)
        return inner_products(Tiles.of(rows, less=self._mean), self._tiles) + with_mean

    @cached_property
    def _turned(self) -> scipy.sparse.csr_array:
        return self.values.T.astype(np.float64).tocsr()

    @cached_property
    def _tiles(self) -> Tiles:
        """The rows as products take them; they become the values, so that memory holds them once."""
        found = Tiles.of(self.values)
        self.values = found.rows
        return found

    @cached_property
    def _mean(self) -> NDArray[np.float32]:
        return np.asarray(self.values.mean(axis=0, dtype=np.float64), np.float32)

    def prepare_group(self, number: int) -> None:
        """Compute the inner products of one of the groups of columns, for :meth:`prepare`; the view is dense."""
        blocks = column_groups(self._base.shape[1])[number]
        key = f"{self._key}-products-{number}"
        SHARED.get(key, lambda: _as_arrays(_multiply_blocks(self._base, self._transform, blocks)))

    @cached_property
    def _products(self) -> NDArray[np.float64]:
        def compute() -> NDArray[np.float64]:
            keys = [f"{self._key}-products-{number}" for number in range(len(column_groups(self._base.shape[1])))]
            if not self._key or not all(map(SHARED.has, keys)):
                return multiply_all(self._base, self._transform)
            found = np.zeros((self._count, self._count))
            for key in keys:
                found += SHARED.get(key, dict)["values"]  # which are there
                SHARED.remove(key)
            return found

        found: NDArray[np.float64] = _shared(lambda: f"{self._key}-products", compute) if self._key else compute()
        return found


def multiply_all(base: Matrix, transform: Transform) -> NDArray[np.float64]:
    """Inner products (n, n) of the rows of a view with each other.

    Very sparse rows are multiplied in double precision. Others are multiplied in single precision, some columns at a
    time, after the mean m of all rows is subtracted, (v - m) . (w - m) = v . w - v . m - w . m + m . m: the error is
    then rounding beside what rows differ in, which is all that fits depend on.
    """
    count, width = base.shape
    if not scipy.sparse.issparse(base):
        found = np.zeros((count, count))
        for blocks in column_groups(width):
            found += _multiply_blocks(base, transform, blocks)
        return found
    rows = transform(base, slice(None))
    used = np.bincount(rows.indices, minlength=1).astype(np.float64)
    if used @ used <= count * count * (used > 0).sum() / _DENSE_IS_FASTER:
        return multiply(rows, rows)
    turned = rows.tocsc()[:, np.flatnonzero(used)]
    return _multiply_blocks(turned, lambda part, _: part.toarray(), column_blocks(turned.shape[1]))


def _multiply_blocks(base: Matrix, transform: Transform, blocks: Sequence[slice]) -> NDArray[np.float64]:
    """Inner products (n, n) of some columns, in single precision, which :func:`multiply_all` adds up."""
    count = base.shape[0]
    found, with_mean, of_mean = np.zeros((count, count)), np.zeros(count), 0.0
    for columns in blocks:
        part = transform(base[:, columns], columns)
        mean = part.mean(axis=0, dtype=np.float64).astype(np.float32)
        with_mean += part.astype(np.float64) @ mean.astype(np.float64)
        of_mean += float(np.square(mean, dtype=np.float64).sum())
        part = part - mean
        found += part @ part.T
    found += with_mean[:, None] + with_mean - of_mean
    return found


def multiply(rows: Matrix, others: Matrix) -> NDArray[np.float64]:
    """Inner products (n, m) of two sets of rows (n, N), (m, N), in double precision: fits amplify rounding."""
    found = np.zeros((rows.shape[0], others.shape[0]))
    if scipy.sparse.issparse(rows):
        return sparse_products(rows, others.T.tocsr())
    step = max(1, _NUMBERS_AT_A_TIME // max(1, *found.shape))
    for columns in (slice(begin, begin + step) for begin in range(0, rows.shape[1], step)):
        one = rows[:, columns].astype(np.float64)
        found += one @ (one if others is rows else others[:, columns].astype(np.float64)).T
    return found


def subgraph_blocks(nodes: Ragged, graph: Graph, settings: DiffusionSettings) -> Iterator[NDArray[np.int64]]:
    """Consecutive subgraphs whose views are computed at once: few where these are dense, so that they stay in caches.

    What a block of sparse ones costs grows with the graph.
    """
    step = int(np.clip(_FEW_NUMBERS // max(1, graph.num_nodes), *_BLOCK)) // 32 * 32
    step = step if settings.algorithm == "exact" else _SPARSE_BLOCK
    return (np.arange(begin, min(begin + step, len(nodes))) for begin in range(0, len(nodes), step))


def column_blocks(width: int) -> list[slice]:
    """Consecutive blocks of columns that are multiplied at a time."""
    return [slice(begin, min(begin + _COLUMNS_AT_A_TIME, width)) for begin in range(0, width, _COLUMNS_AT_A_TIME)]


def column_groups(width: int) -> list[list[slice]]:
    """The blocks of columns in groups that processes multiply at once: of up to four blocks, about equal in size."""
    blocks = column_blocks(width)
    groups = np.array_split(np.arange(len(blocks)), max(1, -(-len(blocks) // _BLOCKS_IN_GROUP)))
    return [[blocks[i] for i in group] for group in groups]


@dataclass(frozen=True, slots=True, eq=False)
class _Diffusion:
    """Where random walks from subgraphs end (n, N): dense if exact, else sparse; settings are those of walks alone."""

    walks: Walks
    nodes: Ragged
    settings: DiffusionSettings

    @property
    def key(self) -> str:
        """A hash of everything that it depends on."""
        return _key(self.walks.graph, self.nodes, "walk", self.settings)

    def __call__(self, *, keep: bool = False, stored: bool = False, on_progress: OnProgress = ignore) -> Matrix:
        """From memory, the shared folder or the cache folder if it is there, else computed."""
        if len(self.nodes) * self.walks.graph.num_nodes <= _FEW_NUMBERS:
            key = self.nodes.values.astype(np.int32).tobytes(), self.nodes.offsets.tobytes()
            return _diffuse_few(self.walks, *key, self.settings, tabled=stored and not keep)

        def whole() -> Matrix:
            return _diffuse(self.walks, self.nodes, self.settings, on_progress)

        def read(file: ArrayFile) -> Matrix:
            try:
                found = _as_matrix(file.arrays, shape[1])
                if scipy.sparse.issparse(found):
                    found.check_format(full_check=True)
                return found.reshape(shape)
            except (KeyError, ValueError) as error:
                raise DataError(f"it does not fit the subgraphs ({error})", where=file.where) from None

        def compute() -> Matrix:
            if stored and keep:
                path = cache_path("diffusions", self.key)
                return cached(path, _STORED, compute=whole, arrays=_as_arrays, read=read, mapped="c")
            if SHARED.folder is None or not keep:
                return whole()
            _check_size(self.walks, self.nodes, self.settings)
            parts = [self.part(number) for number in range(num_parts)]
            join = scipy.sparse.vstack if scipy.sparse.issparse(parts[0]) else np.concatenate
            return join(parts)

        shape, num_parts = (len(self.nodes), self.walks.graph.num_nodes), -(-len(self.nodes) // _PART)
        known = not keep or SHARED.has(self.key)
        found = _shared(lambda: self.key, compute, keep=keep, width=shape[1])
        if not known:
            for number in range(num_parts):
                SHARED.remove(f"{self.key}-{number}")
        return found

    def part(self, number: int) -> Matrix:
        some = self.nodes.take(np.arange(number * _PART, min(len(self.nodes), (number + 1) * _PART)))
        width = self.walks.graph.num_nodes
        return _shared(lambda: f"{self.key}-{number}", lambda: _diffuse(self.walks, some, self.settings), width=width)


def views_of(graph: Graph, nodes: Ragged, settings: DiffusionSettings, **options: Any) -> dict[str, Rows]:
    """The views that the settings list, by name, as :func:`view_of` gives them; those of one diffusion share it."""
    diffusions: dict[str, Callable[[], Matrix]] = {}
    return {view: view_of(graph, nodes, view, settings, diffusions, **options) for view in settings.views}


def view_of(
    graph: Graph,
    nodes: Ragged,
    view: str,
    settings: DiffusionSettings,
    diffusions: dict[str, Callable[[], Matrix]] | None = None,
    *,
    keep: bool = False,
    stored: bool = False,
    on_progress: OnProgress = ignore,
) -> Rows:
    """A view of subgraphs, each as of its own time if it has one.

    Args:
        diffusions: those that other views of the same subgraphs share, by the name of the view ``walk`` of each.
        keep: leave what is computed to other fits to the same subgraphs.
        stored: keep diffusions in the cache folder, too, unless they are few or of several times; of those that are
            not left to other fits, walks from single nodes.
    """
    name = view
    view, nodes = view_and_rows(view, nodes)
    kind, way, of_type = split_view(view)
    own, count, width = settings_of_view(kind, settings), len(nodes), graph.num_nodes
    if times_of(nodes) is not None:

        def at_times() -> Matrix:
            return at_own_times(graph, nodes, lambda now, some: view_of(now, some, view, settings).values, join_rows)

        whole = partial(_key, graph, nodes, view, own)
        of_products = whole() if keep and kind != TOPOLOGY else ""
        return Rows(count, lambda: _shared(whole, at_times, keep=keep, width=width), key=of_products)
    if of_type:
        graph = graph.layers[graph.types.index(of_type)]
    if kind in DIFFUSED:
        diffusion = _Diffusion(walks_of(graph, way), nodes, own)
        key = f"{diffusion.key}-{kind}" if keep else ""
        base: Callable[[], Matrix] = cache(partial(diffusion, keep=keep, stored=stored, on_progress=on_progress))
        if diffusions is not None:
            base = diffusions.setdefault(name.replace(kind, "walk", 1), base)
        return Rows(count, base, _of_kind(kind, diffusion.walks, own.damping), key=key)
    if kind == TOPOLOGY:
        key_of = partial(_key, graph, nodes, TOPOLOGY, own)
        edges = {"weighted": own.weighted, "directed": own.directed}
        return Rows(count, lambda: _shared(key_of, lambda: subgraph_statistics(graph, nodes, **edges), keep=keep))

    def sparse() -> Matrix:
        bag = bag_of_nodes(nodes, width)
        rows = spread_one_hop(bag, graph, weighted=own.weighted, way=way) if kind == "one-hop" else bag
        return rows.astype(np.float32)

    return Rows(count, sparse, key=_key(graph, nodes, kind, way, own) if keep else "")


def settings_of_view(kind: str, settings: DiffusionSettings) -> DiffusionSettings:
    """The settings that a view of a kind depends on; all others have their default."""
    of_edges = {"one-hop": ("weighted",), TOPOLOGY: ("weighted", "directed")}.get(kind, ())
    names = ("damping", "algorithm", "push_edges", "push_nodes") if kind in DIFFUSED else of_edges
    return DiffusionSettings(**{name: getattr(settings, name) for name in names})


def _shared(key: Callable[[], str], compute: Callable[[], Matrix], *, keep: bool = True, width: int = 0) -> Matrix:
    """A matrix, from what fits share if it is there; ``width`` is that of a sparse one."""
    if not keep and SHARED.is_empty:
        return compute()
    return _as_matrix(SHARED.get(key(), lambda: _as_arrays(compute()), keep=keep), width)


_SPARSE = ("data", "indices", "indptr")  # the arrays of a CSR array


def _as_arrays(matrix: Matrix) -> Arrays:
    names = _SPARSE if scipy.sparse.issparse(matrix) else ()
    return {name: getattr(matrix, name) for name in names} or {"values": matrix}


def _as_matrix(arrays: Arrays, width: int) -> Matrix:
    if "values" in arrays:
        return arrays["values"]
    shape = len(arrays["indptr"]) - 1, width
    return scipy.sparse.csr_array(tuple(arrays[name] for name in _SPARSE), shape=shape)


def _of_kind(kind: str, walks: Walks, damping: float) -> Transform | None:
    """The view of a kind, as a function of where walks end, and of the columns that it is given."""
    if kind == "walk":
        return None
    inverse = (1 / walks.chance(damping)).astype(np.float32)

    def transform(part: Matrix, columns: slice) -> Matrix:
        if scipy.sparse.issparse(part):
            ends, own = part.data, inverse[part.indices]
        else:
            ends, own = part, inverse[columns]
        numbers = np.sqrt(ends) if kind == "root" else np.log1p(lifts := ends * own, out=lifts)
        if not scipy.sparse.issparse(part):
            return numbers
        return scipy.sparse.csr_array((numbers, part.indices, part.indptr), shape=part.shape)

    return transform


def _check_size(walks: Walks, nodes: Ragged, settings: DiffusionSettings) -> None:
    size = 4 * len(nodes) * walks.graph.num_nodes
    if settings.algorithm == "exact" and size > share(0.5):
        what = f"exact diffusions of {len(nodes):,} subgraphs to {walks.graph.num_nodes:,} nodes"
        hint = 'set it to "push", or raise --memory'
        raise MemoryLimitError(f"{what} take {size / 1e9:,.1f} GB", where="diffusion.algorithm", hint=hint)


def _diffuse(
    walks: Walks, nodes: Ragged, own: DiffusionSettings, on_progress: OnProgress = ignore, *, tabled: bool = False
) -> Matrix:
    """Where walks from subgraphs end (n, N): dense if exact, ``tabled`` from a table if there is one, else sparse."""
    _check_size(walks, nodes, own)
    chance = walks.chance(own.damping).astype(np.float32)
    if own.algorithm == "exact":
        table = walk_table(walks, own.damping) if tabled else None
        dense = table(nodes) if table else diffuse(walks, nodes, own.damping, on_progress=on_progress)
        dense *= chance
        return dense
    options: dict[str, Any] = {"edges": own.push_edges, "most": own.push_nodes, "on_progress": on_progress}
    found, ratios = diffuse_nearby(walks, nodes, own.damping, **options)
    ends = found.values.astype(np.int32)
    values = scipy.sparse.csr_array((ratios * chance[ends], ends, found.offsets), shape=(len(nodes), len(chance)))
    values.sort_indices()
    return values


def _key(graph: Graph, nodes: Ragged, *settings: object) -> str:
    """A hash of subgraphs and of how they are viewed."""
    return json_digest([_hash_of(graph), nodes.digest, *map(str, settings)])


_hash_of = lru_cache(maxsize=8)(lambda graph: graph.content_hash)


@lru_cache(maxsize=8)
def _diffuse_few(walks: Walks, nodes: bytes, offsets: bytes, settings: DiffusionSettings, *, tabled: bool) -> Matrix:
    """:func:`_diffuse` of a few subgraphs; the last ones are kept, because several models ask for the same."""
    rows = Ragged(np.frombuffer(nodes, np.int32), np.frombuffer(offsets, np.int64))
    return _diffuse(walks, rows, settings, tabled=tabled)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the work that fits share, computed when it is called; equal pieces are the same work.

    It is a part of a diffusion, the whole of one or statistics, or with ``products``, the inner products of a view, or
    of a part of its columns. The part of statistics is the core numbers of the graph.
    """

    view: str
    settings: DiffusionSettings
    part: int | None = None
    products: bool = False

    @property
    def of_graph(self) -> bool:
        """Whether it does not depend on the subgraphs."""
        return self.view == TOPOLOGY and self.part is not None

    @property
    def is_small(self) -> bool:
        """Whether it takes much less time than walks or inner products."""
        return self.view == TOPOLOGY

    def __call__(self, graph: Graph, nodes: Ragged) -> None:
        if self.part is None or self.products:
            rows = view_of(graph, nodes, self.view, self.settings, keep=True)
            if self.part is None:
                rows.prepare(products=self.products)
            else:
                rows.prepare_group(self.part)
            return
        if self.of_graph:
            graph_cores(graph)
            return
        view, nodes = view_and_rows(self.view, nodes)
        _, way, of_type = split_view(view)
        layer = graph.layers[graph.types.index(of_type)] if of_type else graph
        diffusion = _Diffusion(walks_of(layer, way), nodes, self.settings)
        if not SHARED.has(diffusion.key):
            diffusion.part(self.part)


def shared_pieces(
    graph: Graph, nodes: Ragged, views: Sequence[str], settings: DiffusionSettings, *, products: bool = True
) -> list[list[Piece]]:
    """The work that fits to views of subgraphs share, in stages; pieces of one stage may be computed at once.

    Without ``products``, the fits need the views alone, and no inner products.
    """
    parts, whole, grouped, multiplied = [], [], [], []
    for view in views:
        kind = split_view(view)[0]
        own = settings_of_view(kind, settings)
        if kind in DIFFUSED:
            base = view.replace(kind, "walk", 1)
            if times_of(nodes) is not None:
                whole.append(Piece(view, own))
            elif len(nodes) * graph.num_nodes > _FEW_NUMBERS:
                parts += [Piece(base, own, part) for part in range(-(-len(nodes) // _PART))]
                whole.append(Piece(base, own))
                groups = len(column_groups(graph.num_nodes))
                if products and own.algorithm == "exact" and groups > 1 and len(nodes) <= PRODUCT_ROWS:
                    grouped += [Piece(view, own, part, products=True) for part in range(groups)]
        else:
            whole += [Piece(view, own)] if kind == TOPOLOGY else []
            if kind == TOPOLOGY and len(graph.neighbors) >= LARGE and times_of(nodes) is None:
                parts.insert(0, Piece(TOPOLOGY, DiffusionSettings(), 0))
        if products and kind != TOPOLOGY and len(nodes) <= PRODUCT_ROWS:
            multiplied.append(Piece(view, own, products=True))
    return [stage for stage in (parts, whole, grouped, multiplied) if stage]
