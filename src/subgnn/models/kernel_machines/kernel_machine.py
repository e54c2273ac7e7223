"""DIFFUSION: a kernel machine on views of subgraphs, by default the lift of a random walk; beyond the paper.

Views are those of ``kernel_machines/views.py``. Each is less its mean over the training subgraphs, with rows of length
one; the inner product of two such rows is their cosine, and k(S, T) the mean of the cosines of the views. The kernel is

    linear     K(S, T) = k(S, T)
    gaussian   K(S, T) = exp(k(S, T) - 1), that of the squared distance 2 - 2 k of the views side by side

With the view ``topology``, a Gaussian kernel is multiplied by exp(-.003 |z_S - z_T|^2), z being the statistics,
standardised on the training subgraphs and at most 4 deviations from their mean.

Outputs are sum over training subgraphs T of K(S, T) w_T + b, fitted by ridge or logistic regression with an L2 penalty
(``diffusion.loss``, ``regression.py``). With K = U L U^T on the training subgraphs, the rows U L^1/2 stand
for them: their columns are principal components, and one decomposition serves all penalties and labels. Of more than
4,096 training subgraphs, as many are drawn to stand for all of them (Nystroem's method).

A checkpoint holds the nodes of the training subgraphs, not their views, which are wide: these are computed again, from
diffusions in the cache folder if they are there, when the first subgraph is predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.channels.topology import Standard, num_statistics
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.errors import UserError
from subgnn.models.examples import Examples, HostSource
from subgnn.models.interface import Cost, Opening, Settings, SetUp, Sizes, TrainingData, View
from subgnn.models.kernel_machines.regression import Floats, fit_outputs
from subgnn.models.kernel_machines.view_kernel import Components, Reference, draw_landmarks
from subgnn.models.kernel_machines.views import (
    ALL_TYPES,
    CACHE,
    EXACT_NUMBERS,
    PRODUCT_ROWS,
    TOPOLOGY,
    DiffusionSettings,
    Rows,
    are_known,
    check_views,
    expand_views,
    multiply,
    used_by_views,
)
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import TensorModel
from subgnn.parallel.memory import share
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.ragged import Ragged

_DAMPINGS = (0.3, 0.6)
_INVERSE_PENALTIES = {"squared": (1.0, 3.0, 10.0, 30.0), "logistic": (1.0, 10.0, 100.0, 1_000.0)}
_LANDMARKS = 4096


class KernelMachine(TensorModel):
    """A kernel machine on the views that ``diffusion.views`` lists."""

    is_fitted_in_one_go = True
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
            raise UserError("diffusion.views has topology, and the kernel is linear", where="recipe", hint=hint)

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        given = recipe.of(DiffusionSettings)
        settings = resolve_algorithm(replace(given, views=expand_views(given.views, data.graph)), data)
        _check_memory(settings, data)
        for damping in _dampings(settings):
            source = ViewSource(data.graph, data.subgraphs.nodes, settings, keep=True)
            source.views(damping, on_progress=data.on_prepare)
        return super().set_up(data, recipe.having(settings))

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        train = data.subgraphs.indices("train")
        nodes = data.subgraphs.nodes.take(train[draw_landmarks(len(train), _LANDMARKS, data.seed)])
        return {"nodes": torch.from_numpy(nodes.values), "offsets": torch.from_numpy(nodes.offsets)}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> ViewSource:
        return ViewSource(graph, nodes, checkpoint.spec.of(DiffusionSettings))

    def network(self, checkpoint: Checkpoint) -> KernelNetwork:
        return KernelNetwork(checkpoint)

    def on_open(self, network: KernelNetwork, graph: Graph, opening: Opening) -> None:
        """Say where the training subgraphs are: their views are computed when they are needed."""
        nodes = Ragged(network.nodes.numpy(), network.offsets.numpy())
        network.known = ViewSource(graph, nodes, network.settings, keep=True, stored=opening.cache), slice(None)

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        given = recipe.of(DiffusionSettings)
        found = {}
        for a, c in product(_dampings(given), inverse_penalties(given)):
            chosen = replace(given, inverse_penalty=c, damping=a)
            found[f"damping={a:g}, inverse_penalty={c:g}"] = recipe.having(chosen)
        return found

    def uses(self, recipe: Recipe) -> frozenset[str]:
        return used_by_views(recipe.of(DiffusionSettings))

    def cost(self, recipe: Recipe, sizes: Sizes) -> Cost:
        rows, dampings = min(sizes.subgraphs, 4096), len(_dampings(recipe.of(DiffusionSettings)))
        diffusion = sizes.subgraphs * min(2e-3 + 3e-9 * sizes.edges, 0.05)
        walks = sum(sizes.types if view.endswith(f":{ALL_TYPES}") else 1 for view in recipe.of(DiffusionSettings).views)
        return Cost(0.05 + (1 + dampings) * (1e-10 * rows**3 + 2e-4 * rows), walks * dampings * diffusion)

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        settings, weights = checkpoint.spec.of(DiffusionSettings), checkpoint.weights
        if settings.damping == 0 or settings.algorithm == "auto" or not are_known(settings.views, graph):
            yield "its views, its damping or the way that diffusions are computed are left open or unknown"
        yield from wrong_node_sets(weights, graph)
        if not bool((weights["lengths"] >= 0).all()) or not bool((weights.get("deviation", torch.ones(1)) > 0).all()):
            yield "the lengths of its training rows, or the deviations of its statistics, are not above 0"


def resolve_algorithm(settings: DiffusionSettings, data: TrainingData) -> DiffusionSettings:
    """The settings with diffusions exact or by local push, as the size of the data says; views of types count each."""
    if settings.algorithm != "auto":
        return settings
    walks = max(1, sum(":" in view for view in settings.views))
    small = walks * len(data.subgraphs) * data.graph.num_nodes <= EXACT_NUMBERS
    return replace(settings, algorithm="exact" if small else "push")


def _check_memory(settings: DiffusionSettings, data: TrainingData) -> None:
    """Refuse views of more edge types than fit in half of the memory limit, with their inner products."""
    walks, n = sum(":" in view for view in settings.views), len(data.subgraphs)
    numbers = data.graph.num_nodes if settings.algorithm == "exact" else 2 * settings.push_nodes
    size = 4 * walks * n * (numbers + (2 * n if n <= PRODUCT_ROWS else 0))
    if size > share(0.5):
        what = f"views of {walks:,} edge types of {n:,} subgraphs take {size / 1e9:,.1f} GB"
        hint = 'name some types, as ["lift:TYPE"], set diffusion.algorithm to "push", or raise --memory'
        raise UserError(what, where="diffusion.views", hint=hint)


def fit_regression(
    rows: Floats, examples: Examples, settings: DiffusionSettings, outputs: int
) -> tuple[Floats, Floats]:
    """W and b of the regression that the settings name, fitted to principal components of the training split."""
    targets = examples.targets.cpu().numpy()[examples.train]
    options: dict[str, Any] = {"loss": settings.loss, "inverse_penalty": settings.inverse_penalty}
    return fit_outputs(rows, targets, examples.task, outputs, weights=examples.train_weights, **options)


def inverse_penalties(settings: DiffusionSettings) -> tuple[float, ...]:
    """C of the regression: the one that is set, or those that are tried."""
    return _INVERSE_PENALTIES[settings.loss] if settings.inverse_penalty == 0 else (settings.inverse_penalty,)


def wrong_node_sets(weights: Weights, graph: Graph) -> Iterator[str]:
    """Descriptions of anything wrong with the subgraphs ``nodes`` and ``offsets`` of a checkpoint."""
    nodes, offsets = weights["nodes"].numpy(), weights["offsets"].numpy()
    if nodes.dtype != np.int32 or offsets.dtype != np.int64 or (nodes.ndim, offsets.ndim) != (1, 1):
        yield "its training subgraphs are of another type"
    rows = Ragged(nodes, offsets)
    rising = np.diff(nodes) > 0
    if rows.is_valid and len(nodes):
        rising[rows.offsets[1:-1] - 1] = True  # from one subgraph to the next
    if not rows.is_valid or not len(rows) or not rows.lengths.all() or not rising.all():
        yield "its training subgraphs are not sets of nodes"
    if len(nodes) and not 0 <= nodes.min() <= nodes.max() < graph.num_nodes:
        yield "its training subgraphs hold a node that is not in the graph"


def _dampings(settings: DiffusionSettings) -> tuple[float, ...]:
    return _DAMPINGS if settings.damping == 0 else (settings.damping,)


class ViewSource(HostSource):
    """Subgraphs, by their views; a network asks for those of its damping.

    ``keep`` leaves views in the cache of this process, ``stored`` stores diffusions in the cache folder.
    """

    def __init__(
        self, graph: Graph, nodes: Ragged, settings: DiffusionSettings, *, keep: bool = False, stored: bool = False
    ) -> None:
        self.graph, self.nodes, self.settings, self._keep, self._stored = graph, nodes, settings, keep, stored
        self._views: dict[float, dict[str, Rows]] = {}
        self._components: tuple[Any, Components] | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def batch(self, rows: NDArray[np.int64]) -> tuple[ViewSource, NDArray[np.int64]]:
        return self, rows

    def views(self, damping: float, *, on_progress: OnProgress = ignore) -> dict[str, Rows]:
        if damping not in self._views:
            settings = replace(self.settings, damping=damping)
            options: dict[str, Any] = {"keep": self._keep, "stored": self._stored, "on_progress": on_progress}
            self._views[damping] = {
                view: CACHE.get(self.graph, self.nodes, view, settings, **options) for view in self.settings.views
            }
        return self._views[damping]

    def components(self, train: NDArray[np.int64], damping: float, seed: int) -> Components:
        """The principal components of the training subgraphs; the last ones are kept, for further penalties."""
        key = (damping, seed, train.tobytes())
        if self._components is None or self._components[0] != key:
            chosen = draw_landmarks(len(train), _LANDMARKS, seed)
            found = Components.of(self.views(damping), train, chosen, kernel=self.settings.kernel)
            self._components = key, found
        return self._components[1]


class KernelNetwork(nn.Module):
    """sum over landmarks of K(S, T) w_T + b; as views are as wide as the graph, this is also a subgraph's vector.

    Shapes:
        nodes: (entries,) int32, offsets: (m + 1,), the landmarks. with_mean, lengths: (views, m) float64, as in
        ``view_kernel.cosines``. mean, deviation: (18,) float64, where there are statistics.
        weight: (m, outputs) float64. bias: (outputs,).
    """

    nodes: Tensor
    offsets: Tensor
    with_mean: Tensor
    lengths: Tensor
    mean: Tensor
    deviation: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        spec, weights = checkpoint.spec, checkpoint.weights
        self.settings, self.seed = spec.of(DiffusionSettings), spec.seed
        self.statistics = TOPOLOGY in self.settings.views
        for name in ("nodes", "offsets"):
            self.register_buffer(name, weights[name])
        size = len(self.settings.views) - self.statistics, len(self.offsets) - 1
        for name in ("with_mean", "lengths"):
            self.register_buffer(name, torch.zeros(size, dtype=torch.float64))
        width = num_statistics(weighted=self.settings.weighted, directed=self.settings.directed)
        for name in ("mean", "deviation") if self.statistics else ():
            self.register_buffer(name, torch.ones(width, dtype=torch.float64))
        self.register_buffer("weight", torch.zeros(size[1], spec.num_outputs, dtype=torch.float64))
        self.register_buffer("bias", torch.zeros(spec.num_outputs))
        # The landmarks, as rows of the subgraphs it was fitted to, or by themselves; None until it is fitted.
        self.known: tuple[ViewSource, Any] | None = None

    def solve(self, examples: Examples) -> None:
        source: Any = examples.inputs
        found = source.components(examples.train, self.settings.damping, self.seed)
        weight, bias = fit_regression(found.rows, examples, self.settings, len(self.bias))
        nodes, reference = source.nodes.take(found.landmarks), found.reference
        state = {"nodes": nodes.values, "offsets": nodes.offsets, "bias": bias.astype(np.float32)}
        state |= {"with_mean": reference.with_mean, "lengths": reference.lengths}
        state["weight"] = found.basis @ weight
        if self.statistics:
            state |= {"mean": reference.standard.mean, "deviation": reference.standard.deviation}
        for name, value in state.items():
            setattr(self, name, torch.from_numpy(value).to(self.bias.device))
        self.known = source, found.landmarks

    def embed(self, batch: tuple[ViewSource, NDArray[np.int64]]) -> Tensor:
        source, rows = batch
        if self.known is None:
            return self.bias.expand(len(rows), -1)
        other, places = self.known
        damping = self.settings.damping
        views, known = source.views(damping), other.views(damping)
        compared = [name for name in views if name != TOPOLOGY]
        if other is source:
            products = [views[name].products(rows, places) for name in compared]
        else:
            products = [multiply(views[name].values[rows], known[name].chosen(places)) for name in compared]
        standard, statistics = None, None
        if self.statistics:
            standard = Standard(self.mean.cpu().numpy(), self.deviation.cpu().numpy())
            statistics = views[TOPOLOGY].values[rows], known[TOPOLOGY].values[places]
        with_mean, lengths = self.with_mean.cpu().numpy(), self.lengths.cpu().numpy()
        reference = Reference(self.settings.kernel, with_mean, lengths, standard)
        kernel = reference(products, [views[name].squared[rows] for name in compared], statistics)
        # Weights are large and of both signs: their sum would have few digits in single precision.
        found = kernel @ self.weight.cpu().numpy()
        return torch.from_numpy(found.astype(np.float32)).to(self.bias.device) + self.bias

    forward = embed
