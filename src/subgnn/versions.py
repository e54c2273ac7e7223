"""Which versions a result was had with."""

from __future__ import annotations

import platform
from importlib import metadata

from subgnn import __version__

_PACKAGES = ("torch", "lightning", "numpy", "scipy", "numba")


def versions() -> dict[str, str]:
    """This package, Python, and the packages that results depend on."""
    return {"subgnn": __version__, "python": platform.python_version()} | {
        package: metadata.version(package) for package in _PACKAGES
    }
