"""Devices for training: a single one, or one per rank, and what ranks do in turn or decide together.

A rank is one of the processes that train together. It knows its place by the variables that torchrun sets (RANK,
WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT).
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from inspect import signature
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed, nn
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from subgnn.models.examples import Outputs, Source, outputs_of
from subgnn.models.subgnn.layer import BatchNorm
from subgnn.parallel.device import OneDevice
from subgnn.task import TaskName, task_of

if TYPE_CHECKING:
    from lightning.fabric import Fabric as ManyDevices

Fabric: TypeAlias = "OneDevice | ManyDevices"
"""The devices of a training."""

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


def current_ranks() -> Ranks | None:
    """The ranks that torchrun started this process among; None where it trains alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 or "RANK" not in os.environ:
        return None
    # Without these variables, every machine has one process.
    local_rank = int(os.environ.setdefault("LOCAL_RANK", "0"))
    local_size = int(os.environ.setdefault("LOCAL_WORLD_SIZE", "1"))
    return Ranks(int(os.environ["RANK"]), size, local_rank, local_size)


def make_fabric(device: str, ranks: Ranks | None = None) -> Fabric:
    """One device, or this rank's among several, which :func:`in_turn` connects; ``device`` is auto, cpu or cuda."""
    if ranks is None:
        return OneDevice(device)
    from lightning.fabric import Fabric as ManyDevices
    from lightning.fabric.plugins.environments import TorchElasticEnvironment
    from lightning.fabric.strategies import DDPStrategy

    for name in ("lightning", "lightning.fabric"):  # each sets its own level when it is imported
        logging.getLogger(name).setLevel(logging.ERROR)
    # Some weights may be unused, as those of a layer whose output nothing reads. Buffers are equal on
    # all ranks anyway, and ranks that evaluate unequal numbers of batches must not wait for each other's.
    newer = "forward_sync_buffers" in signature(DistributedDataParallel).parameters
    buffers = {"forward_sync_buffers" if newer else "broadcast_buffers": False}
    strategy = DDPStrategy(timeout=TIMEOUT, find_unused_parameters=True, **buffers)
    of_each, machines, plugins = ranks.local_size, ranks.size // ranks.local_size, [TorchElasticEnvironment()]
    return ManyDevices(accelerator=device, devices=of_each, num_nodes=machines, strategy=strategy, plugins=plugins)


@contextmanager
def in_turn(fabric: Any, ranks: Ranks | None) -> Iterator[None]:
    """Run the block on the first rank of each machine, then on the others, which find its results in the cache.

    The ranks are connected at the end of the block, not before: the first may take longer than :data:`TIMEOUT`.
    """
    if ranks is None:
        yield
        return
    first = ranks.local_rank == 0
    store = None
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True):  # torchrun gives it to its ranks from the start
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = TCPStore(host, port, is_master=False, timeout=TIMEOUT)
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
    if "OMP_NUM_THREADS" not in os.environ:  # unless the user has set it, the ranks share this machine's cores
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = max(1, cores // ranks.local_size)
        torch.set_num_threads(threads)
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


@dataclass(frozen=True, slots=True)
class Share:
    """The subgraphs from begin up to end of a batch of ``total``."""

    begin: int
    end: int
    total: int

    @property
    def whole(self) -> bool:
        return self.end - self.begin == self.total


def share_of(total: int, rank: int, size: int) -> Share:
    """The share of a rank: consecutive subgraphs, in numbers that differ by one at most between ranks.

    A batch with fewer subgraphs than ranks goes to every rank whole, so that none is without and all agree.

    Example:
        >>> [share_of(5, rank, 2) for rank in range(2)]
        [Share(begin=0, end=3, total=5), Share(begin=3, end=5, total=5)]
        >>> share_of(2, 2, 3)
        Share(begin=0, end=2, total=2)
    """
    if total < size:
        return Share(0, total, total)
    least, longer = divmod(total, size)
    begin = rank * least + min(rank, longer)
    return Share(begin, begin + least + (rank < longer), total)


def outputs_over_ranks(fabric: Fabric) -> Outputs:
    """As :func:`~subgnn.models.examples.outputs_of`; each rank computes a share, and has the outputs of all."""

    def gathered(network: Any, inputs: Source, rows: NDArray[np.int64], batch_size: int) -> Tensor:
        share = share_of(len(rows), fabric.global_rank, fabric.world_size)
        outputs = outputs_of(network, inputs, rows[share.begin : share.end], batch_size)
        if share.whole:
            return outputs
        placed = outputs.new_zeros(len(rows), outputs.shape[1])
        placed[share.begin : share.end] = outputs
        found: Tensor = fabric.all_reduce(placed, reduce_op="sum")
        return found

    return outputs_of if fabric.world_size == 1 else gathered


def part_of_loss(share: Share, targets: Tensor, *, task: TaskName, weights: Tensor | None, size: int) -> Tensor | float:
    """The factor of the mean loss of a share; over all ranks, the products add up to the loss of the batch.

    Weighted cross entropy divides by the sum of the weights. ``targets`` are those of the whole batch.
    """
    if share.whole:
        return 1 / size
    if weights is None or not task_of(task).one_class:
        return (share.end - share.begin) / share.total
    each = weights[targets.long()]
    return each[share.begin : share.end].sum() / each.sum()


class GlobalDropout(nn.Dropout):
    """Dropout of the rows of a share, with the mask that one process would draw for the whole batch."""

    share: Share | None = None

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or self.share is None or self.share.whole:
            return super().forward(input)
        mask = functional.dropout(input.new_ones(self.share.total, *input.shape[1:]), self.p)
        return input * mask[self.share.begin : self.share.end]


class GlobalBatchNorm(BatchNorm):
    """Batch norm by the mean and variance of the whole batch, added up over ranks; torch's own needs GPUs."""

    share: Share | None = None

    def forward(self, h: Tensor, present: Tensor | None = None) -> Tensor:
        self.total = None if self.share is None or self.share.whole else _SumOverRanks.apply
        return super().forward(h, present)


class _SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        # Every rank's loss depends on the sum, so the gradients of all ranks add up.
        return _SumOverRanks.forward(ctx, grads[0])


def use_global_batch(model: nn.Module) -> None:
    """Replace, in place, the modules of a model that depend on the whole batch; the weights keep their names."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Dropout:
                module.add_module(name, GlobalDropout(child.p))
            elif type(child) is nn.BatchNorm1d or type(child) is BatchNorm:
                norm = GlobalBatchNorm(child.num_features, eps=child.eps, momentum=child.momentum)
                norm.load_state_dict(child.state_dict())
                module.add_module(name, norm.to(child.weight.device))
