"""Inner products of rows, each a function of its two rows alone.

The bits of a product by a BLAS depend on how many rows are multiplied at once, and on the number of threads.
"""

from dataclasses import dataclass
from typing import Any, Self

import numba
import numpy as np

from subgnn.kernels.arrays import Array, Triple, compiled_parallel, csr, frozen

_SIDE, _COLUMNS = 4, 1024  # rows and others in a tile; columns after which sums go on in double precision
_LINE = 16  # numbers in a line of the processor's cache


@dataclass(frozen=True, slots=True, eq=False)
class Tiles:
    """Rows (n, N) in single precision, each from the start of a cache line; zeros fill tiles and lines up."""

    filled: Array
    rows: Array

    @classmethod
    def of(cls, rows: Array, *, less: Array | float = 0) -> Self:
        """Rows, with ``less`` subtracted from each."""
        height, width = -(-len(rows) // _SIDE) * _SIDE, -(-rows.shape[1] // _LINE) * _LINE
        room = np.zeros(height * width + _LINE, np.float32)
        begin = -(room.ctypes.data // room.itemsize) % _LINE
        filled = room[begin : begin + height * width].reshape(height, width)
        own = filled[: len(rows), : rows.shape[1]]
        np.subtract(rows, less, out=own)
        return cls(filled, own)


def inner_products(rows: Tiles, others: Tiles) -> Array:
    """Inner products (n, m) float64 of rows (n, N) and others (m, N)."""
    out = np.zeros((len(rows.filled), len(others.filled)))
    _add_products(len(others.filled) // _SIDE, *(frozen(one.filled, np.float32) for one in (rows, others)), out)
    return out[: len(rows.rows), : len(others.rows)]


@compiled_parallel
def _add_products(begin: int, end: int, rows: Array, others: Array, out: Array) -> None:
    for first in range(0, rows.shape[1], _COLUMNS):
        last = min(first + _COLUMNS, rows.shape[1])
        for j in range(_SIDE * begin, _SIDE * end, _SIDE):
            for i in range(0, len(rows), _SIDE):
                _add_tile(rows, i, others, j, first, last, out[i : i + _SIDE, j : j + _SIDE])


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz", "reassoc"})  # type: ignore[untyped-decorator]
def _add_tile(rows: Array, i: int, others: Array, j: int, first: int, last: int, out: Array) -> None:
    """Add the products of four rows with four others over some columns; the sums are kept in registers."""
    a, b, c, d = rows[i, first:last], rows[i + 1, first:last], rows[i + 2, first:last], rows[i + 3, first:last]
    w, x, y, z = others[j, first:last], others[j + 1, first:last], others[j + 2, first:last], others[j + 3, first:last]
    aw = ax = ay = az = bw = bx = by = bz = np.float32(0)
    cw = cx = cy = cz = dw = dx = dy = dz = np.float32(0)
    for k in range(last - first):
        aw, ax, ay, az = aw + a[k] * w[k], ax + a[k] * x[k], ay + a[k] * y[k], az + a[k] * z[k]
        bw, bx, by, bz = bw + b[k] * w[k], bx + b[k] * x[k], by + b[k] * y[k], bz + b[k] * z[k]
        cw, cx, cy, cz = cw + c[k] * w[k], cx + c[k] * x[k], cy + c[k] * y[k], cz + c[k] * z[k]
        dw, dx, dy, dz = dw + d[k] * w[k], dx + d[k] * x[k], dy + d[k] * y[k], dz + d[k] * z[k]
    for row, sums in enumerate(((aw, ax, ay, az), (bw, bx, by, bz), (cw, cx, cy, cz), (dw, dx, dy, dz))):
        for other in range(4):
            out[row, other] += sums[other]


def sparse_products(rows: Any, turned: Any) -> Array:
    """Inner products (n, m) float64 of the rows of CSR arrays (n, N) and, turned, (N, m)."""
    out = np.zeros((rows.shape[0], turned.shape[1]))
    arrays = [(*csr(one.indptr, one.indices), frozen(one.data, np.float64)) for one in (rows, turned)]
    _add_sparse(len(out), *arrays, out)
    return out


@compiled_parallel
def _add_sparse(begin: int, end: int, rows: Triple, turned: Triple, out: Array) -> None:
    offsets, columns, values = rows
    starts, others, factors = turned
    for i in range(begin, end):
        row = out[i]
        for e in range(offsets[i], offsets[i + 1]):
            value = values[e]
            for k in range(starts[columns[e]], starts[columns[e] + 1]):
                row[np.uint32(others[k])] += value * factors[k]  # unsigned, so that no place counts from the end
