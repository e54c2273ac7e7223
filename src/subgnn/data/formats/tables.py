"""Tables of any kind, with every cell as the text that was written: the reader behind all commands that take tables.

CSV, TSV and text separated by ``;``, ``|`` or spaces (plain or gzipped, with or without a header, whatever the name of
the file), Parquet, Excel and JSON lines; in Python also data frames. Text is parsed by pyarrow; ``007`` and ``7`` are
two ids, and ids may have any number of digits.
"""

from __future__ import annotations

import csv as plain_csv
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subgnn.data.formats.table import Table, UnequalRows, reason
from subgnn.data.formats.text import open_unpacked, read_bytes, read_lines, too_much_unpacked, unpacked_limit
from subgnn.errors import DataError, extra_package
from subgnn.storage.files import parse_json

if TYPE_CHECKING:
    import pyarrow as pa

Source = Path | str | Any
"""A path; or a data frame: anything that ``pyarrow.table`` accepts."""
ACCEPTED = "CSV, TSV, Parquet, Excel (.xlsx) or JSON lines"
_SAMPLE = 2**16
_DELIMITERS = "\t,;|"
_BY_NAME = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_MAX_EXCEL = 20_000_000


def read_table(source: Source, *, encoding: str | None = None) -> Table:
    """Read a table from a file, whose kind is found by its content, or from a data frame.

    The first line of a text table or a sheet is taken as the header; :meth:`Table.without_header` gives it back.
    Without an ``encoding``, text is UTF-8, or UTF-16 if the file begins with its mark.
    """
    import pyarrow as pa

    if not isinstance(source, str | Path):
        return _from_frame(source)
    path = Path(source)
    if not path.is_file():
        what = "this is a folder, not a table" if path.is_dir() else "no such file"
        raise DataError(what, where=str(path), hint="check the path")
    try:
        with open_unpacked(path) as file:
            begin = file.read(_SAMPLE)
        if begin[:4] == b"PAR1" or path.suffix == ".parquet":
            return _read_parquet(path)
        if begin[:4] == b"PK\x03\x04":
            return _read_excel(path)
        if begin.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
            return _read_json_lines(path)
        return _read_text(path, begin, encoding)
    except (pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error, plain_csv.Error) as error:
        if "UTF8" in str(error) or isinstance(error, UnicodeError):
            what = f"this is not text in {encoding or 'UTF-8'}"
            hint = "save it as UTF-8" if encoding else "pass --encoding latin-1 if it is from Excel or Windows"
            raise DataError(what, where=str(path), hint=hint) from None
        what = f"this cannot be read as a table ({reason(error)})"
        kind = UnequalRows if "Expected" in str(error) and "columns" in str(error) else DataError
        raise kind(what, where=str(path), hint=f"accepted: {ACCEPTED}") from None


def _from_frame(frame: Any) -> Table:
    import pyarrow as pa

    try:
        data = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = f"a {type(frame).__name__} is not a table ({reason(error)})"
        raise DataError(what, where="table", hint="a path or a data frame is accepted") from None
    data = pa.table([_without_views(column) for column in data.columns], names=data.column_names)
    # pandas stores its index as a column of this name, where it is not a plain range.
    return Table("table", data.drop_columns([t for t in data.column_names if t.startswith("__index_level_")]))


def _without_views(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column with plain text in place of views of text, which polars gives and few functions of pyarrow take."""
    import pyarrow as pa

    kind, text = column.type, pa.large_string()
    if "string_view" not in str(kind):
        return column
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([chunk.dictionary.cast(text).take(chunk.indices) for chunk in column.chunks], text)
    return column.cast(text if str(kind) == "string_view" else pa.large_list(text))


def _read_parquet(path: Path) -> Table:
    """Read Parquet; a file whose few bytes stand for more cells, or unpack to more, than graphs need is refused."""
    from pyarrow import parquet

    metadata, limit = parquet.read_metadata(path), unpacked_limit(path.stat().st_size)
    groups = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if max(groups, metadata.num_rows * metadata.num_columns) > limit:
        raise too_much_unpacked(limit, str(path))
    return Table(str(path), parquet.read_table(path), kind="parquet")


def check_unpacked(path: Path) -> None:
    """Refuse a zip, as .xlsx, .npz and .pt are, whose parts unpack to more than a file of its size may."""
    if not zipfile.is_zipfile(path):
        return
    limit = unpacked_limit(path.stat().st_size)
    with zipfile.ZipFile(path) as packed:
        if sum(info.file_size for info in packed.infolist()) > limit:
            raise too_much_unpacked(limit, str(path))


def _read_excel(path: Path) -> Table:
    """The first sheet of a workbook, with cells as they are stored; values of formulas, not formulas."""
    with extra_package("openpyxl", extra="excel", feature="a workbook of Excel"):
        import openpyxl
    try:
        check_unpacked(path)
        with path.open("rb") as file:  # by its path, a workbook of another name would be refused
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            rows = [[_excel_text(cell) for cell in row] for row in _bounded(book.worksheets[0].values, str(path))]
    except DataError:
        raise
    except Exception as error:  # of any kind, from a damaged file
        what = f"this cannot be read as a workbook of Excel ({type(error).__name__})"
        raise DataError(what, where=str(path), hint=f"accepted: {ACCEPTED}") from None
    rows = [row for row in rows if any(row)]
    if not rows:
        raise DataError("the first sheet is empty", where=str(path), hint="a header and rows below it are needed")
    width = 1 + max(i for row in rows for i, cell in enumerate(row) if cell)
    padded = [(row + [""] * width)[:width] for row in rows]
    return _with_header(str(path), padded[0], [list(c) for c in zip(*padded[1:], strict=True)] or [[]] * width, "xlsx")


def _bounded(rows: Iterator[Sequence[Any]], where: str) -> Iterator[Sequence[Any]]:
    """Rows without the empty cells at their ends: one far cell makes a sheet of 17 thousand million cells."""
    cells = 0
    for row in rows:
        cells += len(row)
        if cells > _MAX_EXCEL:
            hint = "delete what stands far outside of the table, or save it as CSV"
            raise DataError(f"a sheet of more than {_MAX_EXCEL:,} cells", where=where, hint=hint)
        last = next((i for i in range(len(row), 0, -1) if row[i - 1] is not None), 0)
        yield row[:last]


def _excel_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value).strip()


def _with_header(where: str, header: Sequence[str], columns: Sequence[Sequence[str]], kind: str) -> Table:
    import pyarrow as pa

    # pa.array imports pandas, where it is installed.
    cells = [pa.array(column, pa.string()) if column else pa.nulls(0, pa.string()) for column in columns]
    data = pa.table(cells, names=[cell.strip() for cell in header])
    return Table(where, data, tuple(header), kind)


def _read_json_lines(path: Path) -> Table:
    """Objects, one in each line; a list is the nodes, or the labels, of a subgraph."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {}
    for count, (number, line) in enumerate(read_lines(path)):
        row = parse_json(line, f"{path}:{number}", "a JSON object in each line is accepted", numbers=str)
        if not isinstance(row, dict):
            what = f"a JSON {type(row).__name__}"
            raise DataError(what, where=f"{path}:{number}", hint="an object in each line is accepted")
        for key in row.keys() - columns.keys():
            columns[key] = [None] * count
        for key, column in columns.items():
            column.append(_json_cell(row.get(key), f"{path}:{number}"))
    kinds = {key: pa.list_(pa.string()) if _any_list(column) else pa.string() for key, column in columns.items()}
    arrays = {
        key: pa.array(_as_lists(column) if _any_list(column) else column, kinds[key]) for key, column in columns.items()
    }
    return Table(str(path), pa.table(arrays), kind="json lines")


def _any_list(column: list[Any]) -> bool:
    return any(isinstance(cell, list) for cell in column)


def _as_lists(column: list[Any]) -> list[list[str] | None]:
    return [cell if isinstance(cell, list) or cell is None else [cell] for cell in column]


def _json_cell(value: Any, where: str) -> str | list[str] | None:
    if isinstance(value, list):
        return [str(_json_cell(item, where) or "") for item in value]
    if isinstance(value, dict):
        raise DataError("an object within an object", where=where, hint="texts, numbers and lists of these")
    return None if value is None else json.dumps(value) if isinstance(value, bool) else str(value)


def _read_text(path: Path, begin: bytes, encoding: str | None) -> Table:
    import pyarrow as pa
    from pyarrow import csv

    encoding = encoding or ("utf-16" if begin[:2] in _UTF16 else "utf-8-sig")
    lines = begin.decode(encoding, "replace").splitlines(keepends=True)
    if len(begin) == _SAMPLE and len(lines) > 1:
        lines.pop()  # cut off
    skipped = _comments(lines)
    lines = [line for line in lines[skipped:] if line.strip()]
    delimiter = find_delimiter(lines, path)
    if delimiter == " ":
        return _read_spaced(path, skipped, encoding)
    header = next(plain_csv.reader(lines, delimiter=delimiter), None)
    if header is None:
        raise DataError("the file is empty", where=str(path), hint=f"accepted: {ACCEPTED}")
    if len(lines) == 1:
        return _with_header(str(path), header, [[]] * len(header), delimiter)
    # Ids are text: 007 and 7 are two nodes, and ids may have any number of digits.
    titles = [f"f{i}" for i in range(len(header))]
    convert = csv.ConvertOptions(column_types=dict.fromkeys(titles, pa.string()), strings_can_be_null=False)
    known = "utf8" if encoding == "utf-8-sig" else encoding

    def read(*, use_threads: bool) -> pa.Table:
        # pyarrow itself would unpack a compressed file without limit.
        with path.open("rb") as file:
            plain = begin == file.read(len(begin))
        with pa.OSFile(str(path)) if plain else open_unpacked(path) as file:
            options = csv.ReadOptions(
                use_threads=use_threads, skip_rows=skipped, autogenerate_column_names=True, encoding=known
            )
            parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=not use_threads)
            return csv.read_csv(file, read_options=options, parse_options=parse, convert_options=convert)

    try:
        data = read(use_threads=True)
    except pa.ArrowInvalid:
        data = read(use_threads=False)  # which reports the number of the bad row, and accepts line ends in quotes
    first = [str(column[0]).removeprefix("\ufeff") for column in data.columns]
    names = [cell.strip() for cell in first]
    names[0] = names[0].removeprefix("#").strip() if len(first) > 1 and not names[0][1:].isdigit() else names[0]
    return Table(str(path), data.slice(1).rename_columns(names), tuple(first), delimiter)


def _comments(lines: Sequence[str]) -> int:
    """The number of lines before the table that begin with ``%`` or ``#`` and have other columns than those below."""
    leading = 0
    while leading < len(lines) and lines[leading].startswith(("%", "#")):
        leading += 1
    if not leading or leading == len(lines):
        return 0
    below = lines[leading]
    same = any(below.count(d) and lines[leading - 1].count(d) == below.count(d) for d in _DELIMITERS)
    rows = lines[leading - 1][1:2].isdigit()  # a row number
    return 0 if rows else leading - same


def find_delimiter(lines: Sequence[str], path: Path) -> str:
    """The delimiter of a text table: that which gives every line the same number of columns, and most of them.

    A space stands for any number of spaces and tabs. A file of one column has none, and gets a tab.
    """
    named = _BY_NAME.get(Path(path.name.removesuffix(".gz")).suffix)
    sample = list(lines[:200])
    widths = {d: [len(row) for row in plain_csv.reader(sample, delimiter=d) if row] for d in _DELIMITERS}
    even = {d: found[0] for d, found in widths.items() if found and found[0] > 1 and len(set(found)) == 1}
    if named is not None and (named in even or not even):
        return named
    if even:
        return max(even, key=lambda d: even[d])
    spaced = {len(line.split()) for line in sample}
    return " " if len(spaced) == 1 and spaced.pop() > 1 else "\t"


def _read_spaced(path: Path, skipped: int, encoding: str) -> Table:
    """A table whose columns are separated by spaces."""
    lines = read_bytes(path).decode(encoding).splitlines()[skipped:]
    rows = [cells for line in lines if (cells := line.split())]
    for number, cells in enumerate(rows, skipped + 1):
        if len(cells) != len(rows[0]):
            what = f"{len(cells)} columns, but {len(rows[0])} in the first row"
            raise UnequalRows(what, where=f"{path}:{number}", hint="separate columns by tabs or commas")
    columns = [list(column) for column in zip(*rows[1:], strict=True)] or [[] for _ in rows[0]]
    return _with_header(str(path), rows[0], columns, " ")
