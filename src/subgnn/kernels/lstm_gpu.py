"""All steps of one bidirectional layer of an LSTM over many walks, on a GPU: one kernel forwards, one backwards.

A program computes one direction of a block of walks and keeps their states in registers from the first step to the
last; the equations are those of :mod:`subgnn.kernels.lstm`. The second direction reads each walk from its end. Nothing
is added up by atomic operations, so results are the same in every run.

Needs Triton, which comes with builds of torch for GPUs.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

MAX_WIDTH = 64
"""Widest state: the weights of one direction must fit into the memory of a processor, 64 KiB of up to 227 here."""


class Launch(NamedTuple):
    """How kernels are divided, and how they multiply.

    Attributes:
        walks: in a program; at least 16.
        warps: of a program.
        precision: single precision on plain units, or split into three products of a tensor core.
    """

    walks: int = 16
    warps: int = 8
    precision: Literal["ieee", "tf32x3"] = "tf32x3"


class Layout(NamedTuple):
    """Where walks lie: step t of walk w in row first[t] + w, walks in order of falling length.

    Shapes:
        first: (longest,) int64. lengths: (walks,) int64. order: (walks,) int64, the number of each walk if those of a
        patch stand together. per_patch: the number of walks of a patch.
    """

    first: Tensor
    lengths: Tensor
    order: Tensor
    per_patch: int


class Kept(NamedTuple):
    """What a gradient needs of the pass forwards, in the order of steps, of both directions side by side.

    Shapes:
        before: (steps, 2 d), the states before each step. cells: (steps, 2 d). gates: (steps, 8 d).
    """

    before: Tensor
    cells: Tensor
    gates: Tensor


@triton.jit
def _tanh(x):  # type: ignore[no-untyped-def]
    """The hyperbolic tangent, to rounding also near 0 (the polynomial of Cephes)."""
    square = x * x
    p = (((-5.70498872745e-3 * square + 2.06390887954e-2) * square - 5.37397155531e-2) * square + 1.33314422036e-1) * (
        square
    ) - 3.33332819422e-1
    size = tl.abs(x)
    far = 1 - 2 / (tl.exp(2 * size) + 1)
    return tl.where(size < 0.625, p * square * x + x, tl.where(x < 0, -far, far))


@triton.jit(do_not_specialize=["walks"])  # type: ignore[untyped-decorator]
def _forward(  # type: ignore[no-untyped-def]
    projected, places, weights, first, lengths, order, states, before, cells, gates, walks, d,
    block: tl.constexpr, width: tl.constexpr, picked: tl.constexpr, summed: tl.constexpr, keep: tl.constexpr,
    precision: tl.constexpr,
):  # fmt: skip
    """One direction of a block of walks.

    If ``picked``, step s is projected in row places[s]. ``states`` are those after every step or, if ``summed``, the
    sums over each walk. ``before``, ``cells`` and ``gates`` are written if ``keep``.
    """
    direction = tl.program_id(1)
    walk = tl.program_id(0) * block + tl.arange(0, block)
    column = tl.arange(0, width)
    length = tl.load(lengths + walk, mask=walk < walks, other=0)
    # U_g is (d, d), from state k to gate j; it is stored as row g d + j, column k.
    u = weights + direction * 4 * d * d + column[None, :] * d + column[:, None]
    inside = (column < d)[None, :] & (column < d)[:, None]
    gate = d * d
    u_i = tl.load(u, mask=inside, other=0.0)
    u_f = tl.load(u + gate, mask=inside, other=0.0)
    u_g = tl.load(u + 2 * gate, mask=inside, other=0.0)
    u_o = tl.load(u + 3 * gate, mask=inside, other=0.0)
    h = tl.zeros((block, width), tl.float32)
    c = tl.zeros((block, width), tl.float32)
    total = tl.zeros((block, width), tl.float32)
    for t in range(tl.max(length, axis=0)):
        here = (t < length)[:, None] & (column < d)[None, :]
        place = tl.where(direction == 0, t, length - 1 - t)
        row = tl.load(first + place, mask=t < length, other=0) + walk
        source = tl.load(places + row, mask=t < length, other=0) if picked else row
        at = source[:, None] * (8 * d) + direction * 4 * d + column[None, :]
        p_i = tl.load(projected + at, mask=here, other=0.0)
        p_f = tl.load(projected + at + d, mask=here, other=0.0)
        p_g = tl.load(projected + at + 2 * d, mask=here, other=0.0)
        p_o = tl.load(projected + at + 3 * d, mask=here, other=0.0)
        i = tl.sigmoid(tl.dot(h, u_i, p_i, input_precision=precision))
        f = tl.sigmoid(tl.dot(h, u_f, p_f, input_precision=precision))
        g = _tanh(tl.dot(h, u_g, p_g, input_precision=precision))
        o = tl.sigmoid(tl.dot(h, u_o, p_o, input_precision=precision))
        out = row[:, None] * (2 * d) + direction * d + column[None, :]
        if keep:
            tl.store(before + out, h, mask=here)
        c = f * c + i * g
        h = o * _tanh(c)
        if summed:
            total += tl.where(here, h, 0.0)
        else:
            tl.store(states + out, h, mask=here)
        if keep:
            at = row[:, None] * (8 * d) + direction * 4 * d + column[None, :]
            tl.store(cells + out, c, mask=here)
            tl.store(gates + at, i, mask=here)
            tl.store(gates + at + d, f, mask=here)
            tl.store(gates + at + 2 * d, g, mask=here)
            tl.store(gates + at + 3 * d, o, mask=here)
    if summed:
        number = tl.load(order + walk, mask=walk < walks, other=0)
        out = number[:, None] * (2 * d) + direction * d + column[None, :]
        tl.store(states + out, total, mask=(walk < walks)[:, None] & (column < d)[None, :])


@triton.jit(do_not_specialize=["walks", "per_patch"])  # type: ignore[untyped-decorator]
def _backward(  # type: ignore[no-untyped-def]
    of_states, weights, first, lengths, order, cells, gates, of_gates, of_biases, walks, per_patch, d,
    block: tl.constexpr, width: tl.constexpr, summed: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """Gradients of the gates' sums, and the part of this block in that of the bias.

    ``of_states`` are gradients of the states after every step or, if ``summed``, of the sums over each patch.
    """
    number, direction = tl.program_id(0), tl.program_id(1)
    walk = number * block + tl.arange(0, block)
    column = tl.arange(0, width)
    length = tl.load(lengths + walk, mask=walk < walks, other=0)
    # U_g transposed, from gate j to state k, as it is stored.
    u = weights + direction * 4 * d * d + column[:, None] * d + column[None, :]
    inside = (column < d)[None, :] & (column < d)[:, None]
    gate = d * d
    u_i = tl.load(u, mask=inside, other=0.0)
    u_f = tl.load(u + gate, mask=inside, other=0.0)
    u_g = tl.load(u + 2 * gate, mask=inside, other=0.0)
    u_o = tl.load(u + 3 * gate, mask=inside, other=0.0)
    if summed:
        patch = tl.load(order + walk, mask=walk < walks, other=0) // per_patch
        out = patch[:, None] * (2 * d) + direction * d + column[None, :]
        of_each = tl.load(of_states + out, mask=(walk < walks)[:, None] & (column < d)[None, :], other=0.0)
    # All are 0 for walks that have no step t.
    of_h = tl.zeros((block, width), tl.float32)
    of_c = tl.zeros((block, width), tl.float32)
    b_i = tl.zeros((block, width), tl.float32)
    b_f = tl.zeros((block, width), tl.float32)
    b_g = tl.zeros((block, width), tl.float32)
    b_o = tl.zeros((block, width), tl.float32)
    longest = tl.max(length, axis=0)
    for back in range(longest):
        t = longest - 1 - back
        here = (t < length)[:, None] & (column < d)[None, :]
        place = tl.where(direction == 0, t, length - 1 - t)
        row = tl.load(first + place, mask=t < length, other=0) + walk
        earlier = tl.where(direction == 0, t - 1, length - t)
        row_before = tl.load(first + earlier, mask=(t < length) & (t > 0), other=0) + walk
        at = row[:, None] * (8 * d) + direction * 4 * d + column[None, :]
        out = row[:, None] * (2 * d) + direction * d + column[None, :]
        out_before = row_before[:, None] * (2 * d) + direction * d + column[None, :]
        i = tl.load(gates + at, mask=here, other=0.0)
        f = tl.load(gates + at + d, mask=here, other=0.0)
        g = tl.load(gates + at + 2 * d, mask=here, other=0.0)
        o = tl.load(gates + at + 3 * d, mask=here, other=0.0)
        c = tl.load(cells + out, mask=here, other=0.0)
        c_before = tl.load(cells + out_before, mask=here & (t > 0), other=0.0)
        if summed:
            of_h += tl.where(here, of_each, 0.0)
        else:
            of_h += tl.load(of_states + out, mask=here, other=0.0)
        tanh_c = _tanh(c)
        of_c += of_h * o * (1 - tanh_c * tanh_c)
        of_i = of_c * g * i * (1 - i)
        of_f = of_c * c_before * f * (1 - f)
        of_g = of_c * i * (1 - g * g)
        of_o = of_h * tanh_c * o * (1 - o)
        of_c *= f
        tl.store(of_gates + at, of_i, mask=here)
        tl.store(of_gates + at + d, of_f, mask=here)
        tl.store(of_gates + at + 2 * d, of_g, mask=here)
        tl.store(of_gates + at + 3 * d, of_o, mask=here)
        b_i += of_i
        b_f += of_f
        b_g += of_g
        b_o += of_o
        of_h = tl.dot(of_i, u_i, input_precision=precision)
        of_h = tl.dot(of_f, u_f, of_h, input_precision=precision)
        of_h = tl.dot(of_g, u_g, of_h, input_precision=precision)
        of_h = tl.dot(of_o, u_o, of_h, input_precision=precision)
    bias = of_biases + number * 8 * d + direction * 4 * d + column
    tl.store(bias, tl.sum(b_i, axis=0), mask=column < d)
    tl.store(bias + d, tl.sum(b_f, axis=0), mask=column < d)
    tl.store(bias + 2 * d, tl.sum(b_g, axis=0), mask=column < d)
    tl.store(bias + 3 * d, tl.sum(b_o, axis=0), mask=column < d)


def forward(
    projected: Tensor, weights: Tensor, layout: Layout, *, rows: Tensor | None, summed: bool, keep: bool, launch: Launch
) -> tuple[Tensor, Kept]:
    """States after every step (steps, 2 d), or their sums by patch (patches, 2 d), and what a gradient needs.

    Args:
        projected: W x + b of both directions, at every step or, with ``rows``, in the row of each step.
        weights: of the state, of both directions, as :class:`torch.nn.LSTM` stores them.
        keep: whether a gradient will be computed.

    Shapes:
        projected: (steps, 8 d), or (rows, 8 d). weights: (2, 4 d, d). rows: (steps,).
    """
    d, walks = weights.shape[2], len(layout.lengths)
    steps = len(projected if rows is None else rows)
    before, cells, gates = (projected.new_empty(steps if keep else 0, n * d) for n in (2, 2, 8))
    states = projected.new_empty(walks if summed else steps, 2 * d)
    with torch.cuda.device_of(weights):  # type: ignore[no-untyped-call]
        _forward[triton.cdiv(walks, launch.walks), 2](
            projected, layout.first if rows is None else rows, weights, layout.first, layout.lengths, layout.order,
            states, before, cells, gates, walks, d,
            block=launch.walks, width=_padded(d), picked=rows is not None, summed=summed, keep=keep,
            precision=launch.precision, num_warps=launch.warps,
        )  # fmt: skip
    if summed:
        states = states.view(-1, layout.per_patch, 2 * d).sum(dim=1)
    return states, Kept(before, cells, gates)


def backward(
    of_states: Tensor, weights: Tensor, layout: Layout, kept: Kept, *, summed: bool, launch: Launch
) -> tuple[Tensor, Tensor]:
    """Gradients of the projections at every step (steps, 8 d), and of the bias (8 d,).

    Shapes:
        of_states: (steps, 2 d), or (patches, 2 d) if they are ``summed``. weights: (2, 4 d, d).
    """
    d, walks = weights.shape[2], len(layout.lengths)
    blocks = triton.cdiv(walks, launch.walks)
    of_gates, of_biases = torch.empty_like(kept.gates), of_states.new_empty(blocks, 8 * d)
    with torch.cuda.device_of(weights):  # type: ignore[no-untyped-call]
        _backward[blocks, 2](
            of_states, weights, layout.first, layout.lengths, layout.order, kept.cells, kept.gates, of_gates, of_biases,
            walks, layout.per_patch, d,
            block=launch.walks, width=_padded(d), summed=summed, precision=launch.precision, num_warps=launch.warps,
        )  # fmt: skip
    return of_gates, of_biases.sum(dim=0)


def _padded(d: int) -> int:
    return max(16, 1 << (d - 1).bit_length())
