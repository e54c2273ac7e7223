"""How arrays enter and are shared out among threads."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.ragged import Ragged

Array = NDArray[Any]


def frozen(array: Any, dtype: Any) -> Array:
    """A read-only, contiguous, plain view of ``array``.

    Numba compiles anew for every mix of writable and read-only arguments, and a memory map is read-only: handing over
    read-only views alone means one compiled version, cached once.
    """
    view = np.ascontiguousarray(array, dtype=dtype).view(np.ndarray).view()
    view.flags.writeable = False
    return view


def csr(offsets: Any, neighbors: Any) -> tuple[Array, Array]:
    """The two arrays of a graph as the kernels want them."""
    return frozen(offsets, np.int64), frozen(neighbors, np.int32)


def sets(rows: Ragged) -> tuple[Array, Array]:
    """The values and offsets of a family of node sets as the kernels want them."""
    return frozen(rows.values, np.int32), frozen(rows.offsets, np.int64)


def num_chunks(items: int) -> int:
    """How many pieces to cut ``items`` into, so that threads stay busy while each piece keeps one scratch buffer."""
    return max(1, min(items, 4 * int(numba.get_num_threads())))
