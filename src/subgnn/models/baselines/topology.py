"""TOPOLOGY: statistics of a subgraph and its border, and gradient boosting, a forest or the head; beyond the paper.

The statistics are those of :func:`subgnn.channels.topology.subgraph_statistics`. A model that cannot beat this one on a
dataset has found nothing there but size, density and the like.

A checkpoint holds the training subgraphs with their table, a row of statistics and a target for each, and trees as
arrays (``baselines/trees.py``). Trees of many nodes are not stored: they are grown again from the table, with the same
seed, when they are first used, as are those of checkpoints that were written without them. The same versions of
scikit-learn and numpy grow the same trees.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.topology import Standard, in_plain_units, num_statistics
from subgnn.config.settings import MethodSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.data.subgraphs import with_absent
from subgnn.errors import UserError
from subgnn.metrics.weighting import loss_weights, row_weights
from subgnn.models.baselines.trees import Trees, grow_trees, tree_outputs
from subgnn.models.examples import Examples
from subgnn.models.interface import Settings, SetUp, Statistics, TrainingData, Vectors, View
from subgnn.models.kernel_machines.kernel_machine import moved_landmarks, set_arrays, wrong_node_sets
from subgnn.models.kernel_machines.rows import Piece, shared_pieces, view_of
from subgnn.models.kernel_machines.views import TOPOLOGY, DiffusionSettings, used_by_view
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import ArrayNetwork, Table, TensorModel
from subgnn.ragged import Ragged
from subgnn.rng import stream_key
from subgnn.task import task_of

_TREES = "trees."
_STANDARDISE = ("standardise.mean", "standardise.deviation")
_MAX_NODES = 2**16  # of trees that are stored


@dataclass(frozen=True, slots=True)
class TopologySettings(MethodSettings):
    """Settings of topology: what is fitted to the statistics; ``auto`` tries all and selects on validation.

    With weighted and directed, the statistics have further columns by the weights and the direction of edges, where the
    graph has these.
    """

    section: ClassVar[str] = "topology"
    classifier: Literal["auto", "boosting", "forest", "head"] = "auto"
    weighted: bool = False
    directed: bool = False


class TopologyModel(TensorModel):
    """TOPOLOGY."""

    is_fitted_in_one_go = True
    measures_at_own_time = True
    on_new_graph = "the training subgraphs are measured again on the new graph, and trees are grown from them anew"
    settings = (TopologySettings,)
    switches = MappingProxyType({"weights": "topology.weighted=true", "direction": "topology.directed=true"})

    def uses(self, recipe: Recipe) -> frozenset[str]:
        return used_by_view(TOPOLOGY, **_attributes(recipe))

    def uses_tensors(self, settings: Settings) -> bool:
        return settings.of(TopologySettings).classifier == "head"

    def sees(self, settings: Settings) -> View:
        return "shape"

    def check_as_baseline(self, recipe: Recipe) -> None:
        """The head is fitted by gradient steps."""
        if recipe.of(TopologySettings).classifier == "head":
            hint = "to be corrected, a baseline must be fitted in one go; accepted: auto, boosting, forest"
            raise UserError(
                "topology.classifier is 'head', but model.baseline is 'topology'", where="recipe", hint=hint
            )

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        rows = _statistics(recipe, data.graph, data.subgraphs.nodes, keep=True)
        return SetUp(super().set_up(data, recipe).candidates, Table(rows))

    def shared_pieces(self, recipe: Recipe, graph: Graph, nodes: Ragged) -> list[list[Piece]]:
        return shared_pieces(graph, nodes, (TOPOLOGY,), _view_settings(recipe))

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """The training table, and the mean and deviation of its columns."""
        subgraphs = data.subgraphs
        train = subgraphs.indices("train")
        nodes = subgraphs.nodes.take(train)
        table = _statistics(recipe, data.graph, subgraphs.nodes, keep=True)[train]
        standard = Standard.of(table)
        targets = np.asarray(subgraphs.targets)[train]
        if task_of(subgraphs.task).real:
            targets = Standard.of(targets[:, None])(targets[:, None])[:, 0]
        weights = row_weights(loss_weights(recipe.training, subgraphs), targets)
        arrays = set_arrays(with_absent(nodes, None)) | {"features": table, "targets": np.array(targets)}
        arrays |= {"standardise.mean": standard.mean, "standardise.deviation": standard.deviation}
        return arrays if weights is None else arrays | {"weights": weights}

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """Measure the training subgraphs on the new graph; trees are grown again from their table when first used."""
        nodes, kept = moved_landmarks(checkpoint.weights, match)
        table = np.array(_statistics(checkpoint.spec, match.graph, nodes))
        standard = Standard.of(table)
        arrays = {"standardise.mean": standard.mean, "standardise.deviation": standard.deviation} | set_arrays(
            with_absent(nodes, None)
        )
        weights = {name: tensor for name, tensor in checkpoint.weights.items() if not name.startswith(_TREES)}
        rows = {name: weights[name][kept] for name in ("targets", "weights") if name in weights}
        moved: Weights = arrays | ({"features": table} if "features" in weights else {})
        if self.uses_tensors(checkpoint.spec):
            import torch

            moved = {name: torch.from_numpy(np.array(array)) for name, array in moved.items()}
        return replace(checkpoint, weights=weights | rows | moved)

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Table:
        return Table(_statistics(checkpoint.spec, graph, nodes))

    def network(self, checkpoint: Checkpoint) -> Any:
        if self.uses_tensors(checkpoint.spec):
            from subgnn.models.heads import StatisticsHead

            return StatisticsHead(checkpoint)
        return StatisticsTrees(checkpoint)

    def statistics(self, checkpoint: Checkpoint, network: Any, graph: Graph, nodes: Ragged) -> Statistics:
        """Each by name: columns of the same name are replaced together."""
        rows = np.array(_statistics(checkpoint.spec, graph, nodes))
        known = np.asarray(checkpoint.weights.get("features", checkpoint.weights["standardise.mean"][None]))
        titles, values = in_plain_units(rows, **_attributes(checkpoint.spec))
        training = in_plain_units(known, **_attributes(checkpoint.spec))[1]
        names, columns = list(dict.fromkeys(titles)), np.array(titles)
        first = [titles.index(name) for name in names]
        # (n, names, columns)
        changed = np.where(columns == np.array(names)[:, None], np.median(known, axis=0), rows[:, None])
        outputs = network(changed.reshape(-1, len(titles)))
        if self.uses_tensors(checkpoint.spec):
            outputs = outputs.detach().float().cpu().numpy()
        return Statistics(
            tuple(names), values[:, first], training[:, first], outputs.reshape(len(rows), len(names), -1)
        )

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        ways: tuple[Literal["boosting", "forest", "head"], ...] = ("boosting", "forest", "head")
        given = recipe.of(TopologySettings)
        return {
            name: recipe.with_method_settings(replace(given, classifier=name))
            for name in ways
            if given.classifier in ("auto", name)
        }

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        task, outputs = task_of(checkpoint.spec.task), checkpoint.spec.num_outputs
        weights = {name: np.asarray(weight) for name, weight in checkpoint.weights.items()}
        mean, deviation = weights["standardise.mean"], weights["standardise.deviation"]
        width = num_statistics(**_attributes(checkpoint.spec))
        if (mean.shape, deviation.shape) != ((width,),) * 2 or not (deviation > 0).all():
            yield "the means and deviations of its statistics have the wrong shape, or are not above 0"
        yield from wrong_node_sets(weights, graph)
        if self.uses_tensors(checkpoint.spec):
            return
        features, targets = weights["features"], weights["targets"]
        shape = (len(features), outputs) if task.several else (len(features),)
        wide = features.ndim == 2 and features.shape[1] == width
        row_weights = weights.get("weights", np.ones(shape))
        if not wide or not targets.shape == row_weights.shape == shape or not len(features):
            yield "its training table has the wrong shape"
        if row_weights.dtype != np.float64 or not (row_weights >= 0).all():
            yield "the weights of its training table are not numbers from 0"
        if features.dtype != np.float64 or (targets.dtype.kind == "f") != task.real:
            yield "its training table has the wrong type"
        most = 1 if task.several else outputs - 1
        if task.has_classes and not 0 <= int(targets.min()) <= int(targets.max()) <= most:
            yield "its training table holds a label that is not a class"
        stored = {name for name in weights if name.startswith(_TREES)}
        if stored and stored != {f"{_TREES}{each.name}" for each in fields(Trees)}:
            yield "its trees are incomplete, or have an unknown part"
        elif stored:
            yield from Trees.from_weights(weights, _TREES).problems(width, outputs)


def _statistics(settings: Settings, graph: Graph, nodes: Ragged, *, keep: bool = False) -> NDArray[np.float64]:
    """The statistics of subgraphs (n, F); ``keep`` leaves them to other fits."""
    rows = view_of(graph, nodes, TOPOLOGY, _view_settings(settings), keep=keep)
    return cast("NDArray[np.float64]", rows.values)


def _view_settings(settings: Settings) -> DiffusionSettings:
    given = settings.of(TopologySettings)
    return DiffusionSettings(weighted=given.weighted, directed=given.directed)


def _attributes(settings: Settings) -> dict[str, bool]:
    given = settings.of(TopologySettings)
    return {"weighted": given.weighted, "directed": given.directed}


class StatisticsTrees(ArrayNetwork):
    """Trees on the statistics as they are; those that are not stored are grown from the training table.

    ``features`` (n, F) and ``targets`` (n,) or (n, labels) are of the training subgraphs, ``weights`` as the targets.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        spec = checkpoint.spec
        self.task, self.outputs, self.seed = spec.task, spec.num_outputs, spec.seed
        self.boosting = spec.of(TopologySettings).classifier == "boosting"
        kept = ("nodes", "offsets", "times", "features", "targets", "weights", *_STANDARDISE)
        super().__init__({n: w for n, w in checkpoint.weights.items() if n in kept or n.startswith(_TREES)})
        self._grown: Trees | None = None

    def solve(self, examples: Examples) -> None:
        self._grown = self._grow()
        if len(self._grown.feature) <= _MAX_NODES:
            self.arrays |= {_TREES + name: array for name, array in self._grown.weights().items()}

    def _grow(self) -> Trees:
        seed = stream_key(self.seed, "baselines/trees")
        options: dict[str, Any] = {"outputs": self.outputs, "boosting": self.boosting}
        options["weights"] = self.arrays.get("weights")
        return grow_trees(self.features, self.targets, self.task, seed=seed, **options)

    def embed(self, statistics: NDArray[np.float64]) -> NDArray[np.float32]:
        mean, deviation = (self.arrays[name] for name in _STANDARDISE)
        return np.asarray((statistics - mean) / deviation, np.float32)

    def forward(self, statistics: NDArray[np.float64]) -> NDArray[np.float32]:
        if self._grown is None:
            stored = any(name.startswith(_TREES) for name in self.arrays)
            self._grown = Trees.from_weights(self.arrays, _TREES) if stored else self._grow()
        return tree_outputs(self._grown, statistics, self.task, boosting=self.boosting)
