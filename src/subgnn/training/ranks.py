"""Which of the processes that train together this one is, and what they do in turn or agree on.

A rank is known by the variables that torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
MASTER_PORT); the ranks that ``--devices`` starts are given the same ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

import numba
import torch
from lightning.fabric import Fabric
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from subgnn.errors import UserError

TIMEOUT = timedelta(minutes=30)
"""How long a rank waits for the others before it takes them for lost; one that has died is noticed at once."""
_PATIENCE = timedelta(days=7)
_turns = count()


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those that train together."""

    rank: int
    size: int
    local_rank: int
    local_size: int

    @property
    def nodes(self) -> int:
        """The number of machines."""
        return self.size // self.local_size


def joined(devices: int | None) -> Ranks | None:
    """The ranks this process is one of; None where it trains alone, or is to start them.

    Args:
        devices: what the user asked for. 1 is alone, whatever the environment says; None is what it says.

    Raises:
        UserError: where the environment has another number of ranks on this machine.
    """
    if devices is not None and devices < 1:
        raise UserError(f"{devices} devices", where="--devices", hint="accepted: a whole number from 1")
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if devices == 1 or size == 1 or "RANK" not in os.environ:
        return None
    # Where nobody says how many processes a machine has, it has one.
    local_rank = int(os.environ.setdefault("LOCAL_RANK", "0"))
    local_size = int(os.environ.setdefault("LOCAL_WORLD_SIZE", "1"))
    if devices not in (None, local_size):
        what = f"{devices} devices, but {local_size} processes were started on this machine (LOCAL_WORLD_SIZE)"
        raise UserError(
            what, where="--devices", hint="leave --devices out under torchrun, whose --nproc-per-node it is"
        )
    return Ranks(int(os.environ["RANK"]), size, local_rank, local_size)


@contextmanager
def in_turn(fabric: Fabric, ranks: Ranks | None) -> Iterator[None]:
    """Let the first rank of each machine do something, then the others, which find its result in the cache.

    The ranks are connected when this ends, not before: however long the first takes, nobody's patience ends.
    """
    if ranks is None:
        yield
        return
    first = ranks.local_rank == 0
    store = _store()
    done = f"subgnn/turn/{os.environ.get('GROUP_RANK', ranks.rank)}/{next(_turns)}"
    if not first:
        if store is not None:
            store.wait([done], _PATIENCE)
        fabric.launch()
        fabric.barrier()
    yield
    if first:
        if store is not None:
            store.set(done, "")
        fabric.launch()
        fabric.barrier()
    _share_cores(ranks.local_size)


def _store() -> TCPStore | None:
    """What torchrun and ``--devices`` keep for their ranks from the start, where there is one."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != str(True):
        return None
    return TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=TIMEOUT)


def _share_cores(local_size: int) -> None:
    """Divide this machine's cores among its ranks, unless the user did."""
    if "OMP_NUM_THREADS" in os.environ:
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(1, cores // local_size)
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


def on_any(fabric: Fabric, value: bool) -> bool:
    """Whether it is true on any rank; all of them have to ask."""
    if fabric.world_size == 1:
        return value
    return bool(fabric.all_reduce(torch.tensor(float(value), device=fabric.device), reduce_op="sum") > 0)
