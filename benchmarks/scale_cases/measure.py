"""Measure a command from outside: time, processor time, and two kinds of memory.

*Resident* is all memory of its largest process, also pages of mapped files, which the system can reclaim; *anonymous*
is the memory of all its processes that it cannot, and files that they share in memory. Both are peaks; the second is
sampled five times a second.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil


def _unreclaimable(pid: int) -> int:
    """Bytes of a process and its descendants that the system cannot reclaim; files in memory count once."""
    total = 0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                used = one.memory_info()
                total += used.rss - used.shared
        for path in Path("/dev/shm").glob(f"subgnn-{pid}-*/*"):
            with suppress(OSError):
                total += path.stat().st_size
    return total


def measure(words: list[str], *, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a command to its end; returns its costs, its standard output and the end of its standard error."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        begin = time.perf_counter()
        process = subprocess.Popen(words, stdout=out, stderr=error, env={**os.environ, **(environment or {})})
        anonymous = 0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            anonymous = max(anonymous, _unreclaimable(process.pid))
            time.sleep(0.2)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begin
        out.seek(0)
        error.seek(0)
        # The kernel counts in kilobytes, but for macOS, which counts in bytes.
        scale = 1 if sys.platform == "darwin" else 1024
        return {
            "code": process.returncode,
            "seconds": round(seconds, 2),
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
            "resident_mb": round(usage.ru_maxrss * scale / 1e6),
            "anonymous_mb": round(anonymous / 1e6),
            "out": out.read().decode(errors="replace"),
            "error": error.read().decode(errors="replace").strip()[-400:],
        }
