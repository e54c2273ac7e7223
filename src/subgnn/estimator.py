"""A classifier of subgraphs with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from subgnn.config.recipes import find_recipe
from subgnn.data.dataset import Dataset
from subgnn.data.graph import Graph
from subgnn.data.splits import split_subgraphs
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError
from subgnn.experiments.train import train
from subgnn.inference.predictor import Predictor, Subgraphs
from subgnn.models.registry import model_of
from subgnn.storage.files import temporary_folder
from subgnn.training.run_dir import CHECKPOINT


class SubgraphClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies subgraphs of one graph.

    Args:
        recipe: a recipe by name, or a .toml file; by default the best model that a portfolio of them finds.
        settings: overrides, ``section.key=value`` each.
        seed: of anchors, weights, batches and dropout.
        device: ``auto``, ``cpu`` or ``cuda``.
        run: a folder for the run; by default it is temporary.

    After :meth:`fit`: ``classes_``, ``results_`` (as in run.json) and ``predictor_``.
    """

    def __init__(
        self,
        recipe: str = "auto",
        *,
        settings: Sequence[str] = (),
        seed: int = 0,
        device: str = "auto",
        run: str | Path | None = None,
    ) -> None:
        self.recipe = recipe
        self.settings = settings
        self.seed = seed
        self.device = device
        self.run = run

    def fit(self, graph: Graph, subgraphs: SubgraphSet) -> Self:
        """Train on the training split, and select on validation; without splits, a fifth is held out for validation."""
        if subgraphs.task in ("regression", "unlabelled"):
            raise DataError(f"the task is {subgraphs.task}", where="SubgraphClassifier", hint="classes are needed")
        dataset = Dataset("subgraphs", graph, self._with_splits(subgraphs))
        recipe = find_recipe(self.recipe, self.settings)
        with temporary_folder("subgnn-fit") as temporary:
            folder = temporary / "run" if self.run is None else Path(self.run)
            keep = self.run is not None
            self.results_ = train(
                dataset,
                recipe,
                folder,
                seed=self.seed,
                device=self.device,
                devices=1,
                cache=keep or model_of(recipe).is_portfolio,  # whose folds share what is prepared
                report=keep,
            )
            self.predictor_ = Predictor(folder / CHECKPOINT, graph.undirected())
        self.classes_ = np.array(subgraphs.classes)
        return self

    def _with_splits(self, subgraphs: SubgraphSet) -> SubgraphSet:
        if subgraphs.splits is not None:
            return subgraphs
        drawn = split_subgraphs(subgraphs, method="stratified", fractions=(0.8, 0.1, 0.1), seed=self.seed)
        assigned = np.minimum(np.array(drawn.splits), SPLITS.index("val")).astype(np.int8)
        return replace(subgraphs, splits=assigned)

    def predict_proba(self, subgraphs: Subgraphs) -> NDArray[np.float32]:
        """Class probabilities.

        Shapes:
            returns: (n, classes).
        """
        check_is_fitted(self)
        return self.predictor_.probabilities(subgraphs)

    def predict(self, subgraphs: Subgraphs) -> NDArray[Any]:
        """Class names (n,); for multi-label, 0 and 1 for each class (n, classes)."""
        scores = self.predict_proba(subgraphs)
        if self.predictor_.checkpoint.spec.task == "multi-label":
            return (scores > self.predictor_.thresholds).astype(np.uint8)
        names: NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return names

    def transform(self, subgraphs: Subgraphs) -> NDArray[np.float32]:
        """The vector of each subgraph, as the head receives it.

        Shapes:
            returns: (n, width).
        """
        check_is_fitted(self)
        return self.predictor_.embed(subgraphs)

    def score(self, subgraphs: SubgraphSet, y: Any = None) -> float:
        """Accuracy on labelled subgraphs; for multi-label, all labels of a subgraph must be right.

        Args:
            y: the labels, in place of those the subgraphs carry.
        """
        truth = y
        if truth is None:
            if subgraphs.targets is None:
                raise DataError("the subgraphs have no labels", where="score", hint="give them labels, or pass y")
            several = subgraphs.task == "multi-label"
            truth = subgraphs.targets if several else np.array(subgraphs.classes)[subgraphs.targets]
        right = self.predict(subgraphs) == np.asarray(truth)
        return float(np.mean(right.all(axis=1) if right.ndim == 2 else right))
