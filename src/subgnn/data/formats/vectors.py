"""Arrays as .npy files, mapped into memory or written some rows at a time."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError

_HEADER = 128


def read_npy(path: Path, what: str = "an array") -> NDArray[Any]:
    """An .npy file of numbers, mapped into memory; a file that is shorter or longer than its header says is refused."""
    where, hint = str(path), "write it with numpy.save"
    try:
        with np.errstate(over="ignore"):  # of a shape without end, which is then refused
            array = np.lib.format.open_memmap(path, mode="r")
        if path.stat().st_size != array.offset + array.nbytes:
            raise ValueError
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=where) from None
    except Exception:  # of any kind, from a damaged header
        what = "this is not an .npy array of numbers, or it is damaged"
        raise DataError(what, where=where, hint=f"was it copied whole? {hint}") from None
    if array.dtype.kind not in "fiub":
        raise DataError(f"{what} of type {array.dtype}", where=where, hint="numbers are accepted")
    return array


def write_npy(path: Path, chunks: Iterable[NDArray[np.float32]]) -> tuple[int, int]:
    """Write vectors, some at a time; returns their shape."""
    rows, width = 0, 0
    start = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
    with path.open("wb") as file:
        file.write(bytes(_HEADER))
        for vectors in chunks:
            file.write(np.ascontiguousarray(vectors, "<f4").data)
            rows, width = rows + len(vectors), vectors.shape[1]
        # A header of format 1.0, of a length that does not depend on the number of rows.
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}".encode()
        file.seek(0)
        file.write(start + header.ljust(_HEADER - 11) + b"\n")
    return rows, width
