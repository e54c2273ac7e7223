"""Exact dynamic time warping between many short sequences, eight at a time.

DTW(a, b) is the smallest total cost of a warping path: a monotone chain of pairs (i, j) from the two beginnings to the
two ends, each step advancing i, j or both. Sequences of ``b`` are laid side by side in eight lanes, so that one
vector instruction advances eight tables; a lane shorter than its neighbours is read off at its own end.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, frozen
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.ragged import Ragged

Cost = Literal["absolute", "ratio"]
_LANES = 8
_FAR = np.inf


@compiled
def _warp(a: Array, b: Array, columns: int, ratio: bool, table: Array) -> None:
    """table: (columns, lanes), the last row of the cost table when done."""
    left, corner = np.empty(_LANES), np.empty(_LANES)
    table[:columns] = _FAR
    for i in range(len(a)):
        for k in range(_LANES):
            left[k] = _FAR
            corner[k] = 0.0 if i == 0 else _FAR
        x = a[i]
        for j in range(columns):
            for k in range(_LANES):
                y = b[j, k]
                cost = (max(x, y) + 1.0) / (min(x, y) + 1.0) - 1.0 if ratio else abs(x - y)
                up = table[j, k]
                best = up if up < left[k] else left[k]
                best = best if best < corner[k] else corner[k]
                corner[k] = up
                left[k] = best + cost
                table[j, k] = left[k]


@compiled
def _warp_with_length(a: Array, b: Array, columns: int, ratio: bool, table: Array, steps: Array) -> None:
    """As :func:`_warp`, and the length of the cheapest path, the shortest where several are cheapest."""
    left, corner = np.empty(_LANES), np.empty(_LANES)
    left_steps, corner_steps = np.zeros(_LANES), np.zeros(_LANES)
    table[:columns] = _FAR
    steps[:columns] = 0.0
    for i in range(len(a)):
        for k in range(_LANES):
            left[k] = _FAR
            left_steps[k] = 0.0
            corner[k] = 0.0 if i == 0 else _FAR
            corner_steps[k] = 0.0
        x = a[i]
        for j in range(columns):
            for k in range(_LANES):
                y = b[j, k]
                cost = (max(x, y) + 1.0) / (min(x, y) + 1.0) - 1.0 if ratio else abs(x - y)
                up, up_steps = table[j, k], steps[j, k]
                beside = left[k] < up or (left[k] == up and left_steps[k] < up_steps)
                best = left[k] if beside else up
                best_steps = left_steps[k] if beside else up_steps
                across = corner[k] < best or (corner[k] == best and corner_steps[k] < best_steps)
                corner_best = corner[k] if across else best
                corner_best_steps = corner_steps[k] if across else best_steps
                corner[k], corner_steps[k] = up, up_steps
                left[k], left_steps[k] = corner_best + cost, corner_best_steps + 1.0
                table[j, k], steps[j, k] = left[k], left_steps[k]


@compiled_parallel
def _dtw(
    a: Array,
    a_rows: Array,
    packed: Array,
    starts: Array,
    ends: Array,
    order: Array,
    ratio: bool,
    normalize: bool,
    out: Array,
) -> None:
    groups = len(starts) - 1
    for i in prange(len(a_rows) - 1):
        row = a[a_rows[i] : a_rows[i + 1]]
        widest = 0
        for g in range(groups):
            widest = max(widest, starts[g + 1] - starts[g])
        table, steps = np.empty((widest, _LANES)), np.empty((widest, _LANES))
        for g in range(groups):
            columns = starts[g + 1] - starts[g]
            lanes = packed[starts[g] : starts[g + 1]]
            if normalize:
                _warp_with_length(row, lanes, columns, ratio, table, steps)
            else:
                _warp(row, lanes, columns, ratio, table)
            for k in range(_LANES):
                place = g * _LANES + k
                if place < len(order):
                    last = ends[place] - 1
                    value = table[last, k]
                    out[i, order[place]] = value / steps[last, k] if normalize else value


def _pack(b: Ragged) -> tuple[Array, Array, Array, Array]:
    """Lay the rows of ``b`` out in groups of eight lanes, rows of like length together."""
    order = np.argsort(b.lengths, kind="stable")
    ends = b.lengths[order]
    groups = -(-len(order) // _LANES)
    widths = [int(ends[min((g + 1) * _LANES, len(order)) - 1]) for g in range(groups)]
    starts = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)])
    packed = np.zeros((int(starts[-1]), _LANES), np.float64)
    for place, row in enumerate(order):
        begin = starts[place // _LANES]
        packed[begin : begin + ends[place], place % _LANES] = b[row]
    return frozen(packed, np.float64), frozen(starts, np.int64), frozen(ends, np.int64), frozen(order, np.int64)


def dtw(a: Ragged, b: Ragged, *, cost: Cost = "absolute", normalize: bool = False) -> Array:
    """DTW between every row of ``a`` and every row of ``b``; no row may be empty.

    Args:
        cost: of a pair (x, y): ``"absolute"``, |x - y|, or ``"ratio"``, (max + 1) / (min + 1) - 1.
        normalize: divide by the length of the warping path; of several cheapest paths the shortest counts.

    Shapes:
        returns: (rows of a, rows of b) float64.

    Example:
        >>> d = Ragged.from_rows([[1, 2, 3]]), Ragged.from_rows([[1, 2, 2, 3], [1, 5]])
        >>> dtw(*d).tolist(), dtw(*d, normalize=True).tolist()
        ([[0.0, 3.0]], [[0.0, 1.0]])
    """
    if bool((a.lengths == 0).any()) or bool((b.lengths == 0).any()):
        raise ValueError("dtw: an empty sequence has no warping path")
    out = np.empty((len(a), len(b)), np.float64)
    if out.size:
        packed, starts, ends, order = _pack(b)
        values, rows = frozen(a.values, np.float64), frozen(a.offsets, np.int64)
        _dtw(values, rows, packed, starts, ends, order, cost == "ratio", normalize, out)
    return out
