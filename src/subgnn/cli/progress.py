"""A progress bar on stderr, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class Bar:
    """One line for the progress of pretraining, if there is any, then of the preparation, then of the epochs."""

    def __init__(self, bar: Progress, epochs: int = 0, pretrain_epochs: int = 0) -> None:
        self._bar, self._epochs, self._pretrain_epochs, self._what = bar, epochs, pretrain_epochs, ""
        self._task: TaskID | None = None

    def prepare(self, what: str, done: int, total: int) -> None:
        """Show the progress of a stage of the preparation."""
        self._show(what, done, total, "")

    def pretrain(self, record: dict[str, Any]) -> None:
        """Show a finished epoch of pretraining."""
        state = f"val auroc {record['val_auroc']:.3f}"
        self._show("pretraining", record["epoch"] + 1, self._pretrain_epochs, state)

    def epoch(self, record: dict[str, Any]) -> None:
        """Show a finished epoch."""
        state = f"loss {record['train_loss']:.3f}, val {record.get('val_micro_f1', record['val_loss']):.3f}"
        what = f"training {record['candidate']}" if "candidate" in record else "training"
        self._show(what, record["epoch"] + 1, self._epochs, state)

    def _show(self, what: str, done: int, total: int, state: str) -> None:
        if self._task is None or what != self._what:
            # A new task, so that the remaining time is estimated from this stage only.
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task, self._what = self._bar.add_task(what, total=total, state=state), what
        self._bar.update(self._task, completed=done, total=total, state=state)


@contextmanager
def progress_bar(epochs: int = 0, pretrain_epochs: int = 0) -> Iterator[Bar]:
    """Show a progress bar until the end of the block; without a terminal, it is hidden."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[state]}"),
    )
    hidden = not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), disable=hidden) as bar:
        yield Bar(bar, epochs, pretrain_epochs)
