"""What answers for a run: the best of its candidates, or several networks together; the latter beyond the paper.

Several networks see the same prepared subgraphs, and differ in initial weights, in random node embeddings, in the order
of batches and in dropout. Each is selected on validation by itself; the answer is the mean of their outputs. What one
network has learned by heart another has not, so that the mean is steadier than any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from subgnn.config.settings import TrainingSettings
from subgnn.models.ensemble import Committee
from subgnn.models.spec import Checkpoint, join_weights
from subgnn.models.subgnn.build import kept_weights
from subgnn.training.candidates import Candidate, best_of, comparison
from subgnn.training.evaluation import Examples, evaluate
from subgnn.training.loop import Progress, class_weights


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """What answers for a run.

    Its progress on validation, the model, the checkpoint that the weights go into, and what run.json says of the rest.
    """

    progress: Progress
    model: nn.Module
    checkpoint: Checkpoint
    weights: dict[str, torch.Tensor]
    told: dict[str, Any]


def settle(
    candidates: Sequence[Candidate], fitted: Sequence[Progress], examples: Examples, settings: TrainingSettings
) -> Settled:
    """The best candidate on validation; or, where they are several networks of one run, all of them."""
    if candidates[0].checkpoint.spec.members > 1:
        return _join(candidates, fitted, examples, settings)
    chosen = best_of(fitted)
    progress, model = fitted[chosen], candidates[chosen].model
    model.to(examples.targets.device).load_state_dict(progress.best_state)
    told = comparison(candidates, fitted, chosen) if candidates[0].name else {}
    return Settled(progress, model, candidates[chosen].checkpoint, kept_weights(progress.best_state), told)


def _join(
    candidates: Sequence[Candidate], fitted: Sequence[Progress], examples: Examples, settings: TrainingSettings
) -> Settled:
    """The fitted networks as one; the selected epoch is that of the first."""
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
    told = [
        {"selected_epoch": one.best_epoch, "epochs": one.epoch, "lr": one.lr, "val": one.best_metrics} for one in fitted
    ]
    kept = join_weights([kept_weights(progress.best_state) for progress in fitted])
    return Settled(together, model, candidates[0].checkpoint, kept, {"members": told})
