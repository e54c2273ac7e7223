"""Losses, predictions and metrics of each task."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from subgnn.data.subgraphs import Task

Thresholds = NDArray[np.float32] | float
"""Probabilities above which a subgraph has a label, where it may have several: one for each label, or one for all."""


def loss(outputs: Tensor, targets: Tensor, task: Task, weights: Tensor | None = None) -> Tensor:
    """Cross entropy; for multi-label, binary cross entropy on logits; for regression, squared error.

    Shapes:
        outputs: (n, classes) or (n, 1). targets: (n,) classes, (n, classes) 0/1, or (n,) values. weights: (classes,).
    """
    if task == "multi-label":
        return functional.binary_cross_entropy_with_logits(outputs, targets.to(outputs.dtype), pos_weight=weights)
    if task == "regression":
        return functional.mse_loss(outputs.squeeze(1), targets.to(outputs.dtype))
    return functional.cross_entropy(outputs, targets.long(), weight=weights)


def probabilities(outputs: Tensor, task: Task) -> Tensor:
    """Class probabilities; for regression, the values themselves."""
    if task == "multi-label":
        return torch.sigmoid(outputs)
    return outputs if task == "regression" else torch.softmax(outputs, dim=1)


def predictions(outputs: Tensor, task: Task, thresholds: Thresholds = 0.5) -> Tensor:
    """Classes (n,), sets of classes (n, classes) whose probabilities are above their thresholds, or values (n,)."""
    if task == "multi-label":
        return (probabilities(outputs, task) > torch.as_tensor(thresholds, device=outputs.device)).long()
    return outputs.squeeze(1) if task == "regression" else outputs.argmax(dim=1)


def metrics(
    outputs: Tensor, targets: Tensor, task: Task, *, unit: float = 1.0, thresholds: Thresholds = 0.5
) -> dict[str, float]:
    """micro-F1, macro-F1, accuracy and AUROC; for regression, mean absolute error, root mean square error and R^2.

    AUROC is the mean over classes, one against the rest; a class that no subgraph or every subgraph has is left out.
    Multi-label accuracy counts a subgraph as correct when all its labels are. For two classes there is also AUPRC, the
    area under the precision-recall curve (average precision) of the rarer class, of equally many of the second; by
    chance it is the share of that class.

    Args:
        unit: the scale of standardised labels (:func:`~subgnn.models.examples.label_unit`), by which the two errors
            of regression are multiplied.
        thresholds: probabilities above which a subgraph has a label, where it may have several.
    """
    outputs, targets = outputs.detach().float().cpu(), targets.cpu()
    found = predictions(outputs, task, thresholds)
    if task == "regression":
        error = found - targets.float()
        spread = (targets.float() - targets.float().mean()).square().sum()
        r2 = 1 - error.square().sum() / spread if spread > 0 else torch.tensor(float("nan"))
        mae, rmse = float(error.abs().mean()), float(error.square().mean().sqrt())
        return {"mae": mae * unit, "rmse": rmse * unit, "r2": float(r2)}
    from torchmetrics.functional.classification import multiclass_f1_score

    classes = outputs.shape[1]
    truth = targets.long()
    if task == "multi-label":
        micro, macro = (_multilabel_f1(found, truth, average) for average in ("micro", "macro"))
        accuracy = (found == truth).all(dim=1).float().mean()
        one_hot = truth
    else:
        micro = accuracy = (found == truth).float().mean()
        macro = multiclass_f1_score(found, truth, num_classes=classes, average="macro")
        one_hot = functional.one_hot(truth, classes)
    scores = probabilities(outputs, task)
    area = {"auprc": auprc(scores, truth)} if task == "binary" else {}
    return {
        "micro_f1": float(micro),
        "macro_f1": float(macro),
        "accuracy": float(accuracy),
        "auroc": _auroc(scores, one_hot),
    } | area


def metric_text(name: str, value: float) -> str:
    """Format a metric: three decimals; an error of regression, in the label's unit, in four significant digits.

    Example:
        >>> metric_text("r2", 0.71234), metric_text("mae", 0.00012346), metric_text("rmse", 12345678.9)
        ('0.712', '0.0001235', '1.235e+07')
    """
    return f"{value:.4g}" if name in ("mae", "rmse") else f"{value:.3f}"


def _multilabel_f1(found: Tensor, truth: Tensor, average: Literal["micro", "macro"]) -> Tensor:
    """F1 over labels; torchmetrics accepts a single label only as a binary task."""
    from torchmetrics.functional.classification import binary_f1_score, multilabel_f1_score

    if truth.shape[1] == 1:
        return binary_f1_score(found[:, 0], truth[:, 0])
    return multilabel_f1_score(found, truth, num_labels=truth.shape[1], average=average)


def _auroc(scores: Tensor, one_hot: Tensor) -> float:
    from torchmetrics.functional.classification import binary_auroc

    areas = [
        float(binary_auroc(scores[:, c], one_hot[:, c]))
        for c in range(one_hot.shape[1])
        if 0 < int(one_hot[:, c].sum()) < len(one_hot)
    ]
    return sum(areas) / len(areas) if areas else float("nan")


def auprc(scores: Tensor, classes: Tensor) -> float:
    """The average precision of the rarer of two classes, of equally many of the second; NaN where one is missing.

    Shapes:
        scores: (n, 2). classes: (n,) 0 or 1.
    """
    from torchmetrics.functional.classification import binary_average_precision

    second = int(classes.sum())
    if not 0 < second < len(classes):
        return float("nan")
    rarer = 0 if len(classes) < 2 * second else 1
    return float(binary_average_precision(scores[:, rarer], (classes == rarer).long()))
