"""The device and the precision a run computes in.

Some sandboxes announce a CPU's AMX instructions and then forbid them; torch's products in bfloat16 end the process
there. ``ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16`` in the environment keeps it from using them.
"""

from __future__ import annotations

import logging
from inspect import signature
from typing import Any

from lightning.fabric import Fabric
from lightning.fabric.plugins import MixedPrecision
from lightning.fabric.plugins.environments import LightningEnvironment, TorchElasticEnvironment
from lightning.fabric.strategies import DDPStrategy
from torch.nn.parallel import DistributedDataParallel

from subgnn.errors import UserError
from subgnn.training.ranks import TIMEOUT, Ranks


def quiet_lightning() -> None:
    """Keep Lightning's advice to its users off the screen of ours, until the end of the process."""
    for name in ("lightning", "lightning.fabric"):  # each sets a level of its own when it is imported
        logging.getLogger(name).setLevel(logging.ERROR)


class AutocastAlone(MixedPrecision):  # type: ignore[misc]
    """Mixed precision that leaves a batch as it is.

    Lightning's own rounds the whole input to half precision first; distances would lose digits that every operation
    that needs them can still have.
    """

    def convert_input(self, data: Any) -> Any:
        """The data itself."""
        return data


def make_fabric(device: str, precision: str, ranks: Ranks | None = None) -> Fabric:
    """One device, or this rank's among many; many are connected by :func:`~subgnn.training.ranks.in_turn`.

    Args:
        device: ``auto``, ``cpu`` or ``cuda``.
        precision: ``32-true``, ``bf16-mixed`` or ``16-mixed``.

    Raises:
        UserError: for 16-mixed on a CPU.
    """
    fabric = _fabric(device, ranks)
    if precision == "32-true":
        return fabric
    kind = fabric.device.type
    if precision == "16-mixed" and kind == "cpu":
        hint = "accepted on a CPU: 32-true, bf16-mixed; or compute elsewhere with --device cuda"
        raise UserError("16-mixed needs a GPU", where="training.precision", hint=hint)
    return _fabric(device, ranks, AutocastAlone(precision, device=kind))


def _fabric(device: str, ranks: Ranks | None, *plugins: MixedPrecision) -> Fabric:
    if ranks is None:
        # Said, so that a run of its own inside somebody's torchrun stays one.
        return Fabric(accelerator=device, devices=1, plugins=[LightningEnvironment(), *plugins])
    # Weights may be without use, as in all layers but the last with layer_aggregation = "last". Buffers are equal
    # on all ranks as it is, and ranks that judge unequal numbers of batches must not wait for each other in them.
    newer = "forward_sync_buffers" in signature(DistributedDataParallel).parameters
    buffers = {"forward_sync_buffers" if newer else "broadcast_buffers": False}
    strategy = DDPStrategy(timeout=TIMEOUT, find_unused_parameters=True, **buffers)
    return Fabric(
        accelerator=device,
        devices=ranks.local_size,
        num_nodes=ranks.nodes,
        strategy=strategy,
        plugins=[TorchElasticEnvironment(), *plugins],
    )
