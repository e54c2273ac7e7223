"""Run many independent jobs over processes, and yield each result as its job ends.

A job is data that can be pickled; the function is one that a worker can import. Jobs are independent, so an engine may
run them in any order and anywhere. A job that raises, or whose worker is killed, gives a :class:`Failure`; the others
continue. A value that many jobs use is given to :meth:`Engine.share` first.

:class:`LocalEngine` uses processes of this machine; :class:`~subgnn.parallel.cluster.RayEngine` the machines of a
cluster.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, Generic, Literal, NoReturn, Protocol, TypeVar

from subgnn.errors import UserError
from subgnn.parallel.memory import share_of_each
from subgnn.parallel.processes import Ended, Parent, Process, end_all

Job = TypeVar("Job")
Result = TypeVar("Result")
Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)
EngineName = Literal["local", "ray"]


def threads_environment(count: int) -> dict[str, str]:
    """Environment variables that limit a process to some threads; libraries read them when they are loaded."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    # A waiting thread that spins takes a core from its neighbours.
    return {"GOMP_SPINCOUNT": "1000"} | dict.fromkeys(names, str(count))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no result.

    Attributes:
        message: one line.
        details: the traceback, where there is one.
        error: the exception, where its message is enough: a :class:`UserError`, or an :class:`OSError` of a file.
    """

    message: str
    details: str = ""
    error: BaseException | None = None

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The failure of an exception."""
        message = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        plain = isinstance(error, UserError) or (isinstance(error, OSError) and error.filename is not None)
        return cls(" ".join(message.split()), "".join(traceback.format_exception(error)), error if plain else None)

    def throw(self) -> NoReturn:
        """Raise the exception, or a :class:`RuntimeError` with its message and traceback."""
        if self.error is not None:
            raise self.error
        error = RuntimeError(self.message)
        if self.details:
            error.add_note(self.details)
        raise error


class Shared(Protocol[Value_co]):
    """A value that many jobs use, as a part of each job that is cheap to send."""

    def get(self) -> Value_co:
        """The value; called in a worker."""

    def __hash__(self) -> int:
        """A hash of the shared value, so that a worker can cache what it computes from it."""


class Engine(Protocol):
    """Runs jobs."""

    @property
    def slots(self) -> int:
        """The number of jobs that run at once."""

    def share(self, value: Value) -> Shared[Value]:
        """Place a value where workers can read it, for as long as the returned object lives."""

    def map(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[Job, Result | Failure]]:
        """Yield each job with its result or failure, in the order in which they end."""


@dataclass(frozen=True, slots=True, eq=False)
class Held(Generic[Value]):
    """A value that is sent with each job."""

    value: Value

    def get(self) -> Value:
        """The value."""
        return self.value


class LocalEngine:
    """Processes of this machine, each with one job at a time.

    With one process, jobs run in this process, without any start. A worker that is killed fails its job only, and
    another takes its place. Workers stay for the next ``map``, with what they have loaded; they end with ``close``, at
    the end of a ``with`` block, and when this process ends, for whatever reason. Each has an equal share of the memory
    limit (:mod:`subgnn.parallel.memory`) that was in force when it was started.

    Args:
        processes: jobs at once.
        threads: threads of each worker.

    Example:
        >>> with LocalEngine() as engine:
        ...     dict(engine.map(abs, [-1, -2]))
        {-1: 1, -2: 2}
    """

    def __init__(self, processes: int = 1, *, threads: int = 1) -> None:
        self.processes = processes
        self._environment: Mapping[str, str] = threads_environment(threads)
        self._idle: list[Process] = []

    @property
    def slots(self) -> int:
        """The number of jobs that run at once."""
        return max(1, self.processes)

    def share(self, value: Value) -> Held[Value]:
        """The value as a part of each job."""
        return Held(value)

    def map(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[Job, Result | Failure]]:
        """Yield each job with its result or failure, in the order in which they end."""
        if self.processes <= 1 or not jobs:
            return ((job, attempt(function, job)) for job in jobs)
        return self._map(function, jobs)

    def _map(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[Job, Result | Failure]]:
        waiting = list(reversed(jobs))
        busy: dict[Any, tuple[Process, Job]] = {}  # by the pipe to the worker
        try:
            while waiting or busy:
                while waiting and len(busy) < self.processes:
                    worker, job = self._worker(), waiting.pop()
                    busy[worker.pipe] = worker, job
                    worker.send((function, job))
                for pipe in wait(list(busy)):
                    worker, job = busy.pop(pipe)
                    result = worker.receive()
                    if isinstance(result, Ended):
                        worker.end()
                        result = Failure(f"the worker process {result}")
                    else:
                        self._idle.append(worker)
                    yield job, result
        finally:  # after an interrupt, or when the caller needs no more results
            end_all(worker for worker, _ in busy.values())

    def _worker(self) -> Process:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive():
                return worker
            worker.end()
        return Process(_work, memory=share_of_each(self.processes), environment=self._environment)

    def close(self) -> None:
        """End the workers."""
        while self._idle:
            self._idle.pop().end()

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def attempt(function: Callable[[Job], Result], job: Job) -> Result | Failure:
    """Run a job; an exception becomes a failure."""
    try:
        return function(job)
    except Exception as error:
        return Failure.of(error)


def _work(parent: Parent) -> None:
    """Run jobs in a worker until there are no more."""
    while True:
        try:
            result = attempt(*parent.receive())
        except (ImportError, AttributeError) as error:  # a function that cannot be imported
            result = Failure.of(error)
        try:
            parent.send(result)
        except (TypeError, ValueError, AttributeError) as error:  # a result that cannot be pickled
            parent.send(Failure.of(error))
