"""One run: prepare, train, select on validation, score once on test, and write a folder that a person can read."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from statistics import median
from typing import Any, cast

import numpy as np
import torch
from lightning.fabric import Fabric
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.embeddings.sources import check_source, save_run_vectors, source_vectors
from subgnn.models.checkpoint import save_checkpoint
from subgnn.models.examples import Examples, judged_outputs, vectors_of
from subgnn.models.metrics import metrics, probabilities
from subgnn.models.registry import check_recipe, model_of
from subgnn.models.significance import headline_interval
from subgnn.models.spec import BASELINE
from subgnn.parallel.locks import locked_folder
from subgnn.result import CorrectedBaseline, RunResult, Seconds, read_result
from subgnn.storage.files import remove_leftovers
from subgnn.training.candidates import Selected, best_of, select_model, set_up
from subgnn.training.devices import Ranks, current_ranks, in_turn, make_fabric
from subgnn.training.fit import stored_checkpoint
from subgnn.training.labels import check_labels
from subgnn.training.launch import check_devices, launch
from subgnn.training.logs import check_loggers, with_loggers
from subgnn.training.options import NO_CALLBACKS, RunOptions, TrainedRun
from subgnn.training.portfolio import Pool
from subgnn.training.portfolio_run import train_portfolio
from subgnn.training.resume import fit_all
from subgnn.training.run_dir import (
    CHECKPOINT,
    LAST,
    PAGE,
    can_resume,
    claim_run,
    is_finished,
    keep_dataset,
    keep_subgraph_keys,
)
from subgnn.training.thresholds import check_threshold, with_decision


def train_run(dataset: Dataset, options: RunOptions, *, devices: int | None = None) -> RunResult:
    """Train a recipe on a dataset and write the run's folder; :func:`subgnn.experiments.train.train` explains it.

    Returns:
        The result, on every rank.
    """
    recipe, out, resume = options.recipe, options.out, options.resume
    check_loggers(options.loggers)
    ranks = current_ranks(devices)
    fabric = make_fabric(options.device, recipe.training.precision, ranks)
    check_recipe(recipe, dataset.graph)
    model = model_of(recipe)
    model.check_inputs(recipe)
    size = (devices or 1) if ranks is None else ranks.size
    if size > 1:
        check_devices(options, size if ranks is None else ranks.local_size)
    first = fabric.is_global_zero
    if not first:  # one rank reports and writes
        options = replace(options, loggers=(), callbacks=NO_CALLBACKS)
    if resume and is_finished(out):
        if first:
            can_resume(options)
            keep_subgraph_keys(dataset.subgraphs, out)
        return _finished(dataset, options, first=first)
    if model.uses_embeddings(recipe):
        check_source(recipe)
    check_threshold(recipe.training, dataset.subgraphs.task, devices=size)
    if model.is_portfolio:
        Pool.of(dataset, recipe.auto, options.seed)  # refused before any work where there is too little to judge on
    else:
        check_labels(dataset.subgraphs)
    with claim_run(options) if first else nullcontext() as lock:
        if resume and ranks is None and is_finished(out):  # another process has finished it meanwhile
            return _finished(dataset, options, first=first)
        if first and options.keep_data:
            keep_dataset(dataset, out)
        if first:
            keep_subgraph_keys(dataset.subgraphs, out)
        if ranks is None and size > 1:
            return launch(dataset, options, devices=size, lock=lock)
        with with_loggers(options) as loggers:
            logged = replace(options, callbacks=replace(options.callbacks, on_epoch=loggers.log_epoch))
            portfolio = model.is_portfolio
            result = train_portfolio(dataset, logged) if portfolio else _train(dataset, logged, fabric, ranks)
            loggers.log_result(result)
        return result


def _train(dataset: Dataset, options: RunOptions, fabric: Fabric, ranks: Ranks | None) -> RunResult:
    """Train in this process, into a folder that belongs to the run; every rank calls this."""
    recipe, out, callbacks = options.recipe, options.out, options.callbacks
    begin = time.perf_counter()
    graph, model = dataset.graph.undirected(), model_of(recipe)
    vectors, cache = None, options.cache
    with in_turn(fabric, ranks):
        if model.uses_embeddings(recipe):
            vectors = source_vectors(recipe, graph, device=options.device, cache=cache, on_epoch=callbacks.on_pretrain)
        pretrained_at = time.perf_counter()
        candidates, examples = set_up(
            dataset, recipe, options.seed, fabric.device, vectors=vectors, cache=cache, on_prepare=callbacks.on_prepare
        )
    prepared_at = time.perf_counter()
    held_out = dataset.subgraphs.indices("test")
    score = held_out if options.score_epochs and len(held_out) else None
    fitted, records = fit_all(candidates, examples, options, fabric=fabric, score=score)
    trained_at = time.perf_counter()
    if not fabric.is_global_zero:
        return cast("RunResult", fabric.broadcast(None))
    selected = select_model(candidates, fitted, examples, recipe.training)
    resolved = recipe if recipe.training.members > 1 else candidates[best_of(fitted)].recipe
    selected = with_decision(selected, dataset, examples, replace(options, recipe=resolved))
    save_run_vectors([] if vectors is None else [(vectors, recipe)], graph, out)
    checkpoint = stored_checkpoint(selected.checkpoint, vectors)
    save_checkpoint(checkpoint, out / CHECKPOINT)
    scores, outputs = _scores(dataset, recipe, selected, examples)
    result = RunResult(
        **options.about(dataset, fabric.device, fabric.world_size),
        **scores,
        epochs_scored_on_test=score is not None,
        seconds=Seconds(
            pretrain=pretrained_at - begin,
            prepare=prepared_at - pretrained_at,
            train=trained_at - prepared_at,
            epoch_median=median(selected.progress.seconds),
        ),
    )
    result.save(out)
    (out / LAST).unlink(missing_ok=True)
    if options.write_page is not None:
        # A training's vectors hold cross-fitted scores of a corrected baseline; those of a prediction do not.
        known = model.has_channels and not checkpoint.parts and recipe.training.members == 1
        trained = TrainedRun(
            result,
            recipe,
            checkpoint,
            tables={} if vectors is None else {checkpoint.spec.vectors_hash: vectors},
            records=records,
            outputs=outputs,
            vectors=vectors_of(selected.network, examples.inputs) if known else None,
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


def _scores(
    dataset: Dataset, recipe: Recipe, selected: Selected, examples: Examples
) -> tuple[dict[str, Any], NDArray[np.float32]]:
    """Fields of the result about scores, and the outputs of the last split: of test, which is scored here and once.

    Where the dataset has no test split, the outputs are those of val.
    """
    progress, baseline = selected.progress, selected.checkpoint.parts.get(BASELINE)
    subgraphs, task, scores, intervals, counts = dataset.subgraphs, dataset.subgraphs.task, {}, {}, {}
    spec = selected.checkpoint.spec
    thresholds = 0.5 if spec.decision is None else spec.decision.thresholds(spec.classes)
    outputs = torch.empty(0)
    for split in ("val", "test"):
        if len(rows := subgraphs.indices(split)):
            outputs, targets = judged_outputs(selected.network, examples, rows, recipe.training.batch_size)
            intervals[split] = headline_interval([outputs], targets, subgraphs.take(rows), thresholds=thresholds)
            options: dict[str, Any] = {"thresholds": thresholds, "select_by": examples.select_by}
            scores[split] = metrics(outputs, targets, task, unit=examples.unit, **options)
            if spec.decision is not None and split == "test":
                found_scores = probabilities(outputs.cpu(), task).numpy()
                counts[split] = spec.decision.counts(found_scores, targets.cpu().numpy(), spec.classes)
    found = {
        "selected_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        "val": progress.best_metrics | (scores["val"] if spec.decision is not None else {}),
        "test": scores.get("test", {}),
        "intervals": intervals,
        "select_by": "auto" if recipe.training.select_by == "auto" else examples.select_by,
        "threshold": None if spec.decision is None else spec.decision.report(**counts),
        "baseline": None
        if baseline is None
        else CorrectedBaseline(method=baseline.spec.method, candidate=baseline.spec.title),
        **selected.about,
    }
    return found, outputs.float().cpu().numpy()
