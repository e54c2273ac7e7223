"""Predictions that are asked for at the same time, computed together.

Most of what a prediction costs does not depend on how many subgraphs it is about: 16 of them take twice the time of
one. So a thread that is free takes all small requests that wait, and answers each. When nobody else asks, a request is
answered at once, alone.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subgnn.ragged import Ragged
from subgnn.serve.answers import encode
from subgnn.serve.budget import CURRENT, Budget, Spent
from subgnn.serve.lanes import Lane
from subgnn.serve.limits import Limits
from subgnn.serve.nodes import subgraphs_of
from subgnn.serve.refusals import Refusal, out_of_time
from subgnn.serve.runs import ServedRun

_MOST = 64  # subgraphs


@dataclass(slots=True, eq=False)
class _Asked:
    """A request that waits: its subgraphs, how many nodes they have, and its answer."""

    rows: Sequence[Sequence[int | str]]
    nodes: int
    answer: Future[bytes] = field(default_factory=Future)


class Together:
    """The predictions of one run in the quick lane."""

    def __init__(self, run: ServedRun, limits: Limits) -> None:
        self._run, self._limits = run, limits
        self._waiting: deque[_Asked] = deque()
        self._lock = threading.Lock()

    async def predict(self, rows: Sequence[Sequence[int | str]], *, nodes: int, lane: Lane, budget: Budget) -> bytes:
        """The answer to one request.

        Raises:
            Refusal: as :meth:`Lane.run`, or for nodes that are not known.
        """
        asked = _Asked(rows, nodes)
        self._waiting.append(asked)
        try:
            # Each request brings a turn of a thread, which answers those that wait longest: so none is left over.
            await lane.run(self._answer_some, budget)
            return await asyncio.wait_for(asyncio.wrap_future(asked.answer), budget.left)
        except (TimeoutError, Spent):
            raise out_of_time(self._limits.seconds) from None
        finally:
            asked.answer.cancel()

    def _answer_some(self) -> None:
        batch = self._take()
        # The request whose turn this is may be given up; the others are not.
        token = CURRENT.set(Budget.of(self._limits.seconds))
        try:
            self._settle(batch)
        finally:
            CURRENT.reset(token)

    def _settle(self, batch: list[_Asked]) -> None:
        """Answer requests; where that fails, each alone, so that one of them does not spoil the others."""
        try:
            self._answer(batch)
        except Exception as error:
            left = [asked for asked in batch if not asked.answer.done()]
            if len(batch) == 1:
                left[0].answer.set_exception(error)
                return
            for asked in left:
                self._settle([asked])

    def _take(self) -> list[_Asked]:
        """Requests that wait longest, as many as make a quick one; those given up are dropped."""
        batch: list[_Asked] = []
        nodes = subgraphs = 0
        with self._lock:
            while self._waiting:
                first = self._waiting[0]
                full = nodes + first.nodes > self._limits.quick_nodes or subgraphs + len(first.rows) > _MOST
                if batch and full:
                    break
                self._waiting.popleft()
                if first.answer.set_running_or_notify_cancel():
                    batch.append(first)
                    nodes, subgraphs = nodes + first.nodes, subgraphs + len(first.rows)
        return batch

    def _answer(self, batch: list[_Asked]) -> None:
        known: list[tuple[_Asked, Ragged]] = []
        for asked in batch:
            try:
                known.append((asked, subgraphs_of(self._run.index, asked.rows)))
            except Refusal as refusal:
                asked.answer.set_exception(refusal)
        if not known:
            return
        values = np.concatenate([rows.values for _, rows in known])
        lengths = np.concatenate([rows.lengths for _, rows in known])
        found: dict[str, Any] = self._run.predict(Ragged.from_lengths(values, lengths))
        predictions = iter(found["predictions"])
        for asked, rows in known:
            own = [next(predictions) for _ in range(len(rows))]
            asked.answer.set_result(encode(found | {"predictions": own}))
