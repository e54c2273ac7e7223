"""Several processes on one CUDA device at once, by NVIDIA's Multi-Process Service (MPS).

Without it, the device runs kernels of one process at a time and switches between processes, which leaves most of it
idle where each has small kernels. The service is a control daemon, ``nvidia-cuda-mps-control``, that processes find by
a folder of pipes. One with a folder of its own is started for the workers of this process, unless one runs already.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

CONTROL = "nvidia-cuda-mps-control"
PIPES = "CUDA_MPS_PIPE_DIRECTORY"
_LOGS, _VISIBLE = "CUDA_MPS_LOG_DIRECTORY", "CUDA_VISIBLE_DEVICES"
_SECONDS = 20
_LOG = logging.getLogger("subgnn.parallel")


@dataclass(frozen=True, slots=True)
class GpuSharing:
    """The service that was started for workers; ``folder`` is empty if there is none."""

    folder: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which workers find it."""
        return {PIPES: self.folder, _LOGS: self.folder} if self.folder else {}

    def stop(self) -> None:
        """End the service, after the workers have ended."""
        if self.folder:
            with suppress(OSError, subprocess.SubprocessError):
                _control("quit -t 5", self.environment)
            shutil.rmtree(self.folder, ignore_errors=True)


def start_gpu_sharing() -> GpuSharing:
    """Start the service if the machine has it, it is not running, and it works; a failure is logged, and no error."""
    hidden = os.environ.get(_VISIBLE, "all").strip() in ("", "-1")
    if hidden or os.environ.get(PIPES) or shutil.which(CONTROL) is None:
        return GpuSharing()
    started = GpuSharing()
    try:
        if _control("get_server_list").returncode == 0:
            return GpuSharing()  # a daemon runs, and workers find it where it usually is
        started = GpuSharing(tempfile.mkdtemp(prefix="subgnn-mps-"))
        _run([CONTROL, "-d"], started.environment).check_returncode()
        # A server that cannot start would fail every worker, so it is started before them.
        _control(f"start_server -uid {os.getuid()}", started.environment)
        if _control("get_server_list", started.environment).stdout.strip():
            return started
        why = "its server does not start"
    except (OSError, subprocess.SubprocessError) as error:
        why = " ".join(str(error).split())
    started.stop()
    _LOG.warning("processes take turns on the GPU: %s cannot be used (%s)", CONTROL, why)
    return GpuSharing()


def _control(command: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return _run([CONTROL], environment, command + "\n")


def _run(words: list[str], environment: Mapping[str, str] | None, text: str = "") -> subprocess.CompletedProcess[str]:
    variables = os.environ | dict(environment or {})
    return subprocess.run(
        words, input=text, env=variables, check=False, capture_output=True, text=True, timeout=_SECONDS
    )
