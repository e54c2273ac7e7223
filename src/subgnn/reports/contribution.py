"""What each part of a subgraph's vector is worth to a trained network.

A part is the columns of z_S that hold z^(0), one subchannel, the topology statistics or the size. Its contribution is
how much the scores fall when these columns, as the head receives them, become their means over the training split:

    score(head(z)) - score(head(z with z[:, part] = mean over training of z[:, part]))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from subgnn.data.subgraphs import Task
from subgnn.training.metrics import metrics


@dataclass(frozen=True, slots=True)
class Contribution:
    """How far two scores fall without a part.

    ``score`` is micro-F1, for regression R^2. ``fit`` is the mean log-probability of the truth, for regression the root
    mean square error with its sign turned, so that higher is better in both.
    """

    part: str
    columns: int
    score: float
    fit: float


def scores(outputs: Tensor, targets: Tensor, task: Task) -> tuple[float, float]:
    """Score and fit of a network's outputs; of a multi-label truth, the log-probability is a mean over classes too."""
    found = metrics(outputs, targets, task)
    if task == "regression":
        return found["r2"], -found["rmse"]
    if task == "multi-label":
        return found["micro_f1"], -float(functional.binary_cross_entropy_with_logits(outputs, targets.float()))
    return found["micro_f1"], -float(functional.cross_entropy(outputs, targets.long()))


@torch.no_grad()
def contributions(
    head: nn.Module,
    parts: Mapping[str, Sequence[slice]],
    *,
    vectors: Tensor,
    means: Tensor,
    targets: Tensor,
    task: Task,
) -> list[Contribution]:
    """The contribution of each part, in the order of ``parts``.

    Args:
        head: from z_S to outputs, in evaluation mode.
        parts: the columns of each part.
        means: of z_S over the training split.

    Shapes:
        vectors: (n, width). means: (width,). targets: as :func:`~subgnn.training.metrics.metrics` takes them.
    """
    whole = scores(head(vectors), targets, task)
    found = []
    for part, columns in parts.items():
        without = vectors.clone()
        for some in columns:
            without[:, some] = means[some]
        left = scores(head(without), targets, task)
        width = sum(some.stop - some.start for some in columns)
        found.append(Contribution(part, width, whole[0] - left[0], whole[1] - left[1]))
    return found
