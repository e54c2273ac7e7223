"""Logs of a training: metrics.jsonl, a line an epoch, and the same records as event files for TensorBoard.

RUN/tensorboard       loss/train, loss/val, micro_f1/val, ...: a point an epoch; of several candidates or networks,
                      a curve each: loss/train/frozen, loss/train/member_1, ...

A run that continues after an interruption writes both anew from the epochs that were saved, so no epoch is there twice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from subgnn.errors import DataError, MissingExtra
from subgnn.storage.files import atomic_write
from subgnn.training.options import OnEpoch

TENSORBOARD = "tensorboard"
Record = dict[str, Any]


class MetricsLog:
    """metrics.jsonl, which can be read while the run continues; its text is also part of the saved progress.

    So a run that continues replaces the file, whatever state it is in: half a line, or lines of epochs not saved.

    Args:
        text: the lines of the epochs that are done.
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


def summary_writer() -> Any:
    """The class that writes event files.

    Raises:
        MissingExtra: without tensorboard.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtra("tensorboard", extra="tensorboard", feature="--tensorboard") from None
    return SummaryWriter


@contextmanager
def with_events(on_epoch: OnEpoch, run: Path, metrics: Path) -> Iterator[OnEpoch]:
    """A function that writes each epoch's record as events, then calls ``on_epoch`` with it.

    Args:
        run: the folder of the run.
        metrics: metrics.jsonl, whose last line is the record; those before it are written first.
    """
    writer: Any = None
    folder = run / TENSORBOARD

    def write(record: Record) -> None:
        nonlocal writer
        if writer is None:
            for old in folder.glob("events.out.tfevents.*"):
                old.unlink()
            # Step 0 also makes an open TensorBoard forget what it has read.
            writer = summary_writer()(str(folder), purge_step=0)
            for line in metrics.read_text(encoding="utf-8").splitlines()[:-1]:
                _add(writer, json.loads(line))
        _add(writer, record)
        on_epoch(record)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _add(writer: Any, record: Record) -> None:
    candidate = re.sub(r"[^-\w.]", "_", record.get("candidate", ""))
    for name, value in record.items():
        split, _, metric = name.partition("_")
        if metric and math.isfinite(value):
            writer.add_scalar("/".join(filter(None, (metric, split, candidate))), value, record["epoch"])
