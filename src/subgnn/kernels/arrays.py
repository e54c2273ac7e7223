"""Decorators that compile kernels, and arrays in the form they are compiled for.

Compiled code is cached on disk, so that the second run starts at once; the GIL is released, so that a progress bar or a
server goes on; division follows NumPy, without a check before each one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.ragged import Ragged

Array = NDArray[Any]
Csr = tuple[Array, Array]
"""A graph: offsets (N + 1,) int64 and neighbors int32."""
Sets = tuple[Array, Array]
"""A family of node sets: values int32 and the offsets of its rows, int64."""

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile for one thread."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def compiled_parallel(function: F) -> F:
    """Compile with ``prange`` loops spread over the threads."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", parallel=True)(function))


def compiled_fused(function: F) -> F:
    """Compile for one thread, a product and a sum in one instruction where the machine has it."""
    options = {"contract", "nsz"}
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=options)(function))


def frozen(array: Any, dtype: Any) -> Array:
    """A read-only, contiguous, plain view of ``array``.

    Numba compiles anew for every mix of writable and read-only arguments, and a memory map is read-only: with read-only
    views alone there is one compiled version, cached once.
    """
    view = np.ascontiguousarray(array, dtype=dtype).view(np.ndarray).view()
    view.flags.writeable = False
    return view


def csr(offsets: Any, neighbors: Any) -> Csr:
    """The two arrays of a graph in the kernels' types."""
    return frozen(offsets, np.int64), frozen(neighbors, np.int32)


def sets(rows: Ragged) -> Sets:
    """The values and offsets of a family of node sets in the kernels' types."""
    return frozen(rows.values, np.int32), frozen(rows.offsets, np.int64)


def num_chunks(items: int) -> int:
    """How many pieces to cut ``items`` into, so that threads stay busy while each piece keeps one scratch buffer."""
    return max(1, min(items, 4 * int(numba.get_num_threads())))


def even_bounds(items: int, pieces: int | None = None) -> Array:
    """Where pieces of nearly equal length begin and end, by default :func:`num_chunks` of them."""
    pieces = num_chunks(items) if pieces is None else pieces
    return frozen(np.linspace(0, items, pieces + 1).round(), np.int64)
