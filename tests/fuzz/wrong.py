"""Readers that are wrong, to test what looks for them: each reads its good file, and no damaged one as it should."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.mutations import Kind

GOOD = "good\n" * 20


def wrong(action: Callable[[], object]) -> Kind:
    def read(path: Path) -> bytes:
        content = path.read_bytes()
        if content != GOOD.encode():
            action()
        return content

    def make(folder: Path) -> Path:
        (folder / "x.txt").write_text(GOOD)
        return folder / "x.txt"

    return Kind(make, read, signed=True)


KINDS = {
    "raises": wrong(lambda: 1 // 0),
    "hangs": wrong(lambda: threading.Event().wait()),
    "crashes": wrong(lambda: os.kill(os.getpid(), signal.SIGSEGV)),
    "takes all memory": wrong(lambda: bytearray(2**40)),
    "believes": wrong(lambda: None),
}
