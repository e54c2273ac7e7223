"""Logs of training: metrics.jsonl, one line per epoch, and the same records as event files for TensorBoard.

Event files, in RUN/tensorboard, have the settings; loss/train, loss/val, micro_f1/val, ...: a point an epoch, and of
several candidates or networks a curve each: loss/train/frozen, loss/train/member_1, ...; at the end micro_f1/test, ...,
and of a portfolio micro_f1/out_of_fold/CANDIDATE, ....

A run that continues after an interruption writes all of them anew from the epochs that were saved, so no epoch is there
twice.
"""

from __future__ import annotations

import json
import math
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from subgnn.errors import DataError, MissingExtra
from subgnn.result import RunResult
from subgnn.storage.files import atomic_write
from subgnn.training.options import RunOptions
from subgnn.training.run_dir import METRICS

TENSORBOARD = "tensorboard"
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
