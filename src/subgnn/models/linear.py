"""Linear models on views of subgraphs: BAG, BAG and one hop, DIFFUSION; beyond the paper.

``bag`` sees which nodes a subgraph has, ``bag-1hop`` also what is near them, and ``diffusion`` how much more often
than chance a random walk from it is at each node. The views are those of :mod:`subgnn.models.views`, side by side,
each with rows of length one:

    output(S) = sum over views of x_S W + b,   x_S = (v_S - m) / |v_S - m|

m is the mean over the training split for a centred view, and 0 for others. Logistic regression with an L2 penalty,
several labels one against the rest, real values by ridge regression.

Bags are sparse, and are fitted as they are. A lift has a value at every node, so it is fitted by its principal
components: with K the inner products of the training rows and K = U L U^T, the rows U L^1/2 give the same model as x
itself, as the penalised W is a combination of training rows. One decomposition serves all penalties and labels, and W
is computed at the end, so that a new subgraph costs its view and one product. Of more than 4,096 training subgraphs, as
many are drawn to stand for all of them (Nystroem's method).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional

from subgnn.config.settings import BaselineSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import Task
from subgnn.models.examples import Examples
from subgnn.models.interface import Settings, SetUp, TrainingData, View
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import TensorModel, is_sorted_below
from subgnn.models.views import EXACT_NUMBERS, LIFT, LIFTS, Lifts, LiftSettings, columns_of, sparse_views
from subgnn.ragged import Ragged
from subgnn.rng import stream

_INVERSE_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)
_DAMPINGS = (0.3, 0.6)
Fitted = tuple[NDArray[np.float32], NDArray[np.float32]]
_STEPS = 500
_NEVER = -20.0  # the logit of a class that the training split does not have
_LANDMARKS = 4096
_SMALLEST = 1e-6  # of the largest eigenvalue: smaller components are rounding


class LinearModel(TensorModel):
    """A linear model on views.

    Args:
        views: names of :mod:`subgnn.models.views`; bags first.
    """

    is_fitted_in_one_go = True

    def __init__(self, *views: str) -> None:
        self.bags = tuple(view for view in views if view != LIFT)
        self.lift = LIFT in views
        self.needs_edges = views != ("bag",)

    def sees(self, settings: Settings) -> View:
        """The nodes; spread over the graph, also those around them."""
        return "surroundings" if self.lift or "one-hop" in self.bags else "nodes"

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        """Candidates, with the way that lifts are computed recorded in their settings."""
        if self.lift and recipe.baseline.diffusion == "auto":
            small = len(data.subgraphs) * data.graph.num_nodes <= EXACT_NUMBERS
            way: Literal["exact", "push"] = "exact" if small else "push"
            recipe = replace(recipe, baseline=replace(recipe.baseline, diffusion=way))
        return super().set_up(data, recipe)

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``columns``: those of the views that some training subgraph has a value in."""
        graph, subgraphs = data.graph, data.subgraphs
        train = subgraphs.indices("train")
        columns = []
        if self.bags:
            inside = np.unique(subgraphs.nodes.take(train).values).astype(np.int64)
            near = np.zeros(graph.num_nodes, bool)
            if "one-hop" in self.bags:
                for node in inside:
                    near[graph.neighbors_of(node)] = True
            found = {"bag": inside, "one-hop": np.flatnonzero(near)}
            columns = [i * graph.num_nodes + found[view] for i, view in enumerate(self.bags)]
        if self.lift:
            settings = self._lift_settings(recipe.baseline)
            lifts = LIFTS.get(graph, subgraphs.nodes, settings, keep=True, on_progress=data.on_prepare)
            columns.append(len(self.bags) * graph.num_nodes + _touched(lifts, train, graph.num_nodes))
        return {"columns": torch.from_numpy(np.concatenate(columns))}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> ViewRows:
        """The views of each subgraph; rows are scaled before columns without a weight are left out."""
        columns: NDArray[np.int64] = checkpoint.weights["columns"].numpy()
        width = len(self.bags) * graph.num_nodes
        first = int(np.searchsorted(columns, width))
        bags, lifts = None, {}
        if self.bags:
            values, unit = sparse_views(graph, nodes, self.bags)
            bags = columns_of(values, columns[:first]), columns_of(unit, columns[:first])
        if self.lift:
            lifts = LIFTS.get(graph, nodes, self._lift_settings(checkpoint.spec.baseline))
        return ViewRows(len(nodes), bags, lifts, columns[first:] - width)

    def network(self, checkpoint: Checkpoint) -> LinearViews:
        """The linear model; its weights are 0 until it is solved or loaded."""
        return LinearViews(checkpoint, bags=bool(self.bags), lift=self.lift)

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        """Every open choice of damping, scaling and penalty."""
        given = recipe.baseline
        ways: tuple[Literal["rows", "none"], ...]
        ways = ("rows", "none") if given.normalize == "auto" else (given.normalize,)
        penalties = _INVERSE_PENALTIES if given.inverse_penalty == 0 else (given.inverse_penalty,)
        dampings = self._lift_settings(given).dampings if self.lift else (given.damping,)
        return {
            (f"damping={a:g}, " if self.lift else "") + f"normalize={way}, inverse_penalty={c:g}": replace(
                recipe, baseline=replace(given, normalize=way, inverse_penalty=c, damping=a)
            )
            for a in dampings
            for way in ways
            for c in penalties
        }

    def unused_data(self, recipe: Recipe, graph: Graph) -> list[str]:
        """A lift uses the weights of edges."""
        return [name for name in super().unused_data(recipe, graph) if not (self.lift and name == "edge weights")]

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        """Columns that are not those of nodes of the graph."""
        columns = checkpoint.weights["columns"].numpy()
        width = (len(self.bags) + self.lift) * graph.num_nodes
        if columns.dtype != np.int64 or columns.ndim != 1 or not is_sorted_below(columns, width):
            yield "the columns of its views are not in order, or not of nodes of the graph"
        settings = checkpoint.spec.baseline
        if self.lift and (settings.damping == 0 or settings.diffusion == "auto"):
            yield "its damping, or the way that lifts are computed, is left open"
        if self.lift and settings.diffusion == "exact" and (columns >= width - graph.num_nodes).sum() < graph.num_nodes:
            yield "it has no weight for some node"

    @staticmethod
    def _lift_settings(settings: BaselineSettings) -> LiftSettings:
        return LiftSettings.of(settings, _DAMPINGS if settings.damping == 0 else (settings.damping,))


def _touched(lifts: dict[float, Lifts], rows: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """The nodes where some of the subgraphs has a lift, whatever the damping."""
    touched = np.zeros(num_nodes, bool)
    for one in lifts.values():
        touched[one.rows[rows].indices if sparse.issparse(one.rows) else slice(None)] = True
    return np.flatnonzero(touched)


@dataclass(frozen=True, slots=True, eq=False)
class SparseBatch:
    """Sparse rows laid end to end.

    Shapes:
        columns: (entries,) int64. starts: (n,). values: (entries,) float32.
    """

    columns: Tensor
    starts: Tensor
    values: Tensor

    @classmethod
    def of(cls, rows: sparse.csr_array, device: torch.device) -> SparseBatch:
        """The rows on a device."""
        return cls(
            columns=torch.from_numpy(rows.indices.astype(np.int64)).to(device),
            starts=torch.from_numpy(rows.indptr[:-1].astype(np.int64)).to(device),
            values=torch.from_numpy(rows.data.astype(np.float32)).to(device),
        )

    def __matmul__(self, weight: Tensor) -> Tensor:
        """Shapes: weight: (columns, outputs). returns: (n, outputs)."""
        return functional.embedding_bag(self.columns, weight, self.starts, mode="sum", per_sample_weights=self.values)


@dataclass(frozen=True, slots=True, eq=False)
class ViewBatch:
    """Some of the subgraphs; a view is laid out where a network asks for it."""

    source: ViewRows
    rows: NDArray[np.int64]

    def bags(self, *, unit: bool) -> SparseBatch:
        """Bags side by side, as they are or with rows of length one."""
        values, scaled = self.source.bags
        return SparseBatch.of((scaled if unit else values)[self.rows], self.source.device)

    def lift(self, damping: float) -> tuple[SparseBatch | Tensor, Tensor]:
        """Lifts over the columns with weights, and their squared lengths over all nodes."""
        source, device = self.source, self.source.device
        lifts = source.lifts[damping]
        rows = lifts.rows[self.rows]
        squared = torch.from_numpy(lifts.squared[self.rows]).to(device)
        if sparse.issparse(rows):
            return SparseBatch.of(columns_of(rows, source.lift_columns), device), squared
        return torch.from_numpy(rows).to(device), squared


class ViewRows:
    """The views of subgraphs over the columns that training knows.

    Args:
        count: n.
        bags: bags side by side, as they are and with rows of length one; None where there are none.
        lifts: by damping.
        lift_columns: the nodes whose lifts have a weight, sorted.
    """

    def __init__(self, count: int, bags: Any, lifts: dict[float, Lifts], lift_columns: NDArray[np.int64]) -> None:
        self.count, self.bags, self.lifts, self.lift_columns = count, bags, lifts, lift_columns
        self.device = torch.device("cpu")
        self._components: tuple[Any, Components] | None = None

    def __len__(self) -> int:
        return self.count

    def to(self, device: torch.device | str) -> Self:
        """Say where batches are to go; the rows themselves stay where they are."""
        self.device = torch.device(device)
        return self

    def batch(self, rows: NDArray[np.int64]) -> ViewBatch:
        """The chosen subgraphs, in the given order."""
        return ViewBatch(self, rows)

    def components(self, train: NDArray[np.int64], damping: float, *, unit: bool, seed: int) -> Components:
        """The principal components of the training rows; those computed last are kept, for further penalties."""
        key = (damping, unit, seed, train.tobytes())
        if self._components is None or self._components[0] != key:
            self._components = key, Components.of(self, train, damping, unit=unit, seed=seed)
        return self._components[1]


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Training rows by their principal components, and the way back to the columns of the views.

    Shapes:
        rows: (training subgraphs, r). basis: (landmarks, r); basis @ w are the weights of landmark rows in W.
        mean: (F,), the mean lift. scale: (landmarks,), what centred lifts are multiplied by.
    """

    rows: NDArray[np.float64]
    basis: NDArray[np.float64]
    landmarks: NDArray[np.int64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, source: ViewRows, train: NDArray[np.int64], damping: float, *, unit: bool, seed: int) -> Components:
        """Those of the sum of the views' inner products."""
        lifts, chosen = source.lifts[damping], np.arange(len(train))
        if len(train) > _LANDMARKS:
            chosen = np.sort(stream(seed, "linear/landmarks").choice(len(train), _LANDMARKS, replace=False))
        rows = lifts.rows[train]
        mean = np.asarray(rows.mean(axis=0, dtype=np.float64)).reshape(-1)
        of_mean, squared = np.asarray(rows @ mean.astype(np.float32), np.float64), float(mean @ mean)
        length = np.sqrt(np.maximum(lifts.squared[train] - 2 * of_mean + squared, 0))
        scale = np.ones(len(train))
        if unit:
            scale = np.divide(1, length, out=np.zeros(len(train)), where=length > 0)
        kernel = lifts.products(train, train[chosen]) - of_mean[:, None] - of_mean[chosen] + squared
        kernel *= scale[:, None] * scale[chosen]
        if source.bags is not None:
            bags = source.bags[int(unit)]
            kernel += (bags[train] @ bags[train[chosen]].T).toarray()
        values, vectors = np.linalg.eigh(kernel[chosen])
        kept = values > _SMALLEST * max(values[-1], _SMALLEST)
        basis = vectors[:, kept] / np.sqrt(values[kept])
        return cls(kernel @ basis, basis, train[chosen], mean[source.lift_columns], scale[chosen])

    def weights(self, source: ViewRows, damping: float, found: NDArray[Any], *, unit: bool) -> NDArray[np.float32]:
        """W of the views, from the weights of components.

        Shapes:
            found: (r, outputs). returns: (columns of all views, outputs).
        """
        share = self.basis @ found  # (landmarks, outputs)
        parts = []
        if source.bags is not None:
            parts.append(source.bags[int(unit)][self.landmarks].T @ share)
        scaled = share * self.scale[:, None]
        lifted = source.lifts[damping].rows[self.landmarks].T @ scaled.astype(np.float32)
        parts.append(lifted[source.lift_columns] - np.outer(self.mean, scaled.sum(axis=0)))
        return np.concatenate(parts).astype(np.float32)


class LinearViews(nn.Module):
    """x_S W + b over the views of a subgraph.

    A view is as wide as the graph, so what stands for the vector of a subgraph is x_S W + b itself.

    Shapes:
        columns: (F,) which columns of the views there are weights for. weight: (F, outputs). bias: (outputs,).
        mean: (F,), 0 for bags; where a view is centred.
    """

    columns: Tensor
    weight: Tensor
    bias: Tensor
    mean: Tensor

    def __init__(self, checkpoint: Checkpoint, *, bags: bool, lift: bool) -> None:
        super().__init__()
        spec, columns = checkpoint.spec, checkpoint.weights["columns"]
        self.seed, self.bags, self.lift = spec.seed, bags, lift
        self.unit, self.inverse_penalty = spec.baseline.normalize == "rows", spec.baseline.inverse_penalty
        self.damping = spec.baseline.damping
        self.register_buffer("columns", columns)
        self.register_buffer("weight", torch.zeros(len(columns), spec.num_outputs))
        self.register_buffer("bias", torch.zeros(spec.num_outputs))
        if lift:
            self.register_buffer("mean", torch.zeros(len(columns)))

    def solve(self, examples: Examples) -> None:
        """Fit the weights on the training split."""
        inputs: Any = examples.inputs
        train, outputs = examples.train, len(self.bias)
        targets = examples.targets.cpu().numpy()[train]
        components = None
        if self.lift:
            components = inputs.components(train, self.damping, unit=self.unit, seed=self.seed)
        rows = inputs.bags[int(self.unit)][train] if components is None else components.rows
        with warnings.catch_warnings():
            # A weak penalty may run out of steps; validation judges what came of it.
            warnings.filterwarnings("ignore", message=".*failed to converge.*")
            weight, bias = fit_linear(rows, targets, examples.task, outputs, self.inverse_penalty)
        if components is not None:
            weight = components.weights(inputs, self.damping, weight, unit=self.unit)
            self.mean[len(weight) - len(components.mean) :] = torch.from_numpy(components.mean)
        self.weight.copy_(torch.from_numpy(weight))
        self.bias.copy_(torch.from_numpy(bias))

    def embed(self, batch: ViewBatch) -> Tensor:
        """Shapes: returns: (n, outputs)."""
        first = len(self.columns) - (len(batch.source.lift_columns) if self.lift else 0)
        found = self.bias
        if self.bags:
            found = batch.bags(unit=self.unit) @ self.weight[:first] + found
        if self.lift:
            rows, squared = batch.lift(self.damping)
            weight, mean = self.weight[first:], self.mean[first:]
            product = rows @ torch.cat([weight, mean[:, None]], dim=1)
            centred, of_mean = product[:, :-1] - mean @ weight, product[:, -1].double()
            if self.unit:
                length = (squared - 2 * of_mean + mean.double() @ mean.double()).clamp(min=0).sqrt()
                centred = centred * torch.where(length > 0, 1 / length, 0).float()[:, None]
            found = centred + found
        return found

    def forward(self, batch: ViewBatch) -> Tensor:
        """Shapes: returns: (n, outputs)."""
        return self.embed(batch)


def fit_linear(rows: Any, targets: NDArray[Any], task: Task, outputs: int, inverse_penalty: float) -> Fitted:
    """Logistic regression with an L2 penalty; one against the rest for multi-label; ridge for regression.

    Args:
        rows: a scipy CSR array, or a dense one.
        inverse_penalty: C, the weight of the data beside the penalty.

    Shapes:
        rows: (n, F). returns: weight (F, outputs), bias (outputs,), float32.
    """
    if task == "regression":
        from sklearn.linear_model import Ridge

        ridge = Ridge(alpha=1 / inverse_penalty, solver="sparse_cg", tol=1e-6).fit(rows, targets)
        return ridge.coef_.reshape(-1, 1).astype(np.float32), np.array([ridge.intercept_], np.float32)
    if task == "multi-label":
        columns = [_one_label(rows, targets[:, label], inverse_penalty) for label in range(outputs)]
        return np.stack([w for w, _ in columns], axis=1), np.array([b for _, b in columns], np.float32)
    return _one_of_many(rows, targets, outputs, inverse_penalty)


def _one_label(rows: Any, targets: NDArray[Any], inverse_penalty: float) -> tuple[NDArray[np.float32], float]:
    if targets.min() == targets.max():
        return np.zeros(rows.shape[1], np.float32), _NEVER if targets.max() == 0 else -_NEVER
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=inverse_penalty, max_iter=_STEPS).fit(rows, targets)
    return model.coef_[0].astype(np.float32), float(model.intercept_[0])


def _one_of_many(rows: Any, targets: NDArray[Any], outputs: int, inverse_penalty: float) -> Fitted:
    """Softmax over the classes that are there; of two, the first has logit 0."""
    weight, bias = np.zeros((rows.shape[1], outputs), np.float32), np.full(outputs, _NEVER, np.float32)
    present = np.unique(targets)
    bias[present] = 0.0
    if len(present) == 2:
        weight[:, present[1]], bias[present[1]] = _one_label(rows, targets == present[1], inverse_penalty)
    elif len(present) > 2:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=inverse_penalty, max_iter=_STEPS).fit(rows, targets)
        weight[:, present], bias[present] = model.coef_.T, model.intercept_
    return weight, bias
