"""PROFILES: the class whose subgraphs have random walks that end where this one's do; beyond the paper.

p_S is where a random walk from S ends (the view ``walk``), q_c the mean of p_S over the training subgraphs of class
c, and q that over all of them. The score of a class is the mean log-ratio of its profile to the common one where the
walk of S ends, as a naive Bayes classifier would have it for a document of many words:

    score_c(S) = sum over v of p_S(v) log((.8 q_c(v) + .2 q(v)) / q(v))

Logits are t score_c(S) + u log(share of class c), with t and u fitted to scores of five folds of the training split,
each from profiles of the other four. A label of several has the score with the label less that without it, and a
scale and an offset of its own. For real values the two profiles are of subgraphs above and below the mean, and scale
and offset are those of least squares.

Scores are linear in p_S: a checkpoint holds a weight for each class and node, where some training walk ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.models.baselines.scores import draw_inner_folds, fit_scales
from subgnn.models.examples import Examples
from subgnn.models.interface import Settings, SetUp, TrainingData, View
from subgnn.models.kernel_machines.kernel_machine import ViewSource, resolve_algorithm
from subgnn.models.kernel_machines.newton import Floats
from subgnn.models.kernel_machines.rows import Matrix, Piece, shared_pieces
from subgnn.models.kernel_machines.views import DiffusionSettings
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import TensorModel, is_sorted_below
from subgnn.ragged import Ragged
from subgnn.task import Task, TaskName, task_of

_OWN = 0.8  # the part of a class's own profile in its smoothed one
_NUMBERS_AT_A_TIME = 2**23
_WALK = ("walk",)


class ProfileModel(TensorModel):
    """PROFILES."""

    is_fitted_in_one_go = True
    needs_edges = False
    settings = (DiffusionSettings,)

    def sees(self, settings: Settings) -> View:
        return "surroundings"

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        settings = _resolved(recipe, data.graph, data.subgraphs.nodes)
        source = ViewSource(data.graph, data.subgraphs.nodes, settings, keep=True)
        source.views(settings.damping, on_progress=data.on_prepare)["walk"].prepare(products=False)
        return SetUp(super().set_up(data, recipe.with_method_settings(settings)).candidates, [source])

    def shared_pieces(self, recipe: Recipe, graph: Graph, nodes: Ragged) -> list[list[Piece]]:
        return shared_pieces(graph, nodes, _WALK, _resolved(recipe, graph, nodes), products=False)

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``columns``: the nodes where some training walk ends; they are found when it is fitted."""
        return {"columns": torch.empty(0, dtype=torch.int64)}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> ViewSource:
        return ViewSource(graph, nodes, checkpoint.spec.of(DiffusionSettings))

    def network(self, checkpoint: Checkpoint) -> ProfileNetwork:
        return ProfileNetwork(checkpoint)

    def uses(self, recipe: Recipe) -> frozenset[str]:
        return frozenset({"weights"})

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        columns, settings = checkpoint.weights["columns"].numpy(), checkpoint.spec.of(DiffusionSettings)
        if settings.algorithm == "auto" or settings.views != _WALK:
            yield "its view, or the way that it is computed, is left open or unknown"
        if not is_sorted_below(columns, graph.num_nodes, np.int64):
            yield "the columns of its profiles are not in order, or are not nodes of the graph"


def _resolved(recipe: Recipe, graph: Graph, nodes: Ragged) -> DiffusionSettings:
    return replace(resolve_algorithm(recipe.of(DiffusionSettings), graph, nodes), views=_WALK)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Training subgraphs by fold and class; fits leave a fold out, or none (the last).

    For real values each fit has a class of its own: subgraphs above the mean of those it is fitted to.

    Shapes:
        fold: (n,). high: (n, classes), 1 where a subgraph is of the class.
    """

    fold: NDArray[np.int64]
    high: Floats
    task: Task

    @classmethod
    def of(cls, fold: NDArray[np.int64], targets: NDArray[Any], task: TaskName, outputs: int) -> _Groups:
        kind = task_of(task)
        if not kind.real:
            return cls(fold, kind.indicators(targets, outputs), kind)
        means = [targets[fold != i].mean() if (fold != i).any() else 0.0 for i in range(int(fold.max()) + 2)]
        return cls(fold, (targets[:, None] > np.array(means)).astype(np.float64), kind)

    @cached_property
    def sums(self) -> scipy.sparse.csr_array:
        """A matrix (folds (1 + classes), n): its product with rows sums all of a fold, and those of each class."""
        wide = np.concatenate([np.ones((len(self.fold), 1)), self.high], axis=1)
        rows, classes = np.nonzero(wide)
        places = self.fold[rows] * wide.shape[1] + classes
        shape = ((int(self.fold.max()) + 1) * wide.shape[1], len(self.fold))
        return scipy.sparse.csr_array((wide[rows, classes], (places, rows)), shape=shape)

    def weights(self, rows: Matrix) -> tuple[list[Floats], NDArray[np.bool_]]:
        """The weights of scores (columns, outputs) of each fit, and whether a walk ends there, for some columns."""
        width = 1 + self.high.shape[1]
        sums = self.sums @ rows
        sums = (sums.toarray() if scipy.sparse.issparse(sums) else sums).reshape(-1, width, rows.shape[1])
        counts = np.asarray(self.sums.sum(axis=1)).reshape(-1, width)
        found = []
        for i in range(len(sums) + 1):
            others = [fold for fold in range(len(sums)) if fold != i]
            of_all, of_number = sums[others].sum(axis=0), counts[others].sum(axis=0)
            own = slice(1 + i, 2 + i) if self.task.real else slice(1, None)
            weight = _log_ratios(of_all[own], of_number[own], of_all[0], of_number[0])
            if not self.task.one_class:
                weight -= _log_ratios(of_all[0] - of_all[own], of_number[0] - of_number[own], of_all[0], of_number[0])
            found.append(weight.T)
        return found, of_all[0] > 0


def _log_ratios(sums: Floats, counts: Floats, of_all: Floats, number: float) -> Floats:
    """log((.8 q_c + .2 q) / q) (classes, columns), from sums of walks; 0 where none ends, or a class has no rows."""
    q = of_all / max(number, 1)
    own = np.where(counts[:, None] > 0, np.maximum(sums, 0) / np.maximum(counts, 1)[:, None], q)
    return np.log(np.divide(_OWN * own + (1 - _OWN) * q, q, out=np.ones_like(own), where=q > 0))


def fit_profiles(
    walks: Matrix,
    train: NDArray[np.int64],
    fold: NDArray[np.int64],
    targets: NDArray[Any],
    task: TaskName,
    outputs: int,
) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Scores of training subgraphs (n, outputs) without their fold; nodes where some walk ends, and their weights.

    Walks are read once, some columns at a time.

    Shapes:
        walks: (subgraphs, N). train: (n,) places of those to learn from. fold, targets: (n,), or (n, labels).
    """
    groups, sparse = _Groups.of(fold, targets, task, outputs), scipy.sparse.issparse(walks)
    scores, columns, weights = np.zeros((len(fold), outputs)), [np.empty(0, np.int64)], [np.empty((0, outputs))]
    step = max(1, _NUMBERS_AT_A_TIME // (groups.sums.shape[0] if sparse else len(fold)))
    walks = walks[train].tocsc() if sparse else walks
    for begin in range(0, walks.shape[1], step):
        rows = walks[:, begin : begin + step]
        rows = (rows.tocsr() if sparse else rows[train]).astype(np.float64)
        (*without, weight), there = groups.weights(rows)
        for i, one in enumerate(without):
            held = np.flatnonzero(fold == i)
            scores[held] += rows[held] @ one
        columns.append(begin + np.flatnonzero(there))
        weights.append(weight[there])
    return scores, np.concatenate(columns), np.concatenate(weights)


class ProfileNetwork(nn.Module):
    """sum over v of p_S(v) W_v + b.

    Shapes:
        columns: (F,) the nodes that have weights. weight: (F, outputs) float64. bias: (outputs,).
    """

    columns: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        spec, columns = checkpoint.spec, checkpoint.weights["columns"]
        self.damping, self.seed = spec.of(DiffusionSettings).damping, spec.seed
        self.register_buffer("columns", columns)
        self.register_buffer("weight", torch.zeros(len(columns), spec.num_outputs, dtype=torch.float64))
        self.register_buffer("bias", torch.zeros(spec.num_outputs))

    def solve(self, examples: Examples) -> None:
        source: Any = examples.inputs
        task, outputs = examples.task, len(self.bias)
        walks = source.views(self.damping)["walk"].values
        targets = examples.targets.cpu().numpy()[examples.train]
        fold = draw_inner_folds(len(targets), self.seed, "profiles/folds")
        scores, columns, weight = fit_profiles(walks, examples.train, fold, targets, task, outputs)
        scale, bias = fit_scales(scores[None], targets, task, examples.train_weights)
        weight = weight * scale[0]
        state = {"columns": columns, "weight": weight, "bias": bias.astype(np.float32)}
        for name, value in state.items():
            setattr(self, name, torch.from_numpy(value).to(self.bias.device))

    def embed(self, batch: tuple[ViewSource, NDArray[np.int64]]) -> Tensor:
        source, rows = batch
        walks, columns = source.views(self.damping)["walk"].chosen(rows), self.columns.cpu().numpy()
        walks = walks if len(columns) == walks.shape[1] else walks[:, columns]
        found = np.asarray(walks @ self.weight.cpu().numpy(), np.float32)
        return torch.from_numpy(found).to(self.bias.device) + self.bias

    forward = embed
