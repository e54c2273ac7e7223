"""What the server accepts (sizes, counts, the time that work may take), and the errors that refuse the rest."""

from __future__ import annotations

import json
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from subgnn.errors import UserError
from subgnn.storage.files import finite

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server accepts.

    Args:
        target_bytes: of a request's path and query; more is 414.
        header_bytes: of a request's headers together; more is 431.
        body_bytes: of a request's body; more is 413.
        subgraphs: of one request; more is 422.
        nodes: of all subgraphs of one request together; more is 422.
        table_subgraphs, table_nodes: of one table.
        explained: subgraphs of one request for explanations.
        left_out: subgraphs with more nodes have no contributions of nodes in explanations.
        quick_nodes: requests with no more nodes than this, other than explanations, use the quick lane.
        seconds: from a complete request to its answer; later is 503.
        body_seconds: for a request to arrive completely; later is 408.
        waiting: requests that wait in each lane; more is 503.
        connections: open at the same time; more is 503.
        drawn: nodes of a drawing in addition to those of the subgraph.
        found: nodes in the answer to a search.
    """

    target_bytes: int = 8_192
    header_bytes: int = 16_384
    body_bytes: int = 1_000_000
    subgraphs: int = 256
    nodes: int = 10_000
    table_subgraphs: int = 2_000
    table_nodes: int = 100_000
    explained: int = 8
    left_out: int = 200
    quick_nodes: int = 1_000
    seconds: float = 30.0
    body_seconds: float = 10.0
    waiting: int = 256
    connections: int = 1_000
    drawn: int = 200
    found: int = 50

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise UserError(f"a limit of {getattr(self, name)}", where=name, hint="accepted: above 0")

    def to_json(self) -> dict[str, Any]:
        """The limits that a client needs to know."""
        tables = ("table_subgraphs", "table_nodes")
        shown = ("body_bytes", "subgraphs", "nodes", *tables, "explained", "left_out", "seconds", "drawn", "found")
        return {name: getattr(self, name) for name in shown}


class DeadlinePassed(Exception):
    """Work was stopped because its deadline has passed or its client has left."""


@dataclass(slots=True)
class Deadline:
    """Time, of ``time.monotonic()``, until which a request's work may go on.

    A thread cannot be stopped from outside, so work calls :func:`check_deadline` between steps: a request that ran out
    of time, or whose client has left, does not occupy a worker until it is done.
    """

    until: float
    cancelled: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """A deadline that many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def remaining(self) -> float:
        """Seconds, at least 0."""
        return max(0.0, self.until - time.monotonic())

    def check(self) -> None:
        """Raise :class:`DeadlinePassed` if nobody waits for the answer any more."""
        if self.cancelled.is_set() or not self.remaining:
            raise DeadlinePassed


CURRENT: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def check_deadline() -> None:
    """Raise :class:`DeadlinePassed` if the current work has a deadline and it has passed."""
    deadline = CURRENT.get()
    if deadline is not None:
        deadline.check()


class Refusal(Exception):
    """An error that is the answer to a request.

    Args:
        status: of HTTP.
        error: what is wrong, with the value.
        hint: what is accepted, or what to do.
        nodes: the unknown nodes, as they were given.
        retry: seconds after which to try again.
    """

    def __init__(
        self, status: int, error: str, *, hint: str = "", nodes: list[str] | None = None, retry: int | None = None
    ) -> None:
        super().__init__(error)
        self.status, self.error, self.hint, self.nodes = status, error, hint, nodes or []
        self.headers = {} if retry is None else {"retry-after": str(retry)}
        if status == 401:
            self.headers["www-authenticate"] = "Bearer"

    def body(self) -> bytes:
        """The answer's body."""
        return encode({"error": self.error, "hint": self.hint, "nodes": self.nodes})


def failed(request_id: str) -> Refusal:
    """500: a bug of the server."""
    return Refusal(500, "the server failed; this is a bug in subgnn", hint=f"its log has more, under {request_id}")


def encode(value: Any) -> bytes:
    r"""Plain values as ASCII JSON; infinite and undefined numbers become null.

    Example:
        >>> encode({"auroc": float("nan"), "name": "β"})
        b'{"auroc":null,"name":"\\u03b2"}'
    """
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(finite(value), allow_nan=False, separators=(",", ":"))
    return text.encode("ascii")
