"""One run: prepare, train, select, score once on test, and leave a folder that a person can read."""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from numpy.typing import NDArray

from subgnn.ask import open_whole
from subgnn.assemble import check_recipe, kept_weights, target_tensor
from subgnn.baselines import uses_embeddings
from subgnn.config import Recipe
from subgnn.data.dataset import Dataset
from subgnn.embeddings import check_source, source_vectors
from subgnn.embeddings.of_run import keep_vectors
from subgnn.errors import DataError, DataWarning
from subgnn.pacing import OnProgress
from subgnn.training.candidates import Candidate, best_of, comparison, fit_candidate
from subgnn.training.checkpoint import Damaged, load_progress, save_checkpoint, save_progress
from subgnn.training.interrupt import noted_interrupt
from subgnn.training.loop import Examples, Progress, evaluate, vectors_of
from subgnn.training.metrics import metrics
from subgnn.training.metrics_log import MetricsLog
from subgnn.training.precision import make_fabric
from subgnn.training.run_dir import CHECKPOINT, LAST, METRICS, PAGE, RESULTS, claim, read_results, write_json
from subgnn.training.set_up import set_up
from subgnn.training.tensorboard import TENSORBOARD, also_events, writer_class
from subgnn.versions import versions

SECONDS_BETWEEN_SAVES = 10.0


def train(
    dataset: Dataset,
    recipe: Recipe,
    out: Path,
    *,
    seed: int = 0,
    device: str = "auto",
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
        resume: go on with a run that was interrupted; its recipe and seed must be the same.
        source: where the dataset was read from, kept so that ``predict`` finds the graph.
        cache: look for prepared subgraphs and pretrained embeddings in the cache, and leave them there.
        on_epoch: called with each epoch's record.
        on_prepare: called, before the first epoch, with what is being prepared, the units done and the units in all.
        on_pretrain: called with each epoch's record of a pretraining, where one is needed.
        tensorboard: write event files for TensorBoard.
        report: write the page of the run.

    Returns:
        The results, as in run.json.
    """
    if tensorboard:
        writer_class()  # where it is missing, that is said before the work
    fabric = make_fabric(device, recipe.training.precision)
    check_recipe(recipe, dataset.graph)
    done = resume and (out / RESULTS).is_file()
    if uses_embeddings(recipe) and not done:
        check_source(recipe)
    claim(out, recipe, seed, resume)
    if done:
        (out / LAST).unlink(missing_ok=True)
        if report and not (out / PAGE).is_file():
            _write_page(dataset, out)
        return read_results(out)
    begin = time.perf_counter()
    graph = dataset.graph.undirected()
    vectors = None
    if uses_embeddings(recipe):
        vectors = source_vectors(recipe, graph, device=device, cache=cache, on_epoch=on_pretrain)
    pretrained_at = time.perf_counter()
    candidates, examples = set_up(
        dataset, recipe, seed, fabric.device, vectors=vectors, cache=cache, on_prepare=on_prepare
    )
    prepared_at = time.perf_counter()
    watch = also_events(on_epoch, out / TENSORBOARD, out / METRICS) if tensorboard else nullcontext(on_epoch)
    with watch as seen:
        fitted = _fit(candidates, examples, recipe, out, seed=seed, fabric=fabric, resume=resume, on_epoch=seen)
    trained_at = time.perf_counter()
    chosen = best_of(fitted)
    progress, model, checkpoint = fitted[chosen], candidates[chosen].model, candidates[chosen].checkpoint
    model.to(fabric.device).load_state_dict(progress.best_state)
    kept = replace(
        checkpoint,
        weights=kept_weights(progress.best_state),
        redrawn=checkpoint.redrawn if recipe.prepare.ensemble else [],
        vectors_hash=keep_vectors(vectors, recipe, graph, out),
    )
    save_checkpoint(kept, out / CHECKPOINT)
    held_out = dataset.subgraphs.indices("test")
    test = evaluate(model, examples, held_out, recipe.training.batch_size)[1] if len(held_out) else {}
    seconds = {
        "pretrain": pretrained_at - begin,
        "prepare": prepared_at - pretrained_at,
        "train": trained_at - prepared_at,
        "epoch_median": median(progress.seconds),
    }
    about = {"run": str(out), "dataset": dataset.name, "source": source, "recipe": recipe.name, "method": recipe.method}
    results = {**about, "seed": seed, "task": dataset.subgraphs.task, **_outcome(recipe, progress, test)}
    results |= _circumstances(seconds, fabric)
    if candidates[0].name:
        results |= comparison(candidates, fitted, chosen)
    write_json(results, out / RESULTS)
    (out / LAST).unlink(missing_ok=True)
    if report:
        _write_page(dataset, out, vectors_of(model, examples.inputs) if recipe.method == "subgnn" else None)
    return results


def _outcome(recipe: Recipe, progress: Progress, test: dict[str, float]) -> dict[str, Any]:
    """What was reached, and what was published for it."""
    return {
        "selected_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        "lr": progress.lr,
        "val": progress.best_metrics,
        "test": test,
        "published": recipe.published,
    }


def _circumstances(seconds: dict[str, float], fabric: Fabric) -> dict[str, Any]:
    """What it took, and what it was had with."""
    return {
        "seconds": seconds,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "device": str(fabric.device),
        "versions": versions(),
    }


def _write_page(dataset: Dataset, out: Path, vectors: NDArray[np.float32] | None = None) -> None:
    """Write the page of the run, from its vectors where they are at hand; the run is done: a failure is a warning."""
    from subgnn.report import run_report, write_page  # which asks runs, and so imports much of what is here

    try:
        write_page(run_report(out, dataset, vectors=vectors), out / PAGE)
    except Exception as error:
        what = f"the run is done, but its page could not be written ({type(error).__name__}: {error})"
        warnings.warn(f"{what}; try again with: subgnn report {out}", DataWarning, stacklevel=3)


def _fit(
    candidates: Sequence[Candidate],
    examples: Examples,
    recipe: Recipe,
    out: Path,
    *,
    seed: int,
    fabric: Fabric,
    resume: bool,
    on_epoch: Callable[[dict[str, Any]], None] | None,
) -> list[Progress]:
    """Fit the candidates in turn; what was done before an interruption is not done again."""
    before = _before(out) if resume else None
    fitted = [] if before is None else [Progress(**progress) for progress in before["fitted"]]
    log = MetricsLog(out / METRICS, "" if before is None else before["metrics"])
    saved_at = time.monotonic()
    with noted_interrupt() as interrupt:

        def after_epoch(record: dict[str, Any], progress: Progress, state: Callable[[], dict[str, Any]]) -> None:
            nonlocal saved_at
            record = record | ({"candidate": candidate.name} if candidate.name else {})
            log.append(record)
            due = time.monotonic() - saved_at >= SECONDS_BETWEEN_SAVES
            try:
                if on_epoch is not None:
                    on_epoch(record)
            except KeyboardInterrupt:
                interrupt.pressed = True
            if due or interrupt.pressed:
                earlier = [progress.plain() for progress in fitted]
                save_progress(state() | {"metrics": log.text, "fitted": earlier}, out / LAST)
                saved_at = time.monotonic()
            if interrupt.pressed:
                raise KeyboardInterrupt

        for candidate in candidates[len(fitted) :]:
            fitted.append(
                fit_candidate(
                    candidate,
                    examples,
                    recipe.training,
                    seed=seed,
                    fabric=fabric,
                    resume=before,
                    after_epoch=after_epoch,
                )
            )
            before = None
    return fitted


def _before(out: Path) -> dict[str, Any] | None:
    """The progress of an interrupted run; None where it has to start from the beginning."""
    if not (out / LAST).is_file():
        return None
    try:
        return load_progress(out / LAST)
    except Damaged as error:
        warnings.warn(f"{error.where}: {error.what}; the run starts from the beginning", DataWarning, stacklevel=4)
        return None


def evaluate_split(out: Path, split: str, data: Path | None = None) -> dict[str, Any]:
    """Score a finished run on a split of its dataset.

    Args:
        data: the dataset; by default where the run read it.
    """
    whole = open_whole(out, data)
    results, predictor, subgraphs = whole.results, whole.predictor, whole.subgraphs
    if subgraphs is None:
        raise DataError("the file holds no subgraphs to score", where=str(out), hint="give the dataset with --data")
    if subgraphs.classes != predictor.checkpoint.classes:
        raise DataError(
            "the dataset has other labels than the run", where=str(data or out), hint="give the run's dataset"
        )
    rows = subgraphs.indices(split)
    targets = target_tensor(subgraphs, predictor.checkpoint.standards)[torch.from_numpy(rows)]
    outputs = torch.from_numpy(predictor.outputs(subgraphs.nodes.take(rows)))
    return {"run": str(out), **results, split: metrics(outputs, targets, subgraphs.task)}
