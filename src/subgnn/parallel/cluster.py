"""Run jobs on the machines of a Ray cluster, or on a Ray started for them on this machine.

Ray runs a job again, on another machine, when its machine or process is lost. A value placed by ``share`` is stored
once on each machine, in shared memory, where arrays are read without a copy. A job reserves a core and a share of a
machine's memory, and Ray prefers machines that have the values it needs. Anyone who reaches the ports of a Ray cluster
can run code on it, so a cluster belongs on a private network. The Ray that :class:`RayEngine` starts listens on
127.0.0.1 only, requires a secret token, and has neither a dashboard nor usage reports.
"""

import io
import logging
import math
import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from secrets import token_hex
from typing import Any, Generic

from subgnn.errors import UserError, extra_package
from subgnn.parallel.engine import (
    LOOK_SECONDS,
    TOO_LONG,
    Engine,
    EngineName,
    Failure,
    Held,
    Job,
    LocalEngine,
    Result,
    Stop,
    Value,
    attempt,
    never,
    one_thread,
)
from subgnn.parallel.memory import LEAST, memory_limit, share, share_of_each

RETRIES = 3
"""How often a job is retried when its machine or process is lost or out of memory; after that, it has failed."""
_JOBS_PER_SLOT = 2  # so that a worker need not wait for its next job
_LEAST_STORE = 200_000_000
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # A cluster that does not answer is reported after 40 seconds instead of a quarter of an hour.
    "RAY_NUM_REDIS_GET_RETRIES": "1",
    # By default, a job that Ray ends because its machine is short of memory is retried without limit.
    "RAY_task_oom_retries": str(RETRIES),
}


def open_engine(name: EngineName, *, address: str | None = None, processes: int | None = None) -> Engine:
    """Open an engine for a ``with`` block; Ray is started here without an address, by default with a job per core."""
    if name == "ray":
        return RayEngine(address, processes=processes)
    if address is not None:
        raise UserError(f"'{address}' needs Ray", where="--address", hint="add --engine ray")
    return LocalEngine(processes or 1)


@dataclass(frozen=True, slots=True)
class Placed(Generic[Value]):
    """A value in the memory of a cluster; a job that holds one finds the value itself in its place."""

    reference: Any

    def get(self) -> Value:
        """The value; its arrays are read in place and cannot be written."""
        import ray

        value: Value = ray.get(self.reference)
        return value


class RayEngine(Engine):
    """Workers of a Ray cluster, each with one job at a time, one core and an equal share of memory.

    A job's exception becomes a :class:`~subgnn.parallel.engine.Failure`. A job whose machine or process is lost runs
    again, up to :data:`RETRIES` times. A process that is connected to Ray already uses that connection, and keeps it.
    The address is ``HOST:PORT`` of the cluster's head, or ``auto``; this machine must be part of the cluster.
    """

    def __init__(self, address: str | None = None, *, processes: int | None = None) -> None:
        # Ray's switch for systems on which it is limited to one machine; without it, Ray replaces 127.0.0.1.
        for name, value in (_ENVIRONMENT | ({_LOOPBACK: "0"} if address is None else {})).items():
            os.environ.setdefault(name, value)
        with extra_package("ray", extra="scale", feature="--engine ray"):
            import ray
        self.ray: Any = ray
        self._processes = processes
        self._owned = not self.ray.is_initialized()
        self.memory = share_of_each(processes or os.cpu_count() or 1)
        if self._owned and address is None:
            self._start()
        elif self._owned:
            self._connect(address)
        elif address not in (None, "auto", self.ray.get_runtime_context().gcs_address):
            hint = "disconnect first: ray.shutdown()"
            raise UserError("this process is already connected to a different cluster", where="--address", hint=hint)
        if not (self._owned and address is None):
            of_each = [node.get("memory", 0.0) // node["CPU"] for node in self._machines() if node.get("CPU", 0.0) >= 1]
            self.memory = max(LEAST, int(min(of_each, default=0)))
        # A job that needs more than any machine has would wait forever.
        for name, needed in self._needed().items():
            if max((node.get(name, 0.0) for node in self._machines()), default=0.0) < needed:
                self.close()
                what = f"{self.memory / 1e9:.1f} GB of memory for a job" if name == "memory" else name
                hint = "start Ray with --num-cpus or --memory"
                raise UserError(f"the cluster has no {what}", where="--engine ray", hint=hint)

    def _needed(self) -> dict[str, float]:
        return {"CPU": 1.0, "memory": float(self.memory)}

    def _machines(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self.ray.nodes() if node["Alive"]]

    def _start(self) -> None:
        token = _private_token()
        os.environ.update(token)
        try:
            self.ray.init(
                address="local",
                num_cpus=self._processes or os.cpu_count(),
                _memory=self.memory * (self._processes or os.cpu_count() or 1),
                include_dashboard=False,
                object_store_memory=max(_LEAST_STORE, share(0.1)),
                _node_ip_address="127.0.0.1",
                logging_level=logging.CRITICAL,
                log_to_driver=False,
            )
        finally:
            for name in token:
                del os.environ[name]
        # Ray reads the address to listen on when it is first imported, which may have been before.
        addresses = {node["NodeManagerAddress"] for node in self.ray.nodes()}
        if addresses != {"127.0.0.1"}:
            self.close()
            hint = f"set {_LOOPBACK}=0 before Ray is imported, or start a cluster yourself and give its address"
            raise UserError(f"Ray would listen on {', '.join(sorted(addresses))}", where="--engine ray", hint=hint)

    def _connect(self, address: str | None) -> None:
        host, _, port = str(address).rpartition(":")
        if address != "auto" and (not host or not port.isdecimal() or "/" in host):  # ray:// is not supported
            hint = "accepted: HOST:PORT of the cluster's head, or auto"
            raise UserError(f"'{address}' is not an address", where="--address", hint=hint)
        try:
            self.ray.init(address=address, logging_level=logging.CRITICAL, log_to_driver=False)
        except (RuntimeError, ValueError, OSError, self.ray.exceptions.RayError) as error:
            words = " ".join(str(error).split())[:200]
            hint = (
                "is the cluster up (ray status)? this machine must be part of it, with the same versions of Python "
                "and Ray, and RAY_AUTH_MODE=token set where the cluster requires a token"
            )
            raise UserError(f"cannot connect to '{address}' ({words})", where="--address", hint=hint) from None

    @property
    def slots(self) -> int:
        needed = self._needed().items()
        machines = (min(machine.get(name, 0.0) // count for name, count in needed) for machine in self._machines())
        slots = max(1, int(sum(machines)))
        return slots if self._processes is None else min(slots, self._processes)

    def share(self, value: Value) -> Placed[Value]:
        errors = self.ray.exceptions
        try:
            return Placed(self.ray.put(value))
        except (errors.ObjectStoreFullError, errors.OutOfDiskError):
            hint = "start Ray with a larger --object-store-memory; a graph in a bundle takes no space there"
            raise UserError("Ray's object store is full", where="--engine ray", hint=hint) from None

    def map(
        self, function: Callable[[Job], Result], jobs: Sequence[Job], *, stop: Stop = never, seconds: float = math.inf
    ) -> Iterator[tuple[Job, Result | Failure]]:
        """As any engine; a job has ``seconds`` from when the cluster gets it, so no more are given than run at once."""
        ray, limited = self.ray, stop is not never or seconds < math.inf
        needed: dict[str, Any] = {"num_cpus": 1, "memory": self.memory}
        remote = ray.remote(_run).options(**needed, max_retries=RETRIES, name=function.__name__)
        waiting = jobs if isinstance(jobs, deque) else deque(jobs)
        given: dict[Any, tuple[Job, float]] = {}  # by reference, with the time
        try:
            while (waiting or given) and not stop():
                most = self._processes or (1 if limited else _JOBS_PER_SLOT) * self.slots
                while waiting and len(given) < most:
                    job = waiting.popleft()
                    packed, values = _pack(job)
                    given[remote.remote(function, packed, self.memory, *values)] = job, time.monotonic()
                self.running = [job for job, _ in given.values()]
                ended, _ = ray.wait(list(given), num_returns=1, timeout=LOOK_SECONDS if limited else None)
                for reference in ended:
                    try:
                        result = ray.get(reference)
                    except ray.exceptions.RayError as error:
                        result = self.failure(error)
                    yield given.pop(reference)[0], result
                for reference in [one for one, (_, begin) in given.items() if begin < time.monotonic() - seconds]:
                    ray.cancel(reference, force=True)
                    yield given.pop(reference)[0], Failure(TOO_LONG)
        finally:  # after an interrupt, or when the caller needs no more results
            self.running = []
            for reference in given:
                with suppress(Exception):
                    ray.cancel(reference, force=True)

    def failure(self, error: Exception) -> Failure:
        errors = self.ray.exceptions
        if isinstance(error, errors.RayTaskError):  # for example, something a worker cannot import or send
            return Failure(f"a worker failed: {' '.join(str(error.cause).split())}", str(error))
        if isinstance(error, errors.OutOfMemoryError):
            hint = "start Ray with fewer cores a machine (--num-cpus), so that each job has more memory"
            return Failure(f"the job's machine ran out of memory {RETRIES + 1} times; {hint}")
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Failure(f"the job was lost on the cluster {RETRIES + 1} times: {' '.join(lines[0].split())}")

    def close(self) -> None:
        if self._owned:
            self.ray.shutdown()


def _pack(job: Any) -> tuple[bytes, list[Any]]:
    """A job without its placed values, and references to these.

    Ray fetches values that are arguments of their own before it starts a job, and prefers machines that have them.
    """
    file, references = io.BytesIO(), []

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> int | None:
            if not isinstance(value, Placed):
                return None
            references.append(value.reference)
            return len(references) - 1

    Pickler(file, pickle.HIGHEST_PROTOCOL).dump(job)
    return file.getvalue(), references


def _run(function: Callable[[Any], Any], packed: bytes, memory: int, *values: Any) -> Any:
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: int) -> Held[Any]:
            return Held(values[number])

    with one_thread(), memory_limit(memory):
        return attempt(function, Unpickler(io.BytesIO(packed)).load())


@lru_cache(maxsize=1)
def _private_token() -> dict[str, str]:
    """A secret that keeps other users out of a Ray started here; one that Ray made would stay in the user's home."""
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return {}
    return {"RAY_AUTH_TOKEN": token_hex(32)}
