"""Support vector machines on features or kernel matrices, and scores of classes from their decisions."""

import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.models.kernel_machines.newton import Floats
from subgnn.task import TaskName, task_of

_STEPS, _MATRIX_STEPS = 2_000, 1_000_000  # of a linear machine, and of one on the matrix
_PENALISED_OFFSET = 10.0  # the larger, the smaller the penalty of the offset


def machine_scores(decisions: NDArray[Any], task: TaskName, outputs: int) -> NDArray[Any]:
    """Scores of classes from the decisions between every two; those of labels and values are the decisions themselves.

    A class has one for each class that it is preferred to, and less than a third more or less for the sum of its
    decisions, which orders classes with equally many votes. Of two classes the decision itself is the score.

    Shapes:
        decisions: (n, machines), above 0 for the second class of a pair. returns: (n, outputs).
    """
    if not task_of(task).one_class:
        return decisions
    if outputs == 2:
        return np.concatenate([-decisions / 2, decisions / 2], axis=1)
    votes, sums = np.zeros((2, len(decisions), outputs))
    for (first, second), decision in zip(combinations(range(outputs), 2), decisions.T, strict=True):
        votes[:, first] += decision <= 0
        votes[:, second] += decision > 0
        sums[:, first] -= decision
        sums[:, second] += decision
    return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))


@dataclass(frozen=True, slots=True)
class Fit:
    """Support vector machines for a task: one per label, one per pair of classes, or one regression."""

    task: TaskName
    outputs: int
    inverse_penalty: float

    def __call__(
        self, rows: Any, gram: Floats | None, targets: NDArray[Any], weights: Any = None
    ) -> tuple[Any, Any, Any]:
        """Weights of features (F, machines), offsets (machines,), and weights of rows (n, machines) if there are any.

        With ``gram``, the products (n, n) of rows (n, F), weights of features are sums over rows by these; without,
        there are no such weights. ``weights`` say how much rows, or pairs of a row and a label, count; not for
        regression.
        """
        if task_of(self.task).real:
            found = [self._machine(rows, gram, targets, None)]
        elif task_of(self.task).several:
            each = [None] * self.outputs if weights is None else weights.T.copy()
            found = [self._separate(rows, gram, targets[:, i] > 0, each[i]) for i in range(self.outputs)]
        elif gram is not None and len(np.unique(targets)) == self.outputs:
            dual, offsets = self._every_pair(gram, targets, weights)
            return rows.T @ dual, offsets, dual
        else:
            found = []
            for first, second in combinations(range(self.outputs), 2):
                either = np.flatnonzero((targets == first) | (targets == second))
                inner = None if gram is None else gram[np.ix_(either, either)]
                own = None if weights is None else weights[either]
                column, bias = self._separate(rows[either], inner, targets[either] == second, own)
                if gram is not None:
                    column = _at(either, column, len(targets))
                found.append((column, bias))
        columns, biases = (np.stack(part, axis=-1) for part in zip(*found, strict=True))
        return (columns, biases, None) if gram is None else (rows.T @ columns, biases, columns)

    def _every_pair(self, gram: Floats, targets: NDArray[Any], weights: Any) -> tuple[Any, Any]:
        """The machines of all pairs from one call, which fits each to the subgraphs of its two classes."""
        from sklearn.svm import SVC

        unfitted = SVC(kernel="precomputed", C=self.inverse_penalty, max_iter=_MATRIX_STEPS)
        machine = _fitted(unfitted, gram, targets, weights)
        # Row j - 1 of the coefficients of class i, and row i of those of class j > i, belong to the pair; of more than
        # two classes, a decision above 0 is for the first.
        coefficients, pairs = machine.dual_coef_, list(combinations(range(self.outputs), 2))
        bounds = np.concatenate([[0], np.cumsum(machine.n_support_)])
        dual, sign = np.zeros((len(machine.support_), len(pairs))), 1 if self.outputs == 2 else -1
        for place, (i, j) in enumerate(pairs):
            for own, row in ((i, j - 1), (j, i)):
                part = slice(bounds[own], bounds[own + 1])
                dual[part, place] = sign * coefficients[row, part]
        return _at(machine.support_, dual, len(targets)), sign * machine.intercept_

    def _separate(self, rows: Any, gram: Floats | None, positive: NDArray[np.bool_], weights: Any) -> tuple[Any, float]:
        """One machine, above 0 for the positive; the side that alone is there is always decided for."""
        if positive.all() or not positive.any():
            size = rows.shape[1] if gram is None else len(positive)
            return np.zeros(size), float(positive.any()) - float((~positive).any())
        return self._machine(rows, gram, positive, weights)

    def _machine(self, rows: Any, gram: Floats | None, targets: NDArray[Any], weights: Any) -> tuple[Any, float]:
        from sklearn import svm

        real, c = task_of(self.task).real, self.inverse_penalty
        if gram is None:
            options = {"C": c, "max_iter": _STEPS, "random_state": 0, "intercept_scaling": _PENALISED_OFFSET}
            unfitted = svm.LinearSVR(**options) if real else svm.LinearSVC(loss="hinge", **options)
            linear = _fitted(unfitted, rows, targets, weights)
            return linear.coef_.reshape(-1), float(np.reshape(linear.intercept_, -1)[0])
        make = svm.SVR if real else svm.SVC
        machine = _fitted(make(kernel="precomputed", C=c, max_iter=_MATRIX_STEPS), gram, targets, weights)
        return _at(machine.support_, machine.dual_coef_[0], len(targets)), float(machine.intercept_[0])


def _at(places: NDArray[Any], values: NDArray[Any], size: int) -> Floats:
    """Values at their places among ``size``; 0 elsewhere."""
    found = np.zeros((size, *values.shape[1:]))
    found[places] = values
    return found


def _fitted(machine: Any, rows: Any, targets: NDArray[Any], weights: Any) -> Any:
    """Fit a machine; one with a weak penalty may run out of steps, and validation judges what came of it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(failed to converge|terminated early).*")
        return machine.fit(rows, targets, sample_weight=weights)
