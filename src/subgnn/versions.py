"""Versions used to produce a result."""

from functools import cache

__version__ = "1.0.0"

_PACKAGES = ("torch", "lightning", "numpy", "scipy", "numba")


@cache
def versions() -> dict[str, str]:
    """This package, Python, and the packages that results depend on."""
    import platform
    from importlib import metadata

    return {"subgnn": __version__, "python": platform.python_version()} | {
        package: metadata.version(package) for package in _PACKAGES
    }
