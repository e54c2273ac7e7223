"""One run: prepare, train, select, score once on test, and leave a folder that a person can read.

RUN/run.json          results: the keys of ``subgnn train --json``
RUN/recipe.json       all settings, as they were
RUN/metrics.jsonl     a line an epoch
RUN/checkpoint.pt     the selected weights, anchors, class names and the graph's hash
RUN/last.pt           everything ``--resume`` needs; gone when the run is done
"""

from __future__ import annotations

import json
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric

from subgnn.config import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.formats.text import appearing
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.embeddings import node_vectors
from subgnn.errors import DataError, DataWarning
from subgnn.kernels import Components
from subgnn.nn import SubGNN
from subgnn.pacing import OnProgress
from subgnn.predict import Predictor, build_inputs, build_model
from subgnn.prepare_cached import prepare_cached
from subgnn.rng import stream_key
from subgnn.topology import Standard, node_set_statistics
from subgnn.training.checkpoint import Checkpoint, Damaged, load_progress, save_checkpoint, save_progress
from subgnn.training.interrupt import noted_interrupt
from subgnn.training.labels import warn_of_unseen
from subgnn.training.loop import Examples, Progress, evaluate, fit
from subgnn.training.metrics import metrics
from subgnn.training.metrics_log import MetricsLog

SECONDS_BETWEEN_SAVES = 10.0
RESULTS, RECIPE, METRICS, CHECKPOINT, LAST = "run.json", "recipe.json", "metrics.jsonl", "checkpoint.pt", "last.pt"


def write_json(value: Any, path: Path) -> None:
    """Write JSON; the file appears whole or not at all."""
    with appearing(path, overwrite=True) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _standards(graph: Graph, subgraphs: SubgraphSet, recipe: Recipe, components: Components) -> dict[str, Standard]:
    """Means and deviations of the training split, for statistics and for real-valued targets."""
    train = subgraphs.indices("train")
    found = {}
    if recipe.model.topology:
        own = np.flatnonzero(np.isin(components.subgraph, train))
        found["component"] = Standard.of(node_set_statistics(graph, components.nodes.take(own)))
        found["subgraph"] = Standard.of(node_set_statistics(graph, subgraphs.nodes.take(train)))
    if subgraphs.task == "regression" and subgraphs.targets is not None:
        found["target"] = Standard.of(subgraphs.targets[train][:, None])
    return found


def _targets(subgraphs: SubgraphSet, standards: dict[str, Standard]) -> torch.Tensor:
    if subgraphs.targets is None:
        raise DataError("the subgraphs have no labels", where="train", hint="give each one a label")
    if "target" in standards:
        return torch.from_numpy(standards["target"](subgraphs.targets[:, None])[:, 0])
    return torch.from_numpy(np.array(subgraphs.targets))


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
) -> dict[str, Any]:
    """Train a recipe on a dataset and write the run's folder.

    Args:
        device: ``auto``, ``cpu`` or ``cuda``.
        resume: go on with a run that was interrupted; its recipe and seed must be the same.
        source: where the dataset was read from, kept so that ``predict`` finds the graph.
        cache: look for prepared subgraphs in the cache, and leave them there.
        on_epoch: called with each epoch's record.
        on_prepare: called, before the first epoch, with what is being prepared, the units done and the units in all.

    Returns:
        The results, as in run.json.
    """
    _claim(out, recipe, seed, resume)
    if resume and (out / RESULTS).is_file():
        (out / LAST).unlink(missing_ok=True)
        return read_results(out)
    fabric = Fabric(accelerator=device, devices=1, precision=recipe.training.precision)
    begin = time.perf_counter()
    model, examples, checkpoint = _set_up(dataset, recipe, seed, fabric.device, cache=cache, on_prepare=on_prepare)
    prepared_at = time.perf_counter()
    progress = _fit(model, examples, recipe, out, seed=seed, fabric=fabric, resume=resume, on_epoch=on_epoch)
    trained_at = time.perf_counter()
    model.load_state_dict(progress.best_state)
    save_checkpoint(replace(checkpoint, weights=progress.best_state), out / CHECKPOINT)
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
    }
    write_json(results, out / RESULTS)
    (out / LAST).unlink(missing_ok=True)
    return results


def _set_up(
    dataset: Dataset, recipe: Recipe, seed: int, device: torch.device, *, cache: bool, on_prepare: OnProgress | None
) -> tuple[SubGNN, Examples, Checkpoint]:
    """Prepare the subgraphs and make the network; the checkpoint has everything but weights."""
    graph, subgraphs = dataset.graph.undirected(), dataset.subgraphs
    for split in ("train", "val"):
        if not len(subgraphs.indices(split)):
            raise DataError(f"no subgraph in split '{split}'", where="train", hint="learning and selection need both")
    warn_of_unseen(subgraphs)
    prepared = prepare_cached(
        graph,
        subgraphs.nodes,
        channels=recipe.channels,
        layers=recipe.model.layers,
        settings=recipe.prepare,
        seed=seed,
        cache=cache,
        on_progress=on_prepare,
    ).prepared
    table = prepared.touched()
    checkpoint = Checkpoint(
        recipe=recipe,
        seed=seed,
        task=subgraphs.task,
        classes=subgraphs.classes,
        graph_hash=graph.content_hash,
        table_nodes=table,
        shared=prepared.shared,
        weights={},
        standards=_standards(graph, subgraphs, recipe, prepared.components),
    )
    rows = torch.from_numpy(node_vectors(recipe.embeddings, table, num_nodes=graph.num_nodes, seed=seed))
    with torch.random.fork_rng():
        torch.manual_seed(stream_key(seed, "initialisation"))
        model = build_model(checkpoint, rows, table)
    examples = Examples(
        inputs=build_inputs(graph, prepared, subgraphs.nodes, table, checkpoint.standards).to(device),
        targets=_targets(subgraphs, checkpoint.standards).to(device),
        task=subgraphs.task,
        train=subgraphs.indices("train"),
        val=subgraphs.indices("val"),
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
    for name in (RESULTS, RECIPE, METRICS, CHECKPOINT, LAST):
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

        return fit(model, examples, recipe.training, seed=seed, fabric=fabric, resume=before, after_epoch=after_epoch)


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
    targets = _targets(subgraphs, predictor.checkpoint.standards)[torch.from_numpy(rows)]
    outputs = torch.from_numpy(predictor.outputs(subgraphs.nodes.take(rows)))
    return {**results, split: metrics(outputs, targets, subgraphs.task)}
