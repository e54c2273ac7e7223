"""One run: prepare, train, select on validation, score once on test, and write a folder that a person can read."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.embeddings.sources import PRETRAINED, check_source, save_run_vectors
from subgnn.errors import UserError
from subgnn.metrics.calibration import calibration_error
from subgnn.metrics.coverage import HeldOutScores
from subgnn.metrics.significance import headline_interval
from subgnn.metrics.thresholds import NONE, Decision, check_aim
from subgnn.models.checkpoint import save_checkpoint
from subgnn.models.examples import label_unit, target_tensor
from subgnn.models.novelty import Novelty
from subgnn.models.recipes import check_recipe
from subgnn.models.registry import model_of, names_where, trainable_model_of
from subgnn.models.spec import BASELINE
from subgnn.parallel.locks import locked_folder
from subgnn.result import CorrectedBaseline, RunResult, read_result
from subgnn.storage.cache import cache_limit
from subgnn.storage.files import remove_leftovers
from subgnn.task import task_of
from subgnn.training.cross_validation import CrossValidation
from subgnn.training.devices import Fabric, Ranks, in_turn, make_fabric
from subgnn.training.fit import FitHooks, FitResult, check_labels, fit
from subgnn.training.logs import Recorder
from subgnn.training.options import NO_CALLBACKS, RunOptions, TrainedRun
from subgnn.training.portfolio_run import train_portfolio
from subgnn.training.run_dir import (
    CHECKPOINT,
    LAST,
    PAGE,
    can_resume,
    claim_run,
    is_finished,
    keep_dataset,
    keep_subgraphs,
    result_fields,
)


def train_run(dataset: Dataset, options: RunOptions, *, ranks: Ranks | None = None) -> RunResult:
    """Train a recipe and write the run's folder (:func:`subgnn.api.train_recipe.train`); all ranks get the result."""
    recipe, out, resume = options.recipe, options.out, options.resume
    fabric = make_fabric(options.device, ranks)
    check_recipe(recipe, dataset.graph)
    model = model_of(recipe)
    if ranks is not None:
        check_ranks(options, ranks)
    first = fabric.is_global_zero
    if not first:  # one rank reports and writes
        options = replace(options, callbacks=NO_CALLBACKS)
    if resume and is_finished(out):
        if first:
            can_resume(options)
            keep_subgraphs(dataset, out)
        return _finished(dataset, options, first=first)
    if model.uses_embeddings(recipe):
        check_source(recipe)
    check_aim(recipe.training.threshold, dataset.subgraphs.task)
    # Too few subgraphs are refused before any work.
    pool = CrossValidation.of(dataset, recipe.auto, options.seed) if recipe.is_portfolio else None
    if pool is None:
        check_labels(dataset.subgraphs)
    with claim_run(options) if first else nullcontext():
        if resume and ranks is None and is_finished(out):  # another process has finished it meanwhile
            return _finished(dataset, options, first=first)
        if first and options.keep_data:
            keep_dataset(dataset, out)
        if first:
            keep_subgraphs(dataset, out)
        result = _train(dataset, options, fabric, ranks) if pool is None else train_portfolio(dataset, options, pool)
    if ranks is not None:  # a process that ends while it is connected may be aborted
        cast(Any, fabric).barrier()
        torch.distributed.destroy_process_group()
    return result


def check_ranks(options: RunOptions, ranks: Ranks) -> None:
    """Refuse a training that several ranks cannot do."""
    recipe = options.recipe
    if recipe.is_portfolio or not trainable_model_of(recipe).trains_on_many_devices:
        names = ", ".join(names_where("trains_on_many_devices"))
        hint = f"with several devices: {names}; for other methods, which are small, start one process"
        raise UserError(f"the method {recipe.method} is fitted on one device", where="torchrun", hint=hint)
    gpus = torch.cuda.device_count()
    if options.device != "cpu" and (gpus or options.device == "cuda") and gpus < ranks.local_size:
        hint = f"give --nproc-per-node {gpus}, or compute with --device cpu"
        raise UserError(f"there are {ranks.local_size} processes, but only {gpus} GPUs", where="torchrun", hint=hint)
    if recipe.embeddings.source in PRETRAINED and not (options.cache and cache_limit()):
        hint = "leave --no-cache out, or pretrain into a file first with subgnn pretrain"
        raise UserError("pretrained embeddings are shared through the cache", where="torchrun", hint=hint)


def _train(dataset: Dataset, options: RunOptions, fabric: Fabric, ranks: Ranks | None) -> RunResult:
    """Train in this process, into a folder that belongs to the run; every rank calls this."""
    out, recorder = options.out, Recorder(options, fabric)
    found = fit(
        options.recipe,
        dataset,
        seed=options.seed,
        device=options.device,
        cache=options.cache,
        hooks=FitHooks(
            options.callbacks.on_pretrain,
            options.callbacks.on_prepare,
            recorder.after_epoch,
            preparing=lambda: in_turn(fabric, ranks),
            fitting=recorder.fitting,
        ),
        fabric=fabric,
    )
    if not fabric.is_global_zero:
        return cast("RunResult", fabric.broadcast(None))
    found = with_comparisons(with_decision(found, dataset, options), dataset, options.seed)
    save_run_vectors([] if found.vectors is None else [found.vectors], dataset.graph.undirected(), out)
    save_checkpoint(found.checkpoint, out / CHECKPOINT)
    result = RunResult(
        **result_fields(options, dataset, fabric.device, fabric.world_size),
        **_scores(dataset, options.recipe, found),
        seconds=found.seconds,
    )
    result.save(out)
    (out / LAST).unlink(missing_ok=True)
    if options.write_page is not None:
        trained = TrainedRun(
            result,
            options.recipe,
            found.checkpoint,
            tables={} if found.vectors is None else {found.checkpoint.spec.vectors_hash: found.vectors},
            records=recorder.records,
            outputs=found.outputs.get("test", found.outputs.get("val")),
        )
        options.write_page(dataset, out, trained)
    return cast("RunResult", fabric.broadcast(result))


def _finished(dataset: Dataset, options: RunOptions, *, first: bool) -> RunResult:
    """The result of a finished run; the first rank tidies up, and writes the page if it is missing."""
    out = options.out
    page_missing = options.write_page is not None and not (out / PAGE).is_file()
    left = any(path.name == LAST or path.name.startswith(".") for path in out.iterdir())  # by a process that was killed
    if first and (page_missing or left):
        with locked_folder(out):
            remove_leftovers(out)
            (out / LAST).unlink(missing_ok=True)
            if page_missing and options.write_page is not None:
                options.write_page(dataset, out, None)
    return read_result(out)


def _scores(dataset: Dataset, recipe: Recipe, found: FitResult) -> dict[str, Any]:
    """Fields of the result: scores on validation and, computed here and only once, on test; thresholds; selection."""
    subgraphs, task, scores = dataset.subgraphs, task_of(dataset.subgraphs.task), {}
    intervals, counts, errors = {}, {}, {}
    progress, spec, baseline = found.progress, found.checkpoint.spec, found.checkpoint.parts.get(BASELINE)
    thresholds = 0.5 if spec.decision is None else spec.decision.thresholds(spec.classes)
    select_by = task.selection_metric(recipe.training.select_by)
    options: dict[str, Any] = {"thresholds": thresholds, "select_by": select_by, "unit": label_unit(spec.standards)}
    for split, given in found.outputs.items():
        outputs, some = torch.from_numpy(given), subgraphs.take(subgraphs.indices(split))
        targets = target_tensor(some, spec.standards)
        intervals[split] = headline_interval([outputs], targets, some, thresholds=thresholds)
        scores[split] = task.metrics(outputs, targets, **options)
        errors[split] = calibration_error(task, task.scores(given), targets.numpy())
        if spec.decision is not None and split == "test":
            counts[split] = spec.decision.counts(task.probabilities(outputs).numpy(), targets.numpy(), spec.classes)
    corrected = baseline and CorrectedBaseline(method=baseline.spec.method, candidate=baseline.spec.title)
    return {
        "selected_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        "val": progress.best_metrics | (scores["val"] if spec.decision is not None else {}),
        "test": scores.get("test", {}),
        "intervals": intervals,
        "calibration_error": errors.get("test", errors.get("val")),
        "select_by": "auto" if recipe.training.select_by == "auto" else select_by,
        "threshold": None if spec.decision is None else spec.decision.report(**counts),
        "baseline": corrected,
        **found.selection,
    }


def with_decision(found: FitResult, dataset: Dataset, options: RunOptions) -> FitResult:
    """The trained model with thresholds for the aim of the recipe; the same without an aim."""
    settings, subgraphs = options.recipe.training, dataset.subgraphs
    if settings.threshold == NONE:
        return found
    targets, spec = np.asarray(subgraphs.targets), found.checkpoint.spec
    decision = Decision.choose(
        settings.threshold,
        task_of(spec.task).probabilities(torch.from_numpy(found.outputs["val"])).numpy(),
        targets[subgraphs.indices("val")],
        task=spec.task,
        classes=spec.classes,
        positive=task_of(spec.task).positive(targets[subgraphs.indices("train")]),
        chosen_on="validation",
    )
    return replace(found, checkpoint=replace(found.checkpoint, spec=replace(spec, decision=decision)))


def with_comparisons(found: FitResult, dataset: Dataset, seed: int) -> FitResult:
    """The trained model with its scores on validation, for sets of labels, and training subgraphs to compare with."""
    subgraphs, spec = dataset.subgraphs, found.checkpoint.spec
    predicted = task_of(spec.task).scores(found.outputs["val"], spec.standards.get("target"))
    truth = np.asarray(subgraphs.targets)[subgraphs.indices("val")]
    held_out = HeldOutScores.of(predicted[None], truth, spec.task)
    novelty = Novelty.of(dataset.graph.undirected(), subgraphs.nodes.take(subgraphs.indices("train")), seed)
    return replace(found, checkpoint=replace(found.checkpoint, spec=replace(spec, held_out=held_out, novelty=novelty)))
