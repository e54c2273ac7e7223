"""TensorBoard's event files, from the records of metrics.jsonl.

RUN/tensorboard       loss/train, loss/val, micro_f1/val, ...: a point an epoch; of several candidates or networks,
                      a curve each: loss/train/frozen, loss/train/member_1, ...

A run that goes on after an interruption writes its curves anew from metrics.jsonl, whose lines are the epochs that
count; so no epoch stands there twice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from subgnn.errors import MissingExtra

TENSORBOARD = "tensorboard"
Record = dict[str, Any]
OnEpoch = Callable[[Record], None]


def writer_class() -> Any:
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
def also_events(on_epoch: OnEpoch | None, folder: Path, metrics: Path) -> Iterator[OnEpoch]:
    """Write each epoch's record as events, then hand it on.

    Args:
        folder: for the event files.
        metrics: metrics.jsonl, whose last line is the record; what it has of earlier epochs is written first.
    """
    writer: Any = None

    def write(record: Record) -> None:
        nonlocal writer
        if writer is None:
            for old in folder.glob("events.out.tfevents.*"):
                old.unlink()
            # Step 0 also makes a TensorBoard that is open forget what it has read.
            writer = writer_class()(str(folder), purge_step=0)
            for line in metrics.read_text(encoding="utf-8").splitlines()[:-1]:
                _add(writer, json.loads(line))
        _add(writer, record)
        if on_epoch is not None:
            on_epoch(record)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _add(writer: Any, record: Record) -> None:
    whose = re.sub(r"[^-\w.]", "_", record.get("candidate", ""))
    for name, value in record.items():
        split, _, metric = name.partition("_")
        if metric and math.isfinite(value):
            writer.add_scalar("/".join(filter(None, (metric, split, whose))), value, record["epoch"])
