"""Vectors of subgraphs as files, written a chunk at a time: .npy, or .parquet with the subgraphs beside them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Chunks = Iterable[tuple[list[str], NDArray[np.float32]]]
_HEADER = 128


def _npy_header(rows: int, width: int) -> bytes:
    """The header of an .npy file of format 1.0, of a length that does not depend on the number of rows."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}".encode()
    start = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
    return start + text.ljust(_HEADER - 11) + b"\n"


def write_npy(path: Path, chunks: Chunks) -> tuple[int, int]:
    """Write vectors alone; returns their shape."""
    rows, width = 0, 0
    with path.open("wb") as file:
        file.write(_npy_header(0, 0))
        for _, vectors in chunks:
            file.write(np.ascontiguousarray(vectors, "<f4").data)
            rows, width = rows + len(vectors), vectors.shape[1]
        file.seek(0)
        file.write(_npy_header(rows, width))
    return rows, width


def write_parquet(path: Path, chunks: Chunks) -> tuple[int, int]:
    """Write a column of subgraphs and one of vectors; returns the shape of the latter."""
    import pyarrow as pa
    from pyarrow import parquet

    rows, width, writer = 0, 0, None
    try:
        for texts, vectors in chunks:
            rows, width = rows + len(vectors), vectors.shape[1]
            flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), width)
            table = pa.table({"subgraph": texts, "vector": flat})
            if writer is None:
                writer = parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    return rows, width
