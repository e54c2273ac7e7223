"""Local Python processes: start them, exchange messages with them, and end them together.

A child runs one importable function with a :class:`Parent` to talk to. It is started with a fresh interpreter, so a
script needs no main guard, and as its own session, so Ctrl-C in a terminal reaches the parent only, which ends its
children. A child whose parent is gone, for whatever reason, ends too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import IO, Any, cast

from subgnn.parallel.interrupts import raise_on_signals
from subgnn.parallel.memory import memory_limit

_GRACE_SECONDS = 10.0  # for a child to end in an orderly way
_START = "from subgnn.parallel.processes import run_child; run_child({})"


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended, instead of a message from it."""

    code: int

    def __str__(self) -> str:
        """How it ended, to follow its name."""
        if self.code >= 0:
            return f"ended by itself (exit code {self.code})"
        name = signal.Signals(-self.code).name if -self.code in set(signal.Signals) else f"signal {-self.code}"
        return f"was killed ({name}{': out of memory, perhaps' if name == 'SIGKILL' else ''})"


class Process:
    """A child process.

    Args:
        function: importable; called in the child with its :class:`Parent` and the arguments, which are pickled.
        memory: the memory limit of the child, in bytes.
        environment: variables for the child, in addition to those of this process.
    """

    def __init__(
        self,
        function: Callable[..., None],
        *arguments: Any,
        memory: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.pipe, theirs = Pipe()
        paths = {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
        self._process = subprocess.Popen(
            # -P: its import path is that of this process.
            [sys.executable, "-P", "-c", _START.format(theirs.fileno())],
            stdin=subprocess.PIPE,  # its end tells the child that this process is gone
            env={**os.environ, **paths, **(environment or {})},
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
        theirs.close()  # so that the pipe ends with the child
        self.send((function, arguments, memory))

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def send(self, message: Any) -> None:
        """Send a message; an end of the child meanwhile is found when a message is received."""
        with suppress(OSError):
            self.pipe.send(message)

    def receive(self) -> Any:
        """Wait for a message from the child, or for its end."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return Ended(self._process.wait())

    def interrupt(self) -> None:
        """Ask the child to end, as Ctrl-C would."""
        self._process.terminate()

    def end(self, *, grace: float = _GRACE_SECONDS) -> None:
        """Wait for the child to end, and kill it after ``grace`` seconds."""
        self.pipe.close()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        cast(IO[bytes], self._process.stdin).close()


def end_all(processes: Iterable[Process]) -> None:
    """Interrupt processes, and kill those that have not ended ten seconds later."""
    ending = list(processes)
    deadline = time.monotonic() + _GRACE_SECONDS
    for process in ending:
        process.interrupt()
    for process in ending:
        process.end(grace=max(0.0, deadline - time.monotonic()))


class Parent:
    """The process that started this one, as its function sees it.

    ``when_gone`` is called, in a thread, when the parent has ended: by default the function is interrupted, and ended
    if that takes long.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.when_gone: Callable[[], None] = _end_this_process
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while os.read(0, 1024):
            pass
        self.when_gone()

    def send(self, message: Any) -> None:
        """Send a message."""
        self._pipe.send(message)

    def receive(self) -> Any:
        """Wait for a message; raises EOFError when the parent wants no more."""
        return self._pipe.recv()


def run_child(descriptor: int) -> None:
    """Run the function that the parent sends first: the main function of a child."""
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    raise_on_signals()
    parent = Parent(Connection(descriptor))
    with suppress(EOFError, OSError, KeyboardInterrupt):  # the parent is gone, or reports the interrupt
        function, arguments, memory = parent.receive()
        with memory_limit(memory):
            function(parent, *arguments)
    parent.when_gone = lambda: os._exit(1)  # while the interpreter shuts down, an exception would be printed


def _end_this_process() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS / 2)
    os._exit(1)
