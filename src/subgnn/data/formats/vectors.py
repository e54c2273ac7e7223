"""Arrays of vectors as files: read and write .npy."""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError

_HEADER = 128
_MAX_HEADER = 10_000
_DAMAGE = (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError, OverflowError)


def read_npy(path: Path, what: str = "an array") -> NDArray[Any]:
    """An .npy file of numbers, mapped into memory; its header must describe the file to the byte.

    Args:
        what: the content, for errors.

    Raises:
        DataError: for another or a damaged file, or one that does not hold numbers.
    """
    where, hint = str(path), "write it with numpy.save"
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            begin = file.read(8)
            length = int.from_bytes(file.read(2 if begin[6:7] == b"\x01" else 4), "little")
            head = file.read(length) if length <= _MAX_HEADER else b""
            start = file.tell()
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=where) from None
    if begin.startswith(b"PK"):
        raise DataError(
            "this is an archive of arrays", where=where, hint="one array, written with numpy.save, is accepted"
        )
    try:
        if begin not in (b"\x93NUMPY\x01\0", b"\x93NUMPY\x02\0", b"\x93NUMPY\x03\0") or len(head) != length:
            raise ValueError
        header = ast.literal_eval(head.decode("utf-8").strip())
        dtype, shape = _plain_type(header["descr"]), tuple(header["shape"])
        if set(header) != {"descr", "fortran_order", "shape"} or not isinstance(header["fortran_order"], bool):
            raise ValueError
        if not all(type(extent) is int and extent >= 0 for extent in shape):
            raise ValueError
    except _DAMAGE:
        raise DataError("this is not an .npy array of numbers, or it is damaged", where=where, hint=hint) from None
    if dtype.kind not in "fiub":
        raise DataError(f"{what} of type {dtype}", where=where, hint="numbers are accepted")
    needed = math.prod(shape) * dtype.itemsize
    if start + needed != size:
        what = f"the header states {needed:,} bytes of numbers, but the file has {size - start:,}"
        raise DataError(what, where=where, hint=f"was it copied whole? {hint}")
    if needed == 0:
        return np.empty(shape, dtype)
    order: Any = "F" if header["fortran_order"] else "C"
    return np.memmap(path, dtype, mode="r", offset=start, shape=shape, order=order)


def _plain_type(text: Any) -> np.dtype[Any]:
    """The type of an array of numbers or text; not of objects or records."""
    dtype = np.dtype(text if isinstance(text, str) and text.isascii() and len(text) < 8 else "V")
    if dtype.kind in "OV" or dtype.subdtype is not None:
        raise ValueError
    return dtype


def _npy_header(rows: int, width: int) -> bytes:
    """The header of an .npy file of format 1.0, of a length that does not depend on the number of rows."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}".encode()
    start = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
    return start + text.ljust(_HEADER - 11) + b"\n"


def write_npy(path: Path, chunks: Iterable[NDArray[np.float32]]) -> tuple[int, int]:
    """Write vectors, some at a time; returns their shape."""
    rows, width = 0, 0
    with path.open("wb") as file:
        file.write(_npy_header(0, 0))
        for vectors in chunks:
            file.write(np.ascontiguousarray(vectors, "<f4").data)
            rows, width = rows + len(vectors), vectors.shape[1]
        file.seek(0)
        file.write(_npy_header(rows, width))
    return rows, width
