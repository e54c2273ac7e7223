"""Randomness with a name.

Every draw of the library comes from a stream that is a function of a seed and of a name, so that adding one kind of
draw never moves another's, and nothing reads or sets a global seed.
"""

import hashlib

import numpy as np


def stream_key(seed: int, name: str) -> int:
    """The 64-bit key of a named stream, as the compiled kernels take it."""
    digest = hashlib.blake2b(f"{seed}\x1f{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def stream(seed: int, name: str) -> np.random.Generator:
    """A NumPy generator for the stream ``name`` under ``seed``."""
    return np.random.Generator(np.random.PCG64(stream_key(seed, name)))
