"""Run jobs on the machines of a Ray cluster, or on a Ray started for them on this machine.

Ray runs a job again, on another machine, when its machine or process is lost. A value placed by ``share`` is stored
once on each machine, in shared memory, where arrays are read without a copy. Anyone who reaches the ports of a Ray
cluster can run code on it, so a cluster belongs on a private network. The Ray that :class:`RayEngine` starts listens on
127.0.0.1 only, requires a secret token, and has neither a dashboard nor usage reports.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from secrets import token_hex
from typing import Any, Generic

from subgnn.errors import UserError, extra_package
from subgnn.parallel.engine import EngineName, Failure, Job, LocalEngine, Result, Value, attempt
from subgnn.parallel.memory import LEAST, machine_memory, memory_limit, share, share_of_each

RETRIES = 3
"""How often a job is retried when its machine or process is lost; after that, it has failed."""
GPU_SHARE = 0.25
"""The part of a GPU that a job takes when it trains on one: four jobs share a GPU."""
_JOBS_PER_SLOT = 2  # so that a worker need not wait for its next job
_LEAST_STORE = 200_000_000
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # A cluster that does not answer is reported after 40 seconds instead of a quarter of an hour.
    "RAY_NUM_REDIS_GET_RETRIES": "1",
}


def open_engine(
    name: EngineName, *, address: str | None = None, processes: int | None = None, gpus: float = 0.0
) -> LocalEngine | RayEngine:
    """Open an engine by name, for a ``with`` block.

    Without the address of a Ray cluster, one is started on this machine and stopped again. The number of jobs at once
    is by default one for ``local``, and the number of cores for ``ray``, where each job takes a part of a GPU,
    ``gpus``.
    """
    if name == "ray":
        return RayEngine(address, processes=processes, gpus=gpus)
    if address is not None:
        raise UserError(f"'{address}' needs Ray", where="--address", hint="add --engine ray")
    return LocalEngine(processes or 1)


class RayEngine:
    """Workers of a Ray cluster, each with one job at a time and one core.

    A job's exception becomes a :class:`~subgnn.parallel.engine.Failure`. A job whose machine or process is lost runs
    again, up to :data:`RETRIES` times. A process that is connected to Ray already uses that connection, and keeps it.
    The address is ``HOST:PORT`` of the cluster's head, or ``auto``; this machine must be part of the cluster.
    """

    def __init__(self, address: str | None = None, *, processes: int | None = None, gpus: float = 0.0) -> None:
        self._ray = _import_ray(loopback=address is None)
        self._processes, self._gpus = processes, gpus
        # Per job; the memory of a cluster's machine is known only there.
        self._memory = share_of_each(processes or os.cpu_count() or 1) if address is None else None
        self._owned = not self._ray.is_initialized()
        if self._owned and address is None:
            self._start()
        elif self._owned:
            self._connect(address)
        elif address not in (None, "auto", self._ray.get_runtime_context().gcs_address):
            hint = "disconnect first: ray.shutdown()"
            raise UserError("this process is already connected to a different cluster", where="--address", hint=hint)
        # A job that needs more than any machine has would wait forever.
        resources = self._ray.cluster_resources()
        for name, needed in (("CPU", 1.0), ("GPU", gpus)):
            if resources.get(name, 0.0) < needed:
                self.close()
                hint = "start Ray with --num-cpus or --num-gpus, or choose another --device"
                raise UserError(f"the cluster has no {name}", where="--engine ray", hint=hint)

    def _start(self) -> None:
        token = _private_token()
        os.environ.update(token)
        try:
            self._ray.init(
                address="local",
                num_cpus=self._processes or os.cpu_count(),
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
        addresses = {node["NodeManagerAddress"] for node in self._ray.nodes()}
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
            self._ray.init(address=address, logging_level=logging.CRITICAL, log_to_driver=False)
        except (RuntimeError, ValueError, OSError, self._ray.exceptions.RayError) as error:
            words = " ".join(str(error).split())[:200]
            hint = (
                "is the cluster up (ray status)? this machine must be part of it, with the same versions of Python "
                "and Ray, and RAY_AUTH_MODE=token set where the cluster requires a token"
            )
            raise UserError(f"cannot connect to '{address}' ({words})", where="--address", hint=hint) from None

    @property
    def slots(self) -> int:
        """The number of jobs that the cluster can run at once now."""
        resources = self._ray.cluster_resources()
        slots = int(resources.get("CPU", 1.0))
        if self._gpus:
            slots = min(slots, int(resources.get("GPU", 0.0) / self._gpus))
        return max(1, slots if self._processes is None else min(slots, self._processes))

    @property
    def machines(self) -> set[str]:
        """The names of the machines that are connected now."""
        return {node["NodeManagerHostname"] for node in self._ray.nodes() if node["Alive"]}

    def share(self, value: Value) -> Placed[Value]:
        """Place a value in the cluster's memory, from which each machine takes one copy."""
        errors = self._ray.exceptions
        try:
            return Placed(self._ray.put(value))
        except (errors.ObjectStoreFullError, errors.OutOfDiskError):
            hint = "start Ray with a larger --object-store-memory; a graph in a bundle takes no space there"
            raise UserError("Ray's object store is full", where="--engine ray", hint=hint) from None

    def map(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[Job, Result | Failure]]:
        """Yield each job with its result or failure, in the order in which they end."""
        ray = self._ray
        remote = ray.remote(_run).options(
            num_cpus=1, num_gpus=self._gpus, max_retries=RETRIES, scheduling_strategy="SPREAD", name=function.__name__
        )
        waiting = list(reversed(jobs))
        running: dict[Any, Job] = {}
        try:
            while waiting or running:
                most = self._processes or _JOBS_PER_SLOT * self.slots
                while waiting and len(running) < most:
                    job = waiting.pop()
                    running[remote.remote(function, job, self._memory)] = job
                (reference,), _ = ray.wait(list(running), num_returns=1)
                yield running.pop(reference), self._result(reference)
        finally:  # after an interrupt, or when the caller needs no more results
            for reference in running:
                with suppress(Exception):
                    ray.cancel(reference, force=True)

    def _result(self, reference: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:  # for example, something a worker cannot import or send
            return Failure(f"a worker failed: {' '.join(str(error.cause).split())}", str(error))
        except errors.RayError as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return Failure(
                f"the job was lost on the cluster {RETRIES + 1} times: {' '.join(lines[0].split())}", str(error)
            )

    def close(self) -> None:
        """Leave the cluster; stop the Ray that was started here."""
        if self._owned:
            self._ray.shutdown()

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Placed(Generic[Value]):
    """A value in the memory of a cluster."""

    reference: Any

    def get(self) -> Value:
        """The value; its arrays are read in place and cannot be written."""
        import ray

        value: Value = ray.get(self.reference)
        return value


def _run(function: Callable[[Any], Any], job: Any, memory: int | None) -> Any:
    """Run one job in a worker, with one thread and its share of the machine's memory."""
    import numba

    numba.set_num_threads(1)
    available = machine_memory() * 2 // 3 // (os.cpu_count() or 1) if memory is None else memory
    with memory_limit(max(LEAST, available)):
        return attempt(function, job)


def _import_ray(*, loopback: bool) -> Any:
    """Import Ray without usage reports; with ``loopback``, a Ray started from here listens on 127.0.0.1 only."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if loopback:
        # Ray's switch for systems on which it is limited to one machine; without it, Ray replaces 127.0.0.1.
        os.environ.setdefault(_LOOPBACK, "0")
    with extra_package("ray", extra="ray", feature="--engine ray"):
        import ray
    return ray


@lru_cache(maxsize=1)
def _private_token() -> dict[str, str]:
    """A secret that keeps other users of this machine out of a Ray started here, unless the environment has one.

    Ray would make one itself, but leave it in the user's home. Versions without tokens ignore it.
    """
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return {}
    return {"RAY_AUTH_TOKEN": token_hex(32)}
