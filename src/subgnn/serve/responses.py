"""Answers and errors of the HTTP interface as JSON."""

from __future__ import annotations

import json
from typing import Any

from subgnn.storage.files import finite

JSON = "application/json"


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
    return Refusal(500, "the server failed; this is our mistake", hint=f"its log has more, under {request_id}")


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
