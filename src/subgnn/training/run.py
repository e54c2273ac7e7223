"""One run: prepare, train, select, score once on test, and leave a folder that a person can read.

RUN/run.json          results: the keys of ``subgnn train --json``
RUN/recipe.json       all settings, as they were
RUN/metrics.jsonl     a line an epoch
RUN/checkpoint.pt     the selected weights, anchors, class names and the graph's hash
RUN/report.html       the page of the run
RUN/tensorboard       event files, where they are wanted
RUN/last.pt           everything ``--resume`` needs; gone when the run is done
"""

from __future__ import annotations

import json
import resource
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from numpy.typing import NDArray

from subgnn.assemble import (
    build_inputs,
    build_model,
    build_standards,
    check_recipe,
    component_keys,
    kept_weights,
    prepare_draws,
    target_tensor,
    touched_nodes,
)
from subgnn.config import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.formats.text import appearing
from subgnn.errors import DataError, DataWarning
from subgnn.nn import SubGNN
from subgnn.pacing import OnProgress
from subgnn.predict import Predictor
from subgnn.rng import stream_key
from subgnn.training.checkpoint import Checkpoint, Damaged, load_progress, save_checkpoint, save_progress
from subgnn.training.interrupt import noted_interrupt
from subgnn.training.labels import warn_of_unseen
from subgnn.training.loop import Examples, Progress, evaluate, fit, vectors_of
from subgnn.training.lr_finder import find_rate
from subgnn.training.metrics import metrics
from subgnn.training.metrics_log import MetricsLog
from subgnn.training.precision import make_fabric
from subgnn.training.tensorboard import TENSORBOARD, also_events, writer_class
from subgnn.versions import versions

SECONDS_BETWEEN_SAVES = 10.0
RESULTS, RECIPE, METRICS, CHECKPOINT, LAST = "run.json", "recipe.json", "metrics.jsonl", "checkpoint.pt", "last.pt"
PAGE = "report.html"


def write_json(value: Any, path: Path) -> None:
    """Write JSON; the file appears whole or not at all."""
    with appearing(path, overwrite=True) as temporary:
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        # Halves of characters, as paths may have them, become what JSON escapes them to.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


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
    tensorboard: bool = False,
    report: bool = True,
) -> dict[str, Any]:
    """Train a recipe on a dataset and write the run's folder.

    Args:
        device: ``auto``, ``cpu`` or ``cuda``.
        resume: go on with a run that was interrupted; its recipe and seed must be the same.
        source: where the dataset was read from, kept so that ``predict`` finds the graph.
        cache: look for prepared subgraphs in the cache, and leave them there.
        on_epoch: called with each epoch's record.
        on_prepare: called, before the first epoch, with what is being prepared, the units done and the units in all.
        tensorboard: write event files for TensorBoard.
        report: write the page of the run.

    Returns:
        The results, as in run.json.
    """
    if tensorboard:
        writer_class()  # where it is missing, that is said before the work
    fabric = make_fabric(device, recipe.training.precision)
    check_recipe(recipe, dataset.graph)
    _claim(out, recipe, seed, resume)
    if resume and (out / RESULTS).is_file():
        (out / LAST).unlink(missing_ok=True)
        if report and not (out / PAGE).is_file():
            _write_page(dataset, out)
        return read_results(out)
    begin = time.perf_counter()
    model, examples, checkpoint = _set_up(dataset, recipe, seed, fabric.device, cache=cache, on_prepare=on_prepare)
    prepared_at = time.perf_counter()
    watch = also_events(on_epoch, out / TENSORBOARD, out / METRICS) if tensorboard else nullcontext(on_epoch)
    with watch as seen:
        progress = _fit(model, examples, recipe, out, seed=seed, fabric=fabric, resume=resume, on_epoch=seen)
    trained_at = time.perf_counter()
    model.load_state_dict(progress.best_state)
    redrawn = checkpoint.redrawn if recipe.prepare.ensemble else []
    kept = replace(checkpoint, weights=kept_weights(progress.best_state), redrawn=redrawn)
    save_checkpoint(kept, out / CHECKPOINT)
    held_out = dataset.subgraphs.indices("test")
    test = evaluate(model, examples, held_out, recipe.training.batch_size)[1] if len(held_out) else {}
    results = {
        "run": str(out),
        "dataset": dataset.name,
        "source": source,
        "recipe": recipe.name,
        "seed": seed,
        "task": dataset.subgraphs.task,
        "selected_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        "lr": progress.lr,
        "val": progress.best_metrics,
        "test": test,
        "published": recipe.published,
        "seconds": {
            "prepare": prepared_at - begin,
            "train": trained_at - prepared_at,
            "epoch_median": median(progress.seconds),
        },
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "device": str(fabric.device),
        "versions": versions(),
    }
    write_json(results, out / RESULTS)
    (out / LAST).unlink(missing_ok=True)
    if report:
        _write_page(dataset, out, vectors_of(model, examples.inputs))
    return results


def _write_page(dataset: Dataset, out: Path, vectors: NDArray[np.float32] | None = None) -> None:
    """Write the page of the run, from its vectors where they are at hand; the run is done: a failure is a warning."""
    from subgnn.report import run_report, write_page  # which reads runs, and so imports this module

    try:
        write_page(run_report(out, dataset, vectors=vectors), out / PAGE)
    except Exception as error:
        what = f"the run is done, but its page could not be written ({type(error).__name__}: {error})"
        warnings.warn(f"{what}; try again with: subgnn report {out}", DataWarning, stacklevel=3)


def _set_up(
    dataset: Dataset,
    recipe: Recipe,
    seed: int,
    device: torch.device,
    *,
    cache: bool = True,
    on_prepare: OnProgress | None = None,
) -> tuple[SubGNN, Examples, Checkpoint]:
    """Prepare the subgraphs and make the network; the checkpoint has everything but weights."""
    graph, subgraphs = dataset.graph.undirected(), dataset.subgraphs
    for split in ("train", "val"):
        if not len(subgraphs.indices(split)):
            raise DataError(f"no subgraph in split '{split}'", where="train", hint="learning and selection need both")
    warn_of_unseen(subgraphs)
    draws = prepare_draws(recipe, graph, subgraphs.nodes, seed=seed, cache=cache, on_progress=on_prepare)
    table = touched_nodes(draws)
    checkpoint = Checkpoint(
        recipe=recipe,
        seed=seed,
        task=subgraphs.task,
        classes=subgraphs.classes,
        graph_hash=graph.content_hash,
        table_nodes=table,
        shared=draws[0].shared,
        weights={},
        standards=build_standards(graph, subgraphs, recipe, draws[0], table),
        redrawn=[prepared.shared for prepared in draws[1:]],
        component_keys=component_keys(subgraphs, recipe, draws[0]),
    )
    with torch.random.fork_rng():
        torch.manual_seed(stream_key(seed, "initialisation"))
        model = build_model(checkpoint, graph, table)
    first, *redrawn = build_inputs(checkpoint, graph, subgraphs.nodes, draws=draws, table=table, device=device)
    examples = Examples(
        inputs=first,
        targets=target_tensor(subgraphs, checkpoint.standards).to(device),
        task=subgraphs.task,
        train=subgraphs.indices("train"),
        val=subgraphs.indices("val"),
        redrawn=redrawn,
        ensemble=recipe.prepare.ensemble,
        num_classes=subgraphs.num_classes,
    )
    return model, examples, checkpoint


def _claim(out: Path, recipe: Recipe, seed: int, resume: bool) -> None:
    """Make the run's folder, or check that it holds the run that is to go on."""
    settings = asdict(recipe) | {"seed": seed}
    _remove_leftovers(out)
    if resume and (out / RECIPE).is_file():
        before = read_json(out / RECIPE, "give another --out")
        if before != json.loads(json.dumps(settings)):
            hint = "give the same recipe, settings and seed, or another --out"
            raise DataError("the run there has other settings", where=str(out), hint=hint)
        return
    if out.exists() and any(out.iterdir()):
        raise DataError("exists already", where=str(out), hint="choose another --out, or go on with --resume")
    out.mkdir(parents=True, exist_ok=True)
    write_json(settings, out / RECIPE)


def _remove_leftovers(out: Path) -> None:
    """Remove what a process left that was killed while it wrote."""
    for name in (RESULTS, RECIPE, METRICS, CHECKPOINT, LAST, PAGE):
        for leftover in out.glob(f".{name}.*.part"):
            leftover.unlink(missing_ok=True)


def _fit(
    model: Any,
    examples: Examples,
    recipe: Recipe,
    out: Path,
    *,
    seed: int,
    fabric: Fabric,
    resume: bool,
    on_epoch: Callable[[dict[str, Any]], None] | None,
) -> Progress:
    before = _before(out) if resume else None
    log = MetricsLog(out / METRICS, "" if before is None else before["metrics"])
    saved_at = time.monotonic()
    with noted_interrupt() as interrupt:

        def after_epoch(record: dict[str, Any], progress: Progress, state: Callable[[], dict[str, Any]]) -> None:
            nonlocal saved_at
            log.append(record)
            due = time.monotonic() - saved_at >= SECONDS_BETWEEN_SAVES
            try:
                if on_epoch is not None:
                    on_epoch(record)
            except KeyboardInterrupt:
                interrupt.pressed = True
            if due or interrupt.pressed:
                save_progress(state() | {"metrics": log.text}, out / LAST)
                saved_at = time.monotonic()
            if interrupt.pressed:
                raise KeyboardInterrupt

        settings = recipe.training
        if before is not None:
            settings = replace(settings, lr=before["progress"]["lr"])
        elif settings.lr_finder:
            settings = replace(settings, lr=find_rate(model, examples, settings, seed=seed, fabric=fabric))
        return fit(model, examples, settings, seed=seed, fabric=fabric, resume=before, after_epoch=after_epoch)


def _before(out: Path) -> dict[str, Any] | None:
    """The progress of an interrupted run; None where it has to start from the beginning."""
    if not (out / LAST).is_file():
        return None
    try:
        return load_progress(out / LAST)
    except Damaged as error:
        warnings.warn(f"{error.where}: {error.what}; the run starts from the beginning", DataWarning, stacklevel=4)
        return None


def read_json(path: Path, hint: str) -> Any:
    """Read what :func:`write_json` wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise DataError("this is no JSON, or damaged", where=str(path), hint=hint) from None


def read_results(out: Path) -> dict[str, Any]:
    """run.json of a finished run."""
    try:
        found: dict[str, Any] = read_json(out / RESULTS, "remove it, and finish the run with subgnn train --resume")
    except FileNotFoundError:
        raise DataError(
            "no finished run", where=str(out), hint="subgnn train writes one; --resume finishes it"
        ) from None
    except ValueError:
        raise DataError("this is no JSON, or damaged", where=str(out / RESULTS), hint="train again") from None
    return found


def evaluate_split(out: Path, split: str, data: Path | None = None) -> dict[str, Any]:
    """Score a finished run on a split of its dataset.

    Args:
        data: the dataset; by default where the run read it.
    """
    results = read_results(out)
    dataset = read_dataset(data if data is not None else Path(results["source"]))
    predictor = Predictor(out / CHECKPOINT, dataset.graph.undirected())
    subgraphs = dataset.subgraphs
    if subgraphs.classes != predictor.checkpoint.classes:
        raise DataError("the dataset has other labels than the run", where=dataset.name, hint="give the run's dataset")
    rows = subgraphs.indices(split)
    targets = target_tensor(subgraphs, predictor.checkpoint.standards)[torch.from_numpy(rows)]
    outputs = torch.from_numpy(predictor.outputs(subgraphs.nodes.take(rows)))
    return {**results, split: metrics(outputs, targets, subgraphs.task)}
