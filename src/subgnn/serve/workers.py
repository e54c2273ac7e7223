"""Threads that process requests: a few in each of four lanes, so that quick requests never wait for slow ones.

Kernels and matrix products release the interpreter's lock, so lanes run in parallel. Each thread uses one core.
"""

import asyncio
import contextvars
import gc
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import numba
import numpy as np
import torch

from subgnn.inference.options import PredictOptions
from subgnn.kernels.diffusion import COLUMNS
from subgnn.ragged import Ragged
from subgnn.serve.limits import CURRENT, Deadline, DeadlinePassed, Limits, Refusal, check_deadline, encode
from subgnn.serve.monitoring import Metrics
from subgnn.serve.nodes import Written, subgraphs_of
from subgnn.serve.runs import ServedRun

T = TypeVar("T")
SWITCH_SECONDS = 0.0002
"""Time after which a thread that computes in Python yields to another one; Python's 5 ms would delay requests."""
_MAX_BATCH = 64  # subgraphs that are predicted together


def freeze_memory() -> None:
    """Leave what there is now out of garbage collections: one of all objects stops every request for .2 s."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


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
        self.enter()
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        context.run(CURRENT.set, deadline)

        def done(_: object) -> None:
            with suppress(RuntimeError):  # the event loop has ended before the work
                loop.call_soon_threadsafe(self.leave)

        def begun() -> T:
            check_deadline()
            return work()

        future = self.submit(lambda: context.run(begun))
        future.add_done_callback(done)
        return await self.answer(asyncio.wrap_future(future), deadline)

    def enter(self) -> None:
        """Count one more request that waits or is processed; 503 if the queue is full."""
        if self._inside >= self.workers + self._limits.waiting:
            self._refused.inc()
            raise Refusal(503, "too many requests are waiting", hint="try again later", retry=1)
        self._inside += 1
        self._num_inside.inc()

    def leave(self) -> None:
        self._inside -= 1
        self._num_inside.dec()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        if self._pool is None:  # an application that is started again has new threads

            def use_one_core() -> None:
                torch.set_num_threads(1)
                numba.set_num_threads(1)

            name = f"subgnn-{self.name}"
            self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix=name, initializer=use_one_core)
        begin = time.monotonic()

        def job() -> T:
            self._waited.observe(time.monotonic() - begin)
            return work()

        return self._pool.submit(job)

    async def answer(self, coming: asyncio.Future[T], deadline: Deadline) -> T:
        """What work gives; 503 if the deadline passes before."""
        try:
            return await asyncio.wait_for(coming, deadline.remaining)
        except (TimeoutError, DeadlinePassed):
            hint, seconds = "ask about fewer or smaller subgraphs at a time", self._limits.seconds
            raise Refusal(503, f"no answer within {seconds:g} seconds", hint=hint, retry=5) from None
        finally:
            deadline.cancelled.set()

    def close(self) -> None:
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
        for lane in (self.parse, self.search, self.quick, self.slow):
            lane.close()


@dataclass(frozen=True, slots=True, eq=False)
class SmallRequest:
    """A request for predictions, or without options for vectors.

    It has subgraphs, their number of nodes, whether to drop unknown ones, and an answer in the running event loop.
    """

    rows: Written
    nodes: int
    drop: bool
    options: PredictOptions | None
    deadline: Deadline
    answer: asyncio.Future[bytes] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


_Settled = list[tuple[asyncio.Future[bytes], bytes | Exception]]


class PredictionBatcher:
    """Answers small requests for predictions or vectors that arrive at the same time together.

    Much of the cost of a prediction does not depend on the number of subgraphs, so a free thread takes all small
    requests that wait, or so many that walks, which are computed in blocks of subgraphs, fill their blocks. A single
    request is answered at once.
    """

    def __init__(self, run: ServedRun, limits: Limits) -> None:
        self._run, self._limits = run, limits
        self._queue: deque[SmallRequest] = deque()
        self._lock = threading.Lock()
        self._coming = 0  # jobs that have not begun; more where more waits, as other work has a job for each request

    async def answer(self, waiting: SmallRequest, lane: Lane) -> bytes:
        """The answer to one request, once a thread of the lane has computed it."""
        lane.enter()
        try:
            with self._lock:  # a thread may be counting those that wait
                self._queue.append(waiting)
            self._submit(lane, asyncio.get_running_loop())
            return await lane.answer(waiting.answer, waiting.deadline)
        finally:
            lane.leave()

    def _submit(self, lane: Lane, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if self._coming * COLUMNS >= len(self._queue):
                return
            self._coming += 1
        lane.submit(lambda: self._answer_some(lane, loop))

    def _answer_some(self, lane: Lane, loop: asyncio.AbstractEventLoop) -> None:
        """Answer the longest-waiting requests, together no larger than a quick request; those given up are dropped."""
        batch: list[SmallRequest] = []
        settled: _Settled = []
        nodes = subgraphs = 0
        with self._lock:
            self._coming -= 1
            waiting = sum(len(one.rows) for one in self._queue)
            most = min(_MAX_BATCH, max(COLUMNS, waiting - waiting % COLUMNS))
            while self._queue:
                first = self._queue[0]
                full = nodes + first.nodes > self._limits.quick_nodes or subgraphs + len(first.rows) > most
                if batch and full:
                    break
                self._queue.popleft()
                if first.deadline.is_over:
                    settled.append((first.answer, DeadlinePassed()))
                else:
                    batch.append(first)
                    nodes, subgraphs = nodes + first.nodes, subgraphs + len(first.rows)
        with suppress(RuntimeError):  # the event loop has ended before the work
            if self._queue:
                loop.call_soon_threadsafe(self._submit, lane, loop)
            # A request may be given up while others of its batch wait for their answers.
            token = CURRENT.set(Deadline.after(self._limits.seconds))
            try:
                settled += self._answers(batch)
            finally:
                CURRENT.reset(token)
                loop.call_soon_threadsafe(_settle, settled)

    def _answers(self, batch: list[SmallRequest]) -> _Settled:
        """Answer requests together or, if that fails, one by one, so that one failure does not spoil the others."""
        try:
            return self._answer(batch)
        except Exception as error:
            if len(batch) == 1:
                return [(batch[0].answer, error)]
            return [found for waiting in batch for found in self._answers([waiting])]

    def _answer(self, batch: list[SmallRequest]) -> _Settled:
        settled: _Settled = []
        groups: dict[PredictOptions | None, list[tuple[SmallRequest, Ragged, list[list[str]]]]] = {}
        for waiting in batch:
            try:
                rows, dropped = subgraphs_of(self._run.index, waiting.rows, drop=waiting.drop)
                groups.setdefault(waiting.options, []).append((waiting, rows, dropped))
            except Refusal as refusal:
                settled.append((waiting.answer, refusal))
        for options, group in groups.items():
            values = np.concatenate([rows.values for _, rows, _ in group])
            rows = Ragged.from_lengths(values, np.concatenate([rows.lengths for _, rows, _ in group]))
            given = [nodes for waiting, _, _ in group for nodes in waiting.rows]
            unknown = [one for _, _, dropped in group for one in dropped]
            found = self._run.predict_or_embed(given, options, rows, unknown)
            what = "vectors" if options is None else "predictions"
            answers = iter(found[what])
            for waiting, _, dropped in group:
                own = {what: list(islice(answers, len(dropped))), "dropped": dropped}
                settled.append((waiting.answer, encode(found | own)))
        return settled


def _settle(settled: _Settled) -> None:
    """Hand out answers, in the event loop, to the requests that still wait."""
    for answer, found in settled:
        if isinstance(found, bytes) and not answer.done():
            answer.set_result(found)
        elif isinstance(found, Exception) and not answer.done():
            answer.set_exception(found)
