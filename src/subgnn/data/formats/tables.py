"""Tables of any kind, with every cell as the text that was written: the reader behind all commands that take tables."""

from __future__ import annotations

import csv as plain_csv
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, csv

from subgnn.data.dataset import Problems
from subgnn.data.formats.text import check_unpacked_size, open_unpacked, read_bytes, read_lines
from subgnn.data.strings import parse_number
from subgnn.data.values import check_times, parse_times
from subgnn.errors import DataError, choices, excerpt, extra_package
from subgnn.storage.files import parse_json

Source = Path | str | Any
"""A path; or a data frame: anything that ``pyarrow.table`` accepts."""
ACCEPTED = "accepted: CSV, TSV, Parquet, Excel (.xlsx) or JSON lines"
_SAMPLE = 2**16
_DELIMITERS = "\t,;|"
_BY_NAME = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_MAX_EXCEL = 20_000_000
_FILL = "fill or drop empty cells"
_SHOWN = 5


class UnequalRows(DataError):
    """A text whose rows have unequal numbers of columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table, its columns by title; a cell is text, or a list of texts."""

    where: str
    data: pa.Table
    header: tuple[str, ...] | None = None  # the cells of a first line with the titles
    kind: str = "table"  # what the file was read as, such as its delimiter
    numbers_of_rows: NDArray[np.int64] | None = None  # of a part of a table, from 0

    @property
    def titles(self) -> list[str]:
        return cast("list[str]", self.data.column_names)

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def place(self, row: int) -> str:
        """The place of a row, counted from 0, for messages, which count from 1."""
        return f"{self.where}: row {self.number(row)}"

    def number(self, row: int) -> int:
        """The number of a row, counted from 0, as messages count, from 1."""
        return 1 + (row if self.numbers_of_rows is None else int(self.numbers_of_rows[row]))

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Some of the rows, whose places stay those of the whole table."""
        known = rows if self.numbers_of_rows is None else self.numbers_of_rows[rows]
        return replace(self, data=self.data.take(rows), numbers_of_rows=known)

    def complete_rows(self, titles: Mapping[str, str], refuse: Callable[[DataError], None]) -> Table:
        """The rows without an empty cell in columns of roles; the others are refused, once for each column."""
        keep = np.ones(len(self), np.bool_)
        for role, title in titles.items():
            empty = np.flatnonzero(np.asarray(compute.equal(self.cells(title, role), "")))
            if len(empty):
                keep[empty] = False
                refuse(self._empty(role, empty))
        return self if keep.all() else self.take(np.flatnonzero(keep))

    def _empty(self, noun: str, rows: NDArray[np.int64]) -> DataError:
        missing = f"the {noun} is missing" if noun in ("label", "split") else f"no {noun}"
        return DataError(f"{missing}{self.rows_text(rows)}", where=self.place(int(rows[0])), hint=_FILL)

    def rows_text(self, rows: Sequence[int] | NDArray[np.int64]) -> str:
        """How many rows there are, and the first of them, in brackets; empty for one, which the place names."""
        shown = ", ".join(str(self.number(int(row))) for row in rows[:_SHOWN]) + ", ..." * (len(rows) > _SHOWN)
        return f" ({len(rows):,} rows: {shown})" if len(rows) > 1 else ""

    def without_header(self) -> Table:
        """The table with its first line as a row like the others, and columns called ``column 1`` and so on."""
        if self.header is None:
            return self
        titles = [f"column {i + 1}" for i in range(len(self.header))]
        first = pa.table([[cell] for cell in self.header], names=titles)
        return Table(self.where, pa.concat_tables([first, self.data.rename_columns(titles)]), None, self.kind)

    def best_column(
        self, titles: Sequence[str], share: Callable[[list[str]], float], *, rows: int, least: float
    ) -> str | None:
        """The column of text whose first cells have the largest share; None if that is less than ``least``."""
        shares = {}
        for title in titles:
            with suppress(DataError):  # of another type than text and numbers
                if not self.is_list(title):
                    shares[title] = share(list(filter(None, self.cells(title, "label").slice(0, rows).to_pylist())))
        best = max(shares, key=lambda title: shares[title], default=None)
        return None if best is None or shares[best] < least else best

    def is_list(self, title: str) -> bool:
        return _is_any(self.column(title).type, pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)

    def cells(self, title: str, noun: str) -> pa.ChunkedArray:
        """The cells of a column of ``noun``s as text without spaces around it; an empty cell is ``""``."""
        column = self.column(title)
        if pa.types.is_dictionary(column.type):
            column = compute.cast(column, column.type.value_type)
        return self._text(column, noun)

    def lists(self, title: str, noun: str) -> list[list[str]]:
        column = self.column(title)
        lengths = np.asarray(compute.fill_null(compute.list_value_length(column), 0))
        values = iter(self._text(compute.list_flatten(column), noun).to_pylist())
        return [[next(values) for _ in range(length)] for length in lengths]

    def filled(self, title: str, noun: str) -> pa.ChunkedArray:
        """The cells of a column, none of which may be empty."""
        cells = self.cells(title, noun)
        empty = np.flatnonzero(np.asarray(compute.equal(cells, "")))
        if len(empty):
            raise self._empty(noun, empty)
        return cells

    def numbers(self, title: str) -> NDArray[np.float64]:
        """A column of weights: numbers that are finite in 32 bits; a decimal comma is accepted."""
        column = self.column(title)
        try:
            if _is_any(column.type, pa.types.is_string, pa.types.is_large_string):
                column = compute.utf8_trim_whitespace(column)
                if self.kind == ";":
                    column = compute.replace_substring(column, ",", ".")
            values = np.asarray(compute.cast(column, pa.float64()), np.float64)
        except pa.ArrowException as error:
            bad = [i for i, cell in enumerate(column.to_pylist()) if parse_number(str(cell)) is None]
            told = reason(error)
            if bad:
                first = f"row {self.number(bad[0])}: {excerpt(str(column[bad[0]].as_py()))}"
                told = first if len(bad) == 1 else f"{len(bad):,} rows; {first}"
            what = f"column '{title}' is not all numbers ({told})"
            raise DataError(what, where=self.where, hint="a weight is a finite number; fill or drop others") from None
        with np.errstate(over="ignore"):
            rows = np.flatnonzero(~np.isfinite(values.astype(np.float32)))
        if len(rows):
            what = f"weight {values[rows[0]]}{self.rows_text(rows)}"
            raise DataError(what, where=self.place(int(rows[0])), hint="weights must be finite numbers")
        return values

    def has_mostly_numbers(self, title: str) -> bool:
        """Whether most cells of a column, of the first thousands, are numbers."""
        with suppress(DataError):  # of another type than text and numbers
            cells = self.cells(title, "attribute").slice(0, _SAMPLE).to_pylist()
            return 2 * sum(parse_number(cell) is not None for cell in cells) > len(cells)
        return False

    def times(self, title: str) -> NDArray[Any]:
        """A column of times: numbers or dates, as :func:`~subgnn.data.values.parse_time` takes them."""
        column = self.column(title)
        if column.null_count:
            row = int(np.argmax(np.asarray(compute.is_null(column))))
            raise DataError("no time", where=self.place(row), hint=_FILL)
        if _is_any(column.type, pa.types.is_temporal, pa.types.is_integer, pa.types.is_floating):
            return check_times(column.to_numpy(), len(self), where=f"{self.where}: column '{title}'")
        cells = self.filled(title, "time").combine_chunks().dictionary_encode()
        codes = np.asarray(cells.indices)
        known = parse_times(cells.dictionary.to_pylist(), lambda code: self.place(int(np.argmax(codes == code))))
        return np.asarray(known[codes])

    def column(self, title: str) -> pa.ChunkedArray:
        count = self.titles.count(title)
        if count == 0:
            raise DataError(f"no column '{title}'", where=self.where, hint=choices(title, self.titles))
        if count > 1:
            what = f"two columns are called {excerpt(title)}"
            raise DataError(what, where=self.where, hint="name each one differently")
        return self.data.column(title)

    def _text(self, column: Any, noun: str) -> Any:
        """A column of text or whole numbers (of any numbers where it is a label or an attribute) as trimmed text."""
        kind, any_number = column.type, noun in ("label", "attribute")
        what = f"the {noun} column has type {kind}"
        types = pa.types
        texts = types.is_string, types.is_large_string, types.is_integer, types.is_null, types.is_boolean
        if types.is_floating(kind) and not any_number:
            # pandas turns a column of whole numbers with an empty cell into real ones.
            values = np.asarray(compute.fill_null(column, 0.0))
            exact = 2.0 ** (np.finfo(values.dtype).nmant + 1)  # from here on, not every whole number is one of them
            if not (np.isfinite(values) & (values == np.round(values)) & (np.abs(values) < exact)).all():
                hint = f"text or integers are accepted; as real numbers, whole ones below {exact:.0f}"
                raise DataError(what, where=self.where, hint=hint)
            column = compute.cast(column, pa.int64())
        elif not _is_any(kind, *texts, types.is_floating):
            hint = f"text or {'numbers' if any_number else 'integers'} are accepted"
            raise DataError(what, where=self.where, hint=hint)
        try:
            text = compute.cast(column, pa.string())
            text.validate(full=True)
        except pa.ArrowException as error:
            raise DataError(f"the {noun} column is not text ({reason(error)})", where=self.where) from None
        return compute.utf8_trim_whitespace(compute.fill_null(text, ""))


def _is_any(kind: pa.DataType, *tests: Any) -> bool:
    return any(test(kind) for test in tests)


def reason(error: Exception) -> str:
    """The message of a library, on one line and without raw bytes."""
    return ascii(" ".join(str(error).split())[:100])[1:-1]


def read_table(source: Source, *, encoding: str | None = None, problems: Problems | None = None) -> Table:
    """Read a table from a data frame, or from a file, whose kind is found by its content; text is UTF-8 by default."""
    if not isinstance(source, str | Path):
        try:
            data = pa.table(source)
        except (pa.ArrowException, TypeError, ValueError) as error:
            what = f"a {type(source).__name__} is not a table ({reason(error)})"
            raise DataError(what, where="table", hint="a path or a data frame is accepted") from None
        # pandas stores its index as a column of this name, where it is not a plain range.
        titles = [title for title in data.column_names if not title.startswith("__index_level_")]
        return Table("table", pa.table([_without_views(data.column(title)) for title in titles], names=titles))
    path = Path(source)
    if not path.is_file():
        what = "this is a folder, not a table" if path.is_dir() else "no such file"
        raise DataError(what, where=str(path), hint="check the path")
    try:
        with open_unpacked(path) as file:
            begin = file.read(_SAMPLE)
        if begin[:4] == b"PAR1" or path.suffix == ".parquet":
            from pyarrow import parquet

            # A file whose few bytes stand for more cells, or unpack to more, than graphs need is refused.
            metadata = parquet.read_metadata(path)
            groups = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
            check_unpacked_size(path, max(groups, metadata.num_rows * metadata.num_columns))
            return Table(str(path), parquet.read_table(path), kind="parquet")
        if begin[:4] == b"PK\x03\x04":
            return _read_excel(path)
        if begin.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
            return _read_json_lines(path)
        return _read_text(path, begin, encoding, problems)
    except (pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error, plain_csv.Error) as error:
        if "UTF8" in str(error) or isinstance(error, UnicodeError):
            what = f"this is not text in {encoding or 'UTF-8'}"
            hint = "save it as UTF-8" if encoding else "pass --encoding latin-1 if it is from Excel or Windows"
            raise DataError(what, where=str(path), hint=hint) from None
        raise DataError(f"this cannot be read as a table ({reason(error)})", where=str(path), hint=ACCEPTED) from None


def _without_views(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column with plain text in place of views of text, which polars gives and few functions of pyarrow take."""
    kind, text = column.type, pa.large_string()
    if "string_view" not in str(kind):
        return column
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([chunk.dictionary.cast(text).take(chunk.indices) for chunk in column.chunks], text)
    return column.cast(text if str(kind) == "string_view" else pa.large_list(text))


def check_unpacked(path: Path) -> None:
    """Refuse a zip, as .xlsx and .pt are, whose parts unpack to more than a file of its size may."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            check_unpacked_size(path, sum(info.file_size for info in packed.infolist()))


def _read_excel(path: Path) -> Table:
    """The first sheet of a workbook, with cells as they are stored; values of formulas, not formulas."""
    with extra_package("openpyxl", extra="formats", feature="an Excel workbook"):
        import openpyxl
    rows, cells = [], 0
    try:
        check_unpacked(path)
        with path.open("rb") as file:  # by its path, a workbook of another name would be refused
            for row in openpyxl.load_workbook(file, read_only=True, data_only=True).worksheets[0].values:
                cells += len(row)
                if cells > _MAX_EXCEL:  # one far cell makes a sheet of 17 thousand million cells
                    hint = "delete cells far outside the table, or save it as CSV"
                    raise DataError(f"the sheet has more than {_MAX_EXCEL:,} cells", where=str(path), hint=hint)
                whole = (int(x) if isinstance(x, float) and x.is_integer() and abs(x) < 2**53 else x for x in row)
                rows.append(["" if x is None else str(x).strip() for x in whole])
    except DataError:
        raise
    except Exception as error:  # of any kind, from a damaged file
        what = f"this cannot be read as an Excel workbook ({type(error).__name__})"
        raise DataError(what, where=str(path), hint=ACCEPTED) from None
    rows = [row for row in rows if any(row)]
    if not rows:
        raise DataError("the first sheet is empty", where=str(path), hint="a header and rows below it are needed")
    width = 1 + max(i for row in rows for i, cell in enumerate(row) if cell)
    return _from_rows(str(path), [(row + [""] * width)[:width] for row in rows], "xlsx")


def _from_rows(where: str, rows: Sequence[Sequence[str]], kind: str) -> Table:
    """A table of rows of one length, the first of which is the header."""
    below = [cells for _, *cells in zip(*rows, strict=True)]
    # pa.array imports pandas, where it is installed.
    columns = [pa.array(cells, pa.string()) if cells else pa.nulls(0, pa.string()) for cells in below]
    return Table(where, pa.table(columns, names=[cell.strip() for cell in rows[0]]), tuple(rows[0]), kind)


def _read_json_lines(path: Path) -> Table:
    """Objects, one in each line; a list is the nodes, or the labels, of a subgraph."""
    rows: list[dict[str, Any]] = []
    for number, line in read_lines(path):
        where = f"{path}:{number}"
        row = parse_json(line, where, "a JSON object in each line is accepted", numbers=str)
        if not isinstance(row, dict):
            raise DataError(f"a JSON {type(row).__name__}", where=where, hint="an object in each line is accepted")
        rows.append({key: _json_cell(value, where) for key, value in row.items()})
    arrays = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        column, kind = [row.get(key) for row in rows], pa.string()
        if any(isinstance(cell, list) for cell in column):
            column = [cell if isinstance(cell, list) or cell is None else [cell] for cell in column]
            kind = pa.list_(kind)
        arrays[key] = pa.array(column, kind)
    return Table(str(path), pa.table(arrays), kind="json lines")


def _json_cell(value: Any, where: str) -> str | list[str] | None:
    if isinstance(value, list):
        return [str(_json_cell(item, where) or "") for item in value]
    if isinstance(value, dict):
        raise DataError("an object is nested in an object", where=where, hint="texts, numbers and lists of these")
    return None if value is None else json.dumps(value) if isinstance(value, bool) else str(value)


def _read_text(path: Path, begin: bytes, encoding: str | None, problems: Problems | None) -> Table:
    if begin.startswith(b"%%MatrixMarket"):
        hint = "read it with scipy.io.mmread, and pass the matrix to subgnn.from_scipy"
        raise DataError("this is a matrix, not a table", where=str(path), hint=hint)
    encoding = encoding or ("utf-16" if begin[:2] in _UTF16 else "utf-8-sig")
    lines = begin.decode(encoding, "replace").splitlines(keepends=True)
    if len(begin) == _SAMPLE and len(lines) > 1:
        lines.pop()  # cut off
    skipped = _comments(lines)
    lines = [line for line in lines[skipped:] if line.strip()]
    delimiter = find_delimiter(lines, path)
    if delimiter == " ":
        lines = read_bytes(path).decode(encoding).splitlines()[skipped:]
        rows = [(number, cells) for number, line in enumerate(lines, skipped + 1) if (cells := line.split())]
        return _from_rows(str(path), _equal_rows(path, rows, problems), delimiter)
    header = next(plain_csv.reader(lines, delimiter=delimiter), None)
    if header is None:
        raise DataError("the file is empty", where=str(path), hint=ACCEPTED)
    if len(lines) == 1:
        return _from_rows(str(path), [header], delimiter)
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
        try:
            data = read(use_threads=False)  # which accepts line ends in quotes
        except pa.ArrowInvalid as error:
            if "Expected" not in str(error):
                raise
            text = read_bytes(path).decode(encoding).split("\n", skipped)[skipped]
            reader = plain_csv.reader(io.StringIO(text), delimiter=delimiter)
            rows = [(reader.line_num + skipped, cells) for cells in reader if cells]
            return _from_rows(str(path), _equal_rows(path, rows, problems), delimiter)
    first = [str(column[0]).removeprefix("\ufeff") for column in data.columns]
    names = [cell.strip() for cell in first]
    names[0] = names[0].removeprefix("#").strip() if len(first) > 1 and not names[0][1:].isdigit() else names[0]
    return Table(str(path), data.slice(1).rename_columns(names), tuple(first), delimiter)


def _comments(lines: Sequence[str]) -> int:
    """The number of lines before the table that begin with ``%`` or ``#`` and have other columns than those below."""
    leading = 0
    while leading < len(lines) and lines[leading].startswith(("%", "#")):
        leading += 1
    if not leading or leading == len(lines) or lines[leading - 1][1:2].isdigit():  # rows that begin with row numbers
        return 0
    above, below = lines[leading - 1 : leading + 1]
    return leading - any(below.count(d) and above.count(d) == below.count(d) for d in _DELIMITERS)


def find_delimiter(lines: Sequence[str], path: Path) -> str:
    """The delimiter that cuts every line into equally many columns, and most of them; a space is any blanks."""
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


def _equal_rows(path: Path, rows: list[tuple[int, list[str]]], problems: Problems | None) -> list[list[str]]:
    """Rows, given with their lines, that have as many columns as the first; the first other one is an error, or all."""
    width = len(rows[0][1])
    unequal = [(number, cells) for number, cells in rows if len(cells) != width]
    for number, cells in unequal:
        more = f", as {len(unequal) - 1:,} more" if len(unequal) > 1 and problems is None else ""
        count = f"{len(cells)} column{'s' * (len(cells) != 1)}{more}"
        what = f"this row has {count}, but the first has {width} ({excerpt(' '.join(cells))})"
        hint = "give every row as many; quote cells that contain the separator"
        error = UnequalRows(what, where=f"{path}:{number}", hint=hint)
        if problems is None:
            raise error
        problems.add(error)
    return [cells for _, cells in rows if len(cells) == width]
