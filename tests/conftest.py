"""Set-up of all tests."""

from __future__ import annotations

import os

# Before torch and numba are imported: tests run side by side, and waiting threads would spin against each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Some sandboxes announce AMX and forbid it: a product in bfloat16 would end the process (subgnn.training.precision).
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
