"""TOPOLOGY: statistics of a subgraph and its border, and gradient boosting, a forest or the head; beyond the paper.

The statistics are those of :func:`subgnn.channels.topology.subgraph_statistics`. A model that cannot beat this one on a
dataset has found nothing there but size, density and the like.

Trees are not stored, as they could be only pickled: a checkpoint holds the training table, a row of statistics and a
target for each training subgraph, and the trees are grown again from it with the same seed when it is loaded. The same
versions of scikit-learn and numpy grow the same trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.channels.topology import SUBGRAPH_STATISTICS, Standard, subgraph_statistics
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet, Task
from subgnn.models import trees
from subgnn.models.sources import Rows
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn import Head
from subgnn.ragged import Ragged
from subgnn.rng import stream_key
from subgnn.training.evaluation import Examples
from subgnn.training.loop import State


def candidates(recipe: Recipe) -> dict[str, Recipe]:
    """Boosting, a forest and the head, or the one the recipe says."""
    ways: tuple[Literal["boosting", "forest", "head"], ...] = ("boosting", "forest", "head")
    return {
        name: replace(recipe, baseline=replace(recipe.baseline, classifier=name))
        for name in ways
        if recipe.baseline.classifier in ("auto", name)
    }


def begin(
    graph: Graph,
    subgraphs: SubgraphSet,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    vectors: NDArray[np.float32] | None = None,
) -> State:
    """The training table, and the mean and deviation of its columns."""
    train = subgraphs.indices("train")
    table = subgraph_statistics(graph, subgraphs.nodes.take(train))
    standard = Standard.of(table)
    targets = np.asarray(subgraphs.targets)[train]
    if subgraphs.task == "regression":
        targets = Standard.of(targets[:, None])(targets[:, None])[:, 0]
    return {
        "features": torch.from_numpy(table),
        "targets": torch.from_numpy(np.array(targets)),
        "standardise.mean": torch.from_numpy(standard.mean),
        "standardise.deviation": torch.from_numpy(standard.deviation),
    }


def inputs(checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Rows:
    """The statistics of each subgraph, as they are."""
    return Rows(torch.from_numpy(subgraph_statistics(graph, nodes)))


class Standardise(nn.Module):
    """Statistics as the training split sees them: less the mean, over the deviation."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, state: State) -> None:
        super().__init__()
        self.register_buffer("mean", state["standardise.mean"])
        self.register_buffer("deviation", state["standardise.deviation"])

    def forward(self, statistics: Tensor) -> Tensor:
        """Shapes: statistics, returns: (n, F)."""
        return ((statistics - self.mean) / self.deviation).float()


class StatisticsHead(nn.Module):
    """head(standardised statistics)."""

    def __init__(self, state: State, head: Head) -> None:
        super().__init__()
        self.standardise = Standardise(state)
        self.head = head

    def embed(self, statistics: Tensor) -> Tensor:
        """Standardised statistics. Shapes: statistics, returns: (n, F)."""
        out: Tensor = self.standardise(statistics)
        return out

    def forward(self, statistics: Tensor) -> Tensor:
        """Shapes: returns: (n, outputs)."""
        out: Tensor = self.head(self.embed(statistics))
        return out


class StatisticsTrees(nn.Module):
    """Trees on the statistics as they are, grown from the training table when they are first asked.

    Shapes:
        features: (training subgraphs, F). targets: (training subgraphs,), or (training subgraphs, labels).
    """

    features: Tensor
    targets: Tensor

    def __init__(self, state: State, *, task: Task, outputs: int, boosting: bool, seed: int) -> None:
        super().__init__()
        self.task, self.outputs, self.boosting, self.seed = task, outputs, boosting, seed
        self.standardise = Standardise(state)
        self.register_buffer("features", state["features"])
        self.register_buffer("targets", state["targets"])
        self._grown: list[Any] = []

    def solve(self, examples: Examples) -> None:
        """Grow the trees now; the table is the training split already."""
        self._grow()

    def _grow(self) -> None:
        table, targets = self.features.cpu().numpy(), self.targets.cpu().numpy()
        seed = stream_key(self.seed, "baselines/trees")
        self._grown = trees.grow(table, targets, self.task, boosting=self.boosting, seed=seed)

    def embed(self, statistics: Tensor) -> Tensor:
        """Standardised statistics. Shapes: statistics, returns: (n, F)."""
        out: Tensor = self.standardise(statistics)
        return out

    def forward(self, statistics: Tensor) -> Tensor:
        """Shapes: returns: (n, outputs)."""
        if not self._grown:
            self._grow()
        found = trees.outputs_of(self._grown, statistics.cpu().numpy(), self.task, self.outputs)
        return torch.from_numpy(found).to(statistics.device)


def problems(checkpoint: Checkpoint, num_nodes: int) -> Iterator[str]:
    """What is wrong with the training table, as it was read from a file."""
    weights, task, outputs = checkpoint.weights, checkpoint.spec.task, checkpoint.spec.num_outputs
    mean, deviation = weights["standardise.mean"], weights["standardise.deviation"]
    if (mean.shape, deviation.shape) != ((SUBGRAPH_STATISTICS,),) * 2 or not bool((deviation > 0).all()):
        yield "the means and deviations of its statistics are of another shape, or not above 0"
    if checkpoint.spec.baseline.classifier == "head":
        return
    features, targets = weights["features"], weights["targets"]
    shape = (len(features), outputs) if task == "multi-label" else (len(features),)
    if features.ndim != 2 or features.shape[1] != SUBGRAPH_STATISTICS or targets.shape != shape or not len(features):
        yield "its training table is of another shape"
    if features.dtype != torch.float64 or targets.is_floating_point() != (task == "regression"):
        yield "its training table is of another type"
    most = 1 if task == "multi-label" else outputs - 1
    labels = targets.numpy()
    if task != "regression" and not 0 <= int(labels.min()) <= int(labels.max()) <= most:
        yield "its training table holds a label that is none"


def module(checkpoint: Checkpoint) -> nn.Module:
    """The head or the trees, as the recipe says."""
    recipe, weights = checkpoint.spec, checkpoint.weights
    how, outputs = recipe.baseline.classifier, checkpoint.spec.num_outputs
    if how == "head":
        width = len(weights["standardise.mean"])
        return StatisticsHead(weights, Head(width, outputs, hidden=recipe.model.head, dropout=recipe.model.dropout))
    return StatisticsTrees(
        weights, task=checkpoint.spec.task, outputs=outputs, boosting=how == "boosting", seed=checkpoint.spec.seed
    )
