"""Measure a process from outside: time, processor time, and two kinds of memory.

*Resident* is all memory of the process, also pages of mapped files, which the system can reclaim; *anonymous* is the
memory that it cannot. Both are peaks; the second is sampled ten times a second.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def _status(pid: int) -> dict[str, int]:
    """Kilobytes by name, from the kernel; empty if the process or the file does not exist."""
    try:
        with Path(f"/proc/{pid}/status").open(encoding="ascii", errors="replace") as file:
            return {
                name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in file) if "kB" in rest
            }
    except OSError:
        return {}


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
            anonymous = max(anonymous, _status(process.pid).get("RssAnon", 0))
            time.sleep(0.1)
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
            "anonymous_mb": round(anonymous * 1024 / 1e6),
            "out": out.read().decode(errors="replace"),
            "error": error.read().decode(errors="replace").strip()[-400:],
        }
