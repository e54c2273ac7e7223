"""A progress bar on stderr if that is a terminal, or in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from subgnn.training.options import Callbacks

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from subgnn.result import Candidate

_FEATURES = "uses node features"


class Bar:
    """One line for the progress of a run; for a portfolio also its plan, unless ``quiet``, and judged candidates."""

    def __init__(self, bar: Progress, epochs: int = 0, pretrain_epochs: int = 0, *, quiet: bool = False) -> None:
        self._bar, self._epochs, self._pretrain_epochs, self._what = bar, epochs, pretrain_epochs, ""
        self._task: TaskID | None = None
        self._judged: set[str] = set()
        self._prints_plan = not quiet

    def callbacks(self) -> Callbacks:
        return Callbacks(self.epoch, self.prepare, self.pretrain, self.leaderboard)

    def prepare(self, what: str, done: int, total: int) -> None:
        """Show the progress of a stage of the preparation, and how much of it is done in a second."""
        speed = next((task.speed for task in self._bar.tasks if task.id == self._task and what == self._what), None)
        self._show(what, done, total, f"{speed:,.0f}/s" if speed else "")

    def step(self, what: str, step: str) -> None:
        """Show a step of work whose length is unknown."""
        self._show(f"{what}: {step}", 0, None, "")

    def pretrain(self, record: dict[str, Any]) -> None:
        self._show("pretraining", record["epoch"] + 1, self._pretrain_epochs, f"val auroc {record['val_auroc']:.3f}")

    def epoch(self, record: dict[str, Any]) -> None:
        state = f"loss {record['train_loss']:.3f}, val {record.get('val_micro_f1', record['val_loss']):.3f}"
        what = f"training {record['candidate']}" if "candidate" in record else "training"
        self._show(what, record["epoch"] + 1, self._epochs, state)

    def leaderboard(self, rows: Sequence[Candidate], doing: str) -> None:
        """Print the plan at first, then the candidate that was judged last, and show what is being done."""
        tried = [row for row in rows if row.recipe and (row.score is not None or row.note in ("", _FEATURES))]
        if self._prints_plan:
            self._prints_plan = False
            print(f"candidates: {', '.join(row.name for row in tried)}")
            for row in rows:
                if row.recipe and row not in tried:
                    print(f"not tried: {row.name} ({row.note})")
        done = [row for row in rows if row.score is not None and row.recipe]
        for row in done if not self._bar.disable else ():
            if row.name not in self._judged:
                self._judged.add(row.name)
                score = f"{row.score:.3f} ({row.low:.3f} to {row.high:.3f})"
                self._bar.console.print(f"{row.name:24} {score}  {row.seconds:.0f} s", highlight=False)
        best = f"best so far {done[0].name} {done[0].score:.3f}" if done else ""
        self._show("auto", len(done), len(tried), "; ".join(part for part in (best, doing) if part))

    def _show(self, what: str, done: int, total: int | None, state: str) -> None:
        if self._task is None or what != self._what:
            # A new task, so that the remaining time is estimated from this stage only.
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task, self._what = self._bar.add_task(what, total=total, state=state), what
        self._bar.update(self._task, completed=done, total=total, state=state)


@contextmanager
def progress_bar(
    epochs: int = 0, pretrain_epochs: int = 0, *, quiet: bool = False, shown: bool | None = None
) -> Iterator[Bar]:
    """Show a progress bar until the end of the block; by default in a terminal, or in a notebook with ipywidgets."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    what, state = (TextColumn(text) for text in ("{task.description}", "{task.fields[state]}"))
    columns = (what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), state)
    console = Console(stderr=True)
    possible = find_spec("ipywidgets") is not None if console.is_jupyter else sys.stderr.isatty()
    with Progress(*columns, console=console, disable=not (possible if shown is None else shown)) as bar:
        yield Bar(bar, epochs, pretrain_epochs, quiet=quiet)
