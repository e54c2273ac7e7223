"""Several networks for one run; beyond the paper.

They see the same prepared subgraphs, and differ in initial weights, in random node embeddings, in the order of batches
and in dropout. Each is selected on validation by itself; the answer is the mean of their outputs. What one network has
learned by heart another has not, so that the mean is steadier than any of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from subgnn.assemble import kept_weights
from subgnn.config import TrainingSettings
from subgnn.nn.committee import Committee
from subgnn.training.candidates import Candidate
from subgnn.training.checkpoint import joined_weights
from subgnn.training.loop import Examples, Progress, class_weights, evaluate


def join(
    candidates: Sequence[Candidate], fitted: Sequence[Progress], examples: Examples, settings: TrainingSettings
) -> tuple[Progress, nn.Module, dict[str, torch.Tensor]]:
    """The fitted networks as one: how they do together on validation, what answers, and the weights to keep.

    The selected epoch is that of the first.
    """
    for candidate, progress in zip(candidates, fitted, strict=True):
        candidate.model.load_state_dict(progress.best_state)
    model = Committee(candidate.model for candidate in candidates).to(examples.targets.device)
    weights = class_weights(examples, settings)  # as for each of them, so that losses can be compared
    val_loss, val = evaluate(model, examples, examples.val, settings.batch_size, weights)
    first = fitted[0]
    together = Progress(
        lr=first.lr,
        epoch=first.epoch,
        best_epoch=first.best_epoch,
        best=(val.get("micro_f1", -val_loss), val_loss),
        best_metrics={"loss": val_loss, **val},
        seconds=[seconds for progress in fitted for seconds in progress.seconds],
    )
    return together, model, joined_weights([kept_weights(progress.best_state) for progress in fitted])
