"""One step of Adam for a large table of vectors, on a GPU.

torch's fused optimizer gives 65,536 numbers to each block of threads, so that a table of half a million runs on nine of
a GPU's processors; here every block has 1,024.

Only where Triton is installed (:mod:`subgnn.kernels.gpu`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from subgnn.kernels.gpu import jit, runs, tl, triton

_BLOCK = 1024


@jit(do_not_specialize=["count"])  # type: ignore[untyped-decorator]
def _move(  # type: ignore[no-untyped-def]
    parameter, gradient, mean, square, steps, rate, count,
    beta1: tl.constexpr, beta2: tl.constexpr, log_beta1: tl.constexpr, log_beta2: tl.constexpr, eps: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """Move a block of numbers; ``steps`` is the number of steps before this one."""
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    here = at < count
    t = tl.load(steps).to(tl.float64) + 1
    # In double precision: 1 - beta^t loses digits.
    rise1, rise2 = (1 - tl.exp(t * log_beta1)).to(tl.float32), (1 - tl.exp(t * log_beta2)).to(tl.float32)
    g = tl.load(gradient + at, mask=here, other=0.0)
    m = beta1 * tl.load(mean + at, mask=here, other=0.0) + (1 - beta1) * g
    v = beta2 * tl.load(square + at, mask=here, other=0.0) + (1 - beta2) * g * g
    x = tl.load(parameter + at, mask=here, other=0.0)
    x -= tl.load(rate) / rise1 * m / (tl.sqrt(v) / tl.sqrt(rise2) + eps)
    tl.store(mean + at, m, mask=here)
    tl.store(square + at, v, mask=here)
    tl.store(parameter + at, x, mask=here)


def move(
    parameter: Tensor,
    gradient: Tensor,
    moments: tuple[Tensor, Tensor],
    *,
    steps: Tensor,
    rate: Tensor,
    betas: tuple[float, float],
    eps: float,
) -> None:
    """Change a parameter and its moments in place.

    Args:
        moments: running means of the gradient and of its square.
        steps: number of steps before this one.

    Shapes:
        parameter, gradient, moments: one shape, contiguous. steps, rate: () float32, on the device.
    """
    with torch.cuda.device_of(parameter):  # type: ignore[no-untyped-call]
        _move[(triton.cdiv(parameter.numel(), _BLOCK),)](
            parameter, gradient, *moments, steps, rate, parameter.numel(),
            beta1=betas[0], beta2=betas[1], log_beta1=math.log(betas[0]), log_beta2=math.log(betas[1]), eps=eps,
            block=_BLOCK,
        )  # fmt: skip


@lru_cache
def runs_on(device: torch.device) -> bool:
    """Whether the kernel runs on a device."""

    def attempt() -> None:
        some = [torch.zeros(1, device=device) for _ in range(4)]
        zero = torch.zeros((), device=device)
        move(some[0], some[1], (some[2], some[3]), steps=zero, rate=zero, betas=(0.9, 0.999), eps=1e-8)

    return runs("the optimizer's kernel", "torch's", attempt)
