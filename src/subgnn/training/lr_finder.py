"""A learning-rate range test: train a copy with a rising rate, and take the rate at which the loss falls fastest.

Rates rise exponentially from 1e-6 to 1. The loss of each step is smoothed by a bias-corrected exponential mean. The
test ends when the smoothed loss is not finite, or four times its minimum. The network itself, the optimizer and all
random state stay as they were.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from subgnn.rng import stream, stream_key
from subgnn.training.loop import batches
from subgnn.training.optimizer import adam, set_rate
from subgnn.training.steps import Fitting, Steps

LOWEST, HIGHEST, STEPS = 1e-6, 1.0, 100
_SMOOTHING = 0.9
_DIVERGED = 4.0
_SKIP = 10  # steps ignored at either end: the mean needs some values, and divergence begins before it shows


def find_rate(model: nn.Module, fitting: Fitting) -> float:
    """Find the rate of the steepest descent; ``settings.lr`` where the loss never falls.

    Args:
        model: untrained; it is copied.
    """
    examples, settings, fabric = fitting.examples, fitting.settings, fitting.fabric
    probe = copy.deepcopy(model)
    before = copy.deepcopy(fabric.strategy.precision.state_dict())
    wrapped, optimizer = fabric.setup(probe, adam(probe, settings))
    step = Steps(wrapped, optimizer, fitting)
    rates = np.geomspace(LOWEST, HIGHEST, STEPS)
    losses: list[float] = []
    wrapped.train()
    with torch.random.fork_rng(devices=[fabric.device] if fabric.device.type == "cuda" else []):
        torch.manual_seed(stream_key(fitting.seed, "lr_finder/dropout"))
        for rate, rows in zip(rates, _batches(fitting), strict=False):
            set_rate(optimizer, float(rate))
            losses.append(float(fabric.all_reduce(step(examples.inputs, rows), reduce_op="sum")))
            if diverged(smooth(losses)):
                break
    fabric.strategy.precision.load_state_dict(before)
    steepest = steepest_step(smooth(losses))
    return settings.lr if steepest is None else float(rates[steepest])


def _batches(fitting: Fitting) -> Iterator[NDArray[np.int64]]:
    """Endless batches of the training split, in a new order for each pass."""
    draws = stream(fitting.seed, "lr_finder/batches")
    while True:
        yield from batches(draws.permutation(fitting.examples.train), fitting.batch_size)


def smooth(losses: list[float]) -> NDArray[np.float64]:
    """s_t = (b s_(t-1) + (1 - b) l_t), divided by 1 - b^t."""
    mean, out = 0.0, []
    for step, value in enumerate(losses, start=1):
        mean = _SMOOTHING * mean + (1 - _SMOOTHING) * value
        out.append(mean / (1 - _SMOOTHING**step))
    return np.array(out)


def diverged(smoothed: NDArray[np.float64]) -> bool:
    """Whether the last value is not finite, or more than four times the minimum."""
    last = float(smoothed[-1])
    return not math.isfinite(last) or last > _DIVERGED * float(smoothed.min())


def steepest_step(smoothed: NDArray[np.float64]) -> int | None:
    """The step of the steepest fall over the logarithm of the rate; None where it never falls."""
    inner = smoothed[_SKIP : len(smoothed) - _SKIP]
    if len(inner) < 2:
        return None
    slopes = np.gradient(inner)
    steepest = int(np.argmin(slopes))
    return _SKIP + steepest if slopes[steepest] < 0 else None
