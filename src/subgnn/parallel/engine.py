"""Many independent jobs over processes: what each came to, as it ends.

A job is plain data that can be pickled; the function is one that a module has, so that a worker can import it. Jobs are
independent, so an engine may run them in any order and anywhere. One that raises, or whose worker is killed, is a
:class:`Failure`; the others go on. What many jobs have in common is given to :meth:`Engine.share` first.

:class:`LocalEngine` has processes of this machine; :class:`~subgnn.parallel.ray_engine.RayEngine` the machines of a
cluster.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Literal, NoReturn, Protocol, TypeVar

from subgnn.errors import UserError
from subgnn.parallel.memory import share_of_each, within
from subgnn.parallel.processes import end_with_parent

Job = TypeVar("Job")
Result = TypeVar("Result")
Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)
EngineName = Literal["local", "ray"]

ONE_THREAD = {
    "GOMP_SPINCOUNT": "1000",  # a waiting thread that spins takes a core from its neighbours
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
"""The environment of a worker: a core each. It has to be there before a worker loads its libraries."""
_GRACE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job has no result: one line, the traceback where there is one, and whether it is the user's mistake."""

    message: str
    details: str = ""
    mistake: bool = False

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The failure that an exception is."""
        message = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        details = "".join(traceback.format_exception(error))
        return cls(" ".join(message.split()), details, isinstance(error, UserError))

    def throw(self) -> NoReturn:
        """Raise what the job raised, as near as its message tells."""
        if self.mistake:
            raise UserError(self.message)
        error = RuntimeError(self.message)
        if self.details:
            error.add_note(self.details)
        raise error


class Shared(Protocol[Value_co]):
    """What jobs have in common: a part of each of them that costs little to send."""

    def get(self) -> Value_co:
        """The value itself; for a worker to call."""

    def __hash__(self) -> int:
        """Of what is shared, so that a worker can keep what it makes of it."""


class Engine(Protocol):
    """What runs jobs."""

    @property
    def slots(self) -> int:
        """How many jobs run at once."""

    def share(self, value: Value) -> Shared[Value]:
        """Place a value where workers can read it; it stays as long as what is returned."""

    def map(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[Job, Result | Failure]]:
        """Each job with its result, or why it has none, in the order in which they end."""


@dataclass(frozen=True, slots=True, eq=False)
class Held(Generic[Value]):
    """A value that travels with each job."""

    value: Value

    def get(self) -> Value:
        """The value."""
        return self.value


class LocalEngine:
    """Processes of this machine, started afresh (spawned), each with one job at a time.

    With one process the jobs run in this one, which costs no start. A worker that is killed fails its job alone, and
    another takes its place. Workers stay for the next ``map``, with what they have loaded; they end with ``close``, at
    the end of a ``with`` block, and when this process ends, however it ends. Each has an equal share of the
    memory limit (:mod:`subgnn.parallel.memory`) that was in force when it was started.

    Args:
        processes: how many at once.
        environment: variables of the workers; by default those of one thread.

    Example:
        >>> with LocalEngine() as engine:
        ...     dict(engine.map(abs, [-1, -2]))
        {-1: 1, -2: 2}
    """

    def __init__(self, processes: int = 1, *, environment: Mapping[str, str] | None = None) -> None:
        self.processes = processes
        self.environment = dict(ONE_THREAD if environment is None else environment)
        self._workers: list[_Worker] = []

    @property
    def slots(self) -> int:
        """How many jobs run at once."""
        return max(1, self.processes)

    def share(self, value: Value) -> Held[Value]:
        """The value as a part of each job."""
        return Held(value)

    def map(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[Job, Result | Failure]]:
        """Each job with its result, or why it has none, in the order in which they end."""
        if self.processes <= 1 or not jobs:
            return ((job, attempt(function, job)) for job in jobs)
        return self._spread(function, jobs)

    def _spread(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[Job, Result | Failure]]:
        waiting, workers = list(reversed(jobs)), self._workers
        try:
            while waiting or any(worker.busy for worker in workers):
                workers[:] = [worker for worker in workers if worker.busy or worker.process.is_alive()]
                idle = [worker for worker in workers if not worker.busy]
                while waiting and (idle or len(workers) < self.processes):
                    if not idle:
                        idle.append(_Worker(self.environment, share_of_each(self.processes)))
                        workers.append(idle[-1])
                    idle.pop().give(function, waiting.pop())
                # A worker's end is noticed as the end of its pipe.
                ready = wait([worker.pipe for worker in workers if worker.busy])
                for worker in [worker for worker in workers if worker.pipe in ready]:
                    pair = worker.take()
                    if worker.gone:
                        workers.remove(worker)
                    yield pair
        finally:  # where nobody wants the rest, or it was interrupted
            for worker in [worker for worker in workers if worker.busy]:
                workers.remove(worker)
                worker.end()

    def close(self) -> None:
        """End the workers."""
        while self._workers:
            self._workers.pop().end()

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Worker:
    """A process, the pipe to it, and the job it has."""

    def __init__(self, environment: Mapping[str, str], memory: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_work, args=(theirs, memory), daemon=True)
        with set_variables(environment):
            self.process.start()
        theirs.close()  # so that the pipe ends with the worker
        self.job: Any = None
        self.busy = self.gone = False

    def give(self, function: Callable[[Any], Any], job: Any) -> None:
        """Hand it a job."""
        self.job, self.busy = job, True
        with suppress(OSError):  # it may have died just now; that is noticed when its result is waited for
            self.pipe.send((function, job))

    def take(self) -> tuple[Any, Any]:
        """The job it had, and what came of it."""
        self.busy = False
        try:
            return self.job, self.pipe.recv()
        except (EOFError, OSError):
            self.gone = True
            self.process.join()
            return self.job, Failure(f"the worker process {_death(self.process.exitcode)}")

    def end(self) -> None:
        """Let it end; after a while, make it."""
        self.pipe.close()
        if self.busy:
            self.process.terminate()
        self.process.join(_GRACE_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def attempt(function: Callable[[Job], Result], job: Job) -> Result | Failure:
    """The result of a job, or why it has none."""
    try:
        return function(job)
    except Exception as error:
        return Failure.of(error)


def _work(pipe: Connection, memory: int) -> None:
    """What a worker does: one job after the other, within its memory, until there is nobody to give them."""
    end_with_parent()
    # EOFError: the pipe was closed. A break from the terminal reaches parent and workers; the parent tells of it.
    with suppress(EOFError, OSError, KeyboardInterrupt), within(memory):
        while True:
            result = attempt(*pipe.recv())
            try:
                pipe.send(result)
            except (TypeError, ValueError, AttributeError) as error:  # what cannot be pickled
                pipe.send(Failure.of(error))


def _death(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended by itself (exit code {code})"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed ({name})" + ("; was there too little memory?" if name == "SIGKILL" else "")


@contextmanager
def set_variables(values: Mapping[str, str]) -> Iterator[None]:
    """Variables for processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
