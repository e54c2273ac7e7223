"""Triton, the compiler of kernels for GPUs, where it is installed.

It comes with builds of torch for GPUs. Without it, modules with kernels can be imported, but not run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from subgnn.errors import DataWarning

AVAILABLE = find_spec("triton") is not None

triton: Any = import_module("triton") if AVAILABLE else None
tl: Any = import_module("triton.language") if AVAILABLE else None


def jit(**options: Any) -> Any:
    """The decorator of kernels; where they cannot be compiled, it leaves them as they are."""
    return triton.jit(**options) if AVAILABLE else lambda function: function


def runs(what: str, instead: str, attempt: Callable[[], object]) -> bool:
    """Whether kernels can be compiled and run here; a warning says why not.

    Triton calls a C compiler at run time, and a GPU may lack the memory that a kernel needs.

    Args:
        attempt: runs them.
    """
    if not AVAILABLE:
        return False
    try:
        attempt()
    except Exception as error:  # of the compiler, the driver or Triton, each with classes of its own
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        warnings.warn(f"{what} cannot be compiled here ({told}); {instead} is used", DataWarning, stacklevel=3)
        return False
    return True
