"""Work in pieces: small enough that progress is seen and memory stays bounded, large enough to keep the threads busy.

A piece takes about :data:`SECONDS`, whatever the machine and the graph. Where pieces end never changes a result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

OnProgress = Callable[[str, int, int], None]

SECONDS = 0.5


def pieces(
    count: int, *, step: int, most: int | None = None, what: str = "", on_progress: OnProgress | None = None
) -> Iterator[slice]:
    """Cut ``range(count)`` into slices, each as long as the time the ones before it took suggests.

    Args:
        step: slices have a multiple of this length, the last one excepted.
        most: no slice is longer than this, or than one step where that is longer.
        what: what is done, for ``on_progress``.
        on_progress: called with what is done, how many are done and how many there are: at the start and after each
            slice.

    Example:
        >>> [(s.start, s.stop) for s in pieces(5, step=2, most=2)]
        [(0, 2), (2, 4), (4, 5)]
    """
    steps, begin = 1, 0
    longest = max(1, (count if most is None else most) // step)
    if on_progress is not None:
        on_progress(what, 0, count)
    while begin < count:
        end = min(count, begin + steps * step)
        started = time.perf_counter()
        yield slice(begin, end)
        took = time.perf_counter() - started
        if took < SECONDS / 2:
            steps = min(2 * steps, longest)
        elif took > 2 * SECONDS:
            steps = max(1, steps // 2)
        begin = end
        if on_progress is not None:
            on_progress(what, end, count)
