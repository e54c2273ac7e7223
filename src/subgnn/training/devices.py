"""The devices of a training: one, or one of several ranks, and what ranks do in turn or decide together.

A rank is one of the processes that train together. It knows its place by the variables that torchrun sets (RANK,
WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from inspect import signature
from itertools import count

import numba
import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments import LightningEnvironment, TorchElasticEnvironment
from lightning.fabric.strategies import DDPStrategy
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.nn.parallel import DistributedDataParallel

TIMEOUT = timedelta(minutes=30)
"""How long a rank waits for the others before they count as lost; one that has died is noticed at once."""
_LONGEST_TURN = timedelta(days=7)
_turns = count()


@dataclass(frozen=True, slots=True)
class Ranks:
    """The place of this process among those that train together."""

    rank: int
    size: int
    local_rank: int
    local_size: int

    @property
    def nodes(self) -> int:
        """The number of machines."""
        return self.size // self.local_size


def current_ranks() -> Ranks | None:
    """The ranks that torchrun started this process among; None where it trains alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 or "RANK" not in os.environ:
        return None
    # Without these variables, every machine has one process.
    local_rank = int(os.environ.setdefault("LOCAL_RANK", "0"))
    local_size = int(os.environ.setdefault("LOCAL_WORLD_SIZE", "1"))
    return Ranks(int(os.environ["RANK"]), size, local_rank, local_size)


def quiet_lightning() -> None:
    """Hide Lightning's advice to its own users until the end of the process."""
    for name in ("lightning", "lightning.fabric"):  # each sets its own level when it is imported
        logging.getLogger(name).setLevel(logging.ERROR)


def make_fabric(device: str, ranks: Ranks | None = None) -> Fabric:
    """Set up one device, or this rank's among several, which :func:`in_turn` connects.

    Args:
        device: ``auto``, ``cpu`` or ``cuda``.
    """
    if ranks is None:
        # Explicit, so that a training on one device inside another program's torchrun stays on one.
        return Fabric(accelerator=device, devices=1, plugins=[LightningEnvironment()])
    # Some weights may be unused, as those of a layer whose output nothing reads. Buffers are equal on
    # all ranks anyway, and ranks that evaluate unequal numbers of batches must not wait for each other's.
    newer = "forward_sync_buffers" in signature(DistributedDataParallel).parameters
    buffers = {"forward_sync_buffers" if newer else "broadcast_buffers": False}
    strategy = DDPStrategy(timeout=TIMEOUT, find_unused_parameters=True, **buffers)
    return Fabric(
        accelerator=device,
        devices=ranks.local_size,
        num_nodes=ranks.nodes,
        strategy=strategy,
        plugins=[TorchElasticEnvironment()],
    )


@contextmanager
def in_turn(fabric: Fabric, ranks: Ranks | None) -> Iterator[None]:
    """Run the block on the first rank of each machine, then on the others, which find its results in the cache.

    The ranks are connected at the end of the block, not before: the first may take longer than :data:`TIMEOUT`.
    """
    if ranks is None:
        yield
        return
    first = ranks.local_rank == 0
    store = _store()
    done = f"subgnn/turn/{os.environ.get('GROUP_RANK', ranks.rank)}/{next(_turns)}"
    if not first:
        if store is not None:
            store.wait([done], _LONGEST_TURN)
        fabric.launch()
        fabric.barrier()
    yield
    if first:
        if store is not None:
            store.set(done, "")
        fabric.launch()
        fabric.barrier()
    _share_cores(ranks.local_size)


def disconnect(fabric: Fabric) -> None:
    """Part from the other ranks; a process that ends while it is connected may be aborted."""
    fabric.barrier()
    torch.distributed.destroy_process_group()


def _store() -> TCPStore | None:
    """The key-value store that torchrun provides to its ranks from the start, if there is one."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != str(True):
        return None
    return TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=TIMEOUT)


def _share_cores(local_size: int) -> None:
    """Divide this machine's cores among its ranks, unless the user has set a number of threads."""
    if "OMP_NUM_THREADS" in os.environ:
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(1, cores // local_size)
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


def any_rank(fabric: Fabric, value: bool) -> bool:
    """Whether a value is true on any rank; every rank must call this."""
    if fabric.world_size == 1:
        return value
    return bool(fabric.all_reduce(torch.tensor(float(value), device=fabric.device), reduce_op="sum") > 0)
