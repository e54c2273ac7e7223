"""The LSTM over walks on a CPU, in single precision: compiled loops between matrix products.

Two savings change no number beyond rounding: inputs are projected once for each distinct node, not for each step, and
everything between two matrix products is one pass over the data (:mod:`subgnn.kernels.lstm`). Directions and blocks of
walks run in threads that sleep while they wait.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from subgnn.kernels.lstm import step_backward, step_forward, sum_rows
from subgnn.models.subgnn.walks import Picking, Walks

_Task = Callable[[int, tuple[int, int]], None]
_MAX_SHAPES = 4  # whose workspaces are reused: the last ones
_MAX_THREADS = 8  # more cost more to feed than they save


def compiled_states(lstm: nn.LSTM, inputs: Tensor, walks: Walks) -> Tensor:
    """Hidden states of both directions at every step.

    Args:
        inputs: the vectors of ``walks.nodes``.

    Shapes:
        inputs: (R, d). returns: (steps, 2 d).
    """
    picking = walks.picking
    for layer in range(lstm.num_layers):
        both = _direction_weights(lstm, layer)
        projected = [torch.addmm(bias, inputs, w.T) for w, _, bias in both]
        states = [u for _, u, _ in both]
        inputs = _Layer.apply(*projected, *states, picking, walks.sizes)  # type: ignore[no-untyped-call]
        if layer + 1 < lstm.num_layers:
            inputs = nn.functional.dropout(inputs, lstm.dropout, lstm.training)
            picking = Picking(np.arange(len(inputs)))
    return inputs


def _direction_weights(lstm: nn.LSTM, layer: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each direction, the weights of the input and of the state, and the bias."""
    found = []
    for suffix in (f"_l{layer}", f"_l{layer}_reverse"):
        bias = getattr(lstm, "bias_ih" + suffix) + getattr(lstm, "bias_hh" + suffix)
        found.append((getattr(lstm, "weight_ih" + suffix), getattr(lstm, "weight_hh" + suffix), bias))
    return found


class _Workspace:
    """The arrays of one pass forwards and backwards, of both directions.

    Fresh memory costs more than the arithmetic on it, so arrays are reused: :meth:`reserve` takes unused ones, and they
    are free again after the pass and its gradient, which takes the place of the gates.

    Shapes:
        h, c, tanh_c: (2, steps, d). gates: (2, steps, 4 d). recurrent: (2, walks, 4 d). grad_h, grad_c: (2, walks, d)
        of one step.
    """

    _idle: ClassVar[dict[tuple[int, int, int], list[dict[str, Tensor]]]] = {}

    def __init__(self, arrays: dict[str, Tensor]) -> None:
        self.h, self.c, self.tanh_c, self.gates = (arrays[name] for name in ("h", "c", "tanh_c", "gates"))
        self.recurrent, self.grad_h, self.grad_c = (arrays[name] for name in ("recurrent", "grad_h", "grad_c"))

    @classmethod
    def reserve(cls, steps: int, walks: int, d: int) -> _Workspace:
        """Unused arrays of these shapes, or new ones."""
        idle = cls._idle.setdefault((steps, walks, d), [])
        while len(cls._idle) > _MAX_SHAPES:
            del cls._idle[next(iter(cls._idle))]
        try:
            arrays = idle.pop()
        except IndexError:
            arrays = {name: torch.empty(2, steps, d) for name in ("h", "c", "tanh_c")}
            arrays |= {name: torch.empty(2, walks, d) for name in ("grad_h", "grad_c")}
            arrays |= {"gates": torch.empty(2, steps, 4 * d), "recurrent": torch.empty(2, walks, 4 * d)}
        reserved = cls(arrays)
        weakref.finalize(reserved, idle.append, arrays).atexit = False
        return reserved


class _Layer(torch.autograd.Function):
    """All steps of both directions of one layer."""

    @staticmethod
    def forward(
        ctx: Any, ahead: Tensor, back: Tensor, w_ahead: Tensor, w_back: Tensor, picking: Picking, lengths: list[int]
    ) -> Tensor:
        of = _Workspace.reserve(sum(lengths), lengths[0] if lengths else 0, w_ahead.shape[1])
        blocks = _blocks(lengths)

        def run(reverse: int, block: tuple[int, int]) -> None:
            projected, w_state = (back, w_back) if reverse else (ahead, w_ahead)
            h, w_t, room = of.h[reverse], w_state.T, of.recurrent[reverse, slice(*block)]
            p, gates, c, tanh_c, states = (
                array.numpy() for array in (projected.detach(), of.gates[reverse], of.c[reverse], of.tanh_c[reverse], h)
            )
            for now, before in _order(lengths, block, bool(reverse)):
                recurrent = torch.mm(h[before], w_t, out=room[: before.stop - before.start]).numpy()
                step_forward(p, picking.rows[now], recurrent, c[before], gates[now], c[now], tanh_c[now], states[now])

        _in_threads([(run, reverse, block) for reverse in (0, 1) for block in blocks])
        ctx.save_for_backward(w_ahead, w_back)
        ctx.layout, ctx.spent = (of, picking, lengths, blocks, len(ahead)), False
        return torch.cat([of.h[0], of.h[1]], dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        w_ahead, w_back = ctx.saved_tensors
        of, picking, lengths, blocks, count = ctx.layout
        if ctx.spent:
            raise RuntimeError("the gradient of the compiled LSTM is computed once: it takes the place of the gates")
        ctx.spent = True
        d = w_ahead.shape[1]
        grad_w = {(reverse, block): torch.zeros_like(w_ahead) for reverse in (0, 1) for block in blocks}

        def run(reverse: int, block: tuple[int, int]) -> None:
            w_state = w_back if reverse else w_ahead
            h, of_gates, room = of.h[reverse], of.gates[reverse], of.grad_h[reverse, slice(*block)]
            gates, c, tanh_c, of_c = (
                array.numpy() for array in (of_gates, of.c[reverse], of.tanh_c[reverse], of.grad_c[reverse])
            )
            of_c = of_c[slice(*block)]
            of_h = grads[0][:, reverse * d : reverse * d + d].contiguous().numpy()
            after = of_h[:0]
            for now, before in reversed(_order(lengths, block, bool(reverse))):
                step_backward(of_h[now], after, gates[now], c[before], tanh_c[now], of_c[: now.stop - now.start])
                m = before.stop - before.start
                continued = of_gates[now.start : now.start + m]
                grad_w[reverse, block].addmm_(continued.T, h[before])
                after = torch.mm(continued, w_state, out=room[:m]).numpy()

        _in_threads([(run, reverse, block) for reverse in (0, 1) for block in blocks])
        of_w = [torch.stack([grad_w[reverse, block] for block in blocks]).sum(dim=0) for reverse in (0, 1)]
        if picking.by_row is None:
            # No copy: the projection of this layer's inputs reads them before the workspace is free again.
            return (*of.gates, *of_w, None, None)
        order, offsets = picking.by_row
        grad_projected = [grads[0].new_empty(count, 4 * d) for _ in range(2)]

        def gather(reverse: int, block: tuple[int, int]) -> None:
            values, out = of.gates[reverse].numpy(), grad_projected[reverse].numpy()
            sum_rows(values, order, offsets, *block, out)

        _in_threads([(gather, reverse, block) for reverse in (0, 1) for block in _even(count, len(blocks))])
        return (*grad_projected, *of_w, None, None)


def _even(items: int, parts: int) -> list[tuple[int, int]]:
    return list(pairwise(items * i // parts for i in range(parts + 1)))


def _blocks(lengths: list[int]) -> list[tuple[int, int]]:
    """Ranges of walks: with both directions, one for each thread."""
    return _even(lengths[0] if lengths else 0, max(1, min(torch.get_num_threads(), _MAX_THREADS) // 2))


def _order(lengths: list[int], block: tuple[int, int], reverse: bool) -> list[tuple[slice, slice]]:
    """For each step in the order of computation, the rows of the block's walks, and of the states they continue."""
    first = 0
    rows = []
    for length in lengths:
        rows.append((first + min(block[0], length), first + min(block[1], length)))
        first += length
    found, before = [], (0, 0)
    for begin, end in reversed(rows) if reverse else rows:
        continued = min(end - begin, before[1] - before[0])
        found.append((slice(begin, end), slice(before[0], before[0] + continued)))
        before = (begin, end)
    return found


@torch.no_grad()
def _in_threads(tasks: list[tuple[_Task, int, tuple[int, int]]]) -> None:
    if torch.get_num_threads() == 1:
        for run, reverse, block in tasks:
            run(reverse, block)
        return
    for done in [_pool().submit(torch.no_grad()(run), reverse, block) for run, reverse, block in tasks]:
        done.result()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Threads whose own matrix products use one thread each."""
    return ThreadPoolExecutor(_MAX_THREADS, "subgnn-lstm", initializer=torch.set_num_threads, initargs=(1,))
