"""How much memory the work may take: a limit that decides how much is done at once, and never what comes out.

Whoever works in pieces asks :func:`share` how large a piece may be. The limit is that of the whole process; what is
already in use (the interpreter, libraries, the pages of a memory-mapped graph) counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from subgnn.errors import UserError
from subgnn.parallel.sizes import parse_size

LEAST = 10**9
"""Less than this, libraries and the interpreter alone would not fit."""

_limit: ContextVar[int | None] = ContextVar("subgnn_memory", default=None)


def machine_memory() -> int:
    """What this process can have: the machine's memory, or the limit of its control group where that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return total


def limit() -> int:
    """The limit in force: the one of :func:`within`, or two thirds of the machine's memory."""
    given = _limit.get()
    return machine_memory() * 2 // 3 if given is None else given


@contextmanager
def within(memory: str | int | None) -> Iterator[int]:
    """Keep what is done in the block within a limit.

    Args:
        memory: bytes, or text as ``16GB``; None leaves the limit as it is.

    Raises:
        UserError: where it is no size, or too small to work in.

    Example:
        >>> with within("4GB"):
        ...     share(0.25)
        1000000000
    """
    hint = "accepted: a number with MB, GB or TB, from 1GB, as 16GB"
    size = parse_size(memory, "--memory", hint="from 1GB") if isinstance(memory, str) else memory
    if size is not None and size < LEAST:
        raise UserError(f"{size / 1e6:,.0f} MB", where="--memory", hint=hint)
    token = _limit.set(_limit.get() if size is None else size)
    try:
        yield limit()
    finally:
        _limit.reset(token)


def share(part: float) -> int:
    """A part of the limit, in bytes."""
    return int(limit() * part)


def share_of_each(processes: int) -> int:
    """What each of several processes may take, in bytes: equal parts of the limit, but enough to work in."""
    return max(LEAST, limit() // processes)


def workers(bytes_each: int, most: int) -> int:
    """How many workers with buffers of this size may work at once: at least one, and as many as fit in half the limit.

    Example:
        >>> with within("4GB"):
        ...     workers(10**9, 8), workers(10**10, 8)
        (2, 1)
    """
    return max(1, min(most, share(0.5) // max(1, bytes_each)))
