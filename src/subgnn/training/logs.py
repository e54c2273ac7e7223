"""Logs of training: metrics.jsonl, one line per epoch, and the same records through Lightning's loggers.

TensorBoard           event files in RUN/tensorboard
MLflow                the database RUN/mlflow.db, or the server that MLFLOW_TRACKING_URI names
Weights & Biases      an offline run in RUN/wandb, unless WANDB_MODE=online

Each has the settings; loss/train, loss/val, micro_f1/val, ...: a point an epoch, and of several candidates or networks
a curve each: loss/train/frozen, loss/train/member_1, ...; at the end micro_f1/test, ..., and of a portfolio
micro_f1/out_of_fold/CANDIDATE, ....

A run that continues after an interruption writes all of them anew from the epochs that were saved, so no epoch is there
twice. Nothing is sent over a network unless the environment asks for it.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from subgnn.errors import DataError, MissingExtra
from subgnn.result import RunResult
from subgnn.storage.files import atomic_write
from subgnn.training.options import RunOptions
from subgnn.training.run_dir import METRICS

TENSORBOARD, MLFLOW, WANDB = "tensorboard", "mlflow", "wandb"
_PROJECT = "subgnn"
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


@dataclass(frozen=True, slots=True)
class _OpenLogger:
    """A Lightning logger, and the function that closes it, given whether the run succeeded."""

    logger: Any
    close: Callable[[bool], None]


def _open_tensorboard(run: Path) -> _OpenLogger:
    from lightning.fabric.loggers import TensorBoardLogger

    for old in (run / TENSORBOARD).glob("events.out.tfevents.*"):
        old.unlink()
    # Step 0 also makes an open TensorBoard forget what it has read.
    logger = TensorBoardLogger(run, TENSORBOARD, version="", default_hp_metric=False, purge_step=0)
    return _OpenLogger(logger, lambda succeeded: logger.finalize(""))


def _open_mlflow(run: Path) -> _OpenLogger:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from lightning.pytorch.loggers import MLFlowLogger

    for noisy in ("mlflow.store.db.utils", "lightning.pytorch.loggers.mlflow"):  # tell what they create
        logging.getLogger(noisy).setLevel(logging.ERROR)
    server, database = os.environ.get("MLFLOW_TRACKING_URI"), run.resolve() / f"{MLFLOW}.db"
    if server is None:
        database.unlink(missing_ok=True)
    logger = MLFlowLogger(
        _PROJECT,
        run_name=run.name,
        tracking_uri=server or f"sqlite:///{database}",
        artifact_location=None if server else str(run.resolve() / "mlflow_artifacts"),
    )
    return _OpenLogger(logger, lambda succeeded: logger.finalize("success" if succeeded else "failed"))


def _open_wandb(run: Path) -> _OpenLogger:
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb
    from lightning.pytorch.loggers import WandbLogger

    mode = os.environ.get("WANDB_MODE", "offline")
    if mode != "online":
        shutil.rmtree(run / WANDB, ignore_errors=True)
    quiet = wandb.Settings(console="off", silent=True)
    logger = WandbLogger(run.name, save_dir=run, project=_PROJECT, mode=mode, settings=quiet)
    return _OpenLogger(logger, lambda succeeded: logger.experiment.finish(0 if succeeded else 1))


_OPEN: dict[str, Callable[[Path], _OpenLogger]] = {
    TENSORBOARD: _open_tensorboard,
    MLFLOW: _open_mlflow,
    WANDB: _open_wandb,
}


def check_loggers(names: Sequence[str]) -> None:
    """Raise an error for loggers that are unknown or whose packages are not installed."""
    for name in names:
        if find_spec(name) is None:
            raise MissingExtra(name, extra="track", feature=f"--{name}")


class RunLoggers:
    """The loggers of a run, opened at the first record and closed at the end of the block."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._opened: list[_OpenLogger] | None = None if options.loggers else []

    def log_epoch(self, record: Record) -> None:
        """Log the record of an epoch, the last line of metrics.jsonl, and call the run's ``on_epoch`` with it."""
        if self._opened is None:
            self._open(self._saved()[:-1])
        self._log(_points(record), record["epoch"])
        self._options.callbacks.on_epoch(record)

    def log_result(self, result: RunResult) -> None:
        """Log the scores on test and, of a portfolio, those of its candidates."""
        if self._opened is None:
            self._open(self._saved())
        scores = {f"{_plain(metric)}/test": value for metric, value in result.test.items()}
        board = {row.name: row.score for row in result.leaderboard if row.score is not None}
        scores |= {f"{_plain(result.metric)}/out_of_fold/{_plain(name)}": score for name, score in board.items()}
        self._log(scores, result.selected_epoch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        for opened in self._opened or ():
            opened.close(error is None)

    def _saved(self) -> list[str]:
        """The lines of metrics.jsonl."""
        path = self._options.out / METRICS
        return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []

    def _open(self, lines: Sequence[str]) -> None:
        options = self._options
        self._opened = [_OPEN[name](options.out) for name in options.loggers]
        settings = options.recipe.plain() | {"seed": options.seed, "split": options.split, "source": options.source}
        for opened in self._opened:
            opened.logger.log_hyperparams(settings)
        for record in map(json.loads, lines):
            self._log(_points(record), record["epoch"])

    def _log(self, values: dict[str, float], step: int) -> None:
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        for opened in self._opened or ():
            opened.logger.log_metrics(finite, step=step)


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
