"""Start the ranks of a training on several devices of this machine, follow them, and end them together.

Each rank is a child process (:mod:`subgnn.parallel.processes`) that maps the dataset from a bundle in a temporary
folder. This process trains nothing: it passes on what the first rank reports, and watches. So a rank that dies is
noticed at once, even while the others wait for it.

Ours, not Lightning's launcher or torchrun: those run the caller's script again in each rank or need a main guard in it,
and tell neither how the training progresses nor which rank failed first.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.formats.bundle import write_bundle
from subgnn.embeddings.sources import PRETRAINED
from subgnn.errors import DataWarning, RankDied, UserError
from subgnn.models.registry import find_model, names_where
from subgnn.parallel.engine import Failure
from subgnn.parallel.interrupts import SIGNALS, noted_interrupt
from subgnn.parallel.locks import shared_lock
from subgnn.parallel.memory import share_of_each
from subgnn.parallel.processes import Ended, Parent, Process, end_all
from subgnn.result import RunResult
from subgnn.storage.cache import cache_limit
from subgnn.storage.files import temporary_folder
from subgnn.training.devices import quiet_lightning
from subgnn.training.options import Callbacks, RunOptions

_DATASET = "dataset.subgnn"
_GRACE = 3.0  # seconds that ranks have, after the first failure, to report theirs
_LOOK = 0.2  # seconds between looks at Ctrl-C


def check_devices(options: RunOptions, devices: int) -> None:
    """Refuse a training that several devices cannot do.

    Raises:
        UserError: for a model whose fit cannot be divided, for more GPUs than there are, and for pretrained embeddings
            without a cache, through which the ranks share them.
    """
    recipe = options.recipe
    if not find_model(recipe.method).uses_many_devices:
        names = ", ".join(names_where("uses_many_devices"))
        hint = f"with several devices: {names}; leave --devices out for the others, they are small"
        raise UserError(f"the method {recipe.method} is fitted on one device", where="--devices", hint=hint)
    gpus = torch.cuda.device_count()
    if options.device != "cpu" and (gpus or options.device == "cuda") and gpus < devices:
        hint = f"accepted: up to {gpus}; or compute with --device cpu"
        raise UserError(f"{devices} devices, but there are {gpus} GPUs", where="--devices", hint=hint)
    if recipe.embeddings.source in PRETRAINED and not (options.cache and cache_limit()):
        hint = "leave --no-cache out, or pretrain into a file first with subgnn pretrain"
        raise UserError("pretrained embeddings are shared through the cache", where="--devices", hint=hint)


def launch(dataset: Dataset, options: RunOptions, *, devices: int, lock: int | None = None) -> RunResult:
    """Train on several devices of this machine, into a folder that is locked already.

    Args:
        lock: the descriptor of the folder's lock, which the ranks hold, too: it lasts as long as any of them.

    Returns:
        The result of the run.

    Raises:
        RankDied: where a rank was killed, or ended without a message.
        KeyboardInterrupt: after Ctrl-C, when progress is saved; at once before the end of the first epoch, and after
            the second Ctrl-C.
    """
    with temporary_folder("subgnn-ranks") as folder:
        write_bundle(dataset, folder / _DATASET)
        # Held by this process, so that the port is taken from the start and lasts as long as any rank.
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        environment = {  # as torchrun sets it
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(store.port),
            "WORLD_SIZE": str(devices),
            "LOCAL_WORLD_SIZE": str(devices),
            "GROUP_RANK": "0",
            "TORCHELASTIC_USE_AGENT_STORE": str(True),
            "TORCHELASTIC_RESTART_COUNT": "0",
        }
        if sys.platform == "linux":
            environment["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", "lo")
        if not (options.cache and cache_limit()):
            # The others still need what the first rank prepares.
            environment |= {"SUBGNN_CACHE": str(folder / "cache"), "SUBGNN_CACHE_LIMIT": "1000TB"}
        # The folder is claimed: a rank continues the run there, whether new or not.
        for_ranks = replace(options, cache=True, resume=True, callbacks=Callbacks())
        ranks: list[Process] = []
        try:
            for rank in range(devices):
                started = Process(
                    run_rank,
                    *(folder, for_ranks),
                    memory=share_of_each(devices),
                    environment=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                    log=_log(folder, rank),
                    descriptors=() if lock is None else (lock,),
                )
                ranks.append(started)
            return _follow(ranks, folder, options)
        finally:
            end_all(ranks, grace=0.0)


def _log(folder: Path, rank: int) -> Path:
    return folder / f"{rank}.log"


def run_rank(parent: Parent, folder: Path, options: RunOptions) -> None:
    """Train as the rank that the environment names, and report to the parent: the main function of a rank.

    Messages are pairs of a kind and arguments; the parent answers those about epochs with whether to stop.
    """
    from subgnn.training.run import train_run

    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the parent receives them, too, and ends its ranks

    def leave() -> None:
        shutil.rmtree(folder, ignore_errors=True)  # of a parent that was killed
        os._exit(1)

    def on_epoch(record: dict[str, Any]) -> None:
        parent.send(("epoch", record))
        if parent.receive():
            raise KeyboardInterrupt

    def warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, DataWarning):
            parent.send(("warning", str(message)))

    def send(kind: str) -> Callable[..., None]:
        return lambda *arguments: parent.send((kind, *arguments))

    parent.when_gone = leave
    quiet_lightning()
    warnings.simplefilter("always", DataWarning)
    first = os.environ["RANK"] == "0"
    warnings.showwarning = warn if first else (lambda *_, **__: None)
    if first:
        options = replace(options, callbacks=Callbacks(on_epoch, send("prepare"), send("pretrain")))
    try:
        with shared_lock(options.out):
            results = train_run(read_dataset(folder / _DATASET), options)
        parent.send(("done", results))
        code = 0
    except KeyboardInterrupt:
        parent.send(("interrupted",))
        code = 0
    except Exception as error:
        parent.send(("error", Failure.of(error), time.monotonic()))
        code = 1
    # Without the usual shutdown: that of the process group may wait for ranks that have ended.
    sys.stderr.flush()
    os._exit(code)


@dataclass(slots=True)
class Failures:
    """Ranks that failed: their errors with the times, and their ends; which was noticed first, and when."""

    errors: dict[int, tuple[float, Failure]] = field(default_factory=dict)
    ends: dict[int, Ended] = field(default_factory=dict)
    first: int = -1
    since: float = 0.0

    def __bool__(self) -> bool:
        return self.first >= 0

    def add(self, rank: int, found: Ended | Failure, at: float = 0.0) -> None:
        """Add an error or an end; exit code 0 is not a failure."""
        if isinstance(found, Failure):
            self.errors[rank] = at, found
        elif found.code:
            self.ends[rank] = found
        else:
            return
        if not self:
            self.first, self.since = rank, time.monotonic()

    @property
    def killed(self) -> list[int]:
        """Ranks that a signal ended; an abort after the end of another is only its consequence."""
        return [r for r, end in self.ends.items() if end.code < 0 and (end.code != -signal.SIGABRT or r == self.first)]

    @property
    def are_complete(self) -> bool:
        """Whether the reason is known, or the ranks have had the time to report it."""
        known = bool(self.killed) or any(failure.error is not None for _, failure in self.errors.values())
        return bool(self) and (known or time.monotonic() - self.since > _GRACE)

    def throw(self, size: int, folder: Path, out: Path) -> None:
        """Raise the reason: a killed rank before what others report of it, the first error before later ones."""
        if self.killed or not self.errors:
            rank = self.killed[0] if self.killed else self.first
            last = []
            if self.ends[rank].code > 0:
                last = _log(folder, rank).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            how = f"{self.ends[rank]}{f' ({last[0]})' if last else ''}"
            raise RankDied(f"{out}: rank {rank} of {size} {how}; the others were ended; continue with --resume")
        rank, (_, failure) = min(self.errors.items(), key=lambda item: item[1][0])
        replace(failure, message=f"{failure.message} (rank {rank} of {size})").throw()


def _follow(ranks: list[Process], folder: Path, options: RunOptions) -> RunResult:
    """Pass on what the first rank reports until all have ended; raise the reason if they fail."""
    callbacks = options.callbacks
    result: RunResult | None = None
    begun, failures = False, Failures()
    running = {process.pipe: rank for rank, process in enumerate(ranks)}
    with noted_interrupt() as interrupt:
        while running and not failures.are_complete and not (interrupt.pressed and not begun):
            for pipe in wait(list(running), _LOOK):
                rank = running[pipe]  # type: ignore[index]
                message = ranks[rank].receive()
                if isinstance(message, Ended):
                    del running[pipe]  # type: ignore[arg-type]
                    failures.add(rank, message)
                    continue
                kind, *content = message
                if kind == "epoch":
                    begun = True
                    try:
                        callbacks.on_epoch(*content)
                    except KeyboardInterrupt:
                        interrupt.pressed = True
                    ranks[rank].send(interrupt.pressed)
                elif kind == "prepare":
                    callbacks.on_prepare(*content)
                elif kind == "pretrain":
                    callbacks.on_pretrain(*content)
                elif kind == "warning":
                    warnings.warn(content[0], DataWarning, stacklevel=5)
                elif kind == "error":
                    failures.add(rank, *content)
                elif kind == "done" and rank == 0:
                    (result,) = content
    if failures:
        failures.throw(len(ranks), folder, options.out)
    if result is None:
        raise KeyboardInterrupt
    return result
