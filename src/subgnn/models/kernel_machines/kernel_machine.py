"""DIFFUSION: a kernel machine on views of subgraphs, by default the lift of a random walk; beyond the paper.

Views are those of ``kernel_machines/views.py``. Each is less its mean over the training subgraphs, with rows of length
one; the inner product of two such rows is their cosine, and k(S, T) the mean of the cosines of the views. Views of the
nodes that were looked for and not found, if there are any, count ``diffusion.absent`` times in it. The kernel is

    linear     K(S, T) = k(S, T)
    gaussian   K(S, T) = exp(k(S, T) - 1), that of the squared distance 2 - 2 k of the views side by side

With the view ``topology``, a Gaussian kernel is multiplied by exp(-.003 |z_S - z_T|^2), z being the statistics,
standardised on the training subgraphs and at most 4 deviations from their mean.

Outputs are sum over training subgraphs T of K(S, T) w_T + b, fitted by ridge or logistic regression with an L2 penalty
(``diffusion.loss``, ``regression.py``) to the kernel between training subgraphs. Of more than 4,096 of these, as many
are drawn to stand for all of them (Nystroem's method); of more than 65,536, fewer, so that the kernel with them takes 2
GiB. With L L^T the kernel between these landmarks, the others have the rows K L^-T.

Cosines follow from inner products of the views as they are, with m the mean over the training subgraphs U,

    (v_S - m) . (v_T - m) = v_S . v_T - mean over U of v_S . v_U - v_T . m + m . m

so that the views and their inner products do not depend on the split, and are shared by fits to many splits.

A checkpoint holds the nodes of the training subgraphs, not their views, which are wide: these are computed again, from
diffusions in the cache folder if they are there, when the first subgraph is predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.channels.topology import num_statistics
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.data.own_times import as_rows, times_of
from subgnn.data.subgraphs import absent_of, with_absent
from subgnn.errors import DataError, MemoryLimitError, UserError
from subgnn.kernels.build_csr import first_bad_set
from subgnn.models.examples import Examples, HostSource
from subgnn.models.interface import LoadContext, Settings, SetUp, TrainingData, Vectors, View
from subgnn.models.kernel_machines.newton import Floats, Gram, row_blocks
from subgnn.models.kernel_machines.regression import fit_regression
from subgnn.models.kernel_machines.rows import PRODUCT_ROWS, Piece, Rows, shared_pieces, subgraph_blocks, views_of
from subgnn.models.kernel_machines.views import ABSENT, TOPOLOGY, DiffusionSettings, are_known, check_views
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import ArrayModel, ArrayNetwork
from subgnn.parallel.memory import share
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.ragged import Ragged
from subgnn.rng import stream
from subgnn.task import Standard

_LANDMARKS, _LARGEST_KERNEL = 4096, 2**28
_TOPOLOGY_SCALE, _FARTHEST = 0.003, 4.0
_ROUNDING = 1e-3
_JITTER = 1e-8  # added to the kernel of a landmark with itself, which is about 1
SET_ARRAYS = ("nodes", "offsets", "times", "absent", "absent_offsets")


class KernelNetwork(ArrayNetwork):
    """sum over landmarks of K(S, T) w_T + b; as views are as wide as the graph, this is also a subgraph's vector.

    Shapes:
        nodes: (entries,) int32, offsets: (m + 1,), the landmarks. with_mean, lengths: (views, m) float64, as in
        :func:`cosines`. mean, deviation: (18,) float64, where there are statistics.
        weight: (m, outputs) float64. bias: (outputs,).
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        spec, weights = checkpoint.spec, checkpoint.weights
        self.settings, self.seed = spec.of(DiffusionSettings), spec.seed
        self.statistics = TOPOLOGY in self.settings.views
        super().__init__({name: weights[name] for name in SET_ARRAYS if name in weights})
        size = len(self.settings.views) - self.statistics, len(self.offsets) - 1
        self.arrays |= {name: np.zeros(size) for name in ("with_mean", "lengths")}
        width = num_statistics(weighted=self.settings.weighted, directed=self.settings.directed)
        self.arrays |= {name: np.ones(width) for name in ("mean", "deviation") if self.statistics}
        self.arrays |= {"weight": np.zeros((size[1], spec.num_outputs)), "bias": np.zeros(spec.num_outputs, np.float32)}
        # The landmarks, as rows of the subgraphs it was fitted to, or by themselves; None until it is fitted.
        self.known: tuple[ViewSource, Any] | None = None

    def solve(self, examples: Examples) -> None:
        source: Any = examples.inputs
        found = source.trained(examples.train, self.settings.damping, self.seed)
        weight, bias = fit_regression(found.rows, examples, self.settings, len(self.bias))
        nodes, reference = source.nodes.take(found.landmarks), found.reference
        state = set_arrays(nodes) | {"bias": bias.astype(np.float32)}
        state |= {"with_mean": reference.with_mean, "lengths": reference.lengths}
        if found.factor is not None:
            weight = scipy.linalg.solve_triangular(found.factor, weight, lower=True, trans=1, check_finite=False)
        state["weight"] = np.asarray(weight)
        if self.statistics:
            state |= {"mean": reference.standard.mean, "deviation": reference.standard.deviation}
        self.arrays |= state
        self.known = source, found.landmarks

    def embed(self, batch: tuple[ViewSource, NDArray[np.int64]]) -> NDArray[np.float32]:
        source, rows = batch
        found = np.zeros((len(rows), len(self.bias)))
        if self.known is not None:
            own, blocks = self.known[0] is source, iter([np.arange(len(rows))])
            if not own:
                source, rows = source.some(rows, stored=self.known[0].stored), np.arange(len(rows))
                if times_of(source.nodes) is None:
                    blocks = subgraph_blocks(source.nodes, source.graph, self.settings)
            for block in blocks:
                part = (source, rows) if own else (source.some(block, stored=source.stored), np.arange(len(block)))
                # Weights are large and of both signs: their sum would have few digits in single precision.
                found[block] = self._kernel(*part, *self.known) @ self.weight
        return np.asarray(found.astype(np.float32) + self.bias)

    def _kernel(self, source: ViewSource, rows: NDArray[np.int64], other: ViewSource, places: Any) -> Floats:
        """K (n, m) of subgraphs with the landmarks, which are some of the others."""
        if other is not source and not isinstance(places, slice):
            other, places = other.some(places), slice(None)
        views, known = source.views(self.settings.damping), other.views(self.settings.damping)
        compared = [name for name in views if name != TOPOLOGY]
        if other is source:
            products = [views[name].products(rows, places) for name in compared]
        else:
            pairs = zip(compared, self.with_mean, strict=True)
            products = [known[name].products_with(views[name].values, of_mean) for name, of_mean in pairs]
        standard, statistics = None, None
        if self.statistics:
            standard = Standard(self.mean, self.deviation)
            statistics = views[TOPOLOGY].values[rows], known[TOPOLOGY].values[places]
        reference = Reference(self.settings, self.with_mean, self.lengths, standard)
        return reference(products, [views[name].squared[rows] for name in compared], statistics)


class KernelMachine(ArrayModel):
    """A kernel machine on the views that ``diffusion.views`` lists."""

    network = KernelNetwork
    on_new_graph = "the training subgraphs are measured again on the new graph; their weights stay as they are"
    needs_edges = False
    settings = (DiffusionSettings,)

    def sees(self, settings: Settings) -> View:
        views = set(settings.of(DiffusionSettings).views)
        if "topology" in views:
            return "everything" if views - {"topology"} else "shape"
        return "nodes" if views == {"bag"} else "surroundings"

    def check(self, recipe: Recipe, graph: Graph) -> None:
        settings = recipe.of(DiffusionSettings)
        check_views(settings.views, graph)
        if TOPOLOGY in settings.views and settings.kernel == "linear":
            hint = 'topology needs diffusion.kernel = "gaussian"'
            raise UserError("diffusion.views has topology, but the kernel is linear", where="recipe", hint=hint)

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        settings = recipe.of(DiffusionSettings).resolved(data.graph, data.subgraphs.nodes)
        walks, n = sum(":" in view for view in settings.views), len(data.subgraphs)
        numbers = data.graph.num_nodes if settings.algorithm == "exact" else 2 * settings.push_nodes
        size = 4 * walks * n * (numbers + (2 * n if n <= PRODUCT_ROWS else 0))  # with the inner products
        if size > share(0.5):
            what = f"views of {walks:,} edge types of {n:,} subgraphs take {size / 1e9:,.1f} GB"
            hint = 'name some types, e.g. ["lift:TYPE"], set diffusion.algorithm to "push", or raise --memory'
            raise MemoryLimitError(what, where="diffusion.views", hint=hint)
        source = ViewSource(data.graph, settings.rows(data.subgraphs.nodes), settings, keep=True)
        for damping in settings.dampings:
            for name, rows in source.views(damping, on_progress=data.on_prepare).items():
                rows.prepare(products=name != TOPOLOGY)
        return SetUp(super().set_up(data, recipe.with_method_settings(settings)).candidates, source)

    def shared_pieces(self, recipe: Recipe, graph: Graph, nodes: Ragged) -> list[list[Piece]]:
        settings = recipe.of(DiffusionSettings).resolved(graph, nodes)
        tried = [replace(settings, damping=damping) for damping in settings.dampings]
        stages = [shared_pieces(graph, nodes, settings.views, one) for one in tried]
        return [[piece for stage in same for piece in stage] for same in zip_longest(*stages, fillvalue=[])]

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        train, nodes = data.subgraphs.indices("train"), data.subgraphs.nodes
        chosen = train[draw_landmarks(len(train), _num_landmarks(len(train)), data.seed)]
        return set_arrays(recipe.of(DiffusionSettings).rows(nodes).take(chosen))

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> ViewSource:
        return ViewSource(graph, nodes, checkpoint.spec.of(DiffusionSettings))

    def on_open(self, network: KernelNetwork, graph: Graph, context: LoadContext) -> None:
        """Say where the training subgraphs are: their views are computed when they are needed."""
        nodes = stored_sets(network.state_dict())
        network.known = ViewSource(graph, nodes, network.settings, keep=True, stored=context.cache), slice(None)

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """Measure the landmarks on the new graph; a landmark that has lost all nodes is dropped."""
        settings, weights = checkpoint.spec.of(DiffusionSettings), checkpoint.weights
        check_views(settings.views, match.graph)
        if settings.damping == 0:
            raise ValueError("its damping is left open")
        nodes, kept = moved_landmarks(weights, match)
        views = ViewSource(match.graph, nodes, settings, keep=True).views(settings.damping)
        compared, every = [view for name, view in views.items() if name != TOPOLOGY], np.arange(len(nodes))
        products = [view.products(every, every) for view in compared]
        found = Reference.of(settings, [view.squared for view in compared], products)
        state = set_arrays(nodes) | {"with_mean": found.with_mean, "lengths": found.lengths}
        if TOPOLOGY in views:
            standard = Standard.of(views[TOPOLOGY].values)
            state |= {"mean": standard.mean, "deviation": standard.deviation}
        return replace(checkpoint, weights=weights | state | {"weight": weights["weight"][kept]})

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        given = recipe.of(DiffusionSettings)
        ways = product(given.dampings, given.inverse_penalties)
        tried = {f"damping={a:g}, inverse_penalty={c:g}": replace(given, damping=a, inverse_penalty=c) for a, c in ways}
        return {name: recipe.with_method_settings(chosen) for name, chosen in tried.items()}

    def uses(self, recipe: Recipe) -> frozenset[str]:
        return recipe.of(DiffusionSettings).used

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        settings, weights = checkpoint.spec.of(DiffusionSettings), checkpoint.weights
        if settings.damping == 0 or settings.algorithm == "auto" or not are_known(settings.views, graph):
            yield "its views, its damping or the way that diffusions are computed are left open or unknown"
        yield from wrong_node_sets(weights, graph)
        if not (weights["lengths"] >= 0).all() or not (weights.get("deviation", np.ones(1)) > 0).all():
            yield "the lengths of its training rows, or the deviations of its statistics, are not above 0"


def set_arrays(nodes: Ragged) -> dict[str, NDArray[Any]]:
    """Subgraphs as a checkpoint holds them: the arrays of :data:`SET_ARRAYS`, the last three if there are such."""
    times, absent = times_of(nodes), absent_of(nodes)
    found: dict[str, NDArray[Any]] = {"nodes": nodes.values, "offsets": nodes.offsets}
    found |= {} if times is None else {"times": np.array(times, np.float64)}
    return found if absent is None else found | {"absent": absent.values, "absent_offsets": absent.offsets}


def stored_sets(weights: Weights) -> Ragged:
    """The inverse of :func:`set_arrays`."""
    arrays = {name: np.asarray(weights[name]) for name in SET_ARRAYS if name in weights}
    absent = Ragged(arrays["absent"], arrays["absent_offsets"]) if "absent" in arrays else None
    return as_rows(with_absent(Ragged(arrays["nodes"], arrays["offsets"]), absent), arrays.get("times"))


def moved_landmarks(weights: Weights, match: NodeMatch) -> tuple[Ragged, NDArray[np.int64]]:
    """The subgraphs ``nodes`` and ``offsets`` of a checkpoint on another graph, and the places of those with nodes."""
    before = stored_sets(weights)
    absent = absent_of(before)
    nodes = with_absent(match.node_sets(before), None if absent is None else match.node_sets(absent))
    nodes = as_rows(nodes, times_of(before))
    kept = np.flatnonzero(nodes.lengths > 0)
    match.tell_gone(int((nodes.lengths < before.lengths).sum()), "training subgraphs with nodes that are gone")
    if not len(kept):
        raise DataError("no training subgraph has a node left", where="--graph", hint="train again on this graph")
    return nodes.take(kept), kept


def wrong_node_sets(weights: Weights, graph: Graph) -> Iterator[str]:
    """Descriptions of anything wrong with the subgraphs ``nodes`` and ``offsets`` of a checkpoint."""
    nodes, offsets = np.asarray(weights["nodes"]), np.asarray(weights["offsets"])
    if nodes.dtype != np.int32 or offsets.dtype != np.int64 or (nodes.ndim, offsets.ndim) != (1, 1):
        yield "its training subgraphs have the wrong type"
    rows = Ragged(nodes, offsets)
    rising = np.diff(nodes) > 0
    if rows.is_valid and len(nodes):
        rising[rows.offsets[1:-1] - 1] = True  # from one subgraph to the next
    if not rows.is_valid or not len(rows) or not rows.lengths.all() or not rising.all():
        yield "its training subgraphs are not sets of nodes"
    if len(nodes) and not 0 <= nodes.min() <= nodes.max() < graph.num_nodes:
        yield "its training subgraphs hold a node that is not in the graph"
    if "absent" in weights:
        absent = Ragged(np.asarray(weights["absent"]), np.asarray(weights["absent_offsets"]))
        fits = absent.values.dtype == np.int32 and absent.offsets.dtype == np.int64 and absent.values.ndim == 1
        fits = fits and absent.is_valid and len(absent) == len(rows)
        if not fits or first_bad_set(absent, graph.num_nodes) is not None:
            yield "the absent nodes of its training subgraphs are not sets of nodes of the graph"
    times = np.asarray(weights.get("times", np.zeros(len(rows))))
    if times.dtype != np.float64 or times.shape != (len(rows),):
        yield "the times of its training subgraphs have the wrong shape or type"


class ViewSource(HostSource):
    """Subgraphs, by their views; a network asks for those of its damping.

    ``keep`` leaves what is computed to other fits, ``stored`` uses the cache folder (:func:`view_of`).
    """

    def __init__(
        self, graph: Graph, nodes: Ragged, settings: DiffusionSettings, *, keep: bool = False, stored: bool = False
    ) -> None:
        self.graph, self.nodes, self.settings, self._keep, self.stored = graph, nodes, settings, keep, stored
        self._views: dict[float, dict[str, Rows]] = {}
        self._trained: tuple[Any, TrainingKernel] | None = None

    def batch(self, rows: NDArray[np.int64]) -> tuple[ViewSource, NDArray[np.int64]]:
        return self, rows

    def some(self, rows: NDArray[np.int64], *, stored: bool = False) -> ViewSource:
        return ViewSource(self.graph, self.nodes.take(rows), self.settings, stored=stored)

    def views(self, damping: float, *, on_progress: OnProgress = ignore) -> dict[str, Rows]:
        if damping not in self._views:
            settings = replace(self.settings, damping=damping)
            options: dict[str, Any] = {"keep": self._keep, "stored": self.stored, "on_progress": on_progress}
            self._views[damping] = views_of(self.graph, self.nodes, settings, **options)
        return self._views[damping]

    def trained(self, train: NDArray[np.int64], damping: float, seed: int) -> TrainingKernel:
        """The kernel between training subgraphs; the last one is kept, for further penalties."""
        key = (damping, seed, train.tobytes())
        if self._trained is None or self._trained[0] != key:
            self._trained = key, TrainingKernel.of(self.views(damping), train, self.settings, seed)
        return self._trained[1]


def _num_landmarks(count: int) -> int:
    return max(1, min(_LANDMARKS, _LARGEST_KERNEL // max(1, count)))


def draw_landmarks(count: int, most: int, seed: int) -> NDArray[np.int64]:
    """The training subgraphs used as landmarks: all of them, or a random sample of limited size."""
    if count <= most:
        return np.arange(count)
    return np.sort(stream(seed, "kernel machine/landmarks").choice(count, most, replace=False))


def cosines(products: Floats, squared: Floats, with_mean: Floats, lengths: Floats) -> Floats:
    """Cosines (n, m) of rows of a view with the landmarks, all less the landmarks' mean; 0 where a row is the mean.

    Args:
        products: (n, m) inner products of rows and landmarks, as they are.
        squared: (n,) squared lengths of rows.
        with_mean, lengths: (m,) inner products of landmarks with their mean, and their lengths after subtracting it.
    """
    own, of_mean = products.mean(axis=1), with_mean.mean()
    inverse = _inverse(centred_lengths(squared, own, of_mean))
    centred: Floats = products - own[:, None]
    centred -= with_mean
    centred += of_mean
    centred *= inverse[:, None]
    centred *= _inverse(lengths)
    return centred


def centred_lengths(squared: Floats, with_mean: Floats, of_mean: float) -> Floats:
    """|v - m|, from v . v, v . m and m . m; 0 for what is rounding beside |v|."""
    lengths = np.sqrt(np.maximum(squared - 2 * with_mean + of_mean, 0))
    return np.where(lengths > _ROUNDING * np.sqrt(squared), lengths, 0)


def _inverse(lengths: Floats) -> Floats:
    return np.divide(1, lengths, out=np.zeros(len(lengths)), where=lengths > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The kernel of subgraphs with the landmarks, from inner products of views and statistics as they are.

    ``with_mean`` and ``lengths`` (views, m) are as in :func:`cosines`; ``sharpness`` multiplies the exponent of a
    Gaussian kernel.
    """

    settings: DiffusionSettings
    with_mean: Floats
    lengths: Floats
    standard: Standard | None = None
    sharpness: float = 1.0

    @classmethod
    def of(cls, settings: DiffusionSettings, squared: list[Floats], products: list[Floats]) -> Self:
        """From squared lengths of the landmarks by view, and their inner products with each other."""
        with_mean = np.stack([one.mean(axis=1) for one in products])
        lengths = [centred_lengths(own, mean, mean.mean()) for own, mean in zip(squared, with_mean, strict=True)]
        return cls(settings, with_mean, np.stack(lengths))

    def __call__(self, products: list[Floats], squared: list[Floats], tables: tuple[Floats, Floats] | None) -> Floats:
        """K (n, m), from products (n, m) and squared lengths (n,) by view, and statistics (n, 18), (m, 18)."""
        views, found = [view for view in self.settings.views if view != TOPOLOGY], np.zeros(1)
        shares = [self.settings.absent if view.startswith(ABSENT) else 1.0 for view in views]
        for given, *part in zip(shares, products, squared, self.with_mean, self.lengths, strict=True):
            found = found + given * cosines(*part)
        found /= sum(shares)
        if self.settings.kernel == "linear":
            return found
        if self.standard is not None and tables is not None:
            # In double precision: rounding of a product depends on how many rows are multiplied at once.
            own, known = (np.clip(self.standard(table), -_FARTHEST, _FARTHEST).astype(float) for table in tables)
            squares = np.square(own).sum(axis=1)[:, None] + np.square(known).sum(axis=1) - 2 * own @ known.T
            found -= _TOPOLOGY_SCALE * squares.clip(0)
        found -= 1
        found *= self.sharpness
        return np.exp(found, out=found)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingKernel:
    """Training subgraphs as a regression takes them.

    Shapes:
        rows: the kernel between them (n, n), or if there are more of them than landmarks, (n, m) with rows = K L^-T.
        factor: (m, m) L, or None. landmarks: (m,) places among all subgraphs.
    """

    rows: Floats | Gram
    factor: Floats | None
    landmarks: NDArray[np.int64]
    reference: Reference

    @classmethod
    def of(cls, views: dict[str, Rows], train: NDArray[np.int64], settings: DiffusionSettings, seed: int) -> Self:
        known = train[draw_landmarks(len(train), _num_landmarks(len(train)), seed)]
        compared = [view for name, view in views.items() if name != TOPOLOGY]
        table = views[TOPOLOGY].values if TOPOLOGY in views else None
        standard = None if table is None else Standard.of(table[train])

        def kernel_of(rows: NDArray[np.int64], products: list[Floats]) -> Floats:
            statistics = None if table is None else (table[rows], table[known])
            return reference(products, [view.squared[rows] for view in compared], statistics)

        products = [view.products(known, known) for view in compared]
        found = Reference.of(settings, [view.squared[known] for view in compared], products)
        reference = replace(found, standard=standard)
        own = kernel_of(known, products)
        if len(known) == len(train):
            return cls(Gram(own), None, known, reference)
        own[np.diag_indices_from(own)] += _JITTER
        factor = scipy.linalg.cholesky(own, lower=True, overwrite_a=True, check_finite=False)
        rows = np.empty((len(train), len(known)))
        for block in row_blocks(len(train)):
            part = kernel_of(train[block], [view.products(train[block], known) for view in compared])
            rows[block] = scipy.linalg.solve_triangular(factor, part.T, lower=True, check_finite=False).T
        return cls(rows, factor, known, reference)
