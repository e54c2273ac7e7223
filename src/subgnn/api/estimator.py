"""Estimators for subgraph labels, by the conventions of scikit-learn."""

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from subgnn.api.inputs import Settings, Subgraphs, as_graph, as_members, as_recipe, is_list_of_sets, is_table
from subgnn.api.run import as_query, train
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats.format import ReadOptions, Unknown
from subgnn.data.graph import Graph
from subgnn.data.splits import split_subgraphs
from subgnn.data.strings import Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError, UserError
from subgnn.inference.answers import Query
from subgnn.ragged import Ragged
from subgnn.task import task_of

_SEEDS = 2**31 - 1


class _SubgraphEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    def __init__(
        self,
        graph: Any = None,
        *,
        recipe: str | Path | Recipe = "auto",
        time: float | str | None = None,
        settings: Settings = (),
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        unknown: Unknown = "error",
        verbose: bool = False,
    ) -> None:
        self.graph = graph
        self.recipe = recipe
        self.time = time
        self.settings = settings
        self.random_state = random_state
        self.device = device
        self.unknown = unknown
        self.verbose = verbose

    @abstractmethod
    def _labelled(self, nodes: Ragged, y: Any) -> SubgraphSet:
        """Subgraphs with their labels; a classifier also stores its classes."""

    def fit(self, X: Subgraphs, y: Any = None) -> Self:
        """Train a model on lists of nodes and their labels, or on subgraphs that have labels.

        These are a set of subgraphs, a list of such sets, or a table with a column of labels, which are texts then. A
        fifth of the subgraphs selects the model, unless the set has a split of its own.
        """
        if isinstance(X, Graph):
            hint = f"write {type(self).__name__}(graph=graph).fit(subgraphs, labels)"
            raise UserError("the graph is given to fit", where="fit", hint=hint)
        graph, recipe = as_graph(self.graph), as_recipe(self.recipe, self.settings)
        labels = self._own_labels(X, graph) if y is None else y
        if labels is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        query = self._query(X, graph)
        subgraphs, names = self._labelled(query.matched.nodes, labels), query.members.names
        subgraphs = replace(subgraphs, names=Strings.of(names) if query.members.named else None)
        if y is None and isinstance(X, SubgraphSet):
            subgraphs = replace(subgraphs, splits=X.splits, groups=X.groups, times=X.times)
        given = self.random_state
        seed = int(given if isinstance(given, (int, np.integer)) else check_random_state(given).randint(_SEEDS))
        if subgraphs.splits is None:
            drawn = split_subgraphs(subgraphs, method="stratified", fractions=(0.8, 0.1, 0.1), seed=seed)
            splits = np.minimum(np.array(drawn.splits), SPLITS.index("val")).astype(np.int8)
            subgraphs = replace(subgraphs, splits=splits)
        how = {"seed": seed, "time": self.time, "device": self.device, "progress": None if self.verbose else False}
        share = recipe.is_portfolio  # whose folds share what is prepared
        self.run_ = train(Dataset("subgraphs", graph, subgraphs), recipe=recipe, cache=share, report=False, **how)
        return self

    def transform(self, X: Subgraphs) -> NDArray[np.float32]:
        """The vector of each subgraph, as the head of the model receives it (n, width)."""
        check_is_fitted(self)
        return self.run_.predictor.embeddings(self._query(X, self.run_.graph).matched.nodes)

    def _scores(self, X: Subgraphs) -> NDArray[np.float32]:
        check_is_fitted(self)
        return self.run_.predictor.probabilities(self._query(X, self.run_.graph).matched.nodes)

    def _query(self, X: Subgraphs, graph: Graph) -> Query:
        """Subgraphs as they are written and as rows of the graph, each with at least one node."""
        query = as_query(X, graph, self.unknown)
        if len(query.matched.empty):
            raise DataError("none of its nodes is in the graph", where=query.members.place(int(query.matched.empty[0])))
        return query

    def _own_labels(self, X: Subgraphs, graph: Graph) -> Any:
        """The labels of a set of subgraphs, of a list of sets, or in a table; None if there are none."""
        if isinstance(X, SubgraphSet):
            return None if X.targets is None else _labels_of(X)
        if is_list_of_sets(X):
            parts = [None if one.targets is None else list(_labels_of(one)) for one in X]
            return None if any(part is None for part in parts) else [label for part in parts for label in part or ()]
        if not is_table(X):
            return None
        labels = as_members(X, graph, ReadOptions(unknown=self.unknown)).labels
        return None if labels is None else [list(one) if isinstance(one, tuple) else one for one in labels]

    def _truth(self, X: Subgraphs, y: Any) -> Any:
        labels = self._own_labels(X, self.run_.graph) if y is None else y
        if labels is None:
            raise DataError("the subgraphs have no labels", where="score", hint="give them labels, or pass y")
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class SubgraphClassifier(ClassifierMixin, _SubgraphEstimator):  # type: ignore[misc]
    """Classifies subgraphs of one graph.

    Args:
        graph: the graph: of this library, networkx, PyG or scipy; or a table of edges, as a data frame or
            a path. A node of X is written by its name, or by its number where nodes have no names.
        recipe: a recipe by name, or a .toml file; by default the best model that a portfolio of them finds.
        time: the budget of ``auto``, in seconds or as ``"5m"``; five minutes by default.
        settings: overrides, such as ``{"training.epochs": 5}``.
        random_state: of anchors, weights, batches and dropout.
        device: ``auto``, ``cpu`` or ``cuda``.
        unknown: what to do with nodes that are not in the graph: ``error`` or ``drop``.
        verbose: show a progress bar.

    After :meth:`fit`: ``classes_``, and ``run_``, which explains, evaluates and exports the model.

    Example:
        >>> import networkx as nx
        >>> club = nx.karate_club_graph()
        >>> X = [[n, *club[n]] for n in club]
        >>> y = [club.nodes[n]["club"] for n in club]
        >>> SubgraphClassifier(graph=club, recipe="bag", device="cpu").fit(X, y).predict([[0, 1, 2]]).tolist()
        ['Mr. Hi']
    """

    def _labelled(self, nodes: Ragged, y: Any) -> SubgraphSet:
        y = _plain_labels(y)
        _check_lengths(nodes, y)
        if _is_lists(y):
            several = MultiLabelBinarizer()
            targets, self.classes_ = several.fit_transform(y), several.classes_
        elif type_of_target(y, input_name="y") == "multilabel-indicator":
            targets = np.asarray(y.todense() if hasattr(y, "todense") else y)
            self.classes_ = np.arange(targets.shape[1])
        else:
            check_classification_targets(y)
            self.classes_, targets = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        names = tuple(map(str, self.classes_.tolist()))
        if targets.ndim == 2:
            return SubgraphSet(nodes, "multi-label", targets.astype(np.uint8), names)
        if len(names) < 2:
            raise ValueError(f"{type(self).__name__} needs at least two classes, but y has one class: {names[0]}")
        return SubgraphSet(nodes, "binary" if len(names) == 2 else "multi-class", targets.astype(np.int32), names)

    def predict_proba(self, X: Subgraphs) -> NDArray[np.float32]:
        """Class probabilities (n, classes)."""
        return self._scores(X)

    def predict(self, X: Subgraphs) -> NDArray[Any]:
        """Classes (n,); for several labels a subgraph, 0 and 1 for each class (n, classes)."""
        scores = self._scores(X)  # which refuses an estimator that is not fitted
        found = task_of(self.run_.task).decide(scores, self.run_.predictor.thresholds)
        chosen: NDArray[Any] = found if task_of(self.run_.task).several else self.classes_[found]
        return chosen

    def score(self, X: Subgraphs, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy; with several labels a subgraph, all of them must be right. By default, y is that of the set X."""
        truth = _plain_labels(self._truth(X, y))
        if _is_lists(truth):
            truth = MultiLabelBinarizer(classes=list(self.classes_)).fit_transform(truth)
        return float(accuracy_score(truth, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class SubgraphRegressor(RegressorMixin, _SubgraphEstimator):  # type: ignore[misc]
    """Predicts a number for each subgraph of one graph; arguments are those of :class:`SubgraphClassifier`.

    After :meth:`fit`: ``run_``, which explains, evaluates and exports the model.
    """

    def _labelled(self, nodes: Ragged, y: Any) -> SubgraphSet:
        values = column_or_1d(y, dtype=np.float64, warn=True)
        _check_lengths(nodes, values)
        if not np.isfinite(values).all():
            raise ValueError("Input y contains NaN or infinity: finite numbers are accepted")
        return SubgraphSet(nodes, "regression", values)

    def predict(self, X: Subgraphs) -> NDArray[np.float64]:
        """Values (n,)."""
        return self._scores(X)[:, 0].astype(np.float64)

    def score(self, X: Subgraphs, y: Any = None, sample_weight: Any = None) -> float:
        """R², the share of the variance of y that predictions explain. By default, y is that of the set X."""
        return float(r2_score(self._truth(X, y), self.predict(X), sample_weight=sample_weight))


def _labels_of(subgraphs: SubgraphSet) -> Any:
    """The labels of a set as y: names of classes, lists of them, or numbers."""
    targets, classes = np.asarray(subgraphs.targets), np.array(subgraphs.classes)
    task = task_of(subgraphs.task)
    if task.several:
        return [classes[row.astype(bool)].tolist() for row in targets]
    return targets if task.real else classes[targets]


def _is_lists(y: Any) -> bool:
    return isinstance(y, list) and all(isinstance(labels, (list, tuple, set, frozenset)) for labels in y)


def _plain_labels(y: Any) -> Any:
    """A column of lists, as a list of them; anything else as it is."""
    if getattr(y, "dtype", None) is not None and y.dtype == object and len(y):
        found = list(y)
        return found if _is_lists(found) else y
    return y


def _check_lengths(nodes: Ragged, y: Any) -> None:
    check_consistent_length(nodes, y)
    if len(nodes) < len(SPLITS):
        raise ValueError(f"n_samples = {len(nodes)}, but at least {len(SPLITS)} are needed to train and select a model")
