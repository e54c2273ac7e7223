"""Run many independent jobs over processes, and yield each result as its job ends.

A job is data that can be pickled; the function is one that a worker can import. Jobs are independent, so an engine may
run them in any order and anywhere. A job that raises, or whose worker is killed, gives a :class:`Failure`; the others
continue. A value that many jobs use is given to :meth:`Engine.share` first.

:class:`LocalEngine` uses processes of this machine; :class:`~subgnn.parallel.cluster.RayEngine` the machines of a
cluster. A local worker has a fresh interpreter, so a script needs no main guard, and its own session, so Ctrl-C in a
terminal reaches the parent only, which ends its workers. A worker whose parent is gone, for whatever reason, ends too.

Importing torch and scikit-learn takes seconds of processor time. On Linux, an engine that knows what its workers will
import (``preload``) starts one process that imports it, and forks that process for each worker. :func:`import_early`
starts it before there is an engine.
"""

from __future__ import annotations

import atexit
import math
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Generic, Literal, NoReturn, Protocol, Self, TypeVar, cast

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


class Engine(ABC):
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

        When ``stop`` becomes true, no further job is started and those that run are killed, if they run in processes
        of their own; so is a job that runs for more than ``seconds``, which fails.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True, eq=False)
class Held(Generic[Value]):
    """A value that is sent with each job."""

    value: Value

    def get(self) -> Value:
        """The value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Mapped(Generic[Value]):
    """A value in a file of this machine, whose arrays each worker maps into its memory."""

    path: str

    def get(self) -> Value:
        """The value, read once in each process; writing to its arrays changes this process's copy only."""
        return cast("Value", _mapped_value(self.path))


@lru_cache(maxsize=4)
def _mapped_value(path: str) -> Any:
    import joblib

    return joblib.load(path, mmap_mode="c")


class LocalEngine(Engine):
    """Processes of this machine, each with one job at a time.

    With one process, jobs run in this process, without any start, unless they are to run ``apart``, where they can be
    killed. Jobs with a true attribute or key ``on_gpu`` run beside the others, ``gpu_jobs`` at a time. A worker that is
    killed fails its job only, and another takes its place. Workers stay for the next ``map``, with what they have
    loaded; they end with ``close`` and at the end of a ``with`` block. Each has an equal share of the memory limit
    (:mod:`subgnn.parallel.memory`) that was in force when it was started, and one thread. Modules named in
    ``preload`` are imported once for all workers, where that is possible.
    """

    def __init__(
        self, processes: int = 1, *, apart: bool = False, preload: Sequence[str] = (), gpu_jobs: int = ON_GPU
    ) -> None:
        self.processes, self.gpu_jobs = processes, gpu_jobs
        self.has_workers = processes > 1 or apart
        self._folder: TemporaryDirectory[str] | None = None
        self._shared = 0
        self._idle: list[_Worker] = []
        self._template = None
        if preload and _CAN_FORK and processes > 1:
            self._template = _early.pop(tuple(preload), None) or _Template(preload)

    @property
    def slots(self) -> int:
        """The number of jobs that run at once."""
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
        """Yield each job with its result or failure, in the order in which they end."""
        if not self.has_workers:
            for job in jobs:
                if stop():
                    return
                self.running = [job]
                yield job, attempt(function, job)
                self.running = []
            return
        waiting = {on_gpu: [job for job in reversed(jobs) if _on_gpu(job) is on_gpu] for on_gpu in (False, True)}
        busy: dict[Any, tuple[_Worker, Job, float]] = {}  # by the pipe to the worker, with the time of its start
        try:
            while (any(waiting.values()) or busy) and not stop():
                for on_gpu, most in ((True, self.gpu_jobs), (False, self.processes)):
                    free = most - sum(_on_gpu(job) is on_gpu for _, job, _ in busy.values())
                    for _ in range(min(free, len(waiting[on_gpu]))):
                        worker, job = self._worker(), waiting[on_gpu].pop()
                        busy[worker.pipe] = worker, job, time.monotonic()
                        worker.send(function, job)
                self.running = [job for _, job, _ in busy.values()]
                looks = stop is not never or seconds < math.inf
                for pipe in wait(list(busy), LOOK_SECONDS if looks else None):
                    worker, job, _ = busy.pop(pipe)
                    result = worker.receive()
                    if worker.is_alive():
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

    def _worker(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive():
                return worker
            worker.end()
        return _Worker(share_of_each(self.processes), self._template)

    def close(self) -> None:
        """End the workers, and remove what they shared."""
        _end_all(self._idle, grace=0.0)
        self._idle.clear()
        if self._template is not None:
            self._template.close()
            self._template = None
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
    """A child process that runs one job after another."""

    def __init__(self, memory: int, template: _Template | None) -> None:
        self.pipe, theirs = Pipe()
        forked = template.fork(theirs.fileno(), memory) if template is not None else None
        call = f"run_worker({theirs.fileno()}, {memory})"
        self._process: _Forked | subprocess.Popen[bytes] = forked or _interpreter(call, ENVIRONMENT, theirs.fileno())
        theirs.close()  # so that the pipe ends with the worker

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, function: Callable[[Any], Any], job: Any) -> None:
        with suppress(OSError):  # if the worker has ended, so does the wait for its result
            _send(self.pipe, (function, job))

    def receive(self) -> Any:
        """Wait for a result, or for the end of the worker."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            code = self._process.wait()
        if code >= 0:
            return Failure(f"the worker process ended by itself (exit code {code})")
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        perhaps = ", perhaps out of memory" if name == "SIGKILL" else ""
        return Failure(f"the worker process was killed ({name}{perhaps})")

    def interrupt(self) -> None:
        """Ask the worker to end, as Ctrl-C would."""
        self._process.terminate()

    def end(self, *, grace: float = _GRACE_SECONDS) -> None:
        """Wait for the worker to end, and kill it after ``grace`` seconds."""
        self.pipe.close()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


def _interpreter(call: str, environment: dict[str, str], descriptor: int) -> subprocess.Popen[bytes]:
    """A fresh interpreter that calls a function of this module, with the import path of this process."""
    paths = {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", f"from subgnn.parallel.engine import *; {call}"],
        stdin=subprocess.PIPE,  # its end tells the process that this one is gone
        env={**os.environ, **paths, **environment},
        pass_fds=(descriptor,),
        start_new_session=True,
    )


_REQUEST, _REPLY = struct.Struct("=4sq"), struct.Struct("=q")  # what to do and a number; the answer


class _Template:
    """A process that has imported modules, and forks itself for each worker.

    It does so only while it has one thread: a lock that another thread holds would stay locked in the copy.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one_thread = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
        call = f"run_template({theirs.fileno()}, {tuple(modules)!r})"
        self._process = _interpreter(call, ENVIRONMENT | one_thread, theirs.fileno())
        theirs.close()

    def fork(self, descriptor: int, memory: int) -> _Forked | None:
        """Start a worker that has the given end of a pipe; None if it has to be a fresh interpreter."""
        pid = self._ask(b"fork", memory, [descriptor])
        return _Forked(pid, self) if pid > 0 else None

    def exit_code(self, pid: int) -> int:
        """How a worker ended that has ended."""
        return self._ask(b"wait", pid, [])

    def _ask(self, what: bytes, number: int, descriptors: Sequence[int]) -> int:
        """The answer to a request; that of SIGKILL, which is negative, if the template is gone."""
        try:
            socket.send_fds(self._socket, [_REQUEST.pack(what, number)], descriptors)
            answer = self._socket.recv(_REPLY.size)
        except OSError:
            answer = b""
        return int(_REPLY.unpack(answer)[0]) if answer else -signal.SIGKILL

    def close(self) -> None:
        """End the template; workers go on."""
        atexit.unregister(self.close)
        self._socket.close()
        self._process.kill()
        self._process.wait()
        cast(IO[bytes], self._process.stdin).close()


_CAN_FORK = sys.platform == "linux" and hasattr(os, "pidfd_open")
_early: dict[tuple[str, ...], _Template] = {}


def import_early(modules: Sequence[str]) -> None:
    """Start to import what the workers of the next engine with this ``preload`` need, while this process goes on."""
    if _CAN_FORK and tuple(modules) not in _early:
        _early[tuple(modules)] = template = _Template(modules)
        atexit.register(template.close)


class _Forked:
    """A worker that was forked from a template: the part of :class:`subprocess.Popen` that is needed of it."""

    stdin = None  # the worker reads that of its template

    def __init__(self, pid: int, template: _Template) -> None:
        self._pid, self._template = pid, template
        self._code: int | None = None
        self._descriptor = os.pidfd_open(pid)  # the template keeps the number from being used again

    def poll(self) -> int | None:
        if self._code is None and wait([self._descriptor], 0):
            self._code = self._template.exit_code(self._pid)
            os.close(self._descriptor)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None and not wait([self._descriptor], timeout):
            raise subprocess.TimeoutExpired(str(self._pid), timeout or 0.0)
        return cast(int, self.poll())

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)


def run_template(descriptor: int, modules: Sequence[str]) -> None:
    """Import modules, then fork this process when asked to: the main function of a template."""
    for name in modules:
        with suppress(ImportError):  # a job that needs it will report it
            import_module(name)
    with socket.socket(fileno=descriptor) as requests:
        while True:
            message, received, _, _ = socket.recv_fds(requests, _REQUEST.size, 1)
            if not message:
                return
            what, number = _REQUEST.unpack(message)
            if what == b"wait":
                answer = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
            elif len(list(Path("/proc/self/task").iterdir())) > 1:
                answer = 0
            else:
                answer = os.fork()
                if answer == 0:
                    requests.close()
                    os.setsid()
                    _run_and_exit(received[0], number)
            for each in received:
                os.close(each)
            requests.send(_REPLY.pack(answer))


def _run_and_exit(descriptor: int, memory: int) -> NoReturn:
    """Run a worker, then end the process without what the template would do at its end."""
    code = 1
    try:
        run_worker(descriptor, memory)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _on_gpu(job: Any) -> bool:
    return bool(job.get("on_gpu") if isinstance(job, dict) else getattr(job, "on_gpu", False))


def _end_all(workers: Iterable[_Worker], *, grace: float) -> None:
    """Interrupt workers, and kill those that have not ended after ``grace`` seconds."""
    deadline = time.monotonic() + grace
    for worker in workers:
        worker.interrupt()
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


def run_worker(descriptor: int, memory: int) -> None:
    """Run jobs until there are no more: the main function of a worker."""
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    raise_on_signals()
    pipe, working = Connection(descriptor), threading.Event()
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
    while os.read(0, 1024):
        pass
    if working.is_set():  # while the interpreter shuts down, an exception would be printed
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_GRACE_SECONDS / 2)
    os._exit(1)
