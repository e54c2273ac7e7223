"""Boosted trees and forests, grown from a table, for every task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.subgraphs import Task

_MANY_ROWS = 10_000
_SMALLEST = 1e-6  # no probability below it, so that losses stay finite


def grow(table: NDArray[np.float64], targets: NDArray[Any], task: Task, *, boosting: bool, seed: int) -> list[Any]:
    """Fit to a table; one estimator, or one a label for multi-label. A label all rows agree on is kept as it is.

    Beyond 10,000 rows boosting works on binned columns, which is faster there and no worse.

    Shapes:
        table: (n, F). targets: (n,), or (n, labels).
    """
    from sklearn import ensemble

    kind = "Regressor" if task == "regression" else "Classifier"
    if boosting:
        name = f"HistGradientBoosting{kind}" if len(table) > _MANY_ROWS else f"GradientBoosting{kind}"
        options: dict[str, Any] = {}
    else:
        # All columns at every split: often one of them alone decides.
        name, options = f"RandomForest{kind}", {"n_estimators": 100, "max_features": None}
    grown: list[Any] = []
    for column in targets.T if task == "multi-label" else targets[None]:
        constant = column.min() == column.max()
        estimator = getattr(ensemble, name)(random_state=seed % 2**32, **options)
        grown.append(column[0] if constant else estimator.fit(table, column))
    return grown


def outputs_of(grown: list[Any], table: NDArray[np.float64], task: Task, outputs: int) -> NDArray[np.float32]:
    """Log-probabilities; log-odds for multi-label; values for regression.

    Shapes:
        table: (n, F). returns: (n, outputs).
    """
    if task == "regression":
        found = grown[0].predict(table) if hasattr(grown[0], "predict") else np.full(len(table), grown[0])
        return np.asarray(found, np.float32)[:, None]
    if task == "multi-label":
        chance = np.stack([_chances(one, table, 2)[:, 1] for one in grown], axis=1).clip(_SMALLEST, 1 - _SMALLEST)
        return np.asarray(np.log(chance / (1 - chance)), np.float32)
    return np.asarray(np.log(_chances(grown[0], table, outputs).clip(_SMALLEST)), np.float32)


def _chances(grown: Any, table: NDArray[np.float64], classes: int) -> NDArray[np.float64]:
    """Class probabilities; 0 for a class the training split does not have."""
    found = np.zeros((len(table), classes))
    if hasattr(grown, "predict_proba"):
        found[:, grown.classes_.astype(np.int64)] = grown.predict_proba(table)
    else:
        found[:, int(grown)] = 1.0
    return found
