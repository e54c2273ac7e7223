"""``subgnn info``: versions, devices and the cache."""

from __future__ import annotations

import os
import platform
from typing import Any

from subgnn.cli.options import JsonFlag
from subgnn.cli.output import print_json, print_table
from subgnn.versions import __version__

_PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "pyarrow",
    "torch",
    "torch_geometric",
    "lightning",
    "torchmetrics",
    "scikit-learn",
    "networkx",
)


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _devices() -> list[str]:
    import torch

    found = ["cpu"]
    found += [f"cuda:{i} {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found


def gather() -> dict[str, Any]:
    """Facts to include in a bug report."""
    import numba

    from subgnn.storage.cache import cache_entries, cache_folder, cache_limit

    entries = cache_entries()
    return {
        "subgnn": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {package: _version(package) for package in _PACKAGES},
        "devices": _devices(),
        "threads": {
            "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "numba": numba.get_num_threads(),
        },
        "cache": str(cache_folder()),
        "cache_content": {
            "entries": len(entries),
            "bytes": sum(entry.size for entry in entries),
            "limit_bytes": cache_limit(),
        },
    }


def info(json: JsonFlag = False) -> None:
    """Show versions, devices, threads and the cache folder."""
    found = gather()
    if json:
        print_json(found)
        return
    threads, cached = found["threads"], found["cache_content"]
    size = f"{cached['bytes'] / 1e9:.2f} of {cached['limit_bytes'] / 1e9:g} GB"
    rows = [
        *((name, found[name]) for name in ("subgnn", "python", "platform")),
        *found["packages"].items(),
        ("devices", ", ".join(found["devices"])),
        ("threads", f"{threads['numba']} of {threads['cpus']} processors"),
        ("cache", found["cache"]),
        ("cached", f"{cached['entries']:,} files, {size}"),
    ]
    print_table("subgnn info", ("what", "value"), rows)
