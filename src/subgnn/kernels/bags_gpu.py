"""The gradient of sums of picked rows on a GPU: out_t = sum over picks k of row t of weight_k grads_source(k).

The picks are sorted by the row that they pick; a program adds up those of a few neighbouring rows, as a product with a
matrix that holds the weight of each pick in the line of its row. Every row is written once, and nothing is added up by
atomic operations, so results are the same in every run. Picks of weight 0, with which bags are filled up, are left out.

Needs Triton, which comes with builds of torch for GPUs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LAUNCH: tuple[int, int, int, str] = (16, 32, 4, "ieee")
"""Rows of a program, picks of one product, warps, and how it multiplies: ``ieee`` or ``tf32x3``."""
_WIDEST = 128  # columns of a program


@triton.jit(do_not_specialize=["weights", "sources", "picks", "rows", "halvings"])  # type: ignore[untyped-decorator]
def _add_up(  # type: ignore[no-untyped-def]
    places, order, weights, sources, grads, out, picks, rows, halvings, d,
    each: tl.constexpr, tile: tl.constexpr, block: tl.constexpr, width: tl.constexpr, weighted: tl.constexpr,
    precision: tl.constexpr,
):  # fmt: skip
    """A tile of rows, and some of their columns; ``places`` are in order, those that do not count at the end.

    A sum has ``each`` picks or, if that is 0, ``sources`` has the sum of each pick.
    """
    first = tl.program_id(0) * tile
    row = first + tl.arange(0, tile)
    column = tl.program_id(1) * width + tl.arange(0, width)
    # Where the picks of these rows begin and end: two searches side by side.
    edge = tl.minimum(first + tl.arange(0, 2) * tile, rows)
    low = tl.zeros((2,), tl.int32)
    high = low + picks
    for _ in range(halvings):
        middle = (low + high) // 2
        open_ = low < high
        below = tl.load(places + middle, mask=open_, other=0) < edge
        high = tl.where(open_, tl.where(below, high, middle), high)
        low = tl.where(open_ & below, middle + 1, low)
    total = tl.zeros((tile, width), tl.float32)
    for begin in range(tl.min(low, axis=0), tl.max(low, axis=0), block):
        k = begin + tl.arange(0, block)
        here = k < tl.max(low, axis=0)
        place = tl.load(places + k, mask=here, other=-1)
        pick = tl.load(order + k, mask=here, other=0)
        source = pick // each if each > 0 else tl.load(sources + pick, mask=here, other=0)
        weight = tl.where(here, 1.0, 0.0)
        if weighted:
            weight = tl.load(weights + pick, mask=here, other=0.0)
        values = tl.load(
            grads + source[:, None] * d + column[None, :], mask=here[:, None] & (column < d)[None, :], other=0.0
        )
        lines = tl.where(row[:, None] == place[None, :], weight[None, :], 0.0)
        total = tl.dot(lines, values, total, input_precision=precision)
    tl.store(out + row[:, None] * d + column[None, :], total, mask=(row < rows)[:, None] & (column < d)[None, :])


def add_up(places: Tensor, starts: Tensor | None, grads: Tensor, rows: int, *, weights: Tensor | None) -> Tensor:
    """The gradient (rows, d) of the table whose rows were picked.

    Shapes:
        places: (C, n), or (picks,) where those of sum c begin at ``starts`` (C,). weights: as places; None for 1.
        grads: (C, d).
    """
    keys = places.flatten().to(torch.int16 if rows < 2**15 else torch.int32)
    if weights is not None:
        keys = keys.masked_fill(weights.flatten() == 0, rows)
    ordered, order = torch.sort(keys, stable=True)
    sources = order  # not read
    if starts is not None:
        sources = torch.searchsorted(starts, torch.arange(len(keys), device=keys.device), right=True) - 1
    grads, d = grads.contiguous(), grads.shape[1]
    out = grads.new_empty(rows, d)
    tile, block, warps, precision = LAUNCH
    width = min(_WIDEST, max(16, triton.next_power_of_2(d)))
    with torch.cuda.device_of(grads):  # type: ignore[no-untyped-call]
        _add_up[triton.cdiv(rows, tile), triton.cdiv(d, width)](
            ordered, order, grads if weights is None else weights.contiguous(), sources, grads, out,
            len(keys), rows, len(keys).bit_length(), d,
            each=0 if starts is not None else places.shape[1], tile=tile, block=block, width=width,
            weighted=weights is not None, precision=precision, num_warps=warps,
        )  # fmt: skip
    return out
