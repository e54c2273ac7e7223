"""How much one request may ask for, and how many may wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subgnn.errors import UserError


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may be, by the server's owner.

    Args:
        body_bytes: of a request's body; more is 413.
        subgraphs: of one request; more is 422.
        nodes: of all subgraphs of one request together; more is 422.
        explained: subgraphs of one request that are explained.
        left_out: of subgraphs with more nodes than this, nodes are not left out one by one.
        quick_nodes: requests of no more nodes than this, and not for explanations, go by the quick lane.
        seconds: from the whole request to its answer; later is 503.
        body_seconds: for a request to arrive whole; later is 408.
        waiting: requests that wait in each lane; more is 503.
        connections: open at the same time; more is 503.
        drawn: nodes of a drawing beside the subgraph's own.
        found: nodes that a search answers with.
    """

    body_bytes: int = 1_000_000
    subgraphs: int = 256
    nodes: int = 10_000
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
        """What a caller should know."""
        shown = ("body_bytes", "subgraphs", "nodes", "explained", "left_out", "seconds", "drawn", "found")
        return {name: getattr(self, name) for name in shown}
