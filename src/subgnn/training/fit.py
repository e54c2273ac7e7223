"""One training of one model, in memory: a named recipe is one fit, a portfolio one for each candidate and fold.

Nothing is written but caches, and nothing is printed: :class:`FitHooks` report progress, save it, and stop a fit.

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import median
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import LARGEST_LABEL, SPLITS, SubgraphSet
from subgnn.embeddings.sources import source_vectors, vectors_hash
from subgnn.errors import DataError, UserError, excerpt
from subgnn.metrics.significance import calibration_error, headline_interval
from subgnn.metrics.weighting import loss_weights
from subgnn.models.examples import (
    Examples,
    evaluate,
    judged_outputs,
    label_unit,
    state_of,
    target_tensor,
    validation_score,
)
from subgnn.models.interface import Candidate, Solvable, TrainingData, Vectors
from subgnn.models.registry import check_edges, set_up_model, trainable_model_of
from subgnn.models.spec import BASELINE, Checkpoint, ModelSpec, join_weights
from subgnn.parallel.progress import OnEpoch, OnProgress, ignore
from subgnn.result import Member, Seconds
from subgnn.task import Standard, Thresholds, task_of
from subgnn.training.devices import Fabric, make_fabric, use_global_batch
from subgnn.training.loop import AfterEpoch, Progress, State, epoch_record, run_epochs
from subgnn.training.steps import Fitting

TRAIN, VAL, HELD_OUT = (SPLITS.index(split) for split in ("train", "val", "test"))


class Stopped(Exception):
    """A fit was stopped between two epochs."""


@dataclass(frozen=True, slots=True)
class FitHooks:
    """Functions that a fit calls, to report pretraining, preparation and epochs.

    ``after_epoch`` gets each epoch's record, and a function that returns the state to resume from; it may raise, which
    ends the fit. ``preparing`` and ``fitting`` are contexts; the latter gives the state to resume from, or None.
    """

    on_pretrain: OnEpoch = ignore
    on_prepare: OnProgress = ignore
    after_epoch: Callable[[dict[str, Any], Callable[[], State]], None] = ignore
    preparing: Callable[[], AbstractContextManager[None]] = nullcontext
    fitting: Callable[[], AbstractContextManager[State | None]] = nullcontext


NO_HOOKS = FitHooks()


@dataclass(frozen=True, slots=True, eq=False)
class FitResult:
    """A trained model: its recipe with all choices made, the checkpoint that predictions need, progress on validation.

    ``selection`` are fields of the result about candidates or members; ``vectors`` the node embeddings that the model
    started from (N, dim). ``outputs`` are those that were asked for, by split (n, outputs).
    """

    recipe: Recipe
    checkpoint: Checkpoint
    progress: Progress
    seconds: Seconds
    vectors: Vectors = None
    selection: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    @property
    def predictions(self) -> NDArray[np.float64]:
        """Probabilities, or values in units of the label, for the test subgraphs (n, outputs)."""
        spec = self.checkpoint.spec
        return task_of(spec.task).scores(self.outputs["test"], spec.standards.get("target"))


def fit(
    recipe: Recipe,
    dataset: Dataset,
    splits: NDArray[np.int8] | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    cache: bool = True,
    vectors: Vectors = None,
    join: bool = False,
    outputs: Sequence[str] = ("val", "test"),
    hooks: FitHooks = NO_HOOKS,
    fabric: Fabric | None = None,
) -> FitResult:
    """Train a model.

    Args:
        splits: which subgraphs are to learn from (0), to choose on (1), and held out (2); by default the dataset's.
        join: solve a model that is fitted in one go again on the first two splits, after its choices are made.
        fabric: of several ranks; by default this process alone, on ``device``.
    """
    begin = time.monotonic()
    if splits is not None:
        dataset = replace(dataset, subgraphs=replace(dataset.subgraphs, splits=splits))
    graph, model = _undirected(dataset.graph), trainable_model_of(recipe)
    fabric = fabric or make_fabric(device)
    with hooks.preparing():
        if vectors is None and model.uses_embeddings(recipe):
            vectors = source_vectors(recipe, graph, device=device, cache=cache, on_epoch=hooks.on_pretrain)
        pretrained_at = time.monotonic()
        data = TrainingData(graph, dataset.subgraphs, seed, fabric.device, vectors, cache, hooks.on_prepare)
        # Without a choice that is left to validation, both splits are learned from at once.
        at_once = join and model.is_fitted_in_one_go and len(model.candidates(recipe)) == 1
        candidates, examples = set_up(data, recipe, join=at_once)
    prepared_at = time.monotonic()
    if at_once and isinstance(candidates[0].network, Solvable):
        chosen, progress, selection = _solved(candidates[0], examples), Progress(epoch=1), dict[str, Any]()
    else:
        if at_once:  # it is trained after all
            candidates, examples = set_up(data, recipe)
        fitted = _fit_all(candidates, examples, fabric, hooks)
        chosen, progress, selection = _select(candidates, fitted, examples, recipe)
        if join and isinstance(chosen.network, Solvable):
            (first, *_), examples = set_up(data, chosen.recipe, join=True)
            chosen = _solved(first, examples)
    ended = time.monotonic()
    judged = {
        split: judged_outputs(chosen.network, examples, rows, recipe.training.batch_size)[0].float().cpu().numpy()
        for split in outputs
        if len(rows := dataset.subgraphs.indices(split))
    }
    started_from = "" if vectors is None else vectors_hash(vectors)
    checkpoint = replace(chosen.checkpoint, spec=replace(chosen.checkpoint.spec, vectors_hash=started_from))
    times = {"pretrain": pretrained_at - begin, "prepare": prepared_at - pretrained_at, "train": ended - prepared_at}
    seconds = Seconds(**times, epoch_median=median(progress.seconds or [ended - prepared_at]))
    return FitResult(chosen.recipe, checkpoint, progress, seconds, vectors, selection=selection, outputs=judged)


def _fit_all(candidates: Sequence[Candidate], examples: Examples, fabric: Fabric, hooks: FitHooks) -> list[Progress]:
    with hooks.fitting() as before:
        fitted = [] if before is None else [Progress(**progress) for progress in before["fitted"]]

        def after_epoch(record: dict[str, Any], progress: Progress, state: Callable[[], State]) -> None:
            record = record | ({"candidate": candidate.name} if candidate.name else {})
            hooks.after_epoch(record, lambda: state() | {"fitted": [one.plain() for one in fitted]})

        for candidate in candidates[len(fitted) :]:
            fitting = Fitting(examples, candidate.recipe.training, candidate.seed, fabric)
            fitted.append(fit_candidate(candidate, fitting, resume=before, after_epoch=after_epoch))
            before = None
    return fitted


def best_of(fitted: Sequence[Progress]) -> int:
    """The place of the candidate that is selected.

    Example:
        >>> best_of([Progress(best=(0.5, 1.0)), Progress(best=(0.5, 0.9)), Progress(best=(0.5, 0.9))])
        1
        >>> best_of([Progress(best=(0.5, 0.9), epoch=100), Progress(best=(0.5, 1.0), epoch=1)])
        1
    """
    return max(range(len(fitted)), key=lambda i: (fitted[i].best[0], fitted[i].epoch == 1, -fitted[i].best[1], -i))


class Ensemble(nn.Module):
    """Networks of one shape whose outputs are averaged (n, outputs)."""

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, batch: Any) -> Tensor:
        return torch.stack([member(batch) for member in self.members]).mean(dim=0)


def _select(
    candidates: Sequence[Candidate], fitted: Sequence[Progress], examples: Examples, recipe: Recipe
) -> tuple[Candidate, Progress, dict[str, Any]]:
    """Select the best candidate on validation, or all of them as one, if they are members of an ensemble.

    Returns it with its weights, its progress, and fields of the result.
    """
    if candidates[0].checkpoint.spec.members == 1:
        place = best_of(fitted)
        chosen, progress, selection = candidates[place], fitted[place], dict[str, Any]()
        chosen.network.to(examples.targets.device).load_state_dict(progress.best_state)
        if chosen.name:
            embeddings = chosen.name.partition(",")[0]
            selection = {
                "candidate": chosen.name,
                "candidates": {one.name: p.best_metrics for one, p in zip(candidates, fitted, strict=True)},
                "embeddings": embeddings if embeddings in ("frozen", "trainable") else "",
            }
        return _with_weights(chosen, state_of(chosen.network)), progress, selection
    weights = join_weights([one.best_state for one in fitted])
    for candidate, progress in zip(candidates, fitted, strict=True):
        candidate.network.load_state_dict(progress.best_state)
    network = Ensemble([candidate.network for candidate in candidates]).to(examples.targets.device)
    val_loss, val = evaluate(network, examples, examples.val, recipe.training.batch_size)
    together = Progress(
        epoch=fitted[0].epoch,
        best_epoch=fitted[0].best_epoch,
        best=validation_score(val_loss, val, examples.select_by),
        best_metrics={"loss": val_loss, **val},
        seconds=[seconds for progress in fitted for seconds in progress.seconds],
    )
    members = tuple(Member(selected_epoch=one.best_epoch, epochs=one.epoch, val=one.best_metrics) for one in fitted)
    whole = replace(candidates[0], network=network, recipe=recipe)
    return _with_weights(whole, weights), together, {"members": members}


def _solved(candidate: Candidate, examples: Examples) -> Candidate:
    network = candidate.network.to(examples.targets.device)
    cast(Solvable, network).solve(examples)
    return _with_weights(replace(candidate, network=network), state_of(network))


def _with_weights(candidate: Candidate, weights: State) -> Candidate:
    return replace(candidate, checkpoint=replace(candidate.checkpoint, weights=weights))


_undirected = lru_cache(maxsize=1)(Graph.undirected)  # fits to many splits have the same graph


def set_up(data: TrainingData, recipe: Recipe, *, join: bool = False) -> tuple[Sequence[Candidate], Examples]:
    """Make the networks to fit, and the examples they learn from; with ``join``, those to choose on, too."""
    subgraphs = data.subgraphs
    check_labels(subgraphs)
    check_edges(recipe, data.graph)
    loss_weights(recipe.training, subgraphs)  # refused before any work
    task_of(subgraphs.task).selection_metric(recipe.training.select_by)
    if join:
        splits = np.asarray(subgraphs.splits)
        subgraphs = replace(subgraphs, splits=np.where(splits == VAL, TRAIN, splits).astype(np.int8))
    found = set_up_model(replace(data, subgraphs=subgraphs), recipe)
    return found.candidates, found.examples(subgraphs, recipe, data.device)


def fit_candidate(candidate: Candidate, fitting: Fitting, *, resume: State | None, after_epoch: AfterEpoch) -> Progress:
    """Fit by gradient steps, or in one go, which counts as one epoch; see :func:`~subgnn.training.loop.run_epochs`."""
    network, examples, settings = candidate.network, fitting.examples, fitting.settings
    if not isinstance(network, Solvable):
        if fitting.fabric.world_size > 1:
            # Gradients gathered over ranks cannot be sparse.
            table = getattr(network, "table", None)
            if getattr(examples.inputs, "looks_up_rows", False) and table is not None and table.requires_grad:
                what = f"a learned table of {len(table):,} nodes x {table.shape[1]} numbers is trained on one device"
                hint = "set embeddings.trainable=false, lower embeddings.dim, use fewer anchors, or start one process"
                raise UserError(what, where="torchrun", hint=hint)
            use_global_batch(network)
        corrects = BASELINE in candidate.checkpoint.parts
        return run_epochs(network, fitting, resume=resume, after_epoch=after_epoch, first_as_it_is=corrects)
    if resume is not None:
        return Progress(**resume["progress"])
    begin = time.perf_counter()
    candidate.network.to(fitting.fabric.device)
    network.solve(examples)
    train_loss, _ = evaluate(network, examples, examples.train, settings.batch_size)
    val_loss, val = evaluate(network, examples, examples.val, settings.batch_size)
    progress = Progress(epoch=1)
    progress.select(0, candidate.network, val_loss, val, select_by=examples.select_by)
    progress.seconds = [time.perf_counter() - begin]
    after_epoch(epoch_record(0, train_loss, val_loss, val), progress, lambda: {"progress": progress.plain()})
    return progress


def score_fields(
    found: Mapping[str, tuple[NDArray[Any], SubgraphSet]], spec: ModelSpec, thresholds: Thresholds, select_by: str
) -> dict[str, Any]:
    """Fields of the result: scores, the means of repeats, and 95 % intervals on each split, and the calibration error.

    ``found`` are outputs (repeats, n, outputs) for the labelled subgraphs of val and, unless there are none, of test.
    """
    task, scores, intervals, errors = task_of(spec.task), dict[str, Any](), {}, {}
    for split, (outputs, subgraphs) in found.items():
        targets = target_tensor(subgraphs, spec.standards)
        repeats = [torch.from_numpy(one.astype(np.float32)) for one in outputs]
        options: dict[str, Any] = {"unit": label_unit(spec.standards), "thresholds": thresholds, "select_by": select_by}
        each = [task.metrics(one, targets, **options) for one in repeats]
        scores[split] = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
        intervals[split] = headline_interval(repeats, targets, subgraphs, thresholds=thresholds)
        truth = np.concatenate([targets.numpy()] * len(outputs))
        errors[split] = calibration_error(task, np.concatenate(list(task.scores(outputs))), truth)
    return {"test": {}, **scores, "intervals": intervals, "calibration_error": errors.get("test", errors["val"])}


_WHERE = "train"
_FARTHEST = 1e15  # squared errors are added up in 32 bits, which end at 3e38


def check_labels(subgraphs: SubgraphSet) -> None:
    """Refuse labels that allow no training or no selection; for real values, no squared error in 32 bits."""
    targets = subgraphs.require_labels(_WHERE)
    for split in ("train", "val"):
        if not len(subgraphs.indices(split)):
            hint = "draw another split with subgnn data split; learning and selection need both"
            raise DataError(f"no subgraph in split '{split}'", where=_WHERE, hint=hint)
    task = task_of(subgraphs.task)
    if (task.one_class and subgraphs.num_classes == 1) or (task.real and targets.min() == targets.max()):
        what = f"all subgraphs have the label {excerpt(subgraphs.label_text(0))}"
        raise DataError(what, where=_WHERE, hint=f"at least two {'values' if task.real else 'classes'} are needed")
    if not task.real:
        return
    # A bundle may have such labels: they are not read one by one.
    outside = np.flatnonzero(~(np.abs(targets) <= LARGEST_LABEL))
    if len(outside):
        hint = f"accepted: finite numbers from -{LARGEST_LABEL:g} to {LARGEST_LABEL:g}"
        raise DataError(f"the label of subgraph {outside[0]} is {targets[outside[0]]}", where=_WHERE, hint=hint)
    standard = Standard.of(targets[subgraphs.indices("train"), None])
    if standard.deviation[0] < 1 / LARGEST_LABEL:
        what = f"the training labels have a standard deviation of {standard.deviation[0]:g}"
        hint = f"accepted: from {1 / LARGEST_LABEL:g}; give the labels in a smaller unit"
        raise DataError(what, where=_WHERE, hint=hint)
    distance = np.abs(targets - standard.mean[0]) / standard.deviation[0]
    farthest = int(distance.argmax())
    if distance[farthest] > _FARTHEST:
        what = f"the label {targets[farthest]:g} of subgraph {farthest} is {distance[farthest]:.3g} standard deviations"
        hint = f"accepted: up to {_FARTHEST:g}; correct it, leave it out, or give its logarithm"
        raise DataError(f"{what} from the mean of the training labels", where=_WHERE, hint=hint)
