"""Decision trees as arrays: scikit-learn grows them, a checkpoint holds them as tensors, and they are evaluated here.

Measured on 1,272 subgraphs of 6 classes: the arrays answer in .004 s; to grow a forest again takes 1 s; any other way,
such as skops, has to import scikit-learn, which takes 1.1 s.

Boosting works on binned columns, with small trees: for each class and stage one of at most 8 leaves, each split by one
of half of the columns, which are drawn anew.

Every estimator becomes trees whose leaves add values to columns, over a start. A column is a class, a label or the
value:

    boosting    the columns are scores, turned into probabilities by softmax, or by the sigmoid for several labels
    a forest    the columns are probabilities
    regression  the column is the value

A tree sends a row to its left child where the row's feature is at most the threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subgnn.models.spec import Weights
from subgnn.task import Task, TaskName, task_of

_BOOSTING = MappingProxyType(
    {"max_iter": 100, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 5, "max_features": 0.5}
    | {"early_stopping": False}
)
_SMALLEST = 1e-6  # no probability below it, so that losses stay finite
_NEVER = -1e4  # the score of a class that the training split does not have
_STEPS_AT_ONCE = 2**20  # rows x trees
_ROWS_FOR_THREADS = 2**16


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Trees, laid end to end.

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
    def from_weights(cls, weights: Weights, prefix: str) -> Trees:
        return cls(**{each.name: np.asarray(weights[prefix + each.name]) for each in fields(cls)})

    def weights(self) -> Weights:
        return {each.name: np.array(getattr(self, each.name)) for each in fields(self)}

    def columns(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """The columns (n, columns) for each row (n, F): the start, and the values of the leaves it reaches."""
        table = table.astype(np.float32).astype(np.float64) if self.single[0] else table
        found = np.tile(self.start, (len(table), 1))
        step = max(1, _STEPS_AT_ONCE // max(1, len(self.root)))
        for begin in range(0, len(table), step):
            leaves = self._leaves(table[begin : begin + step])
            for tree, column in enumerate(self.column.tolist()):
                found[begin : begin + step, column : column + self.value.shape[1]] += self.value[leaves[:, tree]]
        return found

    def _leaves(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """The leaf of each row in each tree (n, trees)."""
        at = np.tile(self.root.astype(np.int64), (len(rows), 1))
        place = np.arange(len(rows))[:, None]
        while ((feature := self.feature[at]) >= 0).any():
            at = self.child[at, (rows[place, feature] > self.threshold[at]).astype(np.int64)].astype(np.int64)
        return at

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
        last = num_columns - self.value.shape[1]
        if not (
            forward.all()
            and ((self.feature >= -1) & (self.feature < num_features)).all()
            and ((self.root >= 0) & (self.root < nodes)).all()
            and ((self.column >= 0) & (self.column <= last)).all()
        ):
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

    Args:
        targets: (n,), or (n, labels).
        weights: how much rows, or pairs of a row and a label, count; not for regression.
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
    """Trees laid end to end."""
    root = np.cumsum([0, *(len(tree.feature) for tree in trees)])[:-1]
    width = trees[0].value.shape[1] if trees else 1

    def end_to_end(arrays: list[NDArray[Any]], dtype: Any, *shape: int) -> NDArray[Any]:
        return np.concatenate([np.empty((0, *shape), dtype), *arrays]).astype(dtype)

    leaf = end_to_end([tree.left < 0 for tree in trees], bool)
    pairs = [begin + np.stack([tree.left, tree.right], axis=1) for begin, tree in zip(root, trees, strict=True)]
    child = np.where(leaf[:, None], np.arange(len(leaf))[:, None], end_to_end(pairs, np.int32, 2))
    return Trees(
        feature=np.where(leaf, -1, end_to_end([tree.feature for tree in trees], np.int32)).astype(np.int32),
        threshold=np.where(leaf, 0.0, end_to_end([tree.threshold for tree in trees], np.float64)),
        child=child.astype(np.int32),
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
