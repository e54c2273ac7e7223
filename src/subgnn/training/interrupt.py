"""Ctrl-C that waits for the end of an epoch, so that a run is saved where it can go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.pressed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """The signal handler: note the first Ctrl-C, obey the second at once."""
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


@contextmanager
def noted_interrupt() -> Iterator[Interrupt]:
    """Note Ctrl-C instead of raising at once; whoever asked must look at ``pressed`` and raise.

    Outside the main thread, or where somebody else handles the signal, all stays as it is.
    """
    noted = Interrupt()
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield noted
        return
    signal.signal(signal.SIGINT, noted)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
