"""One run: prepare, train, select on validation, score once on test, and write a folder that a person can read."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from statistics import median
from typing import Any

import torch
from lightning.fabric import Fabric

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.embeddings.sources import PRETRAINED, check_source, save_run_vectors, source_vectors
from subgnn.errors import UserError
from subgnn.metrics.significance import headline_interval
from subgnn.models.checkpoint import save_checkpoint
from subgnn.models.examples import Examples, judged_outputs, vectors_of
from subgnn.models.registry import check_recipe, model_of, names_where
from subgnn.models.spec import BASELINE
from subgnn.parallel.locks import locked_folder
from subgnn.storage.cache import cache_limit
from subgnn.storage.files import remove_leftovers
from subgnn.storage.parsing import write_json
from subgnn.task import task_of
from subgnn.training.candidates import Selected, best_of, select_model, set_up
from subgnn.training.devices import Ranks, in_turn, make_fabric
from subgnn.training.fit import stored_checkpoint
from subgnn.training.labels import check_labels
from subgnn.training.logs import check_loggers, with_loggers
from subgnn.training.options import NO_CALLBACKS, RunOptions, circumstances
from subgnn.training.portfolio import Pool
from subgnn.training.portfolio_run import train_portfolio
from subgnn.training.resume import fit_all
from subgnn.training.run_dir import (
    CHECKPOINT,
    LAST,
    PAGE,
    RESULTS,
    can_resume,
    claim_run,
    is_finished,
    keep_dataset,
    keep_subgraph_keys,
    read_results,
)
from subgnn.training.thresholds import check_threshold, with_decision


def train_run(dataset: Dataset, options: RunOptions, *, ranks: Ranks | None = None) -> dict[str, Any]:
    """Train a recipe on a dataset and write the run's folder; :func:`subgnn.api.train_recipe.train` explains it.

    Returns:
        The results, as in run.json; on every rank.
    """
    recipe, out, resume = options.recipe, options.out, options.resume
    check_loggers(options.loggers)
    fabric = make_fabric(options.device, ranks)
    check_recipe(recipe, dataset.graph)
    model = model_of(recipe)
    model.check_inputs(recipe)
    if ranks is not None:
        check_ranks(options, ranks)
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
    check_threshold(recipe.training, dataset.subgraphs.task, devices=fabric.world_size)
    if model.is_portfolio:
        Pool.of(dataset, recipe.auto, options.seed)  # refused before any work where there is too little to judge on
    else:
        check_labels(dataset.subgraphs)
    with claim_run(options) if first else nullcontext():
        if resume and ranks is None and is_finished(out):  # another process has finished it meanwhile
            return _finished(dataset, options, first=first)
        if first and options.keep_data:
            keep_dataset(dataset, out)
        if first:
            keep_subgraph_keys(dataset.subgraphs, out)
        with with_loggers(options) as loggers:
            logged = replace(options, callbacks=replace(options.callbacks, on_epoch=loggers.log_epoch))
            portfolio = model.is_portfolio
            results = train_portfolio(dataset, logged) if portfolio else _train(dataset, logged, fabric, ranks)
            loggers.log_results(results)
        return results


def check_ranks(options: RunOptions, ranks: Ranks) -> None:
    """Refuse a training that several ranks cannot do.

    Raises:
        UserError: for a model whose fit cannot be divided, for more ranks than GPUs, and for pretrained embeddings
            without a cache, through which the ranks share them.
    """
    recipe = options.recipe
    if not model_of(recipe).uses_many_devices:
        names = ", ".join(names_where("uses_many_devices"))
        hint = f"with several devices: {names}; start one process for the others, they are small"
        raise UserError(f"the method {recipe.method} is fitted on one device", where="torchrun", hint=hint)
    gpus = torch.cuda.device_count()
    if options.device != "cpu" and (gpus or options.device == "cuda") and gpus < ranks.local_size:
        hint = f"give --nproc-per-node {gpus}, or compute with --device cpu"
        raise UserError(f"{ranks.local_size} processes, but there are {gpus} GPUs", where="torchrun", hint=hint)
    if recipe.embeddings.source in PRETRAINED and not (options.cache and cache_limit()):
        hint = "leave --no-cache out, or pretrain into a file first with subgnn pretrain"
        raise UserError("pretrained embeddings are shared through the cache", where="torchrun", hint=hint)


def _train(dataset: Dataset, options: RunOptions, fabric: Fabric, ranks: Ranks | None) -> dict[str, Any]:
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
    fitted = fit_all(candidates, examples, options, fabric=fabric, score=score)
    trained_at = time.perf_counter()
    if not fabric.is_global_zero:
        return dict(fabric.broadcast({}))
    selected = select_model(candidates, fitted, examples, recipe.training)
    resolved = recipe if recipe.training.members > 1 else candidates[best_of(fitted)].recipe
    selected = with_decision(selected, dataset, examples, replace(options, recipe=resolved))
    save_run_vectors([] if vectors is None else [(vectors, recipe)], graph, out)
    save_checkpoint(stored_checkpoint(selected.checkpoint, vectors), out / CHECKPOINT)
    seconds = {
        "pretrain": pretrained_at - begin,
        "prepare": prepared_at - pretrained_at,
        "train": trained_at - prepared_at,
        "epoch_median": median(selected.progress.seconds),
    }
    results = {
        **options.about(dataset),
        **_scores(dataset, recipe, selected, examples),
        **({} if score is None else {"epochs_scored_on_test": True}),
        "seconds": seconds,
        **circumstances(fabric.device, fabric.world_size),
    }
    write_json(results, out / RESULTS)
    (out / LAST).unlink(missing_ok=True)
    if options.write_page is not None:
        # A training's vectors hold cross-fitted scores of a corrected baseline; those of a prediction do not.
        known = model.has_channels and not selected.checkpoint.parts and recipe.training.members == 1
        options.write_page(dataset, out, vectors_of(selected.network, examples.inputs) if known else None)
    return dict(fabric.broadcast(results))


def _finished(dataset: Dataset, options: RunOptions, *, first: bool) -> dict[str, Any]:
    """The results of a finished run; the first rank tidies up, and writes the page if it is missing."""
    out = options.out
    page_missing = options.write_page is not None and not (out / PAGE).is_file()
    left = any(path.name == LAST or path.name.startswith(".") for path in out.iterdir())  # by a process that was killed
    if first and (page_missing or left):
        with locked_folder(out):
            remove_leftovers(out)
            (out / LAST).unlink(missing_ok=True)
            if page_missing and options.write_page is not None:
                options.write_page(dataset, out, None)
    return read_results(out)


def _scores(dataset: Dataset, recipe: Recipe, selected: Selected, examples: Examples) -> dict[str, Any]:
    """Scores on validation and, computed here and only once, on test; published scores; the other candidates."""
    progress, baseline = selected.progress, selected.checkpoint.parts.get(BASELINE)
    subgraphs, task, scores, intervals, counts = dataset.subgraphs, task_of(dataset.subgraphs.task), {}, {}, {}
    spec = selected.checkpoint.spec
    thresholds = 0.5 if spec.decision is None else spec.decision.thresholds(spec.classes)
    for split in ("val", "test"):
        if len(rows := subgraphs.indices(split)):
            outputs, targets = judged_outputs(selected.network, examples, rows, recipe.training.batch_size)
            intervals[split] = headline_interval([outputs], targets, subgraphs.take(rows), thresholds=thresholds)
            options: dict[str, Any] = {"thresholds": thresholds, "select_by": examples.select_by}
            scores[split] = task.metrics(outputs, targets, unit=examples.unit, **options)
            if spec.decision is not None and split == "test":
                found_scores = task.probabilities(outputs.cpu()).numpy()
                counts[split] = spec.decision.counts(found_scores, targets.cpu().numpy(), spec.classes)
    found = {
        "selected_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        "val": progress.best_metrics | (scores["val"] if spec.decision is not None else {}),
        "test": scores.get("test", {}),
        "intervals": intervals,
        "published": recipe.published,
        **({} if recipe.training.select_by == "auto" else {"select_by": examples.select_by}),
        **({} if spec.decision is None else {"threshold": spec.decision.report(**counts)}),
        **selected.about,
    }
    if baseline is not None:
        found["baseline"] = {"method": baseline.spec.method, "candidate": baseline.spec.title}
    return found
