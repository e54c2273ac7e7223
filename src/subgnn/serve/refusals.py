"""Requests that are not answered, and why."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A request that is answered by a status other than 200.

    Args:
        status: of HTTP.
        error: what is wrong, with the value.
        hint: what is accepted, or what to do.
        nodes: the nodes that are not known, as they were given.
        retry: after how many seconds trying again makes sense.
    """

    def __init__(
        self, status: int, error: str, *, hint: str = "", nodes: list[str] | None = None, retry: int | None = None
    ) -> None:
        super().__init__(error)
        self.status, self.error, self.hint, self.nodes, self.retry = status, error, hint, nodes or [], retry

    def to_json(self) -> dict[str, Any]:
        """The answer's body."""
        return {"error": self.error, "hint": self.hint, "nodes": self.nodes}

    @property
    def headers(self) -> dict[str, str]:
        """The answer's headers."""
        found = {} if self.retry is None else {"retry-after": str(self.retry)}
        return found | ({"www-authenticate": "Bearer"} if self.status == 401 else {})


def failed(request_id: str) -> Refusal:
    """The server made a mistake."""
    return Refusal(500, "the server failed; this is our mistake", hint=f"its log has more, under {request_id}")


def out_of_time(seconds: float) -> Refusal:
    """The work took longer than a request may."""
    hint = "ask about fewer or smaller subgraphs at a time"
    return Refusal(503, f"no answer within {seconds:g} seconds", hint=hint, retry=5)
