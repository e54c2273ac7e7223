"""Set up the networks of a recipe and their examples, and fit one of them."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.errors import UserError
from subgnn.metrics.weighting import Weighting
from subgnn.models.examples import Examples, Source, StreamingSource, evaluate
from subgnn.models.interface import Candidate, Solvable, TrainingData
from subgnn.models.registry import check_edges, set_up_model
from subgnn.models.spec import BASELINE
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.task import task_of
from subgnn.training.global_batch import use_global_batch
from subgnn.training.labels import check_labels
from subgnn.training.loop import AfterEpoch, Progress, State, epoch_record, run_epochs
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
        cache, on_prepare: as for :func:`~subgnn.api.train_recipe.train`.
    """
    graph, subgraphs = dataset.graph.undirected(), dataset.subgraphs
    check_labels(subgraphs)
    check_edges(recipe, graph)
    Weighting.of(recipe.training, subgraphs)  # refused before any work
    task_of(subgraphs.task).selection_metric(recipe.training.select_by)
    data = TrainingData(graph, subgraphs, seed, device, vectors=vectors, cache=cache, on_prepare=on_prepare)
    found = set_up_model(data, recipe)
    standards = found.candidates[0].checkpoint.spec.standards
    sources: list[Source] = [source.to(device) for source in found.sources]
    return found.candidates, Examples.of(
        subgraphs, sources, standards, recipe.training, ensemble=recipe.prepare.ensemble
    )


def fit_candidate(candidate: Candidate, fitting: Fitting, *, resume: State | None, after_epoch: AfterEpoch) -> Progress:
    """Fit by gradient steps, or in one go, which counts as one epoch; see :func:`~subgnn.training.loop.run_epochs`."""
    network, examples, settings = candidate.network, fitting.examples, fitting.settings
    if not isinstance(network, Solvable):
        if fitting.fabric.world_size > 1:
            _check_table(network, examples)
            use_global_batch(network)
        corrects = BASELINE in candidate.checkpoint.parts
        return run_epochs(network, fitting, resume=resume, after_epoch=after_epoch, first_as_it_is=corrects)
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
    if isinstance(examples.inputs, StreamingSource) and table is not None and table.requires_grad:
        what = f"a learned table of {table.shape[0]:,} nodes x {table.shape[1]} numbers is trained on one device"
        hint = "set embeddings.trainable=false, take a smaller embeddings.dim or fewer anchors, or start one process"
        raise UserError(what, where="torchrun", hint=hint)
