"""Decorators that compile kernels, and arrays in the form they are compiled for.

Compiled code is cached on disk, and the GIL is released; division follows NumPy, without a check before each one.

The first command waits for compilation. Kernels therefore copy parts of arrays in loops: for ``a[i:j] = b`` Numba also
compiles the message of an error. And helpers get arguments of one type, as Numba compiles them again for an array that
may be written to, a shorter integer or a constant, unless that is ``np.int64(0)``.
"""

import gc
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numpy.typing import NDArray

from subgnn.ragged import Ragged

Array = NDArray[Any]
Pair = tuple[Array, Array]
Triple = tuple[Array, Array, Array]
Csr = tuple[Array, Array]
"""A graph: offsets (N + 1,) int64 and neighbors int32."""
Sets = tuple[Array, Array]
"""A family of node sets: values int32 and the offsets of its rows, int64."""

F = TypeVar("F", bound=Callable[..., Any])
_LOG = logging.getLogger("subgnn.kernels")
_SILENT_SECONDS = 1.0


class _Compilations(event.Listener):  # type: ignore[misc]
    """Log once that kernels are being compiled, if it takes more than a second; collect no garbage meanwhile.

    Numba makes millions of objects: looking through them again and again took a tenth of the time.
    """

    def __init__(self) -> None:
        self._depth, self._since, self._spent, self._logged, self._collecting = 0, 0.0, 0.0, False, False

    def on_start(self, _: event.Event) -> None:
        if self._depth == 0:
            self._since, self._collecting = time.monotonic(), gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, _: event.Event) -> None:
        self._depth -= 1
        spent = self._spent + time.monotonic() - self._since
        if self._depth == 0:
            self._spent = spent
            if self._collecting:
                gc.enable()
        if spent > _SILENT_SECONDS and not self._logged:
            self._logged = True
            _LOG.info("compiling kernels, once (about 10 to 30 s)")


event.register("numba:compile", _Compilations())


def compiled(function: F) -> F:
    """Compile for one thread."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def compiled_fused(function: F) -> F:
    """Compile for one thread, with a product and a sum in one instruction where the machine has it."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})(function))


@intrinsic  # type: ignore[untyped-decorator]
def read_only(_: Any, array: Any) -> Any:
    """In compiled code: the array as a read-only one, so that callees are compiled for one kind of array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return impl_ret_borrowed(context, builder, signature.return_type, arguments[0])

    return array.copy(readonly=True)(array), generate


def compiled_parallel(
    function: Callable[..., None], compiler: Callable[[Callable[..., Any]], Callable[..., Any]] = compiled
) -> Callable[..., None]:
    """Compile a loop over the items ``begin`` to ``end - 1``, its first two arguments, and spread it over the threads.

    In place of the two, the result takes the number of items, or the bounds of pieces that are not to be divided.
    Threads are Python's: a parallel loop of Numba takes several times as long to compile.
    """
    loop = compiler(function)

    @wraps(function)
    def spread(items: int | Array, *arguments: Any) -> None:
        bounds = even_bounds(items) if isinstance(items, int) else items
        pieces = iter(list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)))

        def work() -> None:
            for begin, end in pieces:
                loop(begin, end, *arguments)

        helpers = min(int(numba.get_num_threads()), len(bounds) - 1) - 1
        if helpers < 1:
            work()
            return
        results = [_helpers().submit(work) for _ in range(helpers)]
        try:
            work()
        finally:
            list(pieces)  # after an error, what is left is not begun
            begun = [result for result in results if not result.cancel()]
            wait(begun)
        for result in begun:
            result.result()

    return spread


@cache
def _helpers() -> ThreadPoolExecutor:
    """The threads that help the caller of a kernel; kept, because starting one takes longer than a small input."""
    return ThreadPoolExecutor(max(1, int(numba.config.NUMBA_NUM_THREADS) - 1), "subgnn-kernel")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)


def frozen(array: Any, dtype: Any) -> Array:
    """A read-only, contiguous, plain view of ``array``, the one form that kernels are compiled for."""
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
    """The number of pieces to cut ``items`` into: threads stay busy, and each piece has one scratch buffer."""
    return max(1, min(items, 4 * int(numba.get_num_threads())))


def even_bounds(items: int, pieces: int | None = None) -> Array:
    """Where pieces of nearly equal length begin and end, by default :func:`num_chunks` of them."""
    return frozen(np.linspace(0, items, 1 + (pieces or num_chunks(items))).round(), np.int64)
