"""Exact dynamic time warping between many short sequences, many at a time.

DTW(a, b) is the smallest total cost of a warping path: a monotone chain of pairs (i, j) from the two beginnings to the
two ends, each step advancing i, j or both. Sequences of ``b`` are laid side by side in lanes, so that one vector
instruction advances several tables; a lane shorter than its neighbours is read off at its end.
"""

from typing import Literal

import numpy as np

from subgnn.kernels.arrays import Array, Sets, compiled, compiled_parallel, frozen
from subgnn.ragged import Ragged

Cost = Literal["absolute", "ratio"]
Lanes = tuple[Array, Array, Array, Array]
"""Sequences side by side: packed values, where groups of lanes start, the ends of the lanes, and their order."""
_LANES = 16
_FAR = np.inf


@compiled
def _costs(x: float, column: Array, ratio: bool, out: Array) -> None:
    if ratio:
        for k in range(len(column)):
            out[k] = (max(x, column[k]) + 1.0) / (min(x, column[k]) + 1.0) - 1.0
    else:
        for k in range(len(column)):
            out[k] = abs(x - column[k])


@compiled
def _warp(a: Array, b: Array, ratio: bool, table: Array) -> None:
    """table: (columns, lanes), the last row of the cost table when done.

    Loops over lanes have a length that the compiler does not know: it then makes vectors of them, where it would unroll
    a known one into single steps.
    """
    columns, lanes = b.shape
    left, corner, cost = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    table[:columns] = _FAR
    for i in range(len(a)):
        left[:] = _FAR
        corner[:] = 0.0 if i == 0 else _FAR
        for j in range(columns):
            _costs(a[i], b[j], ratio, cost)
            for k in range(lanes):
                up = table[j, k]
                best = up if up < left[k] else left[k]
                best = best if best < corner[k] else corner[k]
                corner[k] = up
                left[k] = best + cost[k]
                table[j, k] = left[k]


@compiled_parallel
def _dtw(begin: int, end: int, sequences: Sets, lanes_of_b: Lanes, ratio: bool, out: Array) -> None:
    a, a_rows = sequences
    packed, starts, ends, order = lanes_of_b
    groups = len(starts) - 1
    widest = 0
    for g in range(groups):
        widest = max(widest, starts[g + 1] - starts[g])
    table = np.empty((widest, _LANES))
    for i in range(begin, end):
        row = a[a_rows[i] : a_rows[i + 1]]
        for g in range(groups):
            _warp(row, packed[starts[g] : starts[g + 1]], ratio, table)
            for place in range(g * _LANES, min((g + 1) * _LANES, len(order))):
                out[i, order[place]] = table[ends[place] - 1, place - g * _LANES]


def dtw(a: Ragged, b: Ragged, *, cost: Cost = "absolute") -> Array:
    """DTW (rows of a, rows of b), none empty; cost |x - y| (absolute) or (max + 1) / (min + 1) - 1 (ratio)."""
    if bool((a.lengths == 0).any()) or bool((b.lengths == 0).any()):
        raise ValueError("dtw: an empty sequence has no warping path")
    out = np.empty((len(a), len(b)), np.float64)
    if out.size:
        # Rows of b are laid out in groups of lanes, those of like length together.
        order = np.argsort(b.lengths, kind="stable")
        ends = b.lengths[order]
        widths = [int(ends[min((g + 1) * _LANES, len(order)) - 1]) for g in range(-(-len(order) // _LANES))]
        starts = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)])
        packed = np.zeros((int(starts[-1]), _LANES), np.float64)
        for place, row in enumerate(order):
            begin = starts[place // _LANES]
            packed[begin : begin + ends[place], place % _LANES] = b[row]
        lanes = frozen(packed, np.float64), *(frozen(one, np.int64) for one in (starts, ends, order))
        _dtw(len(a), (frozen(a.values, np.float64), frozen(a.offsets, np.int64)), lanes, cost == "ratio", out)
    return out
