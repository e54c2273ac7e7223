"""Sets of labels that contain the true one with a stated probability, from held-out subgraphs (conformal prediction).

A label is the stranger to a subgraph the larger its score s = 1 - p, with p its probability. The true labels of n
held-out subgraphs have scores s_1 .. s_n. The set of a new subgraph holds every label whose score is at most

    q = the k-th smallest of s_1 .. s_n,   k = ceil((n + 1) P)

so that the true label is in it with probability P or more, whatever the model, if new subgraphs are like the held-out
ones (Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005). With several labels per subgraph, the
score of a held-out one is the largest of its labels', and the set contains all true labels. For real values the score
is the absolute error, and the set an interval, value - q to value + q. By class, each label has a q of its own, from
held-out subgraphs that have it: P then holds for the subgraphs of every class, not only on average.

A set may be empty: where a model is right more often than P, the least certain answers get no label.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import UserError
from subgnn.ragged import Ragged
from subgnn.task import TaskName, task_of

_WHERE = "--coverage"
_ROUNDING = 1e-6  # of probabilities in single precision


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutScores:
    """The scores of the true labels of labelled subgraphs that the model has not learned from.

    Several ``repeats``, from different folds, count as one set of subgraphs.

    Shapes:
        scores: (repeats, m) float32. labels: (m,) int32, the class of each score. offsets: (n + 1,) int64: subgraph i
        has the scores offsets[i] to offsets[i + 1].
    """

    scores: NDArray[np.float32]
    labels: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, predicted: NDArray[Any], targets: NDArray[Any], task: TaskName) -> Self:
        """From probabilities or values (repeats, n, outputs) and targets."""
        kind, n = task_of(task), len(targets)
        true = kind.indicators(targets, predicted.shape[2])
        if kind.real:
            errors = np.abs(predicted[:, :, 0] - true[:, 0]).astype(np.float32)
            return cls(errors, np.zeros(n, np.int32), np.arange(n + 1))
        rows, labels = np.nonzero(true)
        scores = 1 - predicted[:, rows, labels]
        offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=n)))
        return cls(scores.clip(0, 1).astype(np.float32), labels.astype(np.int32), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def limits(self, coverage: float, outputs: int, *, by_class: bool = False) -> NDArray[np.float64]:
        """The largest score of a label that is in the set (outputs,); by class, infinite for a class of too few."""
        if not 0 < coverage < 1:
            raise UserError(f"the coverage is {coverage:g}", where=_WHERE, hint="accepted: above 0 and below 1")
        if not by_class:
            whole = np.zeros((len(self), len(self.scores)), np.float32)  # a subgraph without labels is always covered
            np.maximum.at(whole, Ragged(self.labels, self.offsets).row_ids, self.scores.T)
            found = np.full(outputs, _smallest(whole.T, coverage))
        else:
            found = np.array([_smallest(self.scores[:, self.labels == c], coverage) for c in range(outputs)])
        if not np.isfinite(found).any():
            counts = np.bincount(self.labels, minlength=outputs).max() if by_class else len(self)
            who = f"{counts} labelled subgraphs" + (" of the most frequent class" if by_class else "")
            hint = f"accepted: up to {math.floor(1000 * counts / (counts + 1)) / 1000:g}; or train with more labels"
            raise UserError(f"a coverage of {coverage:g} cannot be promised from {who}", where=_WHERE, hint=hint)
        return found

    def problems(self, outputs: int) -> Iterator[str]:
        kinds = [f"{array.dtype}/{array.ndim}" for array in (self.scores, self.labels, self.offsets)]
        if kinds != ["float32/2", "int32/1", "int64/1"]:
            yield "its held-out scores have the wrong type"
        elif self.scores.shape[1] != len(self.labels) or not Ragged(self.labels, self.offsets).is_valid:
            yield "its held-out scores and labels do not have the same length"
        elif not (np.isfinite(self.scores) & (self.scores >= 0)).all() or not len(self.scores):
            yield "its held-out scores are not finite numbers from 0"
        elif len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < outputs:
            yield "its held-out scores are of a class that it does not have"


def _smallest(scores: NDArray[np.float32], coverage: float) -> float:
    """The k-th smallest of the scores of n subgraphs (repeats, n), k = ceil((n + 1) coverage); infinite if k > n."""
    repeats, n = scores.shape
    k = math.ceil((n + 1) * coverage - 1e-9)
    return math.inf if k > n else float(np.sort(scores, axis=None)[repeats * k - 1]) + _ROUNDING


def in_set(probabilities: NDArray[Any], limits: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which labels are in the set of each subgraph (n, outputs)."""
    return np.asarray(1 - probabilities.astype(np.float64) <= limits)
