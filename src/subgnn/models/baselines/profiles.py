"""PROFILES: the class whose subgraphs have random walks that end where this one's do; beyond the paper.

p_S is where a random walk from S ends (the view ``walk``), q_c the mean of p_S over the training subgraphs of class
c, and q that over all of them. The score of a class is the mean log-ratio of its profile to the common one where the
walk of S ends, as a naive Bayes classifier would have it for a document of many words:

    score_c(S) = sum over v of p_S(v) log((.8 q_c(v) + .2 q(v)) / q(v))

Logits are t score_c(S) + u log(share of class c), with t and u fitted to scores of five folds of the training split,
each from profiles of the other four. A label of several has the score with the label less that without it, and for real
values the two profiles are of subgraphs above and below the mean; scale and offset are their own. A checkpoint holds a
weight for each class and node, and the training subgraphs, from which the profiles of another graph follow.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.channels.diffusion import diffuse_values, walks_of
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.data.own_times import times_of
from subgnn.models.examples import Examples
from subgnn.models.interface import SetUp, TrainingData, Vectors
from subgnn.models.kernel_machines.kernel_machine import (
    SET_ARRAYS,
    ViewSource,
    moved_landmarks,
    set_arrays,
    wrong_node_sets,
)
from subgnn.models.kernel_machines.newton import Floats
from subgnn.models.kernel_machines.regression import draw_inner_folds, fit_scales, indicators
from subgnn.models.kernel_machines.rows import Matrix, Piece, shared_pieces
from subgnn.models.kernel_machines.views import ABSENT, DiffusionSettings
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import ArrayModel, ArrayNetwork, is_sorted_below
from subgnn.ragged import Ragged
from subgnn.task import Task, TaskName, task_of

_OWN = 0.8  # the part of a class's own profile in its smoothed one
_NUMBERS_AT_A_TIME = 2**23
_WALK = ("walk",)
_BOTH = (*_WALK, ABSENT + _WALK[0])


class ProfileNetwork(ArrayNetwork):
    """sum over v of p_S(v) W_v + b.

    Shapes:
        columns: (F,) the nodes that have weights, plus N if absent. weight: (F, outputs) float64. bias: (outputs,).
        nodes, offsets: the training subgraphs. classes: (n, outputs) uint8, theirs. scale: (outputs,) float64.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        weights, outputs = checkpoint.weights, checkpoint.spec.num_outputs
        self.seed = checkpoint.spec.seed
        super().__init__({name: weights[name] for name in ("columns", *SET_ARRAYS, "classes") if name in weights})
        self.arrays |= {"scale": np.ones(outputs), "weight": np.zeros((len(weights["columns"]), outputs))}
        self.arrays["bias"] = np.zeros(outputs, np.float32)
        self._of_nodes: tuple[Graph, NDArray[np.float32]] | None = None

    def solve(self, examples: Examples) -> None:
        source: Any = examples.inputs
        self._of_nodes = None
        task, outputs = examples.task, len(self.bias)
        walks = _walks(source, np.arange(len(source)))
        targets = examples.targets.cpu().numpy()[examples.train]
        fold = draw_inner_folds(len(targets), self.seed, "profiles/folds")
        scores, columns, weight = fit_profiles(walks, examples.train, Groups.of(fold, targets, task, outputs), outputs)
        scale, bias = fit_scales(scores[None], targets, task, examples.train_weights)
        weight = weight * scale[0]
        classes, nodes = indicators(targets, task, outputs), source.nodes.take(examples.train)
        state = {"columns": columns, "weight": weight, "bias": bias.astype(np.float32)}
        state |= set_arrays(nodes) | {"classes": classes.astype(np.uint8)}
        state["scale"] = np.broadcast_to(scale[0], outputs).astype(np.float64)
        self.arrays |= state

    def embed(self, batch: tuple[ViewSource, NDArray[np.int64]]) -> NDArray[np.float32]:
        source, rows = batch
        exact = source.settings.algorithm == "exact" and source.settings.views == _WALK
        if not exact or times_of(source.nodes) is not None:
            walks = _walks(source, rows)
            every = len(self.columns) == walks.shape[1]
            found = np.asarray((walks if every else walks[:, self.columns]) @ self.weight)
            return np.asarray(found.astype(np.float32) + self.bias)
        # No walk for each subgraph: p_S is the mean of p_u over its nodes u. As walks are reversible, d_u p_u(v) =
        # d_v p_v(u), one diffusion of the weights gives sum over v of p_u(v) W_v for all u.
        if self._of_nodes is None or self._of_nodes[0] is not source.graph:
            weights = np.zeros((source.graph.num_nodes, self.weight.shape[1]), np.float32)
            weights[self.columns] = self.weight
            self._of_nodes = source.graph, diffuse_values(walks_of(source.graph), weights, source.settings.damping)
        nodes = source.nodes.take(rows)
        picked = self._of_nodes[1][nodes.values].astype(np.float64)
        sums = np.add.reduceat(picked, nodes.offsets[:-1]) if len(nodes) else picked
        return np.asarray((sums / nodes.lengths[:, None]).astype(np.float32) + self.bias)


class ProfileModel(ArrayModel):
    """PROFILES."""

    network = ProfileNetwork
    on_new_graph = "the walks of the training subgraphs, and with them the profiles, are computed on the new graph"
    needs_edges = False
    view = "surroundings"
    settings = (DiffusionSettings,)

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        settings = _resolved(recipe, data.graph, data.subgraphs.nodes)
        source = ViewSource(data.graph, settings.rows(data.subgraphs.nodes), settings, keep=True)
        for view in source.views(settings.damping, on_progress=data.on_prepare).values():
            view.prepare(products=False)
        return SetUp(super().set_up(data, recipe.with_method_settings(settings)).candidates, source)

    def shared_pieces(self, recipe: Recipe, graph: Graph, nodes: Ragged) -> list[list[Piece]]:
        settings = _resolved(recipe, graph, nodes)
        return shared_pieces(graph, nodes, settings.views, settings, products=False)

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``columns``: the nodes where some training walk ends; they are found when it is fitted."""
        train, outputs = data.subgraphs.indices("train"), max(1, data.subgraphs.num_classes)
        arrays = {"columns": np.empty(0, np.int64), "classes": np.zeros((len(train), outputs), np.uint8)}
        return set_arrays(recipe.of(DiffusionSettings).rows(data.subgraphs.nodes).take(train)) | arrays

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> ViewSource:
        return ViewSource(graph, nodes, checkpoint.spec.of(DiffusionSettings))

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """Walk from the training subgraphs on the new graph; one that has lost all nodes is dropped."""
        weights, settings = checkpoint.weights, checkpoint.spec.of(DiffusionSettings)
        nodes, kept = moved_landmarks(weights, match)
        walks = _walks(ViewSource(match.graph, nodes, settings, keep=True), np.arange(len(nodes)))
        kind, classes, every = task_of(checkpoint.spec.task), weights["classes"][kept], np.arange(len(nodes))
        high = classes.astype(np.float64)
        groups = Groups(np.zeros(len(nodes), np.int64), np.repeat(high, 2, axis=1) if kind.real else high, kind)
        _, columns, found = fit_profiles(walks, every, groups, checkpoint.spec.num_outputs)
        moved = {"columns": columns, "weight": found * weights["scale"], "classes": classes} | set_arrays(nodes)
        return replace(checkpoint, weights=weights | moved)

    def uses(self, recipe: Recipe) -> frozenset[str]:
        return frozenset({"weights", "absent"} if recipe.of(DiffusionSettings).absent else {"weights"})

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        columns, settings = checkpoint.weights["columns"], checkpoint.spec.of(DiffusionSettings)
        if settings.algorithm == "auto" or settings.views not in (_WALK, _BOTH):
            yield "its view, or the way that it is computed, is left open or unknown"
        if not is_sorted_below(columns, len(settings.views) * graph.num_nodes, np.int64):
            yield "the columns of its profiles are not in order, or are not nodes of the graph"
        yield from wrong_node_sets(checkpoint.weights, graph)
        classes = checkpoint.weights["classes"]
        shape = len(checkpoint.weights["offsets"]) - 1, checkpoint.spec.num_outputs
        if classes.dtype != np.uint8 or classes.shape != shape or (classes > 1).any():
            yield "the classes of its training subgraphs have the wrong shape or type"


def _resolved(recipe: Recipe, graph: Graph, nodes: Ragged) -> DiffusionSettings:
    settings = recipe.of(DiffusionSettings).with_algorithm(graph, nodes)
    return replace(settings, views=_WALK).with_absent_views(nodes)


def _walks(source: ViewSource, rows: NDArray[np.int64]) -> Matrix:
    """Where walks of subgraphs end (n, N); beside it, times its weight, where those from absent nodes do (n, 2 N)."""
    views = [view.values for view in source.views(source.settings.damping).values()]
    # All rows, in order, are not copied.
    own, *absent = views if np.array_equal(rows, np.arange(len(source))) else [view[rows] for view in views]
    if not absent:
        return own
    parts = [own, source.settings.absent * absent[0]]
    return scipy.sparse.hstack(parts, format="csr") if scipy.sparse.issparse(own) else np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class Groups:
    """Training subgraphs by fold and class; fits leave a fold out, or none (the last).

    For real values each fit has a class of its own: subgraphs above the mean of those it is fitted to.

    Shapes:
        fold: (n,). high: (n, classes), 1 where a subgraph is of the class.
    """

    fold: NDArray[np.int64]
    high: Floats
    task: Task

    @classmethod
    def of(cls, fold: NDArray[np.int64], targets: NDArray[Any], task: TaskName, outputs: int) -> Self:
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
    walks: Matrix, train: NDArray[np.int64], groups: Groups, outputs: int
) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Scores of training subgraphs (n, outputs) without their fold; nodes where some walk ends, and their weights.

    Walks are read once, some columns at a time.

    Shapes:
        walks: (subgraphs, N). train: (n,) places of those to learn from.
    """
    fold, sparse, there = groups.fold, scipy.sparse.issparse(walks), np.arange(walks.shape[1])
    if sparse:
        walks = walks[train]
        there = np.flatnonzero(np.bincount(walks.indices, minlength=1))
        walks = walks[:, there].tocsc()
    scores, kept, weights = np.zeros((len(fold), outputs)), [np.empty(0, np.int64)], [np.empty((0, outputs))]
    step = max(1, _NUMBERS_AT_A_TIME // (groups.sums.shape[0] if sparse else len(fold)))
    for begin in range(0, walks.shape[1], step):
        rows = walks[:, begin : begin + step]
        rows = (rows.tocsr() if sparse else rows[train]).astype(np.float64)
        (*without, weight), ends = groups.weights(rows)
        for i, one in enumerate(without):
            held = np.flatnonzero(fold == i)
            scores[held] += rows[held] @ one
        kept.append(begin + np.flatnonzero(ends))
        weights.append(weight[ends])
    return scores, there[np.concatenate(kept)], np.concatenate(weights)
