"""The process of one rank that ``--devices`` started: it trains, and tells the process that started it how it goes.

Messages go to its parent as lines of JSON; the parent answers those about epochs, ``go`` or ``stop``. When the parent
is gone, however it went, so is this process.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from subgnn.config.files import parse_recipe
from subgnn.config.settings import Recipe
from subgnn.errors import DataWarning, UserError
from subgnn.parallel.locks import shared_lock
from subgnn.parallel.memory import within

ORDER, DATASET = "order.json", "dataset.subgnn"


def write_order(folder: Path, recipe: Recipe, options: dict[str, Any], *, memory: int) -> None:
    """Write what ranks are to do.

    Args:
        options: of :func:`~subgnn.training.run.train`, as JSON has them.
        memory: bytes that each rank is to stay within.
    """
    order = {"recipe": asdict(recipe), "options": options, "memory": memory}
    (folder / ORDER).write_text(json.dumps(order), encoding="utf-8")


class Parent:
    """The process that started this one.

    Args:
        folder: what it left here for its ranks; when it is gone, nobody else will remove that.
    """

    def __init__(self, folder: Path) -> None:
        # What anybody prints goes to the log; our messages have a way of their own.
        self._channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._folder = folder
        self._answers: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while answer := os.read(0, 1024):
            self._answers.put(answer.strip())
        shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(1)

    def send(self, kind: str, **content: Any) -> None:
        """Send a message."""
        self._channel.write(json.dumps({"kind": kind} | content) + "\n")
        self._channel.flush()

    def epoch(self, record: dict[str, Any]) -> None:
        """Send an epoch's record, and obey the answer."""
        self.send("epoch", record=record)
        if self._answers.get() == b"stop":
            raise KeyboardInterrupt

    def prepare(self, what: str, done: int, total: int) -> None:
        """Send how far the preparation has come."""
        self.send("prepare", what=what, done=done, total=total)

    def pretrain(self, record: dict[str, Any]) -> None:
        """Send an epoch's record of a pretraining."""
        self.send("pretrain", record=record)

    def warn(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        """Send a warning that is for the user, in the place of ``warnings.showwarning``."""
        if issubclass(category, DataWarning):
            self.send("warning", text=str(message))

    def fail(self, error: Exception) -> None:
        """Send an error so that it can be raised again."""
        content: dict[str, Any] = {"type": type(error).__name__, "text": str(error), "at": time.monotonic()}
        if isinstance(error, UserError):
            content["user"] = [error.what, error.where, error.hint]
        elif isinstance(error, OSError) and error.filename is not None:
            content["os"] = [error.errno, error.strerror, str(error.filename)]
        self.send("error", **content, traceback=traceback.format_exc())


def main() -> None:
    """Do what the folder named on the command line says, as the rank that the environment says."""
    folder = Path(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent has them, too, and ends its ranks
    parent = Parent(folder)
    first = os.environ["RANK"] == "0"
    try:
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = parent.warn if first else (lambda *_, **__: None)
        results = _train(folder, parent if first else None)
        parent.send("done", results=results)
        code = 0
    except KeyboardInterrupt:
        parent.send("interrupted")
        code = 0
    except Exception as error:
        parent.fail(error)
        code = 1
    # Without farewells: those of the process group may wait for ranks that have left.
    sys.stderr.flush()
    os._exit(code)


def _train(folder: Path, parent: Parent | None) -> dict[str, Any]:
    """Train; where a parent is given, tell it how it goes."""
    from subgnn.data.formats import read_dataset
    from subgnn.training.precision import quiet_lightning
    from subgnn.training.run import train

    quiet_lightning()
    order = json.loads((folder / ORDER).read_text(encoding="utf-8"))
    recipe = parse_recipe(order["recipe"], ORDER)
    out = Path(order["options"].pop("out"))
    with within(order["memory"]), shared_lock(out):
        return train(
            read_dataset(folder / DATASET),
            recipe,
            out,
            resume=True,
            on_epoch=None if parent is None else parent.epoch,
            on_prepare=None if parent is None else parent.prepare,
            on_pretrain=None if parent is None else parent.pretrain,
            **order["options"],
        )


if __name__ == "__main__":
    main()
