"""Vectors as files: read and write .npy, and read tables with subgraphs beside their vectors."""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.tables import Table, read_table, reason
from subgnn.errors import DataError

_HEADER = 128
_MAX_HEADER = 10_000
VECTOR_FILES = (".npy", ".parquet", ".csv", ".tsv", ".jsonl")
"""Endings of the files that ``subgnn embed`` writes."""
_TITLE = "vector"
_DAMAGE = (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError, OverflowError)


def read_npy(path: Path, what: str = "an array") -> NDArray[Any]:
    """An .npy file of numbers, mapped into memory; its header must describe the file to the byte."""
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
        accepted = "one array, written with numpy.save, is accepted"
        raise DataError("this is an archive of arrays", where=where, hint=accepted)
    try:
        if begin not in (b"\x93NUMPY\x01\0", b"\x93NUMPY\x02\0", b"\x93NUMPY\x03\0") or len(head) != length:
            raise ValueError
        header = ast.literal_eval(head.decode("utf-8").strip())
        kind, shape, is_fortran = header["descr"], tuple(header["shape"]), header["fortran_order"]
        dtype = np.dtype(kind if isinstance(kind, str) and kind.isascii() and len(kind) < 8 else "V")
        if set(header) != {"descr", "fortran_order", "shape"} or not isinstance(is_fortran, bool):
            raise ValueError
        if not all(type(extent) is int and extent >= 0 for extent in shape):
            raise ValueError
        if dtype.kind in "OV" or dtype.subdtype is not None:  # objects and records
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
    return np.memmap(path, dtype, mode="r", offset=start, shape=shape, order="F" if is_fortran else "C")


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


@dataclass(frozen=True, slots=True, eq=False)
class VectorTable:
    """Subgraphs by their vectors (n, width), as ``subgnn embed`` writes them; NaN for a subgraph without a vector.

    ``names`` are those of the subgraphs, or the texts of their nodes; row numbers where the file has vectors alone.
    """

    vectors: NDArray[np.float32]
    names: Sequence[str]
    labels: Sequence[str] | None = None
    splits: Sequence[str] | None = None


def is_vector_file(path: Path) -> bool:
    """Whether a path ends like a file of vectors."""
    return path.suffix in VECTOR_FILES


def read_vectors(path: Path) -> VectorTable:
    """Read a file that ``subgnn embed`` wrote, or one like it: .npy, or a table.

    In a table, a column ``vector`` has lists of numbers, or columns ``vector_0``, ``vector_1``, ... have a number each.
    Names are in a column ``name`` or else ``subgraph``, labels in ``label``, splits in ``split``.
    """
    where = str(path)
    if path.suffix == ".npy":
        array = read_npy(path, "vectors")
        if array.ndim != 2:
            raise DataError(f"the array has shape {array.shape}", where=where, hint="accepted: a row for each vector")
        with np.errstate(over="ignore"):
            return VectorTable(array.astype(np.float32, copy=False), list(map(str, range(len(array)))))
    table = read_table(path)
    vectors = _lists(table) if _TITLE in table.titles else _columns(table)

    def texts(*titles: str) -> list[str] | None:
        title = next((one for one in titles if one in table.titles), None)
        return None if title is None else table.cells(title, title).to_pylist()

    names = texts("name", "subgraph")
    names = list(map(str, range(len(vectors)))) if names is None else names
    return VectorTable(vectors, names, texts("label"), texts("split"))


def _lists(table: Table) -> NDArray[np.float32]:
    """Vectors in a column of lists."""
    from pyarrow import compute

    if not table.is_list(_TITLE):
        raise DataError(f"the column '{_TITLE}' has no lists", where=table.where, hint="write it with subgnn embed")
    column = table.data.column(_TITLE)
    lengths = np.asarray(compute.fill_null(compute.list_value_length(column), 0))
    if len(set(lengths.tolist())) > 1:
        row = int(np.argmax(lengths != lengths[0]))
        what = f"this vector has {lengths[row]} numbers, but others have {lengths[0]}"
        raise DataError(what, where=table.place(row), hint="all vectors must have the same length")
    numbers = _numbers(compute.list_flatten(column), table)
    return numbers.reshape(len(table), lengths[0] if len(lengths) else 0)


def _columns(table: Table) -> NDArray[np.float32]:
    """Vectors with a column for each number."""
    width = 0
    while f"{_TITLE}_{width}" in table.titles:
        width += 1
    if width == 0:
        what, hint = "no vectors", f"accepted: a column '{_TITLE}' of lists, or columns '{_TITLE}_0', '{_TITLE}_1', ..."
        raise DataError(what, where=table.where, hint=f"{hint}, as subgnn embed writes them")
    return np.stack([_numbers(table.data.column(f"{_TITLE}_{i}"), table) for i in range(width)], axis=1)


def _numbers(column: Any, table: Table) -> NDArray[np.float32]:
    """Numbers of 32 bits, with NaN for an empty cell."""
    import pyarrow as pa
    from pyarrow import compute

    try:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = compute.utf8_trim_whitespace(column)
            column = compute.if_else(compute.equal(column, ""), pa.scalar(None, column.type), column)
        values = compute.fill_null(compute.cast(column, pa.float64()), math.nan)
    except pa.ArrowException as error:
        raise DataError(f"the vectors are not all numbers ({reason(error)})", where=table.where) from None
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(np.float32)
