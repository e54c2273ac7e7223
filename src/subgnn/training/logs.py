"""What a run writes while it trains: metrics.jsonl, and the progress to continue from."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from subgnn.errors import DataError, warn
from subgnn.models.registry import trainable_model_of
from subgnn.parallel.interrupts import Interrupt, noted_interrupt
from subgnn.storage.arrays import Damaged, Format, load_state, save_state
from subgnn.storage.files import atomic_write
from subgnn.training.devices import Fabric
from subgnn.training.loop import Progress, State
from subgnn.training.options import RunOptions
from subgnn.training.run_dir import LAST, METRICS

SECONDS_BETWEEN_SAVES = 10.0
_PROGRESS = Format(
    name="subgnn-progress",
    noun="saved progress",
    make="an interrupted run leaves one",
    again="remove the file to start from the beginning",
)
Record = dict[str, Any]


class MetricsLog:
    """metrics.jsonl, which can be read while the run continues; its text is also part of the saved progress.

    So a run that continues replaces the file, whatever state it is in: half a line, or lines of epochs not saved.
    """

    def __init__(self, path: Path, text: str = "") -> None:
        self.path, self.text = path, text
        with atomic_write(path, overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def append(self, record: Record) -> None:
        """Add the record of an epoch."""
        line = json.dumps(record) + "\n"
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            what = f"cannot be written ({error.strerror or error})"
            hint = "make room there, then continue with --resume"
            raise DataError(what, where=str(self.path), hint=hint) from error
        self.text += line


class Recorder:
    """Hooks of a fit that write metrics.jsonl, save the progress every few seconds, and end the fit on an interrupt."""

    def __init__(self, options: RunOptions, fabric: Fabric) -> None:
        self._options, self._fabric = options, fabric
        self._log: MetricsLog | None = None
        self._interrupt = Interrupt()
        self._saved_at = 0.0

    @property
    def records(self) -> list[Record]:
        """The records of all epochs, also of those before an interruption."""
        return [] if self._log is None else [json.loads(line) for line in self._log.text.splitlines()]

    @contextmanager
    def fitting(self) -> Iterator[State | None]:
        """Give the saved progress, if there is any, and note interrupts until the end of the block."""
        options, fabric, first = self._options, self._fabric, self._fabric.is_global_zero
        before: State | None = fabric.broadcast(self._saved() if options.resume and first else None)
        if first:
            self._log = MetricsLog(options.out / METRICS, "" if before is None else before["metrics"])
        self._saved_at = time.monotonic()
        with noted_interrupt() as self._interrupt:
            yield before

    def _saved(self) -> State | None:
        """The progress of an interrupted run; None where there is none, or it is damaged."""
        path, devices = self._options.out / LAST, self._fabric.world_size
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
        log, fabric, interrupt = self._log, self._fabric, self._interrupt
        if log is not None:
            log.append(record)
        due = time.monotonic() - self._saved_at >= SECONDS_BETWEEN_SAVES
        try:
            self._options.callbacks.on_epoch(record)
        except KeyboardInterrupt:
            interrupt.pressed = True
        stop = interrupt.pressed
        if fabric.world_size > 1:  # all stop together
            stop = bool(fabric.all_reduce(torch.tensor(float(stop), device=fabric.device), reduce_op="sum") > 0)
        if log is not None and (due or stop):
            save_progress(state() | {"metrics": log.text, "devices": fabric.world_size}, self._options.out / LAST)
            self._saved_at = time.monotonic()
        if stop:
            raise KeyboardInterrupt


def save_progress(state: dict[str, Any], path: Path) -> None:
    """Write the state that ``--resume`` needs."""
    save_state(state, path, _PROGRESS)


def load_progress(path: Path) -> dict[str, Any]:
    """Read the state that :func:`save_progress` wrote."""
    content = load_state(path, _PROGRESS)
    for name, kind in {"metrics": str, "fitted": list, "progress": dict, "devices": int}.items():
        if not isinstance(content.get(name), kind):
            raise Damaged(f"'{name}' is missing or malformed", where=str(path), hint=_PROGRESS.again)
    return content
