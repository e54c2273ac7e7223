"""Scores of a fitted baseline, as a network that corrects it takes them (``model.baseline``).

b(S) is the log-probability of each class; for multi-label, the log-odds of each label; for regression, the standardised
value. Of K classes, or of a label and its absence (K = 2), probabilities are first drawn a little together:

    p' = (1 - 0.02) p + 0.02 / K

so that a network can overrule a baseline that was certain. This keeps the order of all probabilities of a class, and
with it predictions and AUROC.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special

from subgnn.data.graph import Graph
from subgnn.data.subgraphs import Task
from subgnn.models.registry import Answers
from subgnn.models.spec import Checkpoint
from subgnn.ragged import Ragged

_SHARED_OUT = 0.02


def scores_of(outputs: NDArray[Any], task: Task) -> NDArray[np.float32]:
    """b(S), from what a baseline answers.

    Shapes:
        outputs, returns: (n, outputs).

    Example:
        >>> np.exp(scores_of(np.log([[0.5, 0.5], [1.0, 1e-9]]), "binary").astype(float)).round(2).tolist()
        [[0.5, 0.5], [0.99, 0.01]]
    """
    values = np.asarray(outputs, np.float64)
    if task == "multi-label":
        values = special.logit((1 - _SHARED_OUT) * special.expit(values) + _SHARED_OUT / 2)
    elif task != "regression":
        values = np.log((1 - _SHARED_OUT) * special.softmax(values, axis=1) + _SHARED_OUT / values.shape[1])
    return values.astype(np.float32)


class BaselineScores:
    """The baseline that a run's network corrects, asked about subgraphs.

    It is the one fitted on the whole training split, also for subgraphs of that split, so that the answer for a
    subgraph is a function of its nodes and the run alone. What the network met of them in training were the scores of
    baselines that had not seen them (:mod:`subgnn.models.cross_fit`).

    Args:
        checkpoint: of the baseline.
        graph: undirected.
    """

    def __init__(self, checkpoint: Checkpoint, graph: Graph) -> None:
        self._task = checkpoint.spec.task
        self._answers = Answers(checkpoint, graph, torch.device("cpu"))

    def of(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """b(S) of every subgraph.

        Shapes:
            returns: (n, outputs).
        """
        return scores_of(self._answers.ask(subgraphs, "forward"), self._task)
