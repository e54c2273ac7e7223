"""Losses, predictions and metrics of each task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from subgnn.data.subgraphs import Task
from subgnn.errors import UserError, choices, excerpt
from subgnn.metrics.ranking import average_precision, recall_at, recall_count, roc_area
from subgnn.metrics.weighting import EVEN, Weighting

Thresholds = NDArray[np.float32] | float
"""Probabilities above which a class or label is predicted.

Of several labels, one for each, or one for all. Of two classes, an array has the threshold of the positive class, and
NaN for the other, which is predicted where the first is not; without an array, the likelier one is predicted.
"""


def loss(outputs: Tensor, targets: Tensor, task: Task, weighting: Weighting = EVEN) -> Tensor:
    """Cross entropy; for multi-label, binary cross entropy on logits; for regression, squared error.

    Cross entropy is weighted as :class:`~subgnn.metrics.weighting.Weighting` says: a mean by the weights of classes, or
    of several labels over all pairs of a subgraph and a label.

    Shapes:
        outputs: (n, classes) or (n, 1). targets: (n,) classes, (n, classes) 0/1, or (n,) values.
    """
    weights = weighting.classes
    if task == "regression":
        return functional.mse_loss(outputs.squeeze(1), targets.to(outputs.dtype))
    if task == "multi-label":
        truth = targets.to(outputs.dtype)
        if not weighting.focal:
            return functional.binary_cross_entropy_with_logits(outputs, truth, pos_weight=weights)
        each = functional.binary_cross_entropy_with_logits(outputs, truth, pos_weight=weights, reduction="none")
        return (each * weighting.factor(functional.logsigmoid(torch.where(truth > 0, outputs, -outputs)))).mean()
    if not weighting.focal:
        return functional.cross_entropy(outputs, targets.long(), weight=weights)
    own = functional.log_softmax(outputs, dim=1).gather(1, targets.long()[:, None])[:, 0]
    weight = torch.ones_like(own) if weights is None else weights.to(own.dtype)[targets.long()]
    return (weight * weighting.factor(own) * -own).sum() / weight.sum()


def probabilities(outputs: Tensor, task: Task) -> Tensor:
    """Class probabilities; for regression, the values themselves."""
    if task == "multi-label":
        return torch.sigmoid(outputs)
    return outputs if task == "regression" else torch.softmax(outputs, dim=1)


def decide(scores: NDArray[Any], task: Task, thresholds: Thresholds = 0.5) -> NDArray[Any]:
    """Classes (n,), sets of classes (n, classes) whose probabilities are above their thresholds, or values (n,).

    Shapes:
        scores: (n, classes) probabilities, or (n, 1) values.

    Example:
        >>> scores = np.array([[0.7, 0.3], [0.9, 0.1]], np.float32)
        >>> decide(scores, "binary").tolist(), decide(scores, "binary", np.array([np.nan, 0.2], np.float32)).tolist()
        ([0, 0], [1, 0])
    """
    if task == "regression":
        return scores[:, 0]
    if task == "multi-label":
        return (scores > thresholds).astype(np.int64)
    if task == "binary" and np.ndim(thresholds):
        positive = int(np.flatnonzero(~np.isnan(thresholds))[0])
        return np.where(scores[:, positive] > np.asarray(thresholds)[positive], positive, 1 - positive)
    return np.asarray(scores.argmax(axis=1))


def predictions(outputs: Tensor, task: Task, thresholds: Thresholds = 0.5) -> Tensor:
    """As :func:`decide`, from outputs."""
    if task == "binary" and np.ndim(thresholds):
        return torch.from_numpy(decide(probabilities(outputs, task).cpu().numpy(), task, thresholds)).to(outputs.device)
    if task == "multi-label":
        return (probabilities(outputs, task) > torch.as_tensor(thresholds, device=outputs.device)).long()
    return outputs.squeeze(1) if task == "regression" else outputs.argmax(dim=1)


def metrics(
    outputs: Tensor,
    targets: Tensor,
    task: Task,
    *,
    unit: float = 1.0,
    thresholds: Thresholds = 0.5,
    select_by: str = "auto",
) -> dict[str, float]:
    """micro-F1, macro-F1, accuracy and AUROC; for regression, mean absolute error, root mean square error and R^2.

    AUROC is the mean over classes, one against the rest; a class that no subgraph or every subgraph has is left out.
    Multi-label accuracy counts a subgraph as correct when all its labels are. For two classes there is also AUPRC, the
    area under the precision-recall curve (average precision) of the rarer class, of equally many of the second; by
    chance it is the share of that class. Of several labels, it is the mean over those that can be ranked.

    Args:
        unit: the scale of standardised labels (:func:`~subgnn.models.examples.label_unit`), by which the two errors
            of regression are multiplied.
        thresholds: probabilities above which a class or label is predicted.
        select_by: ``recall@k`` adds this metric (:func:`~subgnn.metrics.ranking.recall_at`), of the same classes as
            AUPRC; others are there anyhow.
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
    else:
        micro = accuracy = (found == truth).float().mean()
        macro = multiclass_f1_score(found, truth, num_classes=classes, average="macro")
    scores = probabilities(outputs, task).numpy()
    found_metrics = {
        "micro_f1": float(micro),
        "macro_f1": float(macro),
        "accuracy": float(accuracy),
        "auroc": ranking_metric("auroc", scores, truth.numpy()),
    }
    if task != "multi-class":
        found_metrics["auprc"] = ranking_metric("auprc", scores, truth.numpy())
        if recall_count(select_by) is not None:
            found_metrics[select_by] = ranking_metric(select_by, scores, truth.numpy())
    return found_metrics


def ranking_metric(name: str, scores: NDArray[Any], truth: NDArray[Any]) -> float:
    """``auroc``, the mean over classes; ``auprc`` or ``recall@k`` of the rarer of two classes, of labels the mean.

    Of equally many, the second class is taken. A class that all subgraphs or none have is left out of a mean; NaN where
    nothing is left.

    Shapes:
        scores: (n, classes). truth: (n,) classes, or (n, labels) of 0 and 1.
    """
    if name == "auroc":
        classes = range(scores.shape[1])
        return _mean_of_defined(
            [roc_area(scores[:, c], truth[:, c] if truth.ndim == 2 else truth == c) for c in classes]
        )
    k = recall_count(name)
    of: Callable[[NDArray[Any], NDArray[Any]], float] = (
        average_precision if k is None else lambda some, true: recall_at(some, true, k)
    )
    if truth.ndim == 2:
        there = [c for c in range(truth.shape[1]) if 0 < int(truth[:, c].sum()) < len(truth)]
        return _mean_of_defined([of(scores[:, c], truth[:, c]) for c in there])
    if not 0 < int(truth.sum()) < len(truth):
        return float("nan")
    rarer = rarer_class(truth)
    return of(scores[:, rarer], truth == rarer)


def rarer_class(classes: NDArray[Any]) -> int:
    """The rarer of two classes, 0 and 1; of equally many the second."""
    return 0 if len(classes) < 2 * int(classes.sum()) else 1


_SELECTABLE = {
    "binary": ("micro_f1", "macro_f1", "accuracy", "auroc", "auprc", "recall@K"),
    "multi-class": ("micro_f1", "macro_f1", "accuracy", "auroc"),
    "multi-label": ("micro_f1", "macro_f1", "accuracy", "auroc", "auprc", "recall@K"),
    "regression": ("r2",),
}


def selection_metric(select_by: str, task: Task) -> str:
    """The metric that ``training.select_by`` names; ``auto`` is micro-F1, for real values R^2.

    Raises:
        UserError: for a metric that does not exist, or that the task does not have.

    Example:
        >>> selection_metric("auto", "regression"), selection_metric("recall@50", "binary")
        ('r2', 'recall@50')
    """
    known = _SELECTABLE[task]
    if select_by == "auto":
        return known[0]
    if ("recall@K" if recall_count(select_by) is not None else select_by) not in known:
        what = f"training.select_by is {excerpt(select_by)}, and the task is {task}"
        hint = choices(select_by, ["auto", *known]) + ("; K is a whole number from 1" if "recall@K" in known else "")
        raise UserError(what, where="train", hint=hint)
    return select_by


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


def _mean_of_defined(values: list[float]) -> float:
    """The mean of the values that are not NaN; NaN without any."""
    defined = [value for value in values if value == value]
    return sum(defined) / len(defined) if defined else float("nan")
