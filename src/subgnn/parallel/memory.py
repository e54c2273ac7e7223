"""The memory limit of this process, which never changes a result, and sizes as people write them (``16GB``)."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from subgnn.errors import UserError, excerpt

LEAST = 10**9
"""The smallest limit: the interpreter and its libraries alone need about as much."""

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([KMGTkmgt]?)[Bb]?\s*")
_limit: ContextVar[int | None] = ContextVar("subgnn_memory", default=None)


def parse_size(text: str, where: str, *, hint: str = "") -> int:
    """Parse a number of bytes, such as ``1.5 GB``; ``hint`` is added to what is accepted."""
    found = _SIZE.fullmatch(text)
    if found is None:
        accepted = "accepted: a number with KB, MB, GB or TB, such as 5GB"
        raise UserError(f"{excerpt(text)} is not a size", where=where, hint=f"{accepted}; {hint}" if hint else accepted)
    return int(float(found[1]) * 1000 ** " KMGT".index(found[2].upper() or " "))


@cache
def machine_memory() -> int:
    """Memory available to this process: the machine's, or the limit of its control group if that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return total


def limit() -> int:
    """The limit in force, in bytes: that of :func:`memory_limit`, or two thirds of the machine's memory."""
    given = _limit.get()
    return machine_memory() * 2 // 3 if given is None else given


@contextmanager
def memory_limit(memory: str | int | None) -> Iterator[int]:
    """Set the limit until the end of the block: bytes, or text such as ``16GB``; None leaves it as it is."""
    size = parse_size(memory, "--memory", hint="at least 1GB") if isinstance(memory, str) else memory
    if size is not None and size < LEAST:
        hint = "accepted: a number with MB, GB or TB, at least 1GB, such as 16GB"
        raise UserError(f"{size / 1e6:,.0f} MB is too little", where="--memory", hint=hint)
    token = _limit.set(_limit.get() if size is None else size)
    try:
        yield limit()
    finally:
        _limit.reset(token)


def share(part: float) -> int:
    """A fraction of the limit, in bytes."""
    return int(limit() * part)


def share_of_each(processes: int) -> int:
    """The limit of each of several processes, in bytes: equal parts of this one's, but at least :data:`LEAST`."""
    return max(LEAST, limit() // processes)


def workers(bytes_each: int, most: int) -> int:
    """The number of workers whose buffers of ``bytes_each`` fit in half the limit: at least one, at most ``most``."""
    return max(1, min(most, share(0.5) // max(1, bytes_each)))
