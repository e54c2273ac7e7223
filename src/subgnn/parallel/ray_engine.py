"""Jobs over the machines of a Ray cluster, or over a Ray that is started for them on this machine.

Ray retries jobs whose machine or process is lost, on another one; what was placed by ``share`` is kept once on each
machine, in shared memory, where arrays are read without a copy.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic

from subgnn.errors import UserError
from subgnn.parallel.engine import EngineName, Failure, Job, LocalEngine, Result, Value, attempt, set_variables
from subgnn.parallel.memory import LEAST, machine_memory, share, share_of_each, within
from subgnn.parallel.ray_start import LOOPBACK, check_answers, import_ray, own_token

RETRIES = 3
"""How often a job is run again whose machine or process was lost; the one after is told as a failure."""
GPU_SHARE = 0.25
"""The part of a GPU that a run takes where it trains on one: four runs share it."""
_AHEAD = 2  # jobs handed out for each slot, so that a worker need not wait for the next one
_LEAST_STORE = 200_000_000


def open_engine(
    name: EngineName, *, address: str | None = None, processes: int | None = None, gpus: float = 0.0
) -> LocalEngine | RayEngine:
    """An engine by name, for a ``with`` block.

    Args:
        address: of a Ray cluster; without it, one is started on this machine and stopped again.
        processes: jobs at once; by default one for ``local``, and as many as there are cores for ``ray``.
        gpus: the part of a GPU that each job takes; for ``ray``.

    Raises:
        UserError: for an address with ``local``, a cluster that does not answer, or one without the processors asked.
        MissingExtra: where Ray is not installed.

    Example:
        >>> with open_engine("local") as engine:
        ...     dict(engine.map(abs, [-1, -2]))
        {-1: 1, -2: 2}
    """
    if name == "ray":
        return RayEngine(address, processes=processes, gpus=gpus)
    if address is not None:
        raise UserError(f"'{address}'", where="--address", hint="an address is of a Ray cluster: add --engine ray")
    return LocalEngine(processes or 1)


class RayEngine:
    """Workers of a Ray cluster, each with one job at a time and one core.

    A job's exception is a :class:`~subgnn.parallel.engine.Failure`. One whose machine or process is lost is run again,
    up to :data:`RETRIES` times. Where this process is connected to Ray already, that connection is used, and kept.

    Args:
        address: ``HOST:PORT`` of the cluster's head, or ``auto``; this machine must be one of the cluster's. Without
            it, a Ray is started here, and stopped by ``close`` or at the end of a ``with`` block.
        processes: jobs at once, at most; by default as many as there are cores.
        gpus: the part of a GPU that each job takes.
    """

    def __init__(self, address: str | None = None, *, processes: int | None = None, gpus: float = 0.0) -> None:
        self._ray = import_ray(loopback=address is None)
        self._processes, self._gpus = processes, gpus
        # Of each job; how much a machine of a cluster has is known there alone.
        self._memory = share_of_each(processes or os.cpu_count() or 1) if address is None else None
        self._owned = not self._ray.is_initialized()
        if self._owned:
            self._connect(address)
        elif address not in (None, "auto", self._ray.get_runtime_context().gcs_address):
            hint = "leave that one first: ray.shutdown()"
            raise UserError("this process is connected to another cluster", where="--address", hint=hint)
        try:
            self._check_resources()
        except UserError:
            self.close()
            raise

    def _connect(self, address: str | None) -> None:
        options: dict[str, Any] = {"logging_level": logging.CRITICAL, "log_to_driver": False}
        if address is None:
            with set_variables(own_token()):
                self._ray.init(
                    address="local",
                    num_cpus=self._processes or os.cpu_count(),
                    include_dashboard=False,
                    object_store_memory=max(_LEAST_STORE, share(0.1)),
                    _node_ip_address="127.0.0.1",
                    **options,
                )
            self._check_private()
            return
        check_answers(address)
        try:
            self._ray.init(address=address, **options)
        except (RuntimeError, ValueError, OSError, self._ray.exceptions.RayError) as error:
            words = " ".join(str(error).split())[:200]
            hint = (
                "this machine must be one of the cluster's, with the same versions of Python and Ray, "
                "and RAY_AUTH_MODE=token set where the cluster asks for a token"
            )
            raise UserError(f"no connection to '{address}' ({words})", where="--address", hint=hint) from None

    def _check_private(self) -> None:
        """Ray reads where to listen when it is first imported, which may have been before."""
        places = {node["NodeManagerAddress"] for node in self._ray.nodes()}
        if places != {"127.0.0.1"}:
            self.close()
            hint = f"set {LOOPBACK}=0 before Ray is imported, or start a cluster yourself and give its address"
            raise UserError(f"Ray would listen on {', '.join(sorted(places))}", where="--engine ray", hint=hint)

    def _check_resources(self) -> None:
        """A job that asks for what no machine has would wait for ever."""
        have = self._ray.cluster_resources()
        for name, needed in (("CPU", 1.0), ("GPU", self._gpus)):
            if have.get(name, 0.0) < needed:
                hint = "start Ray with --num-cpus or --num-gpus, or choose another --device"
                raise UserError(f"the cluster has no {name}", where="--engine ray", hint=hint)

    @property
    def slots(self) -> int:
        """How many jobs run at once: as the cluster is now."""
        have = self._ray.cluster_resources()
        slots = int(have.get("CPU", 1.0))
        if self._gpus:
            slots = min(slots, int(have.get("GPU", 0.0) / self._gpus))
        return max(1, slots if self._processes is None else min(slots, self._processes))

    @property
    def machines(self) -> set[str]:
        """The names of the machines that are there now."""
        return {node["NodeManagerHostname"] for node in self._ray.nodes() if node["Alive"]}

    def share(self, value: Value) -> Placed[Value]:
        """Place a value in the cluster's memory, from which each machine takes one copy.

        Raises:
            UserError: where there is no room for it.
        """
        errors = self._ray.exceptions
        try:
            return Placed(self._ray.put(value))
        except (errors.ObjectStoreFullError, errors.OutOfDiskError):
            hint = "start Ray with a larger --object-store-memory; the graph of a bundle needs no room there"
            raise UserError("Ray's object store is full", where="--engine ray", hint=hint) from None

    def map(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[Job, Result | Failure]]:
        """Each job with its result, or why it has none, in the order in which they end."""
        ray = self._ray
        remote = ray.remote(_run).options(
            num_cpus=1, num_gpus=self._gpus, max_retries=RETRIES, scheduling_strategy="SPREAD", name=function.__name__
        )
        waiting = list(reversed(jobs))
        under_way: dict[Any, Job] = {}
        try:
            while waiting or under_way:
                most = self._processes or _AHEAD * self.slots
                while waiting and len(under_way) < most:
                    job = waiting.pop()
                    under_way[remote.remote(function, job, self._memory)] = job
                (reference,), _ = ray.wait(list(under_way), num_returns=1)
                yield under_way.pop(reference), _result(reference)
        finally:  # where nobody wants the rest, or it was interrupted
            for reference in under_way:
                with suppress(Exception):
                    ray.cancel(reference, force=True)

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
        """The value; its arrays are read where they are, and cannot be written."""
        import ray

        value: Value = ray.get(self.reference)
        return value


def _result(reference: Any) -> Any:
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # for example, what a worker cannot import or send
        return Failure(f"a worker failed: {' '.join(str(error.cause).split())}", str(error))
    except ray.exceptions.RayError as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Failure(f"lost on the cluster, {RETRIES + 1} times: {' '.join(lines[0].split())}", str(error))


def _run(function: Callable[[Any], Any], job: Any, memory: int | None) -> Any:
    """What a worker does: one job, with one thread and its share of the machine's memory."""
    import numba

    numba.set_num_threads(1)
    its = machine_memory() * 2 // 3 // (os.cpu_count() or 1) if memory is None else memory
    with within(max(LEAST, its)):
        return attempt(function, job)
