"""Where the work is done: few threads in each of four lanes, so that quick requests never wait for slow ones.

Kernels and matrix products release the interpreter's lock, so lanes run beside each other. Each thread computes with
one thread of its own: a server is kept busy by many requests, not by one.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar

import numba
import numpy as np
import torch

from subgnn.kernels import induced_components
from subgnn.ragged import Ragged
from subgnn.serve.budget import CURRENT, Budget, Spent
from subgnn.serve.limits import Limits
from subgnn.serve.metrics import Metrics
from subgnn.serve.refusals import Refusal, out_of_time

T = TypeVar("T")
SWITCH_SECONDS = 0.001
"""After which a thread that computes in Python lets another one go on; Python's own 5 ms would be added to requests."""


def _one_thread() -> None:
    torch.set_num_threads(1)
    numba.set_num_threads(1)


class Lane:
    """A few threads, and a bounded queue before them.

    Args:
        name: of the lane, for metrics.
        workers: its threads.
        turn: held while work is done, where only one may compute at a time.
    """

    def __init__(
        self,
        name: str,
        *,
        workers: int,
        limits: Limits,
        metrics: Metrics,
        turn: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.name, self.workers, self._limits, self._metrics = name, workers, limits, metrics
        self._turn = nullcontext() if turn is None else turn
        self._pool: ThreadPoolExecutor | None = None
        self._inside = 0

    async def run(self, work: Callable[[], T], budget: Budget) -> T:
        """Do the work in one of the threads, within the budget.

        Raises:
            Refusal: 503, where too many wait already or the budget is spent.
        """
        if self._inside >= self.workers + self._limits.waiting:
            self._metrics.count("subgnn_refused_total", lane=self.name)
            raise Refusal(503, "too many requests are waiting", hint="try again later", retry=1)
        self._inside += 1
        self._metrics.gauge("subgnn_inside", self._inside, lane=self.name)
        context = contextvars.copy_context()
        context.run(CURRENT.set, budget)
        asked = time.monotonic()

        def job() -> T:
            with self._turn:
                budget.check()
                self._metrics.observe("subgnn_waited_seconds", time.monotonic() - asked, lane=self.name)
                return work()

        loop = asyncio.get_running_loop()

        def left(_: object) -> None:
            with suppress(RuntimeError):  # the server has gone before its work
                loop.call_soon_threadsafe(self._left)

        future = self._open().submit(context.run, job)
        future.add_done_callback(left)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), budget.left)
        except (TimeoutError, Spent):
            raise out_of_time(self._limits.seconds) from None
        finally:
            budget.given_up.set()

    def _left(self) -> None:
        self._inside -= 1
        self._metrics.gauge("subgnn_inside", self._inside, lane=self.name)

    def _open(self) -> ThreadPoolExecutor:
        """The threads; those of an application that is started again are new ones."""
        if self._pool is None:
            name = f"subgnn-{self.name}"
            self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix=name, initializer=_one_thread)
        return self._pool

    def close(self) -> None:
        """Let the threads go; what waits is dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None


def kernels_run_side_by_side() -> bool:
    """Whether compiled loops may be called from several threads at once; of Numba's own pool of threads they may not.

    It is used only where there is neither OpenMP nor TBB, and would end the process.
    """
    induced_components(np.zeros(2, np.int64), np.empty(0, np.int32), Ragged.from_rows([[0]]))
    return bool(numba.threading_layer() != "workqueue")


class Lanes:
    """For parsing large bodies, for searches, for quick requests and for slow ones."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        sys.setswitchinterval(SWITCH_SECONDS)
        turn = None if kernels_run_side_by_side() else threading.Lock()
        # Parsing never lets another thread go on, so two bodies at once would keep the event loop waiting for both.
        workers = {"parse": 1, "search": 1, "quick": max(2, min(8, cores)), "slow": max(1, min(4, cores // 2))}
        self.parse, self.search, self.quick, self.slow = (
            Lane(name, workers=count, limits=limits, metrics=metrics, turn=turn if name in ("quick", "slow") else None)
            for name, count in workers.items()
        )

    def close(self) -> None:
        """Close all."""
        for lane in (self.parse, self.search, self.quick, self.slow):
            lane.close()
