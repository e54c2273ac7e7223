"""One run: prepare, train, select, score once on test, and leave a folder that a person can read.

RUN/run.json          results: the keys of ``subgnn train --json``
RUN/recipe.json       all settings, as they were
RUN/metrics.jsonl     a line an epoch
RUN/checkpoint.pt     the selected weights, anchors, class names and the graph's hash
RUN/embeddings.safetensors   the node embeddings it started from, unless they are random or larger than 256 MB
RUN/last.pt           everything ``--resume`` needs; gone when the run is done
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from numpy.typing import NDArray

from subgnn.config import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.formats.text import appearing
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.embeddings import node_vectors, source_vectors
from subgnn.embeddings.of_run import keep_vectors
from subgnn.errors import DataError
from subgnn.kernels import Components
from subgnn.nn import SubGNN
from subgnn.predict import Predictor, build_inputs, build_model
from subgnn.prepare import prepare
from subgnn.rng import stream_key
from subgnn.topology import Standard, node_set_statistics
from subgnn.training.checkpoint import Checkpoint, load, save, save_checkpoint
from subgnn.training.loop import Examples, Progress, evaluate, fit
from subgnn.training.metrics import metrics

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
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    on_pretrain: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Train a recipe on a dataset and write the run's folder.

    Args:
        device: ``auto``, ``cpu`` or ``cuda``.
        resume: go on with a run that was interrupted; its recipe and seed must be the same.
        source: where the dataset was read from, kept so that ``predict`` finds the graph.
        on_epoch: called with each epoch's record.
        on_pretrain: called with each epoch's record of a pretraining, where one is needed.

    Returns:
        The results, as in run.json.
    """
    _claim(out, recipe, seed, resume)
    if resume and (out / RESULTS).is_file():
        return read_results(out)
    fabric = Fabric(accelerator=device, devices=1, precision=recipe.training.precision)
    begin = time.perf_counter()
    graph = dataset.graph.undirected()
    vectors = source_vectors(recipe, graph, device=device, on_epoch=on_pretrain)
    pretrained_at = time.perf_counter()
    model, examples, checkpoint = _set_up(dataset, recipe, seed, fabric.device, vectors)
    prepared_at = time.perf_counter()
    progress = _fit(model, examples, recipe, out, seed=seed, fabric=fabric, resume=resume, on_epoch=on_epoch)
    trained_at = time.perf_counter()
    model.load_state_dict(progress.best_state)
    kept = keep_vectors(vectors, recipe, graph, out)
    save_checkpoint(replace(checkpoint, weights=progress.best_state, vectors_hash=kept), out / CHECKPOINT)
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
            "pretrain": pretrained_at - begin,
            "prepare": prepared_at - pretrained_at,
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
    dataset: Dataset, recipe: Recipe, seed: int, device: torch.device, vectors: NDArray[np.float32] | None
) -> tuple[SubGNN, Examples, Checkpoint]:
    """Prepare the subgraphs and make the network; the checkpoint has everything but weights."""
    graph, subgraphs = dataset.graph.undirected(), dataset.subgraphs
    for split in ("train", "val"):
        if not len(subgraphs.indices(split)):
            raise DataError(f"no subgraph in split '{split}'", where="train", hint="learning and selection need both")
    prepared = prepare(
        graph,
        subgraphs.nodes,
        channels=recipe.channels,
        layers=recipe.model.layers,
        settings=recipe.prepare,
        seed=seed,
    )
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
    initial = node_vectors(recipe.embeddings, table, num_nodes=graph.num_nodes, seed=seed, table=vectors)
    rows = torch.from_numpy(initial)
    with torch.random.fork_rng():
        torch.manual_seed(stream_key(seed, "initialisation"))
        model = build_model(checkpoint, rows, table)
    examples = Examples(
        inputs=build_inputs(graph, prepared, subgraphs.nodes, table, checkpoint.standards).to(device),
        targets=_targets(subgraphs, checkpoint.standards).to(device),
        task=subgraphs.task,
        train=subgraphs.indices("train"),
        val=subgraphs.indices("val"),
    )
    return model, examples, checkpoint


def _claim(out: Path, recipe: Recipe, seed: int, resume: bool) -> None:
    """Make the run's folder, or check that it holds the run that is to go on."""
    settings = asdict(recipe) | {"seed": seed}
    if resume and (out / RECIPE).is_file():
        before = json.loads((out / RECIPE).read_text(encoding="utf-8"))
        if before != json.loads(json.dumps(settings)):
            hint = "give the same recipe, settings and seed, or another --out"
            raise DataError("the run there has other settings", where=str(out), hint=hint)
        return
    if out.exists() and any(out.iterdir()):
        raise DataError("exists already", where=str(out), hint="choose another --out, or go on with --resume")
    out.mkdir(parents=True, exist_ok=True)
    write_json(settings, out / RECIPE)


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
    before = load(out / LAST) if resume and (out / LAST).is_file() else None
    done = 0 if before is None else before["progress"]["epoch"]
    lines = (out / METRICS).read_text(encoding="utf-8").splitlines(keepends=True)[:done] if done else []
    (out / METRICS).write_text("".join(lines), encoding="utf-8")
    saved_at = time.monotonic()

    def after_epoch(record: dict[str, Any], progress: Progress, state: Callable[[], dict[str, Any]]) -> None:
        nonlocal saved_at
        with (out / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        if time.monotonic() - saved_at >= SECONDS_BETWEEN_SAVES:
            save(state(), out / LAST)
            saved_at = time.monotonic()
        if on_epoch is not None:
            on_epoch(record)

    return fit(model, examples, recipe.training, seed=seed, fabric=fabric, resume=before, after_epoch=after_epoch)


def read_results(out: Path) -> dict[str, Any]:
    """run.json of a finished run."""
    try:
        found: dict[str, Any] = json.loads((out / RESULTS).read_text(encoding="utf-8"))
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
