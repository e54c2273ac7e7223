"""Outputs with and without something, as contributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.explain.explanation import Values
from subgnn.inference.predictor import Predictor


def in_unit(predictor: Predictor) -> float:
    """What a difference of outputs is multiplied by: the deviation of real-valued targets, else 1."""
    target = predictor.checkpoint.standards.get("target")
    return 1.0 if target is None else float(target.deviation[0])


def values(numbers: NDArray[Any]) -> Values:
    """Plain numbers."""
    return tuple(float(number) for number in numbers)


def differences(
    predictor: Predictor, whole: NDArray[np.float32], without: NDArray[np.float32]
) -> list[dict[str, Values]]:
    """``contributions`` and ``probability_changes`` of each thing that was left out.

    Shapes:
        whole: (outputs,). without: (things, outputs).
    """
    logits = (whole - without) * in_unit(predictor)
    if predictor.checkpoint.task == "regression":
        return [{"contributions": values(row)} for row in logits]
    changes = predictor.scores(whole[None]) - predictor.scores(without)
    return [
        {"contributions": values(row), "probability_changes": values(change)}
        for row, change in zip(logits, changes, strict=True)
    ]


def strongest(contributions: Values, leading: int | None) -> float:
    """How much a thing matters: to the leading class, or where there is none, to the class it matters most to."""
    return max(map(abs, contributions)) if leading is None else abs(contributions[leading])
