"""Start the ranks of a training on many devices of this machine, follow them, and end them together.

Each rank is a process of its own (:mod:`~subgnn.training.worker`) that finds the dataset, as a bundle it maps, and its
orders in a temporary folder. This process trains nothing: it hands on what the first rank reports, and watches. So it
needs no main guard in a caller's script, and a rank that dies is noticed at once, whatever the others are waiting for.
"""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats.bundle import write_bundle
from subgnn.embeddings import PRETRAINED
from subgnn.errors import DataError, DataWarning, RankDied, UserError
from subgnn.parallel.interrupts import noted_interrupt
from subgnn.parallel.memory import share_of_each
from subgnn.parallel.progress import OnProgress
from subgnn.storage.cache import cache_limit
from subgnn.storage.files import temporary_folder
from subgnn.training.processes import Processes
from subgnn.training.worker import DATASET, write_order

_METHODS = ("subgnn", "avg", "gc")
_GRACE = 3.0  # seconds that ranks have, after the first failure, to say what theirs was


@dataclass(slots=True)
class Watch:
    """Whom to tell of an epoch, of the preparation and of a pretraining."""

    on_epoch: Callable[[dict[str, Any]], None] | None = None
    on_prepare: OnProgress | None = None
    on_pretrain: Callable[[dict[str, Any]], None] | None = None


def check_devices(recipe: Recipe, device: str, devices: int, cache: bool) -> None:
    """Refuse what cannot be trained on many devices.

    Raises:
        UserError: for a method whose work they could not share, for more GPUs than there are, and where the ranks would
            have no place to share pretrained embeddings in.
    """
    if recipe.method not in _METHODS:
        hint = f"with many devices: {', '.join(_METHODS)}; leave --devices out for the others, they are small"
        raise UserError(f"the method {recipe.method} is fitted on one device", where="--devices", hint=hint)
    gpus = torch.cuda.device_count()
    if device != "cpu" and (gpus or device == "cuda") and gpus < devices:
        hint = f"accepted: up to {gpus}; or compute with --device cpu"
        raise UserError(f"{devices} devices, but there are {gpus} GPUs", where="--devices", hint=hint)
    if recipe.embeddings.source in PRETRAINED and not (cache and cache_limit()):
        hint = "leave --no-cache out, or pretrain into a file first with subgnn pretrain"
        raise UserError("pretrained embeddings are shared through the cache", where="--devices", hint=hint)


def launch(
    dataset: Dataset, recipe: Recipe, *, devices: int, options: dict[str, Any], watch: Watch, lock: int | None = None
) -> dict[str, Any]:
    """Train on many devices of this machine.

    Args:
        options: of :func:`~subgnn.training.run.train`, as JSON has them; the run's folder is claimed already.
        lock: the descriptor of the folder's lock, which the ranks share: it lasts as long as any of them.

    Raises:
        RankDied: where a rank was killed, or ended without a word.
        KeyboardInterrupt: after Ctrl-C, when progress is saved; at once before the first epoch is done, and the second
            time.
    """
    with temporary_folder("subgnn-ranks") as folder:
        write_bundle(dataset, folder / DATASET)
        extra = {}
        if not (options["cache"] and cache_limit()):
            # What the first rank prepares has to reach the others all the same.
            extra = {"SUBGNN_CACHE": str(folder / "cache"), "SUBGNN_CACHE_LIMIT": "1000TB"}
        write_order(folder, recipe, options | {"cache": True}, memory=share_of_each(devices))
        with Processes(folder, devices, extra, keep=() if lock is None else (lock,)) as processes:
            return _follow(processes, watch, Path(options["out"]))


@dataclass(slots=True)
class Ends:
    """How ranks ended that did not end well, by rank and in the order in which it was noticed."""

    codes: dict[int, int] = field(default_factory=dict)
    errors: dict[int, dict[str, Any]] = field(default_factory=dict)
    first: int = -1
    since: float = 0.0

    def __bool__(self) -> bool:
        return self.first >= 0

    def note(self, rank: int, message: dict[str, Any]) -> None:
        """Take notice of a message, if it is about an end."""
        if message["kind"] == "error":
            self.errors[rank] = message
        elif message["kind"] == "gone" and message["code"]:
            self.codes[rank] = message["code"]
        else:
            return
        if not self:
            self.first, self.since = rank, time.monotonic()

    @property
    def killed(self) -> list[int]:
        """Ranks that a signal ended; where others have ended before, an abort is but what became of it."""
        return [r for r, code in self.codes.items() if code < 0 and (code != -signal.SIGABRT or r == self.first)]

    @property
    def settled(self) -> bool:
        """Whether the reason is known, or the ranks have had their time to say it."""
        plain = any("user" in error or "os" in error for error in self.errors.values())
        return bool(self) and (plain or bool(self.killed) or time.monotonic() - self.since > _GRACE)


def _follow(processes: Processes, watch: Watch, out: Path) -> dict[str, Any]:
    """Hand on what the first rank says until all are done; raise what ended them otherwise."""
    results: dict[str, Any] | None = None
    begun, ends = False, Ends()
    with noted_interrupt() as interrupt:
        for found in processes.messages():
            if ends.settled or (interrupt.pressed and not begun):
                break
            if found is None:
                continue
            rank, message = found
            ends.note(rank, message)
            if message["kind"] == "epoch":
                begun = True
                try:
                    if watch.on_epoch is not None:
                        watch.on_epoch(message["record"])
                except KeyboardInterrupt:
                    interrupt.pressed = True
                processes.answer(rank, "stop" if interrupt.pressed else "go")
            elif message["kind"] == "done" and rank == 0:
                results = message["results"]
            else:
                _hand_on(message, watch)
    if ends:
        raise _error(ends, processes, out)
    if results is None:
        raise KeyboardInterrupt
    return results


def _hand_on(message: dict[str, Any], watch: Watch) -> None:
    if message["kind"] == "prepare" and watch.on_prepare is not None:
        watch.on_prepare(message["what"], message["done"], message["total"])
    elif message["kind"] == "pretrain" and watch.on_pretrain is not None:
        watch.on_pretrain(message["record"])
    elif message["kind"] == "warning":
        warnings.warn(message["text"], DataWarning, stacklevel=5)


def _error(ends: Ends, processes: Processes, out: Path) -> Exception:
    """What to raise: the death of a rank before what the others say of it, the first error before later ones."""
    if ends.killed or not ends.errors:
        rank = ends.killed[0] if ends.killed else ends.first
        return _died(rank, ends.codes[rank], processes, out)
    rank, message = min(ends.errors.items(), key=lambda item: item[1]["at"])
    if "user" in message:
        what, where, hint = message["user"]
        kind = DataError if message["type"] == "DataError" else UserError
        return kind(what, where=where, hint=hint)
    if "os" in message:
        return OSError(*message["os"])
    error = RuntimeError(f"{message['type']}: {message['text']} (rank {rank} of {processes.size})")
    error.add_note(message["traceback"])
    return error


def _died(rank: int, code: int, processes: Processes, out: Path) -> RankDied:
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        how = f"was killed ({name}{': out of memory, perhaps' if name == 'SIGKILL' else ''})"
    else:
        last = processes.log(rank).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        how = f"ended with exit code {code}" + (f" ({last[0]})" if last else "")
    return RankDied(f"{out}: rank {rank} of {processes.size} {how}; the others were ended; go on with --resume")
