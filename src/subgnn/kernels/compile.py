"""The ways a loop is compiled here, with types that survive the decorator.

Compiled code is kept on disk, so that the second run starts at once; the GIL is released, so that a progress bar or a
server goes on; division follows NumPy, without a check before each one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

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
