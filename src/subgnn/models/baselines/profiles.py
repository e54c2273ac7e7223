"""PROFILES: the class whose subgraphs have random walks that end where this one's do; beyond the paper.

p_S is where a random walk from S ends (the view ``walk``), q_c the mean of p_S over the training subgraphs of class
c, and q that over all of them. The score of a class is the mean log-ratio of its profile to the common one where the
walk of S ends, as a naive Bayes classifier would have it for a document of many words:

    score_c(S) = sum over v of p_S(v) log((.8 q_c(v) + .2 q(v)) / q(v))

Logits are t score_c(S) + u log(share of class c), with t and u fitted to scores of five folds of the training split,
each from profiles of the other four. A label of several has the score with the label less that without it, and a
scale and an offset of its own. For real values the two profiles are of subgraphs above and below the mean, and scale
and offset are those of least squares.

Scores are linear in p_S: a checkpoint holds a weight for each class and node, where some training walk ends. Beside
them are the nodes and the classes of the training subgraphs, from which the profiles of another graph follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.models.examples import Examples
from subgnn.models.interface import Settings, SetUp, TrainingData, Vectors, View
from subgnn.models.kernel_machines.kernel_machine import (
    ViewSource,
    moved_landmarks,
    resolve_algorithm,
    set_arrays,
    wrong_node_sets,
)
from subgnn.models.kernel_machines.regression import Floats, fit_label_scale, minimise_in_box, softmax_loss
from subgnn.models.kernel_machines.views import DiffusionSettings, Matrix, multiply
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import TensorModel, is_sorted_below
from subgnn.ragged import Ragged
from subgnn.rng import stream
from subgnn.task import TaskName, task_of

_OWN = 0.8  # the part of a class's own profile in its smoothed one
_FOLDS = 5
_NEVER = -20.0  # the logit of a class that the training split does not have
_WALK = ("walk",)


class ProfileModel(TensorModel):
    """PROFILES."""

    is_fitted_in_one_go = True
    measures_at_own_time = True
    on_new_graph = "the walks of the training subgraphs, and with them the profiles, are computed on the new graph"
    needs_edges = False
    settings = (DiffusionSettings,)

    def sees(self, settings: Settings) -> View:
        return "surroundings"

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        settings = replace(resolve_algorithm(recipe.of(DiffusionSettings), data), views=_WALK)
        return super().set_up(data, recipe.with_method_settings(settings))

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """``columns``: the nodes where some training walk ends."""
        source = ViewSource(data.graph, data.subgraphs.nodes, recipe.of(DiffusionSettings), keep=True)
        walks = source.views(recipe.of(DiffusionSettings).damping, on_progress=data.on_prepare)["walk"]
        train, outputs = data.subgraphs.indices("train"), max(1, data.subgraphs.num_classes)
        nodes, ends = data.subgraphs.nodes.take(train), _mean(walks.values[train]) > 0
        arrays = {"columns": np.flatnonzero(ends)} | set_arrays(nodes)
        arrays["classes"] = np.zeros((len(train), outputs), np.uint8)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> ViewSource:
        return ViewSource(graph, nodes, checkpoint.spec.of(DiffusionSettings))

    def network(self, checkpoint: Checkpoint) -> ProfileNetwork:
        return ProfileNetwork(checkpoint)

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """Walk from the training subgraphs on the new graph; one that has lost all nodes is dropped."""
        weights, settings = checkpoint.weights, checkpoint.spec.of(DiffusionSettings)
        nodes, kept = moved_landmarks(weights, match)
        walks = ViewSource(match.graph, nodes, settings, keep=True).views(settings.damping)["walk"].values
        columns = np.flatnonzero(_mean(walks) > 0)
        classes = weights["classes"][kept]
        one_class = task_of(checkpoint.spec.task).one_class
        found = class_weights(walks[:, columns], classes.numpy().astype(np.float64), one_class=one_class)
        arrays = {"columns": columns} | set_arrays(nodes)
        moved = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()} | {"classes": classes}
        return replace(checkpoint, weights=weights | moved | {"weight": torch.from_numpy(found) * weights["scale"]})

    def uses(self, recipe: Recipe) -> frozenset[str]:
        return frozenset({"weights"})

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        columns, settings = checkpoint.weights["columns"].numpy(), checkpoint.spec.of(DiffusionSettings)
        if settings.algorithm == "auto" or settings.views != _WALK:
            yield "its view, or the way that it is computed, is left open or unknown"
        if not is_sorted_below(columns, graph.num_nodes, np.int64):
            yield "the columns of its profiles are not in order, or are not nodes of the graph"
        yield from wrong_node_sets(checkpoint.weights, graph)
        classes = checkpoint.weights["classes"]
        shape = len(checkpoint.weights["offsets"]) - 1, checkpoint.spec.num_outputs
        if classes.dtype != torch.uint8 or tuple(classes.shape) != shape or bool((classes > 1).any()):
            yield "the classes of its training subgraphs have the wrong shape or type"


def _mean(rows: Matrix) -> Floats:
    return np.asarray(rows.mean(axis=0, dtype=np.float64)).reshape(-1)


def _product(rows: Matrix, columns: Floats) -> Floats:
    """Rows @ columns, in double precision."""
    return multiply(rows, columns.T) if isinstance(rows, np.ndarray) else rows @ columns


def log_ratios(rows: Matrix, indicators: Floats) -> Floats:
    """log((.8 q_c + .2 q) / q) (N, K) for classes c; 0 where no walk ends, and for a class without rows.

    Shapes:
        rows: p (n, N). indicators: (n, K), 1 where a row is of the class.
    """
    q = _mean(rows)[:, None]
    counts = indicators.sum(axis=0)
    share = indicators / np.where(counts > 0, counts, 1)
    own = np.where(counts > 0, _product(rows.T, share), q)
    return np.log(np.divide(_OWN * own + (1 - _OWN) * q, q, out=np.ones_like(own), where=q > 0))


def profile_weights(rows: Matrix, targets: NDArray[Any], task: TaskName, outputs: int) -> Floats:
    """The weights of scores (N, outputs) from the walks p (n, N): one column a class, label or value."""
    return class_weights(rows, _classes(targets, task, outputs), one_class=task_of(task).one_class)


def _classes(targets: NDArray[Any], task: TaskName, outputs: int) -> Floats:
    """1 where a subgraph has a class or a label, or is above the mean (n, outputs)."""
    kind = task_of(task)
    return kind.indicators(targets > targets.mean() if kind.real else targets, outputs)


def class_weights(rows: Matrix, classes: Floats, *, one_class: bool) -> Floats:
    """The weights of scores (N, outputs) from the walks p (n, N) and indicators of classes (n, outputs)."""
    own = log_ratios(rows, classes)
    return own if one_class else np.subtract(own, log_ratios(rows, 1 - classes))


class ProfileNetwork(nn.Module):
    """sum over v of p_S(v) W_v + b.

    Shapes:
        columns: (F,) the nodes that have weights. weight: (F, outputs) float64. bias: (outputs,).
        nodes, offsets: the training subgraphs. classes: (n, outputs) uint8, theirs. scale: (outputs,) float64.
    """

    columns: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        spec, columns = checkpoint.spec, checkpoint.weights["columns"]
        self.damping, self.seed = spec.of(DiffusionSettings).damping, spec.seed
        for name in ("columns", "nodes", "offsets", "times", "classes"):
            if name in checkpoint.weights:
                self.register_buffer(name, checkpoint.weights[name])
        self.register_buffer("scale", torch.ones(spec.num_outputs, dtype=torch.float64))
        self.register_buffer("weight", torch.zeros(len(columns), spec.num_outputs, dtype=torch.float64))
        self.register_buffer("bias", torch.zeros(spec.num_outputs))

    def solve(self, examples: Examples) -> None:
        source: Any = examples.inputs
        task, outputs = examples.task, len(self.bias)
        rows = source.views(self.damping)["walk"].values[examples.train]
        columns = np.flatnonzero(_mean(rows) > 0)
        rows = rows[:, columns]
        targets = examples.targets.cpu().numpy()[examples.train]
        fold = stream(self.seed, "profiles/folds").permutation(len(targets)) % min(_FOLDS, max(2, len(targets)))
        scores = np.zeros((len(targets), outputs))
        for i in np.unique(fold):
            rest, held = fold != i, fold == i
            if rest.any():
                scores[held] = _product(rows[held], profile_weights(rows[rest], targets[rest], task, outputs))
        scale, bias = _scale(scores, targets, task, examples.train_weights)
        classes, nodes = _classes(targets, task, outputs), source.nodes.take(examples.train)
        weight = class_weights(rows, classes, one_class=task_of(task).one_class) * scale
        state = {"columns": columns, "weight": weight, "bias": bias.astype(np.float32)}
        state |= set_arrays(nodes) | {"classes": classes.astype(np.uint8)}
        state["scale"] = np.broadcast_to(scale, outputs).astype(np.float64)
        for name, value in state.items():
            setattr(self, name, torch.from_numpy(value).to(self.bias.device))

    def embed(self, batch: tuple[ViewSource, NDArray[np.int64]]) -> Tensor:
        source, rows = batch
        walks = source.views(self.damping)["walk"].values[rows][:, self.columns.cpu().numpy()]
        found = np.asarray(walks @ self.weight.cpu().numpy(), np.float32)
        return torch.from_numpy(found).to(self.bias.device) + self.bias

    forward = embed


def _scale(
    scores: Floats, targets: NDArray[Any], task: TaskName, weights: Floats | None
) -> tuple[Floats | float, Floats]:
    """The scale of scores, a number or (outputs,), and the bias (outputs,), from scores of held-out subgraphs."""
    kind = task_of(task)
    if kind.real:
        centred = scores[:, 0] - scores.mean()
        slope = float(centred @ targets) / max(float(centred @ centred), 1e-12)
        return max(slope, 0.0), np.array([targets.mean() - max(slope, 0.0) * scores.mean()])
    if kind.several:
        each = np.ones_like(scores) if weights is None else weights
        pairs = [fit_label_scale(scores[:, k], targets[:, k], each[:, k]) for k in range(scores.shape[1])]
        scales, offsets = zip(*pairs, strict=True)
        return np.array(scales), np.array(offsets)
    counts = np.bincount(targets, weights=weights, minlength=scores.shape[1])
    share = counts / counts.sum()
    prior = np.log(np.where(share > 0, share, 1.0))
    there = share > 0
    y = kind.indicators(targets, scores.shape[1])
    parts = np.stack([scores[:, there], np.broadcast_to(prior[there], (len(scores), int(there.sum())))])
    loss = softmax_loss(parts, y[:, there], weights)
    scale, trust = minimise_in_box(loss, [5.0, 1.0], [(0, 200), (0, 3)])
    return float(scale), np.where(there, trust * prior, _NEVER)
