"""Signals that end a command by KeyboardInterrupt: Ctrl-C, SIGTERM (batch systems), SIGHUP (a closed terminal)."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_received = int(signal.SIGINT)


def exit_code() -> int:
    """The exit code of a command that was interrupted, by the signal: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + _received


def leave_on_signals() -> None:
    """Let signals end this process quietly, without an exception, which other code would swallow during imports."""

    def leave(number: int, frame: FrameType | None) -> None:
        os.write(2, b"interrupted\n")
        os._exit(128 + number)

    _handle(leave)


def raise_on_signals() -> None:
    """Let signals raise KeyboardInterrupt in the main thread."""
    _handle(_raise)
    sys.unraisablehook = _unraisable


def _handle(handler: Any) -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, handler)


def _raise(number: int, frame: FrameType | None) -> None:
    global _received
    _received = number
    raise KeyboardInterrupt


def _unraisable(found: Any) -> None:
    """Repeat a signal that arrived inside a callback, from which exceptions do not propagate."""
    if found.exc_type is KeyboardInterrupt:
        again = threading.Timer(0.01, os.kill, (os.getpid(), _received))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(found)


class Interrupt:
    """A signal handler that records the first signal; ``pressed`` tells whether one has arrived."""

    def __init__(self) -> None:
        self.pressed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Record the first signal, and raise KeyboardInterrupt at the second."""
        global _received
        _received = number
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


@contextmanager
def noted_interrupt(signals: Sequence[signal.Signals] = SIGNALS) -> Iterator[Interrupt]:
    """Record a signal instead of raising, in the main thread; the caller must look at ``pressed``, and raise."""
    noted = Interrupt()
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in signals}
        before = {n: handler for n, handler in handlers.items() if handler in (signal.default_int_handler, _raise)}
    for number in before:
        signal.signal(number, noted)
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
