"""The command line: parse, call one library function, print."""

import os

# Before numba and torch load their threads: by default a waiting thread spins for long, and two runs on one machine
# then slow each other down a hundredfold (docs/performance.md).
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
# Numba sets the number of threads of OpenMP, which PyTorch shares, to its own when it starts them.
_threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
if _threads.isdigit() and int(_threads):
    os.environ.setdefault("NUMBA_NUM_THREADS", _threads)
