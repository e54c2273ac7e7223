"""DIFFUSION: a kernel machine on views of subgraphs, by default the lift of a random walk; beyond the paper.

Views are those of :mod:`subgnn.models.views`. Each is less its mean over the training subgraphs, with rows of length
one; the inner product of two such rows is their cosine, and k(S, T) the mean of the cosines of the views. The kernel is

    linear     K(S, T) = k(S, T)
    gaussian   K(S, T) = exp(k(S, T) - 1), that of the squared distance 2 - 2 k of the views side by side

and output(S) = sum over training subgraphs T of K(S, T) w_T + b, fitted by ridge or logistic regression with an L2
penalty (``baseline.loss``, :mod:`subgnn.models.regression`). With K = U L U^T on the training subgraphs, the rows
U L^1/2 stand for them: their columns are principal components, and one decomposition serves all penalties and labels.
Of more than 4,096 training subgraphs, as many are drawn to stand for all of them (Nystroem's method).

A checkpoint holds the nodes of the training subgraphs, not their views, which are wide: these are computed again when
the first subgraph is predicted. Cosines follow from inner products of the views as they are,

    (v_S - m) . (v_T - m) = v_S . v_T - mean over U of v_S . v_U - v_T . m + m . m

so that the views and their inner products do not depend on the split, and are shared by fits to many splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config.settings import BaselineSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.errors import UserError, choices, excerpt
from subgnn.models.examples import Examples
from subgnn.models.interface import Settings, SetUp, TrainingData, View
from subgnn.models.regression import Floats, fit_outputs
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import TensorModel
from subgnn.models.views import CACHE, DIFFUSED, EXACT_NUMBERS, VIEWS, Diffusing, Rows, multiply
from subgnn.parallel.progress import OnProgress
from subgnn.ragged import Ragged
from subgnn.rng import stream

_DAMPINGS = (0.3, 0.6)
_INVERSE_PENALTIES = {"squared": (1.0, 3.0, 10.0, 30.0), "logistic": (1.0, 10.0, 100.0, 1_000.0)}
_LANDMARKS = 4096
_SMALLEST = 1e-9  # of the largest eigenvalue: smaller components are rounding


class KernelMachine(TensorModel):
    """A kernel machine on the views that ``baseline.views`` lists."""

    is_fitted_in_one_go = True
    needs_edges = False

    def sees(self, settings: Settings) -> View:
        """The nodes; spread over the graph, also those around them."""
        return "nodes" if settings.baseline.views == ("bag",) else "surroundings"

    def check(self, recipe: Recipe, graph: Graph) -> None:
        """Refuse views that do not exist."""
        views = recipe.baseline.views
        for view in views:
            if view not in VIEWS:
                raise UserError(f"baseline.views has {excerpt(view)}", where="recipe", hint=choices(view, VIEWS))
        if not views or len(set(views)) < len(views):
            hint = f"accepted: one or more of {', '.join(VIEWS)}, each once"
            raise UserError(f"baseline.views is {list(views)}", where="recipe", hint=hint)

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        """Candidates, with the way that diffusions are computed recorded in their settings."""
        if recipe.baseline.diffusion == "auto":
            small = len(data.subgraphs) * data.graph.num_nodes <= EXACT_NUMBERS
            way: Literal["exact", "push"] = "exact" if small else "push"
            recipe = replace(recipe, baseline=replace(recipe.baseline, diffusion=way))
        for damping in _dampings(recipe.baseline):
            ViewSource(data.graph, data.subgraphs.nodes, recipe.baseline).rows(
                damping, keep=True, on_progress=data.on_prepare
            )
        return super().set_up(data, recipe)

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """The nodes of the training subgraphs."""
        train = data.subgraphs.indices("train")
        nodes = data.subgraphs.nodes.take(train[landmarks(len(train), data.seed)])
        return {"nodes": torch.from_numpy(nodes.values), "offsets": torch.from_numpy(nodes.offsets)}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> ViewSource:
        """The subgraphs, whose views are computed when a network asks for them."""
        return ViewSource(graph, nodes, checkpoint.spec.baseline)

    def network(self, checkpoint: Checkpoint) -> KernelNetwork:
        """The kernel machine; its weights are 0 until it is solved or loaded."""
        return KernelNetwork(checkpoint)

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        """Every open choice of damping and penalty."""
        given = recipe.baseline
        penalties = _INVERSE_PENALTIES[given.loss] if given.inverse_penalty == 0 else (given.inverse_penalty,)
        return {
            f"damping={a:g}, inverse_penalty={c:g}": replace(
                recipe, baseline=replace(given, inverse_penalty=c, damping=a)
            )
            for a in _dampings(given)
            for c in penalties
        }

    def unused_data(self, recipe: Recipe, graph: Graph) -> list[str]:
        """Diffusions use the weights of edges."""
        uses = any(view in DIFFUSED for view in recipe.baseline.views)
        return [name for name in super().unused_data(recipe, graph) if not (uses and name == "edge weights")]

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        """Training subgraphs that are not sets of nodes of the graph."""
        settings, weights = checkpoint.spec.baseline, checkpoint.weights
        if settings.damping == 0 or settings.diffusion == "auto" or not set(settings.views) <= set(VIEWS):
            yield "its views, its damping or the way that diffusions are computed are left open or unknown"
        nodes, offsets = weights["nodes"].numpy(), weights["offsets"].numpy()
        if (nodes.dtype, offsets.dtype) != (np.int32, np.int64) or (nodes.ndim, offsets.ndim) != (1, 1):
            yield "its training subgraphs are of another type"
        rows = Ragged(nodes, offsets)
        rising = np.diff(nodes) > 0
        if rows.is_valid and len(nodes):
            rising[rows.offsets[1:-1] - 1] = True  # from one subgraph to the next
        if not rows.is_valid or not len(rows) or not rows.lengths.all() or not rising.all():
            yield "its training subgraphs are not sets of nodes"
        if len(nodes) and not 0 <= nodes.min() <= nodes.max() < graph.num_nodes:
            yield "its training subgraphs hold a node that is not in the graph"
        if not bool((weights["lengths"] >= 0).all()):
            yield "the lengths of its training rows are below 0"


def landmarks(count: int, seed: int) -> NDArray[np.int64]:
    """The training subgraphs that stand for all of them: all, or as many as there is room for, drawn at random."""
    if count <= _LANDMARKS:
        return np.arange(count)
    return np.sort(stream(seed, "kernel machine/landmarks").choice(count, _LANDMARKS, replace=False))


def _dampings(settings: BaselineSettings) -> tuple[float, ...]:
    return _DAMPINGS if settings.damping == 0 else (settings.damping,)


class ViewSource:
    """Subgraphs, by their views; a network asks for those of its damping."""

    def __init__(self, graph: Graph, nodes: Ragged, settings: BaselineSettings) -> None:
        self.graph, self.nodes, self.settings = graph, nodes, settings
        self.device = torch.device("cpu")
        self._rows: dict[float, list[Rows]] = {}
        self._components: tuple[Any, Components] | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def to(self, device: torch.device | str) -> Self:
        """Say where outputs are to go; views stay where they are."""
        self.device = torch.device(device)
        return self

    def batch(self, rows: NDArray[np.int64]) -> tuple[ViewSource, NDArray[np.int64]]:
        """The chosen subgraphs, in the given order."""
        return self, rows

    def rows(self, damping: float, *, keep: bool = False, on_progress: OnProgress | None = None) -> list[Rows]:
        """The views of all subgraphs.

        Args:
            keep: leave them in the cache of this process.
        """
        if damping not in self._rows:
            diffusing = Diffusing.of(self.settings, damping)
            self._rows[damping] = [
                CACHE.get(self.graph, self.nodes, view, diffusing, keep=keep, on_progress=on_progress)
                for view in self.settings.views
            ]
        return self._rows[damping]

    def components(self, train: NDArray[np.int64], damping: float, seed: int) -> Components:
        """The principal components of the training subgraphs; those computed last are kept, for further penalties."""
        key = (damping, seed, train.tobytes())
        if self._components is None or self._components[0] != key:
            chosen = landmarks(len(train), seed)
            found = Components.of(self.rows(damping), train, chosen, kernel=self.settings.kernel)
            self._components = key, found
        return self._components[1]


@dataclass(frozen=True, slots=True, eq=False)
class Centring:
    """What cosines of one view need to know of the landmarks, besides inner products with them.

    Shapes:
        products: v_T . m (m,). lengths: |v_T - m| (m,).
    """

    products: Floats
    lengths: Floats

    @classmethod
    def of(cls, products: Floats, squared: Floats) -> Centring:
        """From the inner products of the landmarks with each other (m, m), and their squared lengths (m,)."""
        with_mean = products.mean(axis=1)
        lengths = np.sqrt(np.maximum(squared - 2 * with_mean + with_mean.mean(), 0))
        # A row that is the mean has no direction; what is left of it is rounding.
        return cls(with_mean, np.where(lengths > 1e-3 * np.sqrt(squared), lengths, 0))

    def cosines(self, products: Floats, squared: Floats) -> Floats:
        """Cosines of centred rows with centred landmarks; 0 where a row is the mean.

        Shapes:
            products: (n, m). squared: (n,). returns: (n, m).
        """
        with_mean, of_mean = products.mean(axis=1), self.products.mean()
        own = np.sqrt(np.maximum(squared - 2 * with_mean + of_mean, 0))
        own = np.where(own > 1e-3 * np.sqrt(squared), own, 0)
        inverse, other = (
            np.divide(1, length, out=np.zeros(len(length)), where=length > 0) for length in (own, self.lengths)
        )
        return (products - with_mean[:, None] - self.products + of_mean) * inverse[:, None] * other


def kernel_of(cosines: list[Floats], kernel: str) -> Floats:
    """K from the cosines of each view (n, m)."""
    mean = np.mean(cosines, axis=0)
    return np.exp(mean - 1) if kernel == "gaussian" else mean


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Training subgraphs by their principal components.

    Shapes:
        rows: (training subgraphs, r), with rows^T rows diagonal. basis: (landmarks, r), K basis = rows.
        landmarks: (m,) places among all subgraphs. centrings: one a view.
    """

    rows: Floats
    basis: Floats
    landmarks: NDArray[np.int64]
    centrings: list[Centring]

    @classmethod
    def of(cls, views: list[Rows], train: NDArray[np.int64], chosen: NDArray[np.int64], *, kernel: str) -> Components:
        """Those of the kernel over the views.

        Args:
            chosen: the landmarks, as places in ``train``.
        """
        centrings, cosines = [], []
        for view in views:
            products, squared = view.products(train, train[chosen]), view.squared[train]
            centring = Centring.of(products[chosen], squared[chosen])
            centrings.append(centring)
            cosines.append(centring.cosines(products, squared))
        whole = kernel_of(cosines, kernel)
        values, vectors = np.linalg.eigh(whole[chosen])
        kept = values > _SMALLEST * max(values[-1], _SMALLEST)
        basis = vectors[:, kept] / np.sqrt(values[kept])
        rows = whole @ basis
        if len(chosen) < len(train):
            _, turn = np.linalg.eigh(rows.T @ rows)
            basis, rows = basis @ turn, rows @ turn
        return cls(rows, basis, train[chosen], centrings)


class KernelNetwork(nn.Module):
    """sum over landmarks of K(S, T) w_T + b.

    Views are as wide as the graph, so what stands for the vector of a subgraph are its outputs.

    Shapes:
        nodes: (entries,) int32, offsets: (m + 1,), the landmarks. products, lengths: (views, m) float64, as in
        :class:`Centring`. weight: (m, outputs). bias: (outputs,).
    """

    nodes: Tensor
    offsets: Tensor
    products: Tensor
    lengths: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        spec, weights = checkpoint.spec, checkpoint.weights
        self.settings, self.seed = spec.baseline, spec.seed
        self.register_buffer("nodes", weights["nodes"])
        self.register_buffer("offsets", weights["offsets"])
        views, count = len(spec.baseline.views), len(weights["offsets"]) - 1
        self.register_buffer("products", torch.zeros(views, count, dtype=torch.float64))
        self.register_buffer("lengths", torch.zeros(views, count, dtype=torch.float64))
        self.register_buffer("weight", torch.zeros(count, spec.num_outputs))
        self.register_buffer("bias", torch.zeros(spec.num_outputs))
        # The views of landmarks: rows of the subgraphs it was fitted to, or computed when they are first needed.
        self._source: ViewSource | None = None
        self._places: NDArray[np.int64] | None = None

    def solve(self, examples: Examples) -> None:
        """Fit the weights on the training split."""
        source: Any = examples.inputs
        train, settings = examples.train, self.settings
        found = source.components(train, settings.damping, self.seed)
        targets = examples.targets.cpu().numpy()[train]
        weight, bias = fit_outputs(
            found.rows,
            targets,
            examples.task,
            len(self.bias),
            loss=settings.loss,
            inverse_penalty=settings.inverse_penalty,
        )
        nodes = source.nodes.take(found.landmarks)
        self.nodes, self.offsets = torch.from_numpy(nodes.values), torch.from_numpy(nodes.offsets)
        self.products = torch.from_numpy(np.stack([one.products for one in found.centrings]))
        self.lengths = torch.from_numpy(np.stack([one.lengths for one in found.centrings]))
        self.weight = torch.from_numpy((found.basis @ weight).astype(np.float32))
        self.bias = torch.from_numpy(bias.astype(np.float32))
        self._source, self._places = source, found.landmarks

    def embed(self, batch: tuple[ViewSource, NDArray[np.int64]]) -> Tensor:
        """Shapes: returns: (n, outputs)."""
        source, rows = batch
        damping = self.settings.damping
        if self._source is None:
            nodes = Ragged(self.nodes.cpu().numpy(), self.offsets.cpu().numpy())
            self._source, self._places = ViewSource(source.graph, nodes, self.settings), np.arange(len(nodes))
            self._source.rows(damping, keep=True)
        cosines = []
        for i, (view, known) in enumerate(zip(source.rows(damping), self._source.rows(damping), strict=True)):
            if source is self._source:
                products = view.products(rows, self._places)
            else:
                products = multiply(view.values[rows], known.values[self._places]).astype(np.float64)
            centring = Centring(self.products[i].cpu().numpy(), self.lengths[i].cpu().numpy())
            cosines.append(centring.cosines(products, view.squared[rows]))
        kernel = torch.from_numpy(kernel_of(cosines, self.settings.kernel).astype(np.float32))
        return kernel.to(self.weight.device) @ self.weight + self.bias

    def forward(self, batch: tuple[ViewSource, NDArray[np.int64]]) -> Tensor:
        """Shapes: returns: (n, outputs)."""
        return self.embed(batch)
