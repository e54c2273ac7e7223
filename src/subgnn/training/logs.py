"""What a run writes while it trains: metrics.jsonl, event files for TensorBoard, and the progress to continue from.

Event files, in RUN/tensorboard, have the settings; loss/train, loss/val, micro_f1/val, ...: a point an epoch, and of
several candidates or networks a curve each: loss/train/frozen, loss/train/member_1, ...; at the end micro_f1/test, ...,
and of a portfolio micro_f1/out_of_fold/CANDIDATE, ....

A run that continues after an interruption writes all of them anew from the epochs that were saved, so no epoch is there
twice.
"""

import json
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from subgnn.errors import DataError, MissingExtra, warn
from subgnn.models.registry import trainable_model_of
from subgnn.parallel.interrupts import Interrupt, noted_interrupt
from subgnn.result import RunResult
from subgnn.storage.arrays import Damaged, Format, load_state, save_state
from subgnn.storage.files import atomic_write
from subgnn.training.devices import Fabric, any_rank
from subgnn.training.loop import Progress, State
from subgnn.training.options import RunOptions
from subgnn.training.run_dir import LAST, METRICS

TENSORBOARD = "tensorboard"
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
        stop = any_rank(fabric, interrupt.pressed)
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


def check_tensorboard() -> None:
    """Raise an error if TensorBoard is not installed."""
    if find_spec(TENSORBOARD) is None:
        raise MissingExtra(TENSORBOARD, extra="track", feature=f"--{TENSORBOARD}")


class EventLog:
    """The event files of a run, if requested: opened at the first record and closed at the end of the block."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._logger: Any = None

    def log_epoch(self, record: Record) -> None:
        """Log the record of an epoch, the last line of metrics.jsonl, and call the run's ``on_epoch`` with it."""
        self._log(_points(record), record["epoch"], before=slice(None, -1))
        self._options.callbacks.on_epoch(record)

    def log_result(self, result: RunResult) -> None:
        """Log the scores on test and, of a portfolio, those of its candidates."""
        scores = {f"{_plain(metric)}/test": value for metric, value in result.test.items()}
        board = {row.name: row.score for row in result.leaderboard if row.score is not None}
        scores |= {f"{_plain(result.metric)}/out_of_fold/{_plain(name)}": score for name, score in board.items()}
        self._log(scores, result.selected_epoch, before=slice(None))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._logger is not None:
            self._logger.finalize("")

    def _log(self, values: dict[str, float], step: int, *, before: slice) -> None:
        """Log values; the first call opens the log, and logs the records ``before`` them in metrics.jsonl."""
        options = self._options
        if not options.tensorboard:
            return
        if self._logger is None:
            from lightning.fabric.loggers import TensorBoardLogger

            path = options.out / METRICS
            lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
            for old in (options.out / TENSORBOARD).glob("events.out.tfevents.*"):
                old.unlink()
            # Step 0 also makes an open TensorBoard forget what it has read.
            self._logger = TensorBoardLogger(
                options.out, TENSORBOARD, version="", default_hp_metric=False, purge_step=0
            )
            settings = options.recipe.plain() | {"seed": options.seed, "split": options.split, "source": options.source}
            self._logger.log_hyperparams(settings)
            for record in map(json.loads, lines[before]):
                self._write(_points(record), record["epoch"])
        self._write(values, step)

    def _write(self, values: dict[str, float], step: int) -> None:
        self._logger.log_metrics({name: value for name, value in values.items() if math.isfinite(value)}, step=step)


def _points(record: Record) -> dict[str, float]:
    """The values of an epoch by the names of their curves: ``val_loss`` of a candidate is ``loss/val/candidate``."""
    candidate = _plain(record.get("candidate", ""))
    names = [name.partition("_") for name in record]
    return {
        "/".join(filter(None, (_plain(metric), split, candidate))): record[f"{split}_{metric}"]
        for split, _, metric in names
        if metric
    }


def _plain(name: str) -> str:
    return re.sub(r"[^-\w.]", "_", name)
