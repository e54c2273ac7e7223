"""Progress reports, and work cut into pieces of about half a second with a report after each."""

import time
from collections.abc import Callable, Iterator
from typing import Any

OnProgress = Callable[[str, int, int], None]
"""Called with the name of a stage, the units done and the total."""
OnEpoch = Callable[[dict[str, Any]], None]
"""Called with the record of an epoch."""

SECONDS = 0.5
"""The time that a piece should take."""


def ignore(*_: Any) -> None:
    """Report nothing: the default callback."""


def pieces(
    count: int, *, step: int, most: int | None = None, what: str = "", on_progress: OnProgress = ignore
) -> Iterator[slice]:
    """Cut ``range(count)`` into slices, whose length adapts to the time that earlier slices took.

    Each is a multiple of ``step``, except the last, and not longer than ``most``, but at least one step.
    ``on_progress`` is called at the start and after each slice.
    """
    steps, begin = 1, 0
    longest = max(1, (count if most is None else most) // step)
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
        on_progress(what, end, count)
