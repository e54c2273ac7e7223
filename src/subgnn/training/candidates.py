"""Set up the candidates of a recipe, fit them, and select the final model: the best candidate, or an ensemble.

A recipe may leave a choice open, as whether embeddings are frozen or fine-tuned. Each way to make it is a candidate.
The rule between candidates: the higher validation score by training.select_by, micro-F1 by default; then one that was
fitted in one go before one whose epoch was selected on validation, as the best of many looks flatters; then the lower
validation loss, then the earlier one.

Members of an ensemble, beyond the paper, see the same prepared subgraphs, and differ in initial weights, in random node
embeddings, in the order of batches and in dropout. Each is selected on validation by itself; the output is the mean of
theirs. What one network has memorised another has not, so that the mean is steadier than any of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config.settings import Recipe, TrainingSettings
from subgnn.data.dataset import Dataset
from subgnn.errors import UserError
from subgnn.models.examples import Examples, Source, evaluate, validation_score
from subgnn.models.interface import Candidate, Solvable, TrainingData
from subgnn.models.metrics import selection_metric
from subgnn.models.registry import check_edges, model_of, set_up_model
from subgnn.models.spec import BASELINE, Checkpoint, join_weights
from subgnn.models.subgnn.streamed import StreamedInputs
from subgnn.models.weighting import Weighting
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.result import Member
from subgnn.training.global_batch import use_global_batch
from subgnn.training.labels import check_labels
from subgnn.training.loop import AfterEpoch, Progress, State, epoch_record, fit
from subgnn.training.steps import Fitting


def set_up(
    dataset: Dataset,
    recipe: Recipe,
    seed: int,
    device: torch.device,
    *,
    vectors: NDArray[np.float32] | None = None,
    cache: bool = True,
    on_prepare: OnProgress = ignore,
) -> tuple[Sequence[Candidate], Examples]:
    """Make the networks that are to be fitted, and the examples they learn from.

    Args:
        vectors: embeddings of all nodes (N, d), if the model uses them and they are not random.
        cache, on_prepare: as for :func:`~subgnn.experiments.train.train`.
    """
    graph, subgraphs = dataset.graph.undirected(), dataset.subgraphs
    check_labels(subgraphs)
    check_edges(recipe, graph)
    Weighting.of(recipe.training, subgraphs)  # refused before any work
    selection_metric(recipe.training.select_by, subgraphs.task)
    data = TrainingData(graph, subgraphs, seed, device, vectors=vectors, cache=cache, on_prepare=on_prepare)
    found = set_up_model(data, recipe)
    standards = found.candidates[0].checkpoint.spec.standards
    sources: list[Source] = [source.to(device) for source in found.sources]
    return found.candidates, Examples.of(
        subgraphs, sources, standards, recipe.training, ensemble=recipe.prepare.ensemble
    )


def fit_candidate(candidate: Candidate, fitting: Fitting, *, resume: State | None, after_epoch: AfterEpoch) -> Progress:
    """Fit by gradient steps, or in one go, which counts as one epoch; see :func:`~subgnn.training.loop.fit`."""
    network, examples, settings = candidate.network, fitting.examples, fitting.settings
    if not isinstance(network, Solvable):
        if fitting.fabric.world_size > 1:
            _check_table(network, examples)
            use_global_batch(network)
        corrects = BASELINE in candidate.checkpoint.parts
        return fit(network, fitting, resume=resume, after_epoch=after_epoch, first_as_it_is=corrects)
    if resume is not None:
        return Progress(**resume["progress"])
    begin = time.perf_counter()
    network.to(fitting.fabric.device)
    network.solve(examples)
    train_loss, _ = evaluate(network, examples, examples.train, settings.batch_size)
    val_loss, val = evaluate(network, examples, examples.val, settings.batch_size)
    progress = Progress(epoch=1)
    progress.select(0, network, val_loss, val, select_by=examples.select_by)
    progress.seconds = [time.perf_counter() - begin]
    after_epoch(epoch_record(0, train_loss, val_loss, val), progress, lambda: {"progress": progress.plain()})
    return progress


def _check_table(network: nn.Module, examples: Examples) -> None:
    """Refuse many devices for a table that is learned by rows: gradients gathered over ranks cannot be sparse.

    Raises:
        UserError: if the table is so large that it is learned by rows.
    """
    table = getattr(network, "table", None)
    if isinstance(examples.inputs, StreamedInputs) and table is not None and table.requires_grad:
        what = f"a learned table of {table.shape[0]:,} nodes x {table.shape[1]} numbers is trained on one device"
        hint = "set embeddings.trainable=false, take a smaller embeddings.dim or fewer anchors, or leave --devices out"
        raise UserError(what, where="--devices", hint=hint)


def best_of(fitted: Sequence[Progress]) -> int:
    """The place of the candidate that is selected.

    Example:
        >>> best_of([Progress(best=(0.5, 1.0)), Progress(best=(0.5, 0.9)), Progress(best=(0.5, 0.9))])
        1
        >>> best_of([Progress(best=(0.5, 0.9), epoch=100), Progress(best=(0.5, 1.0), epoch=1)])
        1
    """
    return max(range(len(fitted)), key=lambda i: (fitted[i].best[0], fitted[i].epoch == 1, -fitted[i].best[1], -i))


def comparison(candidates: Sequence[Candidate], fitted: Sequence[Progress], chosen: int) -> dict[str, Any]:
    """Fields of the result: the candidates, their validation scores, and the one that was selected."""
    names = [candidate.name for candidate in candidates]
    found: dict[str, Any] = {
        "candidate": names[chosen],
        "candidates": {name: progress.best_metrics for name, progress in zip(names, fitted, strict=True)},
    }
    embeddings = names[chosen].partition(",")[0]
    return found | ({"embeddings": embeddings} if embeddings in ("frozen", "trainable") else {})


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """The final model of a run: its network, its checkpoint with weights, and its progress on validation.

    ``about`` are fields of the result about the selection.
    """

    network: nn.Module
    checkpoint: Checkpoint
    progress: Progress
    about: dict[str, Any]


def select_model(
    candidates: Sequence[Candidate], fitted: Sequence[Progress], examples: Examples, settings: TrainingSettings
) -> Selected:
    """Select the best candidate on validation; or all of them, if they are members of an ensemble."""
    checkpoint = candidates[0].checkpoint
    stored = model_of(checkpoint.spec).stored_weights
    if checkpoint.spec.members > 1:
        weights = join_weights([stored(one.best_state) for one in fitted])
        return _join(candidates, fitted, examples, settings, replace(checkpoint, weights=weights))
    chosen = best_of(fitted)
    network, progress = candidates[chosen].network, fitted[chosen]
    network.to(examples.targets.device).load_state_dict(progress.best_state)
    about = comparison(candidates, fitted, chosen) if candidates[0].name else {}
    checkpoint = replace(candidates[chosen].checkpoint, weights=stored(progress.best_state))
    return Selected(network, checkpoint, progress, about)


class Ensemble(nn.Module):
    """Networks of one shape whose outputs are averaged.

    Shapes:
        out: (n, outputs), the mean of the members' logits.
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, batch: Any) -> Tensor:
        """Logits; one value for regression."""
        return torch.stack([member(batch) for member in self.members]).mean(dim=0)


def _join(
    candidates: Sequence[Candidate],
    fitted: Sequence[Progress],
    examples: Examples,
    settings: TrainingSettings,
    checkpoint: Checkpoint,
) -> Selected:
    """The fitted networks as an ensemble; the selected epoch is that of the first."""
    for candidate, progress in zip(candidates, fitted, strict=True):
        candidate.network.load_state_dict(progress.best_state)
    network = Ensemble([candidate.network for candidate in candidates]).to(examples.targets.device)
    val_loss, val = evaluate(network, examples, examples.val, settings.batch_size)
    first = fitted[0]
    together = Progress(
        epoch=first.epoch,
        best_epoch=first.best_epoch,
        best=validation_score(val_loss, val, examples.select_by),
        best_metrics={"loss": val_loss, **val},
        seconds=[seconds for progress in fitted for seconds in progress.seconds],
    )
    about = tuple(Member(selected_epoch=one.best_epoch, epochs=one.epoch, val=one.best_metrics) for one in fitted)
    return Selected(network, checkpoint, together, {"members": about})
