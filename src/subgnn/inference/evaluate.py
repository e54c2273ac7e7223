"""Score a finished run on labelled subgraphs, such as a split of its dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, excerpt
from subgnn.inference.open import open_run
from subgnn.inference.predictor import Predictor
from subgnn.models.examples import label_unit, target_tensor
from subgnn.result import Alerts, RunResult
from subgnn.task import task_of


def evaluate_split(out: Path, split: str, data: Path | None = None) -> RunResult:
    """Score a finished run on a split of its dataset, and return its result with these metrics."""
    whole = open_run(out, data)
    subgraphs = whole.split(split, str(data or out))
    metrics, counts = score(whole.predictor, subgraphs, select_by=whole.result.select_by, where=str(data or out))
    found: dict[str, Any] = {"run": whole.result.run or str(out), split: metrics}
    if (decision := whole.predictor.spec.decision) is not None:
        found["threshold"] = decision.report(**{split: counts})
    return replace(whole.result, **found)


def score(
    predictor: Predictor, subgraphs: SubgraphSet, *, select_by: str = "auto", where: str = "subgraphs"
) -> tuple[dict[str, float], list[Alerts]]:
    """Metrics of predictions on labelled subgraphs, and the counts at the run's thresholds, if it has any.

    The classes of the subgraphs must be among those of the run.

    Args:
        select_by: the run's metric of selection, which is added to the metrics if it is ``recall@k``.
    """
    spec = predictor.spec
    found, known = subgraphs.task.replace("multi-class", "binary"), spec.task.replace("multi-class", "binary")
    unseen = [name for name in subgraphs.classes if name not in spec.classes]
    if found != known or unseen:
        which = f"{excerpt(unseen[0])}" if unseen else f"of the task {subgraphs.task}"
        raise DataError(
            f"the dataset has other labels than the run: {which}", where=where, hint="give subgraphs with its labels"
        )
    subgraphs = replace(subgraphs, task=spec.task, classes=spec.classes, targets=_renumbered(subgraphs, spec.classes))
    targets = target_tensor(subgraphs, spec.standards)
    outputs = torch.from_numpy(predictor.outputs(subgraphs.nodes))
    options: dict[str, Any] = {"thresholds": predictor.thresholds, "select_by": select_by}
    scores = task_of(spec.task).metrics(outputs, targets, unit=label_unit(spec.standards), **options)
    if spec.decision is None:
        return scores, []
    return scores, spec.decision.counts(predictor.scores(outputs.numpy()), targets.numpy(), spec.classes)


def _renumbered(subgraphs: SubgraphSet, classes: tuple[str, ...]) -> Any:
    """Targets, numbered by the order of other classes."""
    targets = np.asarray(subgraphs.targets)
    places = np.array([classes.index(name) for name in subgraphs.classes], np.int64)
    task = task_of(subgraphs.task)
    if task.several:
        wide = np.zeros((len(targets), len(classes)), targets.dtype)
        wide[:, places] = targets
        return wide
    return targets if task.real else places[targets].astype(targets.dtype)
