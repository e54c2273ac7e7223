"""What one reaches without looking at a subgraph, and what nobody surpasses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.subgraphs import Task
from subgnn.experiments.paired import Pieces, score_pieces


def constant_answer(train: NDArray[Any], task: Task) -> NDArray[Any]:
    """The best answer that looks at nothing: the most frequent class, the mean, or a set of labels.

    Of the sets of the k most frequent labels, it is the one with the highest micro-F1 on the training split.

    Shapes:
        train: (n,) or (n, classes). returns: () or (classes,).

    Example:
        >>> constant_answer(np.array([2, 0, 2]), "multi-class").item()
        2
        >>> constant_answer(np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]]), "multi-label").tolist()
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
    scores = [score_pieces(np.broadcast_to(given, train.shape), train, task).score for given in sets]
    best: NDArray[Any] = sets[int(np.argmax(scores))]
    return best


def constant_pieces(dataset: Dataset, split: str) -> Pieces:
    """Pieces of the constant answer, learned on the training split, on another."""
    targets = np.asarray(dataset.subgraphs.targets)
    train, true = targets[dataset.subgraphs.indices("train")], targets[dataset.subgraphs.indices(split)]
    said = constant_answer(train, dataset.subgraphs.task)
    return score_pieces(np.broadcast_to(said, true.shape), true, dataset.subgraphs.task)


def perfect_pieces(dataset: Dataset, split: str) -> Pieces:
    """Pieces of a model that makes no error."""
    true = np.asarray(dataset.subgraphs.targets)[dataset.subgraphs.indices(split)]
    return score_pieces(true, true, dataset.subgraphs.task)
