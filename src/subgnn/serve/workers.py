"""Threads that process requests: a few in each of four lanes, so that quick requests never wait for slow ones.

Kernels and matrix products release the interpreter's lock, so lanes run in parallel. Each thread uses one core.
"""

import asyncio
import contextvars
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import numba
import numpy as np
import torch

from subgnn.errors import UserError
from subgnn.inference.options import PredictOptions
from subgnn.ragged import Ragged
from subgnn.serve.limits import CURRENT, Deadline, DeadlinePassed, Limits, Refusal, check_deadline, encode
from subgnn.serve.monitoring import Metrics
from subgnn.serve.nodes import subgraphs_of
from subgnn.serve.runs import ServedRun

T = TypeVar("T")
SWITCH_SECONDS = 0.001
"""Time after which a thread that computes in Python yields to another one; Python's 5 ms would delay requests."""
_MAX_BATCH = 64  # subgraphs that are predicted together


def out_of_time(seconds: float) -> Refusal:
    """503: the work took longer than a request may."""
    hint = "ask about fewer or smaller subgraphs at a time"
    return Refusal(503, f"no answer within {seconds:g} seconds", hint=hint, retry=5)


class Lane:
    """A few threads with a bounded queue; its name is its label in metrics."""

    def __init__(self, name: str, *, workers: int, limits: Limits, metrics: Metrics) -> None:
        self.name, self.workers, self._limits = name, workers, limits
        self._waited, self._refused = metrics.waited_seconds.labels(lane=name), metrics.refused.labels(lane=name)
        self._num_inside = metrics.inside.labels(lane=name)
        self._pool: ThreadPoolExecutor | None = None
        self._inside = 0

    async def run(self, work: Callable[[], T], deadline: Deadline) -> T:
        """Do the work in one of the threads; 503 if the queue is full or the deadline passes."""
        if self._inside >= self.workers + self._limits.waiting:
            self._refused.inc()
            raise Refusal(503, "too many requests are waiting", hint="try again later", retry=1)
        if self._pool is None:  # an application that is started again has new threads

            def use_one_core() -> None:
                torch.set_num_threads(1)
                numba.set_num_threads(1)

            name = f"subgnn-{self.name}"
            self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix=name, initializer=use_one_core)
        self._count(1)
        context = contextvars.copy_context()
        context.run(CURRENT.set, deadline)
        begin, loop = time.monotonic(), asyncio.get_running_loop()

        def job() -> T:
            check_deadline()
            self._waited.observe(time.monotonic() - begin)
            return work()

        def done(_: object) -> None:
            with suppress(RuntimeError):  # the event loop has ended before the work
                loop.call_soon_threadsafe(self._count, -1)

        future = self._pool.submit(context.run, job)
        future.add_done_callback(done)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), deadline.remaining)
        except (TimeoutError, DeadlinePassed):
            raise out_of_time(self._limits.seconds) from None
        finally:
            deadline.cancelled.set()

    def _count(self, change: int) -> None:
        self._inside += change
        self._num_inside.set(self._inside)

    def close(self) -> None:
        """End the threads; waiting work is dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None


class Lanes:
    """The lanes for parsing large bodies, for searches, for quick requests and for slow ones."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        sys.setswitchinterval(SWITCH_SECONDS)
        # Parsing holds the interpreter's lock, so two bodies at once would keep the event loop waiting for both.
        workers = {"parse": 1, "search": 1, "quick": max(2, min(8, cores)), "slow": max(1, min(4, cores // 2))}
        lanes = [Lane(name, workers=count, limits=limits, metrics=metrics) for name, count in workers.items()]
        self.parse, self.search, self.quick, self.slow = lanes

    def close(self) -> None:
        """Close all lanes."""
        for lane in (self.parse, self.search, self.quick, self.slow):
            lane.close()


@dataclass(slots=True, eq=False)
class _Waiting:
    """A waiting request: its subgraphs, their number of nodes, whether to drop unknown ones, options and its answer."""

    rows: Sequence[Sequence[int | str]]
    nodes: int
    drop: bool
    options: PredictOptions
    answer: Future[bytes] = field(default_factory=Future)


class PredictionBatcher:
    """Answers small requests for predictions that arrive at the same time together.

    Most of the cost of a prediction does not depend on the number of subgraphs: 16 of them take twice the time of one.
    So a free thread takes all small requests that wait. A single request is answered at once.
    """

    def __init__(self, run: ServedRun, limits: Limits) -> None:
        self._run, self._limits = run, limits
        self._queue: deque[_Waiting] = deque()
        self._lock = threading.Lock()

    async def predict(
        self,
        rows: Sequence[Sequence[int | str]],
        *,
        nodes: int,
        lane: Lane,
        deadline: Deadline,
        drop: bool = False,
        options: PredictOptions | None = None,
    ) -> bytes:
        """The answer to one request."""
        waiting = _Waiting(rows, nodes, drop, options or PredictOptions())
        self._queue.append(waiting)
        try:
            # Each request submits one job, and a job answers the longest-waiting requests, so none is left over.
            await lane.run(self._answer_some, deadline)
            return await asyncio.wait_for(asyncio.wrap_future(waiting.answer), deadline.remaining)
        except (TimeoutError, DeadlinePassed):
            raise out_of_time(self._limits.seconds) from None
        finally:
            waiting.answer.cancel()

    def _answer_some(self) -> None:
        """Answer the longest-waiting requests, together no larger than a quick request; cancelled ones are dropped."""
        batch: list[_Waiting] = []
        nodes = subgraphs = 0
        with self._lock:
            while self._queue:
                first = self._queue[0]
                full = nodes + first.nodes > self._limits.quick_nodes or subgraphs + len(first.rows) > _MAX_BATCH
                if batch and full:
                    break
                self._queue.popleft()
                if first.answer.set_running_or_notify_cancel():
                    batch.append(first)
                    nodes, subgraphs = nodes + first.nodes, subgraphs + len(first.rows)
        # The request that submitted this job may be cancelled; the others are not.
        token = CURRENT.set(Deadline.after(self._limits.seconds))
        try:
            self._answer_each(batch)
        finally:
            CURRENT.reset(token)

    def _answer_each(self, batch: list[_Waiting]) -> None:
        """Answer requests together or, if that fails, one by one, so that one failure does not spoil the others."""
        try:
            self._answer(batch)
        except Exception as error:
            left = [waiting for waiting in batch if not waiting.answer.done()]
            if len(batch) == 1:
                left[0].answer.set_exception(error)
                return
            for waiting in left:
                self._answer_each([waiting])

    def _answer(self, batch: list[_Waiting]) -> None:
        answered: list[tuple[_Waiting, Ragged, list[list[str]]]] = []
        for waiting in batch:
            try:
                answered.append((waiting, *subgraphs_of(self._run.index, waiting.rows, drop=waiting.drop)))
            except Refusal as refusal:
                waiting.answer.set_exception(refusal)
        if not answered:
            return
        values = np.concatenate([rows.values for _, rows, _ in answered])
        lengths = np.concatenate([rows.lengths for _, rows, _ in answered])
        scores = self._run.predictor.probabilities(Ragged.from_lengths(values, lengths))
        ends = np.cumsum([len(rows) for _, rows, _ in answered])
        for (waiting, rows, dropped), end in zip(answered, ends.tolist(), strict=True):
            try:
                mine = self._run.predict(waiting.rows, rows, dropped, waiting.options, scores[end - len(rows) : end])
                waiting.answer.set_result(encode(mine))
            except UserError as error:  # of its options
                waiting.answer.set_exception(error)
