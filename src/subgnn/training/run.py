"""One run: prepare, train, select on validation, score once on test, and write a folder that people can read."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.embeddings.sources import PRETRAINED, check_source, save_run_vectors
from subgnn.errors import DataError, UserError, warn
from subgnn.metrics.coverage import HeldOutScores
from subgnn.metrics.thresholds import NONE, Decision, check_aim
from subgnn.models.checkpoint import save_checkpoint
from subgnn.models.novelty import Novelty
from subgnn.models.recipes import check_recipe
from subgnn.models.registry import model_of, names_where, trainable_model_of
from subgnn.models.spec import BASELINE, Checkpoint
from subgnn.parallel.interrupts import Interrupt, noted_interrupt
from subgnn.parallel.locks import locked_folder
from subgnn.result import Alerts, CorrectedBaseline, RunResult, read_result
from subgnn.storage.arrays import Damaged, Format, load_state, save_state
from subgnn.storage.cache import cache_limit
from subgnn.storage.files import atomic_write, remove_leftovers
from subgnn.task import task_of
from subgnn.training import run_dir
from subgnn.training.cross_validation import CrossValidation
from subgnn.training.devices import Fabric, Ranks, in_turn, make_fabric
from subgnn.training.fit import FitHooks, FitResult, check_labels, fit, score_fields
from subgnn.training.loop import Progress, State
from subgnn.training.options import Callbacks, RunOptions, TrainedRun
from subgnn.training.portfolio_run import train_portfolio

SECONDS_BETWEEN_SAVES = 10.0
PROGRESS = Format(
    "subgnn-progress", "saved progress", "an interrupted run leaves one", "remove the file to start from the beginning"
)
Record = dict[str, Any]


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
        options = replace(options, callbacks=Callbacks())
    if resume and run_dir.is_finished(out):
        if first:
            run_dir.can_resume(options)
            run_dir.keep_subgraphs(dataset, out)
        return _finished(dataset, options, first=first)
    if model.uses_embeddings(recipe):
        check_source(recipe)
    check_aim(recipe.training.threshold, dataset.subgraphs.task)
    # Too few subgraphs are refused before any work.
    pool = CrossValidation.of(dataset, recipe.auto, options.seed) if recipe.is_portfolio else None
    if pool is None:
        check_labels(dataset.subgraphs)
    with run_dir.claim_run(options) if first else nullcontext():
        if resume and ranks is None and run_dir.is_finished(out):  # another process has finished it meanwhile
            return _finished(dataset, options, first=first)
        if first and options.keep_data:
            run_dir.keep_dataset(dataset, out)
        if first:
            run_dir.keep_subgraphs(dataset, out)
        trained = _train(dataset, options, fabric, ranks) if pool is None else train_portfolio(dataset, options, pool)
        if trained is not None and options.write_page is not None:
            options.write_page(dataset, out, trained)
        result = cast(RunResult, fabric.broadcast(None if trained is None else trained.result))
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


def _train(dataset: Dataset, options: RunOptions, fabric: Fabric, ranks: Ranks | None) -> TrainedRun | None:
    """Train in this process, into a folder that belongs to the run; every rank calls this, the first gets the run."""
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
        return None
    found = replace(found, checkpoint=_completed(found, dataset, options))
    tables = {} if found.vectors is None else {found.checkpoint.spec.vectors_hash: found.vectors}
    save_run_vectors(tables.values(), dataset.graph.undirected(), out)
    save_checkpoint(found.checkpoint, out / run_dir.CHECKPOINT)
    result = RunResult(
        **run_dir.result_fields(options, dataset, fabric.device, fabric.world_size),
        **_scores(dataset, options.recipe, found),
        seconds=found.seconds,
    )
    result.save(out)
    (out / run_dir.LAST).unlink(missing_ok=True)
    outputs = found.outputs.get("test", found.outputs.get("val"))
    return TrainedRun(result, options.recipe, found.checkpoint, tables, recorder.records, outputs)


def _finished(dataset: Dataset, options: RunOptions, *, first: bool) -> RunResult:
    """The result of a finished run; the first rank tidies up, and writes the page if it is missing."""
    out = options.out
    page_missing = options.write_page is not None and not (out / run_dir.PAGE).is_file()
    # By a process that was killed.
    left = any(path.name == run_dir.LAST or path.name.startswith(".") for path in out.iterdir())
    if first and (page_missing or left):
        with locked_folder(out):
            remove_leftovers(out)
            (out / run_dir.LAST).unlink(missing_ok=True)
            if page_missing and options.write_page is not None:
                options.write_page(dataset, out, None)
    return read_result(out)


def _scores(dataset: Dataset, recipe: Recipe, found: FitResult) -> dict[str, Any]:
    """Fields of the result: scores on validation and, computed here and only once, on test; thresholds; selection."""
    subgraphs, task, counts = dataset.subgraphs, task_of(dataset.subgraphs.task), dict[str, list[Alerts]]()
    progress, spec, baseline = found.progress, found.checkpoint.spec, found.checkpoint.parts.get(BASELINE)
    thresholds = 0.5 if spec.decision is None else spec.decision.thresholds(spec.classes)
    select_by = task.selection_metric(recipe.training.select_by)
    given = {
        split: (outputs[None], subgraphs.take(subgraphs.indices(split))) for split, outputs in found.outputs.items()
    }
    fields = score_fields(given, spec, thresholds, select_by)
    if spec.decision is not None and "test" in given:
        (outputs,), test = given["test"]
        probabilities = task.probabilities(torch.from_numpy(outputs)).numpy()
        counts["test"] = spec.decision.counts(probabilities, np.asarray(test.targets), spec.classes)
    return {
        "selected_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        **fields,
        "val": progress.best_metrics | (fields["val"] if spec.decision is not None else {}),
        "select_by": "auto" if recipe.training.select_by == "auto" else select_by,
        "threshold": None if spec.decision is None else spec.decision.report(**counts),
        "baseline": baseline and CorrectedBaseline(method=baseline.spec.method, candidate=baseline.spec.name),
        **found.selection,
    }


def _completed(found: FitResult, dataset: Dataset, options: RunOptions) -> Checkpoint:
    """The checkpoint with thresholds for the aim of the recipe, scores on validation, and subgraphs to compare with."""
    subgraphs, spec, outputs = dataset.subgraphs, found.checkpoint.spec, found.outputs["val"]
    task, targets, decision = task_of(spec.task), np.asarray(subgraphs.targets), spec.decision
    train, truth = subgraphs.indices("train"), targets[subgraphs.indices("val")]
    if (aim := options.recipe.training.threshold) != NONE:
        decision = Decision.choose(
            aim,
            task.probabilities(torch.from_numpy(outputs)).numpy(),
            truth,
            task=spec.task,
            classes=spec.classes,
            positive=task.positive(targets[train]),
            chosen_on="validation",
        )
    held_out = HeldOutScores.of(task.scores(outputs, spec.standards.get("target"))[None], truth, spec.task)
    novelty = Novelty.of(dataset.graph.undirected(), subgraphs.nodes.take(train), options.seed)
    return replace(found.checkpoint, spec=replace(spec, decision=decision, held_out=held_out, novelty=novelty))


class Recorder:
    """Hooks of a fit that write metrics.jsonl, save the progress every few seconds, and end the fit on an interrupt.

    metrics.jsonl can be read while the run continues. Its text is also part of the saved progress, so a run that
    continues replaces the file, whatever state it is in: half a line, or lines of epochs not saved.
    """

    def __init__(self, options: RunOptions, fabric: Fabric) -> None:
        self._options, self._fabric, self._text = options, fabric, ""
        self._interrupt, self._saved_at = Interrupt(), 0.0

    @property
    def records(self) -> list[Record]:
        """The records of all epochs, also of those before an interruption."""
        return [json.loads(line) for line in self._text.splitlines()]

    @contextmanager
    def fitting(self) -> Iterator[State | None]:
        """Give the saved progress, if there is any, and note interrupts until the end of the block."""
        options, first = self._options, self._fabric.is_global_zero
        before: State | None = self._fabric.broadcast(self._saved() if options.resume and first else None)
        if first:
            self._text = "" if before is None else before["metrics"]
            with atomic_write(options.out / run_dir.METRICS, overwrite=True) as temporary:
                temporary.write_text(self._text, encoding="utf-8")
        self._saved_at = time.monotonic()
        with noted_interrupt() as self._interrupt:
            yield before

    def _saved(self) -> State | None:
        """The progress of an interrupted run; None where there is none, or it is damaged."""
        path, devices = self._options.out / run_dir.LAST, self._fabric.world_size
        if not path.is_file():
            return None
        try:
            found = load_progress(path)
        except Damaged as error:
            warn(f"{error.where}: {error.what}; the run starts from the beginning")
            return None
        saved, recipe = [*found["fitted"], found["progress"]], self._options.recipe
        whole = all(isinstance(one, dict) and one.keys() == Progress.__dataclass_fields__.keys() for one in saved)
        if len(saved) > trainable_model_of(recipe).num_fits(recipe) or not whole:
            hint = "remove it to start from the beginning"
            raise DataError("the saved progress does not fit the run", where=str(path), hint=hint)
        if (before := found["devices"]) != devices:
            what = f"the run started on {before} devices and cannot resume on {devices}: the batches would differ"
            raise DataError(what, where=str(path.parent), hint=f"continue on {before}, or give another --out")
        return found

    def after_epoch(self, record: Record, state: Callable[[], State]) -> None:
        """Write the record, and save the state if it is time, or the run is interrupted."""
        fabric, interrupt = self._fabric, self._interrupt
        if fabric.is_global_zero:
            self.append(record)
        due = time.monotonic() - self._saved_at >= SECONDS_BETWEEN_SAVES
        try:
            self._options.callbacks.on_epoch(record)
        except KeyboardInterrupt:
            interrupt.pressed = True
        stop = interrupt.pressed
        if fabric.world_size > 1:  # all stop together
            stop = bool(fabric.all_reduce(torch.tensor(float(stop), device=fabric.device), reduce_op="sum") > 0)
        if fabric.is_global_zero and (due or stop):
            content = state() | {"metrics": self._text, "devices": fabric.world_size}
            save_state(content, self._options.out / run_dir.LAST, PROGRESS)
            self._saved_at = time.monotonic()
        if stop:
            raise KeyboardInterrupt

    def append(self, record: Record) -> None:
        line, path = json.dumps(record) + "\n", self._options.out / run_dir.METRICS
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            what = f"cannot be written ({error.strerror or error})"
            raise DataError(what, where=str(path), hint="make room there, then continue with --resume") from error
        self._text += line


def load_progress(path: Path) -> dict[str, Any]:
    """Read the state that :class:`Recorder` saved."""
    content = load_state(path, PROGRESS)
    for name, kind in {"metrics": str, "fitted": list, "progress": dict, "devices": int}.items():
        if not isinstance(content.get(name), kind):
            raise Damaged(f"'{name}' is missing or malformed", where=str(path), hint=PROGRESS.again)
    return content
