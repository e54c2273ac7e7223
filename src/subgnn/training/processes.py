"""The processes of the ranks that train together on this machine: started, listened to, and ended together."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self, cast

from torch.distributed import TCPStore  # type: ignore[attr-defined]

_LOOK = 0.2  # seconds between looks at Ctrl-C


class Processes:
    """The processes of the ranks; none is left when this ends.

    Args:
        folder: what is there for them.
        extra: variables of their environment.
        keep: descriptors that they are to have open as this process has.
    """

    def __init__(self, folder: Path, devices: int, extra: dict[str, str], *, keep: Sequence[int] = ()) -> None:
        self.folder, self.size, self._keep = folder, devices, keep
        # Kept by this process, so that the port is ours from the start and lasts as long as any rank.
        self.store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.running: list[subprocess.Popen[bytes]] = []
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
            self.running.append(
                subprocess.Popen(
                    # -P: what lies in the working folder is not ours to import.
                    [sys.executable, "-P", "-m", "subgnn.training.worker", str(self.folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                    pass_fds=self._keep,
                    start_new_session=True,  # Ctrl-C comes to this process alone
                )
            )

    def log(self, rank: int) -> Path:
        """What a rank has printed."""
        return self.folder / f"{rank}.log"

    def answer(self, rank: int, text: str) -> None:
        """Answer a message; a rank that has died meanwhile needs none."""
        stdin = cast(IO[bytes], self.running[rank].stdin)
        with suppress(BrokenPipeError):
            stdin.write(text.encode() + b"\n")
            stdin.flush()

    def messages(self) -> Iterator[tuple[int, dict[str, Any]] | None]:
        """Messages as they come, with their rank; None now and then; the end when all ranks have left."""
        with selectors.DefaultSelector() as selector:
            buffers = dict.fromkeys(range(self.size), b"")
            for rank, process in enumerate(self.running):
                selector.register(cast(IO[bytes], process.stdout), selectors.EVENT_READ, rank)
            while selector.get_map():
                for key, _ in selector.select(_LOOK):
                    found = os.read(key.fd, 2**16)
                    if not found:
                        selector.unregister(key.fileobj)
                        yield key.data, {"kind": "gone", "code": self.running[key.data].wait()}
                    *lines, buffers[key.data] = (buffers[key.data] + found).split(b"\n")
                    for line in lines:
                        yield key.data, json.loads(line)
                yield None

    def end(self) -> None:
        """End all that are left."""
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    cast(IO[bytes], pipe).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
