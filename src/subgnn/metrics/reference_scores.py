"""The constant prediction, which ignores the subgraph, and its score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.subgraphs import Task
from subgnn.metrics.significance import ScoreTerms, score_terms


def constant_prediction(train: NDArray[Any], task: Task) -> NDArray[Any]:
    """The best prediction that ignores the subgraph: the most frequent class, the mean, or a set of labels.

    Of the sets of the k most frequent labels, it is the one with the highest micro-F1 on the training split.

    Shapes:
        train: (n,) or (n, classes). returns: () or (classes,).

    Example:
        >>> constant_prediction(np.array([2, 0, 2]), "multi-class").item()
        2
        >>> constant_prediction(np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]]), "multi-label").tolist()
        [1, 1, 0]
    """
    if task == "regression":
        return np.asarray(train.mean())
    if task != "multi-label":
        return np.asarray(np.bincount(train).argmax())
    order = np.argsort(-train.sum(axis=0, dtype=np.int64), kind="stable")
    sets = np.zeros((len(order), len(order)), np.int64)
    for k in range(len(order)):
        sets[k, order[: k + 1]] = 1
    scores = [score_terms(np.broadcast_to(labels, train.shape), train, task).score for labels in sets]
    best: NDArray[Any] = sets[int(np.argmax(scores))]
    return best


def constant_terms(dataset: Dataset, split: str) -> ScoreTerms:
    """Score terms on a split of the constant prediction that the training split gives."""
    targets = np.asarray(dataset.subgraphs.targets)
    train, true = targets[dataset.subgraphs.indices("train")], targets[dataset.subgraphs.indices(split)]
    predicted = constant_prediction(train, dataset.subgraphs.task)
    return score_terms(np.broadcast_to(predicted, true.shape), true, dataset.subgraphs.task)
