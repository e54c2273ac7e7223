"""Run many independent jobs over processes, and yield each result as its job ends.

A job is data that can be pickled; the function is one that a worker can import. A job that raises, or whose worker is
killed, gives a :class:`Failure`; the others go on. A value that many jobs use is given to :meth:`Engine.share` first.

A local worker has an interpreter of its own, so a script needs no main guard, and its own session, so Ctrl-C in a
terminal reaches the parent only, which ends its workers; a worker whose parent is gone ends, too. On Linux, workers of
an engine that knows what they will import (``preload``) are forked from one process that has imported it.
"""

import math
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import forkserver, get_context, parent_process, set_forkserver_preload, set_start_method
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.util import Finalize
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Generic, Literal, NoReturn, Protocol, Self, TypeVar, cast

from subgnn.errors import UserError
from subgnn.parallel.interrupts import raise_on_signals
from subgnn.parallel.memory import memory_limit, share_of_each

Job = TypeVar("Job")
Result = TypeVar("Result")
Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)
EngineName = Literal["local", "ray"]
Stop = Callable[[], bool]
"""Asked a few times a second whether to end."""
_GRACE_SECONDS = 10.0  # for a worker to end in an orderly way
LOOK_SECONDS = 0.2
"""Between two questions whether to end."""
ON_GPU = 2
"""Jobs that share a GPU: one alone leaves it idle between its steps."""

# What libraries read when they are loaded; a waiting thread that spins takes a core from its neighbours.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "GOMP_SPINCOUNT": "1000"}
ENVIRONMENT |= {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}  # no threads to fork
TOO_LONG = "it took too long"
"""The message of a job that was killed because it took longer than allowed."""


def never() -> bool:
    """Go on to the end."""
    return False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no result."""

    message: str  # in one line
    details: str = ""  # the traceback, if there is one
    error: BaseException | None = None  # where its message is enough: a UserError, or an OSError of a file

    @classmethod
    def of(cls, error: BaseException) -> Self:
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


class Engine(AbstractContextManager["Engine"]):
    """Runs jobs; for a ``with`` block. ``running`` are the jobs that run now, as far as is known."""

    running: Sequence[Any] = ()

    @property
    @abstractmethod
    def slots(self) -> int:
        """The number of jobs that run at once."""

    @abstractmethod
    def share(self, value: Value) -> Shared[Value]:
        """Place a value where workers can read it, for as long as the returned object lives."""

    @abstractmethod
    def close(self) -> None:
        """End what was started for the engine."""

    @abstractmethod
    def map(
        self, function: Callable[[Job], Result], jobs: Sequence[Job], *, stop: Stop = never, seconds: float = math.inf
    ) -> Iterator[tuple[Job, Result | Failure]]:
        """Yield each job with its result or failure, in the order in which they end.

        Jobs are taken from the left end of a deque, to which more may be added meanwhile. When ``stop`` becomes true,
        no further job is started and those that run are killed, if they run in processes of their own; so is a job that
        runs for more than ``seconds``, which fails.
        """

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True, eq=False)
class Held(Generic[Value]):
    """A value that is sent with each job."""

    value: Value

    def get(self) -> Value:
        return self.value


@dataclass(frozen=True, slots=True)
class Mapped(Generic[Value]):
    """A value in a file of this machine, whose arrays each worker maps into its memory."""

    path: str

    @lru_cache(maxsize=4)  # noqa: B019 - a few values for the life of a worker
    def get(self) -> Value:
        """The value, read once in each process; writing to its arrays changes this process's copy only."""
        import joblib

        return cast("Value", joblib.load(self.path, mmap_mode="c"))


class LocalEngine(Engine):
    """Processes of this machine, each with one job at a time, one thread and an equal share of the memory limit.

    With one process, jobs run in this process, unless they are to run ``apart``, where they can be killed. Jobs with a
    true attribute or key ``on_gpu`` run beside them, ``gpu_jobs`` at a time. A worker that is killed fails its own job
    only, and another takes its place. Workers stay for the next ``map``, and end with ``close``.
    """

    def __init__(
        self, processes: int = 1, *, apart: bool = False, preload: Sequence[str] = (), gpu_jobs: int = ON_GPU
    ) -> None:
        self.processes, self.gpu_jobs = processes, gpu_jobs
        self.has_workers = processes > 1 or apart
        self._folder: TemporaryDirectory[str] | None = None
        self._shared = 0
        self._idle: list[_Worker] = []
        self._forks = bool(preload) and processes > 1 and sys.platform == "linux"
        if self._forks:
            import_early(preload)

    @property
    def slots(self) -> int:
        return max(1, self.processes)

    def share(self, value: Value) -> Held[Value] | Mapped[Value]:
        """The value itself, or a file of it that workers map into their memory until the engine is closed."""
        if not self.has_workers:
            return Held(value)
        import joblib

        self._folder = self._folder or TemporaryDirectory(prefix="subgnn-")
        self._shared += 1
        path = str(Path(self._folder.name) / f"shared{self._shared}")
        joblib.dump(value, path)
        return Mapped(path)

    def map(
        self, function: Callable[[Job], Result], jobs: Sequence[Job], *, stop: Stop = never, seconds: float = math.inf
    ) -> Iterator[tuple[Job, Result | Failure]]:
        waiting = jobs if isinstance(jobs, deque) else deque(jobs)
        if not self.has_workers:
            while waiting and not stop():
                self.running = [job] = [waiting.popleft()]
                yield job, attempt(function, job)
                self.running = []
            return
        busy: dict[Any, tuple[_Worker, Job, float]] = {}  # by the pipe to the worker, with the time of its start
        try:
            while (waiting or busy) and not stop():
                for on_gpu, most in ((True, self.gpu_jobs), (False, self.processes)):
                    free = most - sum(_on_gpu(job) is on_gpu for _, job, _ in busy.values())
                    for job in [job for job in waiting if _on_gpu(job) is on_gpu][:free]:
                        del waiting[next(place for place, one in enumerate(waiting) if one is job)]
                        worker = self._worker()
                        busy[worker.pipe] = worker, job, time.monotonic()
                        worker.send(function, job)
                self.running = [job for _, job, _ in busy.values()]
                for pipe in wait(list(busy), LOOK_SECONDS if stop is not never or seconds < math.inf else None):
                    worker, job, _ = busy.pop(pipe)
                    result = worker.receive()
                    if worker.process.is_alive():
                        self._idle.append(worker)
                    else:
                        worker.end()
                    yield job, result
                oldest = time.monotonic() - seconds
                for pipe in [pipe for pipe, (_, _, begin) in busy.items() if begin < oldest]:
                    worker, job, _ = busy.pop(pipe)
                    _end_all([worker], grace=0.0)
                    yield job, Failure(TOO_LONG)
        finally:  # after an interrupt, or when the caller needs no more results
            self.running = []
            # A worker that is to stop has nothing to tidy up: what it writes replaces files when it is complete.
            _end_all([worker for worker, _, _ in busy.values()], grace=_GRACE_SECONDS if stop is never else 0.0)

    def _worker(self) -> "_Worker":
        while self._idle:
            worker = self._idle.pop()
            if worker.process.is_alive():
                return worker
            worker.end()
        return _Worker(share_of_each(self.processes), forked=self._forks)

    def close(self) -> None:
        _end_all(self._idle, grace=0.0)
        self._idle.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread until the end of the block, so that sums are added in one order wherever a job runs."""
    import numba
    import torch
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads(), torch.get_num_threads()
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        numba.set_num_threads(before[0])
        torch.set_num_threads(before[1])


class _Worker:
    """A child process that runs one job after another; ``forked`` from the process that has imported modules."""

    def __init__(self, memory: int, *, forked: bool) -> None:
        self.pipe, theirs = Pipe()
        context: Any = get_context("forkserver" if forked else "spawn")
        with _fresh_start():
            self.process = context.Process(target=run_worker, args=(theirs, memory, dict(os.environ)))
            self.process.start()
        theirs.close()  # so that the pipe ends with the worker
        self._end_at_exit = Finalize(self, self.process.kill, exitpriority=0)

    def send(self, function: Callable[[Any], Any], job: Any) -> None:
        with suppress(OSError):  # if the worker has ended, so does the wait for its result
            _send(self.pipe, (function, job))

    def receive(self) -> Any:
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
        code = self.process.exitcode
        if code >= 0:
            return Failure(f"the worker process ended by itself (exit code {code})")
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        perhaps = ", perhaps out of memory" if name == "SIGKILL" else ""
        return Failure(f"the worker process was killed ({name}{perhaps})")

    def end(self, *, grace: float = _GRACE_SECONDS) -> None:
        """Wait for the worker to end, and kill it after ``grace`` seconds."""
        self._end_at_exit.cancel()
        self.pipe.close()
        self.process.join(grace)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@contextmanager
def _fresh_start() -> Iterator[None]:
    """Start processes with one thread and this import path that ignore Ctrl-C and do not run the main module again."""
    paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    before = {name: os.environ.get(name) for name in (*ENVIRONMENT, "PYTHONPATH")}
    main, signals = sys.modules["__main__"], signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ.update(ENVIRONMENT, PYTHONPATH=paths)
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def import_early(modules: Sequence[str]) -> None:
    """Start the process that imports modules, and is forked for each worker of engines with this ``preload``."""
    if sys.platform == "linux":
        set_forkserver_preload(list(modules))
        with _fresh_start():
            forkserver.ensure_running()


def _on_gpu(job: Any) -> bool:
    return bool(job.get("on_gpu") if isinstance(job, dict) else getattr(job, "on_gpu", False))


def _end_all(workers: Iterable[_Worker], *, grace: float) -> None:
    """Interrupt workers, and kill those that have not ended after ``grace`` seconds."""
    deadline = time.monotonic() + grace
    for worker in workers:
        worker.process.terminate()  # as Ctrl-C would
    for worker in workers:
        worker.end(grace=max(0.0, deadline - time.monotonic()))


def attempt(function: Callable[[Job], Result], job: Job) -> Result | Failure:
    """Run a job; an exception becomes a failure."""
    try:
        return function(job)
    except Exception as error:
        return Failure.of(error)


def _send(pipe: Connection, value: Any) -> None:
    """Send a value by plain pickle: the pipe's own would hand tensors over in shared memory, which needs a fork."""
    pipe.send_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def run_worker(pipe: Connection, memory: int, environment: dict[str, str]) -> None:
    """Run jobs until there are no more: the main function of a worker."""
    os.setsid()
    os.environ.clear()  # it may have changed since the process that is forked was started
    os.environ.update(environment)
    with suppress(ValueError):  # so that numba's lock has no name, which a killed worker would leave behind
        set_start_method("fork", force=True)
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    raise_on_signals()
    working = threading.Event()
    working.set()
    threading.Thread(target=_end_with_parent, args=(working,), daemon=True).start()
    # The parent is gone or wants no more, or it reports the interrupt.
    with suppress(EOFError, OSError, KeyboardInterrupt), memory_limit(memory):
        while True:
            try:
                result = attempt(*pipe.recv())
            except (ImportError, AttributeError) as error:  # a function that cannot be imported
                result = Failure.of(error)
            try:
                _send(pipe, result)
            except (TypeError, ValueError, AttributeError, pickle.PicklingError) as error:
                _send(pipe, Failure.of(error))
    working.clear()


def _end_with_parent(working: threading.Event) -> None:
    """Wait for the end of the parent; then interrupt the job, and end this process if that takes long."""
    wait([cast(Any, parent_process()).sentinel])
    if working.is_set():  # while the interpreter shuts down, an exception would be printed
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_GRACE_SECONDS / 2)
    os._exit(1)
