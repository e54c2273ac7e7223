"""What the server accepts (sizes, counts, working time), and the errors that refuse the rest."""

import json
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Self

from subgnn.errors import UserError
from subgnn.storage.files import finite

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the server, with the status of the answer to a request that exceeds them."""

    target_bytes: int = 8_192  # of path and query (414)
    header_bytes: int = 16_384  # of all headers (431)
    body_bytes: int = 1_000_000  # (413)
    subgraphs: int = 256  # of a request (422)
    nodes: int = 10_000  # of all subgraphs of a request (422)
    table_subgraphs: int = 2_000  # (422)
    table_nodes: int = 100_000  # (422)
    explained: int = 8  # subgraphs of a request for explanations (422)
    left_out: int = 200  # nodes of a subgraph that are left out one by one in explanations
    quick_nodes: int = 1_000  # of a request that uses the quick lane
    seconds: float = 30.0  # from a complete request to its answer (503)
    body_seconds: float = 10.0  # for a request to arrive completely (408)
    waiting: int = 256  # requests in each lane (503)
    connections: int = 1_000  # that are open (503)
    drawn: int = 200  # nodes of a drawing besides those of the subgraph
    found: int = 50  # nodes in the answer to a search

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise UserError(f"the limit is {getattr(self, name)}", where=name, hint="accepted: above 0")

    def to_json(self) -> dict[str, Any]:
        """The limits that a client needs to know."""
        shown = "body_bytes subgraphs nodes table_subgraphs table_nodes explained left_out seconds drawn found"
        return {name: getattr(self, name) for name in shown.split()}


class DeadlinePassed(Exception):
    """Work was stopped because its deadline has passed or its client has left."""


@dataclass(slots=True)
class Deadline:
    """The time, by ``time.monotonic()``, at which the work of a request must end.

    Threads cannot be stopped from outside, so work calls :func:`check_deadline` between steps: a request that ran out
    of time, or whose client has left, frees its worker.
    """

    until: float
    cancelled: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def after(cls, seconds: float) -> Self:
        return cls(time.monotonic() + seconds)

    @property
    def remaining(self) -> float:
        return max(0.0, self.until - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for the work any more."""
        return self.cancelled.is_set() or not self.remaining


CURRENT: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def check_deadline() -> None:
    """Raise :class:`DeadlinePassed` if nobody waits for the current work any more."""
    deadline = CURRENT.get()
    if deadline is not None and deadline.is_over:
        raise DeadlinePassed


class Refusal(Exception):
    """An error that is the answer to a request, with the unknown nodes, and the seconds until a retry makes sense."""

    def __init__(
        self, status: int, error: str, *, hint: str = "", nodes: list[str] | None = None, retry: int | None = None
    ) -> None:
        super().__init__(error)
        self.status, self.error, self.hint, self.nodes = status, error, hint, nodes or []
        self.headers = {} if retry is None else {"retry-after": str(retry)}
        if status == 401:
            self.headers["www-authenticate"] = "Bearer"

    def body(self) -> bytes:
        return encode({"error": self.error, "hint": self.hint, "nodes": self.nodes})


def refuse_above(most: int, what: str, count: int, noun: str) -> None:
    """Raise a :class:`Refusal` (422) if a request or a table, ``what``, has more than that."""
    if count > most:
        raise Refusal(422, f"{what} has {count:,} {noun}", hint=f"accepted: at most {most:,}")


def encode(value: Any) -> bytes:
    """Plain values as ASCII JSON; infinite and undefined numbers become null."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(finite(value), allow_nan=False, separators=(",", ":"))
    return text.encode("ascii")
