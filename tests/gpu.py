"""Kernels of a GPU in tests: run on a GPU or in Triton's interpreter (TRITON_INTERPRET=1), or compiled for an H200."""

from __future__ import annotations

import os

import pytest
import torch

from subgnn.kernels.lstm_gpu import AVAILABLE

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
runs_kernels = pytest.mark.skipif(
    not AVAILABLE or not (INTERPRETED or torch.cuda.is_available()), reason="needs Triton, and a GPU or its interpreter"
)
compiles_kernels = pytest.mark.skipif(not AVAILABLE or INTERPRETED, reason="needs Triton")


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter of Triton 3.6 takes the integer of an array with one element, which numpy 2.4 refuses."""
    if INTERPRETED and AVAILABLE:
        from triton.runtime import interpreter

        patch = interpreter._patch_lang_tensor

        def patched(tensor, scope) -> None:
            patch(tensor, scope)
            scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

        monkeypatch.setattr(interpreter, "_patch_lang_tensor", patched)


def compile_only(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Compile for an H200 what is launched from now on, without running it; gives the shared memory of each kernel."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    class Driver:
        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int) -> int:
            return 0

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cpu")

    run = JITFunction.run
    memory: list[int] = []

    def compile_alone(self, *args, warmup, **options) -> None:
        memory.append(run(self, *args, warmup=True, **options).metadata.shared)

    monkeypatch.setattr(JITFunction, "run", compile_alone)
    monkeypatch.setattr(driver, "_active", Driver())
    return memory
