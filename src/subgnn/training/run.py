"""One run: prepare, train, select, score once on test, and leave a folder that a person can read."""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.embeddings import check_source, source_vectors
from subgnn.embeddings.of_run import keep_vectors
from subgnn.errors import DataError, DataWarning
from subgnn.inference.open import open_run
from subgnn.models.checkpoint import save_checkpoint
from subgnn.models.registry import uses_embeddings
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn.build import check_recipe, check_sight, label_unit, target_tensor, unused_data
from subgnn.parallel.locks import locked_folder
from subgnn.parallel.progress import OnProgress
from subgnn.storage.files import remove_leftovers
from subgnn.training.evaluation import Examples, evaluate, vectors_of
from subgnn.training.labels import check_labels
from subgnn.training.launch import Watch, check_devices, launch
from subgnn.training.metrics import metrics
from subgnn.training.precision import make_fabric
from subgnn.training.ranks import Ranks, in_turn, joined
from subgnn.training.resumable import fit_all
from subgnn.training.run_dir import (
    CHECKPOINT,
    LABEL_UNIT,
    LAST,
    METRICS,
    PAGE,
    RESULTS,
    claimed,
    goes_on,
    read_results,
    write_json,
)
from subgnn.training.selection import Settled, settle
from subgnn.training.set_up import set_up
from subgnn.training.tensorboard import TENSORBOARD, also_events, writer_class
from subgnn.versions import versions


def train(
    dataset: Dataset,
    recipe: Recipe,
    out: Path,
    *,
    seed: int = 0,
    device: str = "auto",
    devices: int | None = None,
    resume: bool = False,
    source: str = "",
    cache: bool = True,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    on_prepare: OnProgress | None = None,
    on_pretrain: Callable[[dict[str, Any]], None] | None = None,
    tensorboard: bool = False,
    report: bool = True,
) -> dict[str, Any]:
    """Train a recipe on a dataset and write the run's folder.

    Args:
        device: ``auto``, ``cpu`` or ``cuda``.
        devices: how many to train on, a process each; N of them at batches of b do what one does at N x b. None is one,
            or what torchrun has started.
        resume: go on with a run that was interrupted; its recipe, seed and number of devices must be the same.
        source: where the dataset was read from, kept so that ``predict`` finds the graph.
        cache: look for prepared subgraphs and pretrained embeddings in the cache, and leave them there.
        on_epoch: called with each epoch's record.
        on_prepare: called, before the first epoch, with what is being prepared, the units done and the units in all.
        on_pretrain: called with each epoch's record of a pretraining, where one is needed.
        tensorboard: write event files for TensorBoard.
        report: write the page of the run.

    Returns:
        The results, as in run.json; on every rank.
    """
    if tensorboard:
        writer_class()  # where it is missing, that is said before the work
    ranks = joined(devices)
    fabric = make_fabric(device, recipe.training.precision, ranks)
    check_recipe(recipe, dataset.graph)
    check_sight(recipe)
    size = (devices or 1) if ranks is None else ranks.size
    if size > 1:
        check_devices(recipe, device, size if ranks is None else ranks.local_size, cache)
    done = resume and (out / RESULTS).is_file()
    first = fabric.is_global_zero
    if done:
        if first:
            goes_on(out, recipe, seed, resume)
        return _finished(dataset, out, first=first, report=report)
    if uses_embeddings(recipe):
        check_source(recipe)
    check_labels(dataset.subgraphs)
    watch = Watch(on_epoch, on_prepare, on_pretrain) if first else Watch()  # one rank speaks and writes
    options: dict[str, Any] = {"seed": seed, "device": device, "source": source, "cache": cache}
    options |= {"tensorboard": tensorboard and first, "report": report}
    with claimed(out, recipe, seed, resume) if first else nullcontext() as lock:
        if resume and ranks is None and (out / RESULTS).is_file():  # another process has finished it meanwhile
            return _finished(dataset, out, first=first, report=report)
        if ranks is None and size > 1:
            return launch(dataset, recipe, devices=size, options=options | {"out": str(out)}, watch=watch, lock=lock)
        return _train(dataset, recipe, out, fabric=fabric, ranks=ranks, resume=resume, watch=watch, **options)


def _train(
    dataset: Dataset,
    recipe: Recipe,
    out: Path,
    *,
    fabric: Fabric,
    ranks: Ranks | None,
    resume: bool,
    watch: Watch,
    seed: int,
    device: str,
    source: str,
    cache: bool,
    tensorboard: bool,
    report: bool,
) -> dict[str, Any]:
    """Train in this process, into a folder that is this run's; on many ranks, each does this."""
    begin = time.perf_counter()
    graph = dataset.graph.undirected()
    vectors = None
    with in_turn(fabric, ranks):
        if uses_embeddings(recipe):
            vectors = source_vectors(recipe, graph, device=device, cache=cache, on_epoch=watch.on_pretrain)
        pretrained_at = time.perf_counter()
        candidates, examples = set_up(
            dataset, recipe, seed, fabric.device, vectors=vectors, cache=cache, on_prepare=watch.on_prepare
        )
    prepared_at = time.perf_counter()
    told = watch.on_epoch
    events = also_events(told, out / TENSORBOARD, out / METRICS) if tensorboard else nullcontext(told)
    with events as seen:
        fitted = fit_all(candidates, examples, out, seed=seed, fabric=fabric, resume=resume, on_epoch=seen)
    trained_at = time.perf_counter()
    if not fabric.is_global_zero:
        return dict(fabric.broadcast({}))
    settled = settle(candidates, fitted, examples, recipe.training)
    save_checkpoint(_kept(settled, recipe, keep_vectors(vectors, recipe, graph, out)), out / CHECKPOINT)
    about = {"run": str(out), "dataset": dataset.name, "source": source, "recipe": recipe.name, "method": recipe.method}
    seconds = {
        "pretrain": pretrained_at - begin,
        "prepare": prepared_at - pretrained_at,
        "train": trained_at - prepared_at,
        "epoch_median": median(settled.progress.seconds),
    }
    results = {**about, "seed": seed, "task": dataset.subgraphs.task, "unused": unused_data(recipe, dataset.graph)}
    results |= _outcome(dataset, recipe, settled, examples)
    results |= _circumstances(seconds, fabric)
    write_json(results, out / RESULTS)
    (out / LAST).unlink(missing_ok=True)
    if report:
        # Vectors of training hold cross-fitted scores of a baseline that is corrected; those of an answer do not.
        at_hand = recipe.method == "subgnn" and recipe.model.baseline == "none" and recipe.training.members == 1
        _write_page(dataset, out, vectors_of(settled.model, examples.inputs) if at_hand else None)
    return dict(fabric.broadcast(results))


def _finished(dataset: Dataset, out: Path, *, first: bool, report: bool) -> dict[str, Any]:
    """The results of a run that is done; the first rank clears up, and writes the page if it is wanted and missing."""
    without_page = report and not (out / PAGE).is_file()
    left = any(path.name == LAST or path.name.startswith(".") for path in out.iterdir())  # by a process that was killed
    if first and (without_page or left):
        with locked_folder(out):
            remove_leftovers(out)
            (out / LAST).unlink(missing_ok=True)
            if without_page:
                _write_page(dataset, out)
    return read_results(out)


def _kept(settled: Settled, recipe: Recipe, vectors_hash: str) -> Checkpoint:
    """What predictions need: further draws of anchors only where they are means over them."""
    redrawn = settled.checkpoint.spec.redrawn if recipe.prepare.ensemble else []
    spec = replace(settled.checkpoint.spec, redrawn=redrawn, vectors_hash=vectors_hash)
    return replace(settled.checkpoint, spec=spec, weights=settled.weights)


def _outcome(dataset: Dataset, recipe: Recipe, settled: Settled, examples: Examples) -> dict[str, Any]:
    """What was reached, on test scored here and once; what was published for it; and what it was chosen among."""
    progress, baseline = settled.progress, settled.checkpoint.baseline
    held_out = dataset.subgraphs.indices("test")
    test = evaluate(settled.model, examples, held_out, recipe.training.batch_size)[1] if len(held_out) else {}
    found = {
        "selected_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        "lr": progress.lr,
        "val": progress.best_metrics,
        "test": test,
        "published": recipe.published,
        **settled.told,
    }
    if dataset.subgraphs.task == "regression":
        found["error_unit"] = LABEL_UNIT
    if baseline is not None:
        found["baseline"] = {"method": baseline.spec.method, "candidate": baseline.spec.title}
    return found


def _circumstances(seconds: dict[str, float], fabric: Fabric) -> dict[str, Any]:
    """What it took, and what it was had with."""
    return {
        "seconds": seconds,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "device": str(fabric.device),
        "devices": fabric.world_size,
        "versions": versions(),
    }


def _write_page(dataset: Dataset, out: Path, vectors: NDArray[np.float32] | None = None) -> None:
    """Write the page of the run, from its vectors where they are at hand; the run is done: a failure is a warning."""
    from subgnn.reports import run_report, write_page  # which asks runs, and so imports much of what is here

    try:
        write_page(run_report(out, dataset, vectors=vectors), out / PAGE)
    except Exception as error:
        what = f"the run is done, but its page could not be written ({type(error).__name__}: {error})"
        warnings.warn(f"{what}; try again with: subgnn report {out}", DataWarning, stacklevel=3)


def evaluate_split(out: Path, split: str, data: Path | None = None) -> dict[str, Any]:
    """Score a finished run on a split of its dataset.

    Args:
        data: the dataset; by default where the run read it.
    """
    whole = open_run(out, data)
    results, predictor, subgraphs = whole.results, whole.predictor, whole.subgraphs
    if subgraphs is None:
        raise DataError("the file holds no subgraphs to score", where=str(out), hint="give the dataset with --data")
    if subgraphs.classes != predictor.checkpoint.spec.classes:
        raise DataError(
            "the dataset has other labels than the run", where=str(data or out), hint="give the run's dataset"
        )
    rows = subgraphs.indices(split)
    standards = predictor.checkpoint.spec.standards
    targets = target_tensor(subgraphs, standards)[torch.from_numpy(rows)]
    outputs = torch.from_numpy(predictor.outputs(subgraphs.nodes.take(rows)))
    return {"run": str(out), **results, split: metrics(outputs, targets, subgraphs.task, unit=label_unit(standards))}
