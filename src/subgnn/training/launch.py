"""Start the ranks of a training on many devices of this machine, follow them, and end them together.

Each rank is a process of its own (:mod:`~subgnn.training.worker`) that finds the dataset, as a bundle it maps, and its
orders in a temporary folder. This process trains nothing: it hands on what the first rank reports, and watches. So it
needs no main guard in a caller's script, and a rank that dies is noticed at once, whatever the others are waiting for.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self, cast

import torch
from torch.distributed import TCPStore

from subgnn.cache import cache_limit
from subgnn.config import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats.bundle import write_bundle
from subgnn.embeddings import PRETRAINED
from subgnn.errors import DataError, DataWarning, RankDied, UserError
from subgnn.pacing import OnProgress
from subgnn.training.interrupt import noted_interrupt
from subgnn.training.worker import DATASET, write_order

_METHODS = ("subgnn", "avg", "gc")
_GRACE = 3.0  # seconds that ranks have, after the first failure, to say what theirs was
_LOOK = 0.2  # seconds between looks at Ctrl-C


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


def launch(dataset: Dataset, recipe: Recipe, *, devices: int, options: dict[str, Any], watch: Watch) -> dict[str, Any]:
    """Train on many devices of this machine.

    Args:
        options: of :func:`~subgnn.training.run.train`, as JSON has them; the run's folder is claimed already.

    Raises:
        RankDied: where a rank was killed, or ended without a word.
        KeyboardInterrupt: after Ctrl-C, when progress is saved; at once before the first epoch is done, and the second
            time.
    """
    with tempfile.TemporaryDirectory(prefix="subgnn-ranks-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_bundle(dataset, folder / DATASET)
        extra = {}
        if not (options["cache"] and cache_limit()):
            # What the first rank prepares has to reach the others all the same.
            extra = {"SUBGNN_CACHE": str(folder / "cache"), "SUBGNN_CACHE_LIMIT": "1000TB"}
        write_order(folder, recipe, options | {"cache": True})
        with Workers(folder, devices, extra) as workers:
            return _follow(workers, watch, Path(options["out"]))


class Workers:
    """The processes of the ranks; none is left when this ends."""

    def __init__(self, folder: Path, devices: int, extra: dict[str, str]) -> None:
        self.folder, self.size = folder, devices
        # Kept by this process, so that the port is ours from the start and lasts as long as any rank.
        self.store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.processes: list[subprocess.Popen[bytes]] = []
        shared = self._environment() | extra
        try:
            for rank in range(devices):
                self._start(rank, shared)
        except BaseException:
            self.end()
            raise

    def _environment(self) -> dict[str, str]:
        """As torchrun would set it."""
        environment = dict(os.environ)
        if sys.platform == "linux":
            environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
        return environment | {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self.store.port),
            "WORLD_SIZE": str(self.size),
            "LOCAL_WORLD_SIZE": str(self.size),
            "GROUP_RANK": "0",
            "TORCHELASTIC_USE_AGENT_STORE": str(True),
            "TORCHELASTIC_RESTART_COUNT": "0",
        }

    def _start(self, rank: int, shared: dict[str, str]) -> None:
        with self.log(rank).open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    # -P: what lies in the working folder is not ours to import.
                    [sys.executable, "-P", "-m", "subgnn.training.worker", str(self.folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                    start_new_session=True,  # Ctrl-C comes to this process alone
                )
            )

    def log(self, rank: int) -> Path:
        """What a rank has printed."""
        return self.folder / f"{rank}.log"

    def answer(self, rank: int, text: str) -> None:
        """Answer a message; a rank that has died meanwhile needs none."""
        stdin = cast(IO[bytes], self.processes[rank].stdin)
        with suppress(BrokenPipeError):
            stdin.write(text.encode() + b"\n")
            stdin.flush()

    def messages(self) -> Iterator[tuple[int, dict[str, Any]] | None]:
        """Messages as they come, with their rank; None now and then; the end when all ranks have left."""
        with selectors.DefaultSelector() as selector:
            buffers = dict.fromkeys(range(self.size), b"")
            for rank, process in enumerate(self.processes):
                selector.register(cast(IO[bytes], process.stdout), selectors.EVENT_READ, rank)
            while selector.get_map():
                for key, _ in selector.select(_LOOK):
                    found = os.read(key.fd, 2**16)
                    if not found:
                        selector.unregister(key.fileobj)
                        yield key.data, {"kind": "gone", "code": self.processes[key.data].wait()}
                    *lines, buffers[key.data] = (buffers[key.data] + found).split(b"\n")
                    for line in lines:
                        yield key.data, json.loads(line)
                yield None

    def end(self) -> None:
        """End all that are left."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    cast(IO[bytes], pipe).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@dataclass(slots=True)
class Ends:
    """How ranks ended that did not end well, by rank."""

    codes: dict[int, int] = field(default_factory=dict)
    errors: dict[int, dict[str, Any]] = field(default_factory=dict)
    since: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.codes or self.errors)

    @property
    def settled(self) -> bool:
        """Whether the ranks have had their time to say what happened."""
        return bool(self) and time.monotonic() - self.since > _GRACE

    def note(self, rank: int, message: dict[str, Any]) -> None:
        """Take notice of a message, if it is about an end."""
        if message["kind"] == "error" or (message["kind"] == "gone" and message["code"]):
            self.since = self.since or time.monotonic()
            if message["kind"] == "error":
                self.errors[rank] = message
            else:
                self.codes[rank] = message["code"]


def _follow(workers: Workers, watch: Watch, out: Path) -> dict[str, Any]:
    """Hand on what the first rank says until all are done; raise what ended them otherwise."""
    results: dict[str, Any] | None = None
    begun, ends = False, Ends()
    with noted_interrupt() as interrupt:
        for found in workers.messages():
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
                workers.answer(rank, "stop" if interrupt.pressed else "go")
            elif message["kind"] == "done" and rank == 0:
                results = message["results"]
            else:
                _hand_on(message, watch)
    if ends:
        raise _error(ends, workers, out)
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


def _error(ends: Ends, workers: Workers, out: Path) -> Exception:
    """What to raise: the death of a rank before what the others say of it, the first error before later ones."""
    killed = [rank for rank, code in ends.codes.items() if code < 0]
    silent = [rank for rank in ends.codes if rank not in ends.errors]
    if killed or not ends.errors:
        rank = (killed or silent)[0]
        return _died(rank, ends.codes[rank], workers, out)
    rank, message = min(ends.errors.items(), key=lambda item: item[1]["at"])
    if "user" in message:
        what, where, hint = message["user"]
        kind = DataError if message["type"] == "DataError" else UserError
        return kind(what, where=where, hint=hint)
    if "os" in message:
        return OSError(*message["os"])
    error = RuntimeError(f"{message['type']}: {message['text']} (rank {rank} of {workers.size})")
    error.add_note(message["traceback"])
    return error


def _died(rank: int, code: int, workers: Workers, out: Path) -> RankDied:
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        how = f"was killed ({name}{': out of memory, perhaps' if name == 'SIGKILL' else ''})"
    else:
        last = workers.log(rank).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        how = f"ended with exit code {code}" + (f" ({last[0]})" if last else "")
    return RankDied(f"{out}: rank {rank} of {workers.size} {how}; the others were ended; go on with --resume")
