"""The command line: parse, call one library function, print."""

import os

# Before numba and torch load their threads: by default a waiting thread spins for long, and two runs on one machine
# then slow each other down a hundredfold (docs/scale.md).
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
