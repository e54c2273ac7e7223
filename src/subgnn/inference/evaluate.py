"""Score a finished run on a split of its dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from subgnn.errors import DataError
from subgnn.inference.open import open_run
from subgnn.models.examples import label_unit, target_tensor
from subgnn.models.metrics import metrics


def evaluate_split(out: Path, split: str, data: Path | None = None) -> dict[str, Any]:
    """Score a finished run on a split of its dataset: its results, and the metrics under the name of the split.

    Args:
        data: the dataset; by default where the run read it.
    """
    whole = open_run(out, data)
    results, predictor, subgraphs = whole.results, whole.predictor, whole.subgraphs
    if subgraphs is None:
        raise DataError("the file holds no subgraphs to score", where=str(out), hint="give the dataset with --data")
    if subgraphs.classes != predictor.checkpoint.spec.classes:
        raise DataError(
            "the dataset has other labels than the run", where=str(data or out), hint="give the run's dataset"
        )
    rows = subgraphs.indices(split)
    standards = predictor.checkpoint.spec.standards
    targets = target_tensor(subgraphs, standards)[torch.from_numpy(rows)]
    outputs = torch.from_numpy(predictor.outputs(subgraphs.nodes.take(rows)))
    scores = metrics(outputs, targets, subgraphs.task, unit=label_unit(standards), thresholds=predictor.thresholds)
    return {"run": str(out), **results, split: scores}
