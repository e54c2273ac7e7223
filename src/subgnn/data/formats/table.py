"""A table in memory: columns of text by title, with the places of rows for messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.data.strings import parse_number
from subgnn.data.values import check_times, parse_times
from subgnn.errors import DataError, choices, excerpt

if TYPE_CHECKING:
    import pyarrow as pa


class UnequalRows(DataError):
    """A text whose rows have unequal numbers of columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table, its columns by title; a cell is text, or a list of texts.

    Args:
        where: the file, or ``table`` for a data frame.
        header: the cells of the first line, which has the titles; None if these are stored otherwise, as in Parquet.
        kind: what the file was read as.
    """

    where: str
    data: pa.Table
    header: tuple[str, ...] | None = None
    kind: str = "table"

    @property
    def titles(self) -> list[str]:
        """The titles of the columns."""
        return cast("list[str]", self.data.column_names)

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def place(self, row: int) -> str:
        """The place of a row, counted from 0, for messages, which count from 1."""
        return f"{self.where}: row {row + 1}"

    def without_header(self) -> Table:
        """The table with its first line as a row like the others, and columns called ``column 1`` and so on."""
        import pyarrow as pa

        if self.header is None:
            return self
        titles = [f"column {i + 1}" for i in range(len(self.header))]
        first = pa.table([[cell] for cell in self.header], names=titles)
        return Table(self.where, pa.concat_tables([first, self.data.rename_columns(titles)]), None, self.kind)

    def is_list(self, title: str) -> bool:
        """Whether the cells of a column are lists."""
        import pyarrow as pa

        kind = self._column(title).type
        return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))

    def cells(self, title: str, noun: str) -> pa.ChunkedArray:
        """The cells of a column of ``noun``s as text without spaces around it; an empty cell is ``""``."""
        import pyarrow as pa
        from pyarrow import compute

        column = self._column(title)
        if pa.types.is_dictionary(column.type):
            column = compute.cast(column, column.type.value_type)
        return compute.utf8_trim_whitespace(compute.fill_null(self._text(column, noun), ""))

    def lists(self, title: str, noun: str) -> list[list[str]]:
        """The cells of a column of lists."""
        from pyarrow import compute

        column = self._column(title)
        flat = compute.utf8_trim_whitespace(compute.fill_null(self._text(compute.list_flatten(column), noun), ""))
        lengths = np.asarray(compute.fill_null(compute.list_value_length(column), 0))
        values = iter(flat.to_pylist())
        return [[next(values) for _ in range(length)] for length in lengths]

    def filled(self, title: str, noun: str) -> pa.ChunkedArray:
        """The cells of a column, none of which may be empty."""
        from pyarrow import compute

        cells = self.cells(title, noun)
        empty = np.asarray(compute.equal(cells, ""))
        if empty.any():
            missing = f"the {noun} is missing" if noun in ("label", "split") else f"no {noun}"
            raise DataError(missing, where=self.place(int(np.argmax(empty))), hint="fill or drop empty cells")
        return cells

    def numbers(self, title: str, noun: str = "weight") -> NDArray[np.float64]:
        """A column of numbers that are finite in 32 bits; a decimal comma is accepted."""
        import pyarrow as pa
        from pyarrow import compute

        column = self._column(title)
        try:
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                column = compute.utf8_trim_whitespace(column)
                if self.kind == ";":
                    column = compute.replace_substring(column, ",", ".")
            values = np.asarray(compute.cast(column, pa.float64()), np.float64)
        except pa.ArrowException as error:
            row = next((i for i, cell in enumerate(column.to_pylist()) if parse_number(str(cell)) is None), None)
            told = reason(error) if row is None else f"row {row + 1}: {excerpt(str(column[row].as_py()))}"
            what = f"column '{title}' is not all numbers ({told})"
            raise DataError(what, where=self.where, hint=f"a {noun} is a finite number; fill or drop others") from None
        with np.errstate(over="ignore"):
            bad = ~np.isfinite(values.astype(np.float32))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"{noun} {values[row]}", where=self.place(row), hint=f"{noun}s must be finite numbers")
        return values

    def times(self, title: str) -> NDArray[Any]:
        """A column of times: numbers or dates, as :func:`~subgnn.data.values.parse_time` takes them."""
        import pyarrow as pa
        from pyarrow import compute

        column = self._column(title)
        if column.null_count:
            row = int(np.argmax(np.asarray(compute.is_null(column))))
            raise DataError("no time", where=self.place(row), hint="fill or drop empty cells")
        if any(is_kind(column.type) for is_kind in (pa.types.is_temporal, pa.types.is_integer, pa.types.is_floating)):
            return check_times(column.to_numpy(), len(self), where=f"{self.where}: column '{title}'")
        cells = self.filled(title, "time").combine_chunks().dictionary_encode()
        try:
            known = parse_times(cells.dictionary.to_pylist())
        except DataError as error:
            row = int(np.argmax(np.asarray(cells.indices) == int(error.where)))
            raise DataError(error.what, where=self.place(row), hint=error.hint) from None
        return np.asarray(known[np.asarray(cells.indices)])

    def is_number(self, title: str) -> bool:
        """Whether all cells of a column are numbers."""
        try:
            self.numbers(title)
        except DataError:
            return False
        return True

    def _column(self, title: str) -> pa.ChunkedArray:
        count = self.titles.count(title)
        if count == 0:
            raise DataError(f"no column '{title}'", where=self.where, hint=choices(title, self.titles))
        if count > 1:
            what = f"two columns are called {excerpt(title)}"
            raise DataError(what, where=self.where, hint="name each one differently")
        return self.data.column(title)

    def _text(self, column: Any, noun: str) -> Any:
        """A column of text or whole numbers (of any numbers where it is a label or an attribute) as text."""
        import pyarrow as pa
        from pyarrow import compute

        kind = column.type
        any_number = noun in ("label", "attribute")
        if pa.types.is_floating(kind) and not any_number:
            # pandas turns a column of whole numbers with an empty cell into real ones.
            values = np.asarray(compute.fill_null(column, 0.0))
            exact = 2.0 ** (np.finfo(values.dtype).nmant + 1)  # from here on, not every whole number is one of them
            if not (np.isfinite(values) & (values == np.round(values)) & (np.abs(values) < exact)).all():
                hint = f"text or integers are accepted; as real numbers, whole ones below {exact:.0f}"
                raise DataError(f"the {noun} column has type {kind}", where=self.where, hint=hint)
            column = compute.cast(column, pa.int64())
        elif not any(
            is_kind(kind)
            for is_kind in (
                pa.types.is_string,
                pa.types.is_large_string,
                pa.types.is_integer,
                pa.types.is_floating,
                pa.types.is_null,
                pa.types.is_boolean,
            )
        ):
            hint = f"text or {'numbers' if any_number else 'integers'} are accepted"
            raise DataError(f"the {noun} column has type {kind}", where=self.where, hint=hint)
        try:
            text = compute.cast(column, pa.string())
            text.validate(full=True)
        except pa.ArrowException as error:
            raise DataError(f"the {noun} column is not text ({reason(error)})", where=self.where) from None
        return text


def reason(error: Exception) -> str:
    """The message of a library, on one line and without raw bytes."""
    return ascii(" ".join(str(error).split())[:100])[1:-1]
