"""Write tables as CSV, TSV, Parquet or JSON lines, in parts, so that a table may have any number of rows."""

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Literal

import numpy as np

from subgnn.storage.files import STANDARD_STREAM, atomic_write, finite

TableFormat = Literal["csv", "tsv", "parquet", "jsonl"]
FORMATS: dict[str, TableFormat] = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".jsonl": "jsonl"}
"""Formats of tables by the ending of a file's name."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
Part = Sequence[Sequence[Any]]
"""A batch of rows of a table, as one sequence of values per column."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; a cell has ``width`` values, if given: in CSV and TSV, each is a column of its own."""

    title: str
    kind: type[str] | type[int] | type[float] = str
    width: int | None = None

    @property
    def titles(self) -> list[str]:
        return [self.title] if self.width is None else [f"{self.title}_{i}" for i in range(self.width)]


def distinct(titles: Iterable[tuple[str, str]]) -> list[str]:
    """Titles that differ: pairs of a title and the prefix that it gets where an earlier column has the same title."""
    found: dict[str, None] = {}
    for title, prefix in titles:
        while title in found:
            title = (prefix or "_") + title
        found[title] = None
    return list(found)


def not_a_formula(cell: str) -> str:
    """A cell as a spreadsheet shows it and does not compute it: with a quote before ``=``, ``+``, ``-`` or ``@``."""
    return f"'{cell}" if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell) else cell


def write_table(
    file: IO[bytes], form: TableFormat, columns: Sequence[Column], parts: Iterable[Part], *, excel_safe: bool = False
) -> None:
    """Write a table to a file that is open for bytes, with six significant digits; no formulas if ``excel_safe``."""
    if form == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        types = {str: pa.string(), int: pa.int64(), float: pa.float32()}
        schema = pa.schema(
            (column.title, types[column.kind] if column.width is None else pa.list_(types[column.kind], column.width))
            for column in columns
        )
        with parquet.ParquetWriter(file, schema) as writer:
            for part in parts:
                arrays = []
                for column, values in zip(columns, part, strict=True):
                    array = pa.array(values if column.width is None else np.ravel(values), types[column.kind])
                    wide = column.width is not None
                    arrays.append(pa.FixedSizeListArray.from_arrays(array, column.width) if wide else array)
                writer.write_table(pa.table(arrays, schema))
        return
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
    try:
        if form == "jsonl":
            for part in parts:
                text.writelines(_json_line(columns, row) for row in zip(*part, strict=True))
        else:
            # The writer quotes cells that hold a character of its line end; a bare "\r" would end the row.
            lines = SimpleNamespace(write=lambda line: text.write(line.removesuffix("\r\n") + "\n"))
            rows = csv.writer(lines, delimiter="," if form == "csv" else "\t", lineterminator="\r\n")
            safe = not_a_formula if excel_safe else str
            rows.writerow(safe(title) for column in columns for title in column.titles)
            for part in parts:
                rows.writerows(
                    [
                        "" if one is None else f"{one:.6g}" if column.kind is float else safe(str(one))
                        for column, value in zip(columns, row, strict=True)
                        for one in ([value] if column.width is None else value)
                    ]
                    for row in zip(*part, strict=True)
                )
    finally:
        text.detach()


def _json_line(columns: Sequence[Column], row: Sequence[Any]) -> str:
    found: dict[str, Any] = {}
    for column, value in zip(columns, row, strict=True):
        values = [value] if column.width is None else value
        plain = [float(f"{one:.6g}") if column.kind is float and one is not None else one for one in values]
        found[column.title] = plain[0] if column.width is None else plain
    return json.dumps(finite(found), ensure_ascii=False) + "\n"


@contextmanager
def open_output(out: Path, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that is written whole or not at all; ``-`` is the standard output."""
    if out == STANDARD_STREAM:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with atomic_write(out, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        yield file
