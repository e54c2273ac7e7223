"""What a run was made with: commit, source, machine, memory."""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import subprocess
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

_PACKAGE = Path(__file__).parents[2]
_HIGH_WATER = "VmHWM:"


@lru_cache(maxsize=1)
def circumstances() -> dict[str, str]:
    """Commit and hash of the source, and the machine."""
    return {"commit": _commit(), "source_hash": _source_hash(), "hardware": _hardware()}


def _commit() -> str:
    """The commit of the checkout the package is part of; nothing where it is in none, or only lies in one."""
    asked = (
        ["ls-files", "--error-unmatch", "__init__.py"],
        ["rev-parse", "HEAD"],
        ["status", "--porcelain", "--untracked-files=no", "--", "."],
    )
    try:
        _, head, changes = (
            subprocess.run(["git", "-C", str(_PACKAGE), *words], capture_output=True, text=True, check=True, timeout=10)
            for words in asked
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return head.stdout.strip() + (" with changes" if changes.stdout.strip() else "")


def _source_hash() -> str:
    """SHA-256 of the package's modules, so that two machines can be seen to have had the same."""
    found = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        found.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def _hardware() -> str:
    words = [_processor(), f"{os.cpu_count()} cores"]
    if _on_gpu():
        words.append(torch.cuda.get_device_name())
    return ", ".join(words)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def reset_peak_memory() -> None:
    """Begin to watch memory anew, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    if _on_gpu():
        torch.cuda.reset_peak_memory_stats()


def peak_memory() -> dict[str, Any]:
    """Most memory since :func:`reset_peak_memory`, in MB; where the system cannot begin anew, since the start."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith(_HIGH_WATER))
    gpu = torch.cuda.max_memory_allocated() / 2**20 if _on_gpu() else None
    return {"peak_memory_mb": peak, "peak_gpu_memory_mb": gpu}


def release_memory() -> None:
    """Give back what this process keeps of a GPU for later, as others may share it."""
    if _on_gpu():
        torch.cuda.empty_cache()


def _on_gpu() -> bool:
    """Whether this process has used a GPU; to ask it otherwise would start one."""
    return torch.cuda.is_available() and bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
