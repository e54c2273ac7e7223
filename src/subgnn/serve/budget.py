"""How long a request's work may go on.

A thread cannot be stopped from outside, so work looks at its budget between steps (:func:`check`): a request that ran
out of time, or whose client has left, does not hold a worker until it is done.
"""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, field


class Spent(Exception):
    """The work was given up."""


@dataclass(slots=True)
class Budget:
    """Until when work may go on; a clock that never goes back."""

    until: float
    given_up: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def of(cls, seconds: float) -> Budget:
        """From now on."""
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds, at least 0."""
        return max(0.0, self.until - time.monotonic())

    def check(self) -> None:
        """Raise :class:`Spent` where nobody waits for the answer any more."""
        if self.given_up.is_set() or not self.left:
            raise Spent


CURRENT: ContextVar[Budget | None] = ContextVar("budget", default=None)


def check() -> None:
    """Raise :class:`Spent` where the work at hand has a budget and it is spent."""
    budget = CURRENT.get()
    if budget is not None:
        budget.check()
