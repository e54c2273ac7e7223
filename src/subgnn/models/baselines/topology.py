"""TOPOLOGY: statistics of a subgraph and its border, and gradient boosting, a forest or the head; beyond the paper.

The statistics are those of :func:`subgnn.channels.topology.subgraph_statistics`. A model that cannot beat this one on a
dataset has found nothing there but size, density and the like.

A checkpoint holds the training subgraphs with their table, a row of statistics and a target for each, and trees as
arrays: to answer by these takes .004 s for 1,272 subgraphs of 6 classes, to import scikit-learn 1.1 s. Trees of many
nodes are not stored: they are grown again from the table, with the same seed, when they are first used. The same
versions of scikit-learn and numpy grow the same trees.

Boosting works on binned columns, with small trees: for each class and stage one of at most 8 leaves, each split by one
of half of the columns, which are drawn anew. Every estimator becomes trees whose leaves add values to columns, over a
start. A column is a class, a label or the value:

    boosting    the columns are scores, turned into probabilities by softmax, or by the sigmoid for several labels
    a forest    the columns are probabilities
    regression  the column is the value
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import named_arrays
from subgnn.channels.topology import in_plain_units, num_statistics
from subgnn.config.settings import MethodSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.data.subgraphs import with_absent
from subgnn.errors import UserError
from subgnn.metrics.weighting import loss_weights, row_weights
from subgnn.models.examples import Examples
from subgnn.models.interface import Settings, SetUp, Statistics, TrainingData, Vectors
from subgnn.models.kernel_machines.kernel_machine import moved_landmarks, set_arrays, wrong_node_sets
from subgnn.models.kernel_machines.rows import Piece, shared_pieces, view_of
from subgnn.models.kernel_machines.views import TOPOLOGY, DiffusionSettings
from subgnn.models.spec import Checkpoint, Weights
from subgnn.models.tensor_model import ArrayModel, ArrayNetwork, Rows
from subgnn.ragged import Ragged
from subgnn.rng import stream_key
from subgnn.task import Standard, Task, TaskName, task_of

_BOOSTING = MappingProxyType(
    {"max_iter": 100, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 5, "max_features": 0.5}
    | {"early_stopping": False}
)
_SMALLEST = 1e-6  # no probability below it, so that losses stay finite
_NEVER = -1e4  # the score of a class that the training split does not have
_STEPS_AT_ONCE = 2**20  # rows x trees
_ROWS_FOR_THREADS = 2**16
_TREES = "trees."
_STANDARDISE = ("standardise.mean", "standardise.deviation")
_MAX_NODES = 2**16  # of trees that are stored


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Trees, laid end to end; a row goes to the left child where its feature is at most the threshold.

    Shapes:
        feature: (nodes,) int32, -1 for a leaf. threshold: (nodes,) float64. child: (nodes, 2) int32, of a leaf
        itself. value: (nodes, width) float64. root, column: (trees,) int32, where a tree begins, and the first column
        that its leaves add to. start: (columns,) float64. single: (1,) bool, whether features are rounded to single
        precision before they are compared, as for trees of a forest.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    child: NDArray[np.int32]
    value: NDArray[np.float64]
    root: NDArray[np.int32]
    column: NDArray[np.int32]
    start: NDArray[np.float64]
    single: NDArray[np.bool_]

    @classmethod
    def from_weights(cls, weights: Weights) -> Self:
        return cls(**{each.name: np.asarray(weights[_TREES + each.name]) for each in fields(cls)})

    def columns(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """The columns (n, columns) for each row (n, F): the start, and the values of the leaves it reaches."""
        table = table.astype(np.float32).astype(np.float64) if self.single[0] else table
        found = np.tile(self.start, (len(table), 1))
        step = max(1, _STEPS_AT_ONCE // max(1, len(self.root)))
        for begin in range(0, len(table), step):
            rows = table[begin : begin + step]
            at = np.tile(self.root.astype(np.int64), (len(rows), 1))  # the node of each row in each tree
            place = np.arange(len(rows))[:, None]
            while ((feature := self.feature[at]) >= 0).any():
                at = self.child[at, (rows[place, feature] > self.threshold[at]).astype(np.int64)].astype(np.int64)
            for tree, column in enumerate(self.column.tolist()):
                found[begin : begin + step, column : column + self.value.shape[1]] += self.value[at[:, tree]]
        return found

    def problems(self, num_features: int, num_columns: int) -> Iterator[str]:
        nodes, trees = len(self.feature), len(self.root)
        shapes: list[tuple[NDArray[Any], Any, tuple[int, ...]]] = [
            (self.feature, np.int32, (nodes,)),
            (self.threshold, np.float64, (nodes,)),
            (self.child, np.int32, (nodes, 2)),
            (self.value, np.float64, (nodes, *self.value.shape[1:2])),
            (self.root, np.int32, (trees,)),
            (self.column, np.int32, (trees,)),
            (self.start, np.float64, (num_columns,)),
            (self.single, np.bool_, (1,)),
        ]
        if any((array.dtype, array.shape) != (dtype, shape) for array, dtype, shape in shapes) or self.value.ndim != 2:
            yield "its trees have the wrong shape or type"
            return
        # Children come after their parents, so that every row arrives at a leaf.
        own, leaf = np.arange(nodes)[:, None], self.feature < 0
        forward = np.where(leaf[:, None], self.child == own, (self.child > own) & (self.child < nodes))
        features, last = (self.feature >= -1) & (self.feature < num_features), num_columns - self.value.shape[1]
        ends = (self.root >= 0) & (self.root < nodes) & (self.column >= 0) & (self.column <= last)
        if not (forward.all() and features.all() and ends.all()):
            yield "its trees have a node, a column or a feature that is not there"


class _Tree(NamedTuple):
    """One tree; children are numbered within it, and -1 for leaves."""

    feature: NDArray[Any]
    threshold: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    value: NDArray[np.float64]
    column: int


def grow_trees(
    table: NDArray[np.float64],
    targets: NDArray[Any],
    task: TaskName,
    *,
    outputs: int,
    boosting: bool,
    seed: int,
    weights: NDArray[np.float64] | None = None,
) -> Trees:
    """Fit to a table (n, F); one estimator, or one per label for multi-label. A label that never varies stays as is.

    Targets are (n,) or (n, labels), and so are ``weights``, how much each of them counts; not for regression.
    """
    from sklearn import ensemble
    from threadpoolctl import threadpool_limits

    real, several = task_of(task).real, task_of(task).several
    # A forest looks at all columns at every split: often one of them alone decides.
    options: dict[str, Any] = dict(_BOOSTING) if boosting else {"n_estimators": 100, "max_features": None}
    name = "HistGradientBoosting" if boosting else "RandomForest"
    make = getattr(ensemble, name + ("Regressor" if real else "Classifier"))
    never, always = (_NEVER, -_NEVER) if boosting else (0.0, 1.0)
    # Threads that wait for each other at every split of a small table cost more than they save.
    threads = 1 if len(table) < _ROWS_FOR_THREADS else None
    start, trees = np.full(outputs, 0.0 if real else never), []
    for label, column in enumerate(targets.T if several else targets[None]):
        if column.min() == column.max():
            place = 0 if real else label if several else int(column[0])
            start[place] = column[0] if real else never if several and not column[0] else always
            continue
        own = weights[:, label] if several and weights is not None else weights
        with threadpool_limits(threads, user_api="openmp"):
            grown = make(random_state=seed % 2**32, **options).fit(table, column, sample_weight=own)
        columns = [0] if real else [label] if several else grown.classes_.astype(int).tolist()
        start[columns] = 0.0
        if boosting:
            found = list(_boosted_trees(grown, columns))
            score = np.ravel((grown.predict if real else grown.decision_function)(table[:1]))
            columns = columns[-len(score) :]  # of two classes, the second alone has a score
            # Boosting starts from what is left of its score.
            start[columns] = score - _joined(found, np.zeros(outputs), single=False).columns(table[:1])[0, columns]
            trees += found
        else:
            trees += _forest_trees(grown, columns, outputs, task_of(task))
    return _joined(trees, start, single=not boosting)


def _boosted_trees(grown: Any, columns: list[int]) -> Iterator[_Tree]:
    for stage in grown._predictors:
        for column, one in zip(columns[-len(stage) :], stage, strict=True):
            nodes, leaf = one.nodes, one.nodes["is_leaf"].astype(bool)
            left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
            yield _Tree(nodes["feature_idx"], nodes["num_threshold"], left, right, nodes["value"][:, None], column)


def _forest_trees(grown: Any, columns: list[int], outputs: int, task: Task) -> Iterator[_Tree]:
    for one in grown.estimators_:
        tree = one.tree_
        value = tree.value[:, 0] / len(grown.estimators_)
        if task.has_classes:
            value = value / tree.value[:, 0].sum(axis=1, keepdims=True)
        wide = value[:, -1:]  # of a label, the probability that it is there
        if task.one_class:
            wide = np.zeros((len(value), outputs))
            wide[:, columns] = value
        column = 0 if task.one_class else columns[0]
        yield _Tree(tree.feature, tree.threshold, tree.children_left, tree.children_right, wide, column)


def _joined(trees: list[_Tree], start: NDArray[np.float64], *, single: bool) -> Trees:
    root = np.cumsum([0, *(len(tree.feature) for tree in trees)])[:-1]
    width = trees[0].value.shape[1] if trees else 1

    def end_to_end(arrays: list[NDArray[Any]], dtype: Any, *shape: int) -> NDArray[Any]:
        return np.concatenate([np.empty((0, *shape), dtype), *arrays]).astype(dtype)

    leaf = end_to_end([tree.left < 0 for tree in trees], bool)
    pairs = [begin + np.stack([tree.left, tree.right], axis=1) for begin, tree in zip(root, trees, strict=True)]
    return Trees(
        feature=np.where(leaf, -1, end_to_end([tree.feature for tree in trees], np.int32)).astype(np.int32),
        threshold=np.where(leaf, 0.0, end_to_end([tree.threshold for tree in trees], np.float64)),
        child=np.where(leaf[:, None], np.arange(len(leaf))[:, None], end_to_end(pairs, np.int32, 2)).astype(np.int32),
        value=end_to_end([tree.value for tree in trees], np.float64, width),
        root=root.astype(np.int32),
        column=np.array([tree.column for tree in trees], np.int32),
        start=start,
        single=np.array([single]),
    )


def tree_outputs(trees: Trees, table: NDArray[np.float64], task: TaskName, *, boosting: bool) -> NDArray[np.float32]:
    """Log-probabilities (n, outputs); log-odds for multi-label; values for regression."""
    found, kind = trees.columns(table), task_of(task)
    if kind.has_classes:
        chance = kind.scores(found) if boosting else found
        found = kind.outputs(chance.clip(_SMALLEST, 1 - _SMALLEST if kind.several else None))
    return found.astype(np.float32)


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


class TopologyModel(ArrayModel):
    """TOPOLOGY."""

    on_new_graph = "the training subgraphs are measured again on the new graph, and trees are grown from them anew"
    view = "shape"
    settings = (TopologySettings,)
    switches = MappingProxyType({"weights": "topology.weighted=true", "direction": "topology.directed=true"})

    def uses(self, recipe: Recipe) -> frozenset[str]:
        return DiffusionSettings(views=(TOPOLOGY,), absent=0.0, **_attributes(recipe)).used

    def uses_tensors(self, settings: Settings) -> bool:
        return settings.of(TopologySettings).classifier == "head"

    def check_as_baseline(self, recipe: Recipe) -> None:
        """The head is fitted by gradient steps."""
        if recipe.of(TopologySettings).classifier == "head":
            what = "topology.classifier is 'head', but model.baseline is 'topology'"
            hint = "to be corrected, a baseline must be fitted in one go; accepted: auto, boosting, forest"
            raise UserError(what, where="recipe", hint=hint)

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        rows = _statistics(recipe, data.graph, data.subgraphs.nodes, keep=True)
        return SetUp(super().set_up(data, recipe).candidates, Rows(rows))

    def shared_pieces(self, recipe: Recipe, graph: Graph, nodes: Ragged) -> list[list[Piece]]:
        return shared_pieces(graph, nodes, (TOPOLOGY,), DiffusionSettings(**_attributes(recipe)))

    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        subgraphs = data.subgraphs
        train = subgraphs.indices("train")
        table = _statistics(recipe, data.graph, subgraphs.nodes, keep=True)[train]
        targets = np.asarray(subgraphs.targets)[train]
        if task_of(subgraphs.task).real:
            targets = Standard.of(targets[:, None])(targets[:, None])[:, 0]
        weights = row_weights(loss_weights(recipe.training, subgraphs), targets)
        arrays = _table_arrays(table, subgraphs.nodes.take(train)) | {"targets": np.array(targets)}
        return arrays if weights is None else arrays | {"weights": weights}

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """Measure the training subgraphs on the new graph; trees are grown again from their table when first used."""
        nodes, kept = moved_landmarks(checkpoint.weights, match)
        moved = _table_arrays(np.array(_statistics(checkpoint.spec, match.graph, nodes)), nodes)
        weights = {name: tensor for name, tensor in checkpoint.weights.items() if not name.startswith(_TREES)}
        rows = {name: weights[name][kept] for name in ("targets", "weights") if name in weights}
        if self.uses_tensors(checkpoint.spec):
            del moved["features"]
            import torch

            moved = {name: torch.from_numpy(np.array(array)) for name, array in moved.items()}
        return replace(checkpoint, weights=weights | rows | moved)

    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Rows:
        return Rows(_statistics(checkpoint.spec, graph, nodes))

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
        outputs = outputs.reshape(len(rows), len(names), -1)
        return Statistics(tuple(names), values[:, first], training[:, first], outputs)

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        ways: tuple[Literal["boosting", "forest", "head"], ...] = ("boosting", "forest", "head")
        given = recipe.of(TopologySettings)
        tried = [name for name in ways if given.classifier in ("auto", name)]
        return {name: recipe.with_method_settings(replace(given, classifier=name)) for name in tried}

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
            yield from Trees.from_weights(weights).problems(width, outputs)


def _statistics(settings: Settings, graph: Graph, nodes: Ragged, *, keep: bool = False) -> NDArray[np.float64]:
    """The statistics of subgraphs (n, F); ``keep`` leaves them to other fits."""
    rows = view_of(graph, nodes, TOPOLOGY, DiffusionSettings(**_attributes(settings)), keep=keep)
    return cast("NDArray[np.float64]", rows.values)


def _table_arrays(table: NDArray[np.float64], nodes: Ragged) -> Weights:
    """A training table, the mean and deviation of its columns, and its subgraphs."""
    standard = Standard.of(table)
    known = dict(zip(_STANDARDISE, (standard.mean, standard.deviation), strict=True))
    return set_arrays(with_absent(nodes, None)) | known | {"features": table}


def _attributes(settings: Settings) -> dict[str, Any]:
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
            self.arrays |= named_arrays(self._grown, _TREES.removesuffix("."))

    def _grow(self) -> Trees:
        options: dict[str, Any] = {"outputs": self.outputs, "boosting": self.boosting}
        options |= {"seed": stream_key(self.seed, "baselines/trees"), "weights": self.arrays.get("weights")}
        return grow_trees(self.features, self.targets, self.task, **options)

    def embed(self, statistics: NDArray[np.float64]) -> NDArray[np.float32]:
        mean, deviation = (self.arrays[name] for name in _STANDARDISE)
        return np.asarray((statistics - mean) / deviation, np.float32)

    def forward(self, statistics: NDArray[np.float64]) -> NDArray[np.float32]:
        if self._grown is None:
            stored = any(name.startswith(_TREES) for name in self.arrays)
            self._grown = Trees.from_weights(self.arrays) if stored else self._grow()
        return tree_outputs(self._grown, statistics, self.task, boosting=self.boosting)
