"""``subgnn info``."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

import numba

from subgnn.cli.output import JsonFlag, print_json, print_table
from subgnn.storage.cache import cache_entries, cache_folder, cache_limit
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


def _kept(entries: int, bytes: int, limit_bytes: int) -> str:
    return f"{entries:,} files, {bytes / 1e9:.2f} of {limit_bytes / 1e9:g} GB"


def gather() -> dict[str, Any]:
    """What a report of a problem should carry."""
    kept = cache_entries()
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
            "entries": len(kept),
            "bytes": sum(entry.size for entry in kept),
            "limit_bytes": cache_limit(),
        },
    }


def info(json: JsonFlag = False) -> None:
    """Show versions, devices, threads and the cache folder."""
    found = gather()
    if json:
        print_json(found)
        return
    rows = [("subgnn", found["subgnn"]), ("python", found["python"]), ("platform", found["platform"])]
    rows += list(found["packages"].items())
    rows += [("devices", ", ".join(found["devices"]))]
    rows += [
        ("threads", f"{found['threads']['numba']} of {found['threads']['cpus']} processors"),
        ("cache", found["cache"]),
        ("kept there", _kept(**found["cache_content"])),
    ]
    print_table("subgnn info", ("what", "value"), rows)
