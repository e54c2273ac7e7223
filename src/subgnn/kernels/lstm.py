"""One step of an LSTM over many walks, forwards and backwards: everything but the matrix products.

For a walk at a node with projected input p (W x + b) and previous state (h', c'), and r = U h':

    i, f, g, o = sigmoid(p_i + r_i), sigmoid(p_f + r_f), tanh(p_g + r_g), sigmoid(p_o + r_o)
    c = f c' + i g,    h = o tanh(c)

Gates lie in the order of :class:`torch.nn.LSTM`: i, f, g, o. The first ``m`` walks have a previous state; the others
begin here. Single precision; the error of the exponential is below two units in the last place. Each call runs in one
thread; the GIL is released.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from subgnn.kernels.arrays import Array, compiled_fused

_F = np.float32
# Cody and Waite: ln 2 in two parts, and a polynomial for exp on [-ln 2 / 2, ln 2 / 2].
_LOG2_E, _LN2_HIGH, _LN2_LOW = _F(1.44269504), _F(0.693359375), _F(-2.12194440e-4)
_P0, _P1, _P2 = _F(1.9875691500e-4), _F(1.3981999507e-3), _F(8.3334519073e-3)
_P3, _P4, _P5 = _F(4.1665795894e-2), _F(1.6666665459e-1), _F(5.0000001201e-1)
_ONE, _TWO, _HALF = _F(1), _F(2), _F(0.5)


@njit(inline="always", error_model="numpy")  # type: ignore[untyped-decorator]
def _exp(x: Any) -> Any:
    """e^x without branches or calls, so that the loop around it becomes vector code."""
    x = min(max(x, _F(-87)), _F(88))
    n = np.floor(x * _LOG2_E + _HALF)
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    p = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return (p * r * r + r + _ONE) * power


@compiled_fused
def _sigmoid(x: Array, y: Array, out: Array) -> None:
    for j in range(len(out)):
        out[j] = _ONE / (_ONE + _exp(-(x[j] + y[j])))


@compiled_fused
def _tanh(x: Array, y: Array, out: Array) -> None:
    for j in range(len(out)):
        out[j] = _TWO / (_ONE + _exp(-_TWO * (x[j] + y[j]))) - _ONE


@compiled_fused
def step_forward(
    projected: Array, rows: Array, recurrent: Array, c_before: Array, gates: Array, c: Array, tanh_c: Array, h: Array
) -> None:
    """Fill gates, c, tanh(c) and h of one step.

    Shapes:
        projected: (R, 4 d). rows: (n,) which row each walk stands on. recurrent: (m, 4 d), m <= n. c_before: (m, d).
        gates: (n, 4 d). c, tanh_c, h: (n, d).
    """
    n, d, m = len(rows), c.shape[1], len(recurrent)
    nothing = np.zeros(4 * d, np.float32)
    for w in range(n):
        p, gate = projected[rows[w]], gates[w]
        r = recurrent[w] if w < m else nothing
        before = c_before[w] if w < m else nothing
        _sigmoid(p[: 2 * d], r, gate[: 2 * d])
        _tanh(p[2 * d : 3 * d], r[2 * d :], gate[2 * d : 3 * d])
        _sigmoid(p[3 * d :], r[3 * d :], gate[3 * d :])
        cell = c[w]
        for j in range(d):
            cell[j] = gate[j] * gate[2 * d + j] + gate[d + j] * before[j]
        _tanh(cell, nothing, tanh_c[w])
        for j in range(d):
            h[w, j] = gate[3 * d + j] * tanh_c[w, j]


@compiled_fused
def step_backward(
    grad_h: Array, grad_h_after: Array, gates: Array, c_before: Array, tanh_c: Array, grad_c: Array
) -> None:
    """Put the gradients of the gates' sums in place of the gates of one step, and pass on that of the cell.

    In place, as memory that is written afresh costs more than this arithmetic.

    Shapes:
        grad_h: (n, d) from outside. grad_h_after: (k, d) from the next step, which k <= n walks take. gates: (n, 4 d).
        c_before: (m, d). tanh_c: (n, d). grad_c: (n, d), its first k rows from the next step, its first m rows for the
        step before.
    """
    n, d = grad_h.shape
    k, m = len(grad_h_after), len(c_before)
    total = np.empty(d, np.float32)
    for w in range(n):
        gate, t, gc = gates[w], tanh_c[w], grad_c[w]
        for j in range(d):
            total[j] = grad_h[w, j]
        if w < k:
            for j in range(d):
                total[j] += grad_h_after[w, j]
        for j in range(d):
            o = gate[3 * d + j]
            gate[3 * d + j] = total[j] * t[j] * o * (_ONE - o)
            total[j] = total[j] * o * (_ONE - t[j] * t[j])
        if w < k:
            for j in range(d):
                total[j] += gc[j]
        for j in range(d):
            i, g = gate[j], gate[2 * d + j]
            gate[j] = total[j] * g * i * (_ONE - i)
            gate[2 * d + j] = total[j] * i * (_ONE - g * g)
        if w < m:
            for j in range(d):
                f = gate[d + j]
                gate[d + j] = total[j] * c_before[w, j] * f * (_ONE - f)
                gc[j] = total[j] * f
        else:
            for j in range(d):
                gate[d + j] = _F(0)


@compiled_fused
def sum_rows(values: Array, order: Array, offsets: Array, begin: int, end: int, out: Array) -> None:
    """out[r] = the sum of values[order[offsets[r]:offsets[r + 1]]], begin <= r < end: the transpose of picking rows.

    Shapes:
        values: (n, d). order: (n,). offsets: (R + 1,). out: (R, d).
    """
    for r in range(begin, end):
        row = out[r]
        row[:] = 0
        for place in range(offsets[r], offsets[r + 1]):
            value = values[order[place]]
            for j in range(out.shape[1]):
                row[j] += value[j]
