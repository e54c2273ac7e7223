"""How much classes and subgraphs count in the loss, for labels that are rare.

Class weights multiply the loss of the subgraphs of a class; of several labels, the loss of those that have the label.
``balanced`` weights make all classes count the same: n / (classes n_c) for class c, with n_c = 1 for an absent class;
of several labels, the number of subgraphs without a label over the number with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import TrainingSettings
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import UserError, choices, excerpt
from subgnn.task import TaskName, task_of

if TYPE_CHECKING:
    from torch import Tensor

BALANCED = "balanced"
_LARGEST = 1e6


def loss_weights(settings: TrainingSettings, subgraphs: SubgraphSet) -> Tensor | None:
    """Weights of classes (classes,), balanced by the training split; None if all count the same, as real values do."""
    if task_of(subgraphs.task).real or subgraphs.targets is None:
        return None
    targets = np.asarray(subgraphs.targets)[subgraphs.indices("train")]
    weights = class_weights(settings.class_weights, targets, subgraphs.task, subgraphs.classes)
    if weights is None:
        return None
    import torch

    return torch.from_numpy(weights.astype(np.float32))


def row_weights(weights: Tensor | None, targets: NDArray[Any]) -> NDArray[np.float64] | None:
    """The weight of each subgraph, or of each pair of a subgraph and a label; None if all count the same."""
    if weights is None:
        return None
    of_classes = weights.cpu().numpy().astype(np.float64)
    return np.where(targets > 0, of_classes, 1.0) if targets.ndim == 2 else of_classes[targets.astype(np.int64)]


def class_weights(
    given: bool | str, targets: NDArray[Any], task: TaskName, classes: tuple[str, ...]
) -> NDArray[np.float64] | None:
    """Weights by ``training.class_weights``: false, balanced (also true), or as ``fraud=20, other=1``; 1 for others."""
    if given is False:
        return None
    if given in (True, BALANCED):
        return task_of(task).balanced_weights(targets, len(classes))
    weights, seen = np.ones(len(classes)), set[str]()
    for part in str(given).split(","):
        name, sign, number = (piece.strip() for piece in part.rpartition("="))
        try:
            weight = float(number)
        except ValueError:
            weight = 0.0
        if not sign or not name or not 0 < weight <= _LARGEST or name in seen:
            hint = f"accepted: false, {BALANCED}, or weights above 0, up to {_LARGEST:,.0f}, e.g. fraud=20,other=1"
            raise UserError(f"training.class_weights is {excerpt(str(given))}", where="recipe", hint=hint)
        if name not in classes:
            what = f"training.class_weights has the class {excerpt(name)}"
            raise UserError(what, where="train", hint=choices(name, classes))
        seen.add(name)
        weights[classes.index(name)] = weight
    return weights
