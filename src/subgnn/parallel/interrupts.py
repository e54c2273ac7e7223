"""Signals that end a command in an orderly way: Ctrl-C, SIGTERM (a batch system's), SIGHUP (a closed terminal).

All of them raise KeyboardInterrupt, so that files are removed that would be half-written. A training waits for the end
of its epoch, so that it is saved where it can go on. This module imports little: it is there before anything else.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_received = int(signal.SIGINT)


def exit_code() -> int:
    """The exit code of a command that was interrupted, by the signal: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + _received


def leave_on_signals() -> None:
    """Let signals end this process at once and quietly: for a time in which there is nothing to tidy up.

    No exception is raised: while modules are imported, much of what runs would swallow it, or print it.
    """
    _handle(_leave)


def raise_on_signals() -> None:
    """Let signals raise KeyboardInterrupt in the main thread."""
    _handle(_raise)
    sys.unraisablehook = _unraisable


def _handle(handler: Any) -> None:
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


def _raise(number: int, frame: FrameType | None) -> None:
    _note(number)
    raise KeyboardInterrupt


def _note(number: int) -> None:
    global _received
    _received = number


def _unraisable(found: Any) -> None:
    """Send a signal again that came in the middle of a callback, which no exception leaves."""
    if found.exc_type is KeyboardInterrupt:
        again = threading.Timer(0.01, os.kill, (os.getpid(), _received))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(found)


class Interrupt:
    """Whether a signal came."""

    def __init__(self) -> None:
        self.pressed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """The signal handler: note the first, obey the second at once."""
        _note(number)
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


@contextmanager
def noted_interrupt() -> Iterator[Interrupt]:
    """Note a signal instead of raising at once; whoever asked must look at ``pressed`` and raise.

    Outside the main thread, and of signals that somebody else handles, all stays as it is.
    """
    noted = Interrupt()
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        before = {n: handler for n, handler in handlers.items() if handler in (signal.default_int_handler, _raise)}
    for number in before:
        signal.signal(number, noted)
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
