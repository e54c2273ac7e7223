"""Text columns and node names, stored so that they open from a memory map."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError, excerpt
from subgnn.ragged import Ragged, hashed

_ROW = re.compile(r"#([0-9]{1,18})")
_SAMPLED = 1000  # names of a column that tell whether it consists of numbers
_BLOCK = 2**20  # numbers that are texts in memory at a time
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
MISSING = frozenset(["", "NA", "na", "N/A", "n/a", "#N/A", "<NA>", *("NaN", "nan", "NAN"), *("NULL", "Null", "null")])
MISSING |= {"None", "none", "NONE"}  # but not Na, sodium
"""Cells that stand for a missing value."""
ALIASES = "aliases"
"""The column of node names that holds further names of a node, separated by ``|``."""


class _Texts(Sequence[str]):
    """Texts by number; a slice is a list."""

    __slots__ = ()

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self._text(i) for i in range(*row.indices(len(self)))]
        return self._text(index(row))

    @abstractmethod
    def _text(self, row: int) -> str: ...


@dataclass(frozen=True, slots=True, eq=False)
class Strings(_Texts):
    """A column of text: UTF-8 bytes end to end; a slice is a list."""

    rows: Ragged

    @classmethod
    def of(cls, texts: Iterable[str]) -> Strings:
        encoded = [text.encode() for text in texts]
        values = np.frombuffer(b"".join(encoded), np.uint8)
        return cls(Ragged.from_lengths(values, np.fromiter(map(len, encoded), np.int64, len(encoded))))

    @classmethod
    def numbers(cls, begin: int, end: int) -> Strings:
        blocks = (range(at, min(at + _BLOCK, end)) for at in range(begin, end, _BLOCK))
        text = b"".join("".join(map(str, block)).encode() for block in blocks)
        lengths = 1 + np.searchsorted(10 ** np.arange(1, 19), np.arange(begin, end), side="right")
        return cls(Ragged.from_lengths(np.frombuffer(text, np.uint8), lengths))

    def take(self, rows: NDArray[np.int64]) -> Strings:
        return Strings(self.rows.take(rows))

    def __len__(self) -> int:
        return len(self.rows)

    def _text(self, row: int) -> str:
        return bytes(self.rows[row]).decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        whole = self.rows.values.tobytes()
        return (whole[a:b].decode("utf-8", "replace") for a, b in pairwise(self.rows.offsets.tolist()))


class NodeNames(_Texts):
    """Names of the nodes: one or more text columns, a row per node; a slice is a list.

    A node is found by its name in the primary column; if there is no such name, by the value of another column, by
    digits only if no number in it repeats, as in a column of gene ids; and then by one of the names in a column
    ``aliases``, which are separated by ``|``. A value of two nodes identifies neither.

    Args:
        primary: the column of names; the first by default.
        shown: the column to show in place of the names, such as symbols in place of gene ids.

    Example:
        >>> names = NodeNames({"symbol": Strings.of(["TP53", "HLA-A"]), "gene": Strings.of(["7157", "3105"])})
        >>> names.find("HLA-A"), names.find("7157"), names.find("1"), names[0]
        (1, 0, None, 'TP53')
    """

    def __init__(
        self, columns: dict[str, Strings], primary: str | None = None, shown: str | None = None, known_hash: str = ""
    ) -> None:
        if not columns:
            raise DataError("node names need at least one column", where="NodeNames")
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise DataError(f"the columns have different lengths {sorted(lengths)}", where="NodeNames")
        self.columns = dict(columns)
        self.primary_column = primary if primary is not None else next(iter(columns))
        self.primary = self.columns[self.primary_column]
        self._shown = self.columns[shown] if shown is not None else self.primary
        self.known_hash = known_hash

    @classmethod
    def of(cls, names: Iterable[str]) -> NodeNames:
        return cls({"name": Strings.of(names)})

    def __len__(self) -> int:
        return len(self.primary)

    def _text(self, node: int) -> str:
        return self._shown[node] or self.primary[node] or f"#{range(len(self))[node]}"

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of all texts by which a node is found; titles of columns, and which one is shown, do not matter."""
        return self.known_hash or self.compute_hash()

    def compute_hash(self) -> str:
        """Compute the content hash from the columns, which stay where they are: no text is decoded or copied."""
        others = [column for title, column in self.columns.items() if title != self.primary_column]
        rows = (column.rows for column in (self.primary, *others))
        arrays = (("", array) for row in rows for array in (row.offsets, row.values))
        return hashed(f"names {len(self)}", arrays).hexdigest()

    def written(self, node: int) -> str:
        """An unambiguous text for a node: its name, or its row number where the name is ambiguous."""
        called = (column[node] for column in (self._shown, self.primary))
        return next((name for name in called if self.find(name) == node), f"{self.row_prefix}{node}")

    def readable(self) -> NodeNames:
        """The same names; shown is the first column that does not consist of numbers."""
        for name in (self.primary_column, *self.columns):
            some = self.columns[name].take(np.arange(min(len(self), _SAMPLED)))
            if any(text and not text.isdigit() for text in some):
                return NodeNames(self.columns, self.primary_column, name, self.known_hash)
        return self

    @cached_property
    def _ids(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Nodes by name, by value of another column, and by alias; -1 for a value of two nodes."""
        primary, others, aliases = dict[str, int](), dict[str, int](), dict[str, int]()
        for title, column in self.columns.items():
            rows = ((name.strip(), node) for node, names in enumerate(column) for name in names.split("|"))
            found = aliases
            if title == self.primary_column or title != ALIASES:
                numbers = [text for text in column if is_number(text)]
                keeps = title == self.primary_column or len(numbers) == len(set(numbers))
                rows = ((name, node) for node, name in enumerate(column) if keeps or not is_number(name))
                found = primary if title == self.primary_column else others
            for name, node in rows:
                if name and found.setdefault(name, node) != node:
                    found[name] = -1
        return primary, others, aliases

    def is_alias(self, text: str) -> bool:
        return text in self._ids[2] and not any(text in ids for ids in self._ids[:2])

    @cached_property
    def row_prefix(self) -> str:
        """The prefix of row numbers: ``#``, and as many zeros as are needed for no name to look like a row number."""
        prefix = "#"
        while any(name.startswith(prefix) and _ROW.fullmatch(name) for ids in self._ids for name in ids):
            prefix += "0"
        return prefix

    @cached_property
    def most_dashes(self) -> int:
        return max((name.count("-") for ids in self._ids for name in ids), default=0)

    @property
    def num_shared(self) -> int:
        return sum(node < 0 for node in self._ids[0].values())

    def find(self, name: str) -> int | None:
        """The node of that name; None where there is none, -1 where there are several."""
        primary, others, aliases = self._ids
        return primary.get(name, others.get(name, aliases.get(name)))

    @cached_property
    def _folded(self) -> dict[str, int]:
        """Nodes by name without its case; -1 for a name of two nodes. Values of other columns come second."""
        folded: dict[str, int] = {}
        for ids in reversed(self._ids):
            found: dict[str, int] = {}
            for name, node in ids.items():
                if found.setdefault(name.casefold(), node) != node:
                    found[name.casefold()] = -1
            folded |= found
        return folded

    def find_ignoring_case(self, name: str) -> int | None:
        return self._folded.get(name.casefold())

    def shared(self, name: str) -> list[int]:
        found = [node for node, other in enumerate(self.primary) if other == name]
        others = ((node, other) for column in self.columns.values() for node, other in enumerate(column))
        return found or sorted({node for node, other in others if name == other or name in other.split("|")})


def several_nodes(text: str, names: NodeNames | None) -> DataError:
    """The error for a text that names several nodes; without a place, which the caller knows."""
    shared = [] if names is None else names.shared(text)
    shown = ", ".join(f"#{row}" for row in shared[:5]) + (", ..." if len(shared) > 5 else "")
    hint = f"write the row number of one of them: {shown}" if shown else "write it with the same case as in the graph"
    return DataError(f"{excerpt(text)} names several nodes", hint=hint)


def find_node(text: str, num_nodes: int, names: NodeNames | None = None) -> int | None:
    """The node of a name where there are names, else of a row number; None where there is none, -1 where several.

    ``#12`` is row 12 in either case, but a name that looks like a row number is a name.

    Example:
        >>> entrez = NodeNames.of(["7157", "1", "#0"])
        >>> [find_node(text, 3, entrez) for text in ("1", "#1", "0", "#0", "#00")], find_node("1", 3)
        ([1, 1, None, 2, 0], 1)
    """
    node = None if names is None else names.find(text)
    if node is not None:
        return node
    row = _ROW.fullmatch(text) if text[:1] == "#" else None
    number = int(row[1]) if row else int(text) if names is None and is_id(text) else num_nodes
    return number if number < num_nodes else None


def split_names(joined: str, is_node: Callable[[str], bool], most_dashes: int) -> list[str]:
    """Split a list joined by ``-`` into nodes, whose names may contain it; an ambiguous one is refused."""
    pieces = joined.split("-")
    found = _split_pieces(joined, pieces, is_node, most_dashes) if most_dashes else pieces
    if not all(map(str.strip, found)):
        what = f"a '-' without a node on both sides in {excerpt(joined)}"
        raise DataError(what, hint="join nodes with a single '-', such as 0-1")
    return found


def _split_pieces(joined: str, pieces: list[str], is_node: Callable[[str], bool], most_dashes: int) -> list[str]:
    # Widths of names that begin at a part and after which the rest can be split, short ones first.
    widths: list[list[int]] = [[] for _ in pieces]
    for i in reversed(range(len(pieces))):
        for width in range(1, min(most_dashes + 1, len(pieces) - i) + 1):
            if (i + width == len(pieces) or widths[i + width]) and is_node("-".join(pieces[i : i + width])):
                widths[i].append(width)

    def longest(i: int) -> int:
        possible = range(min(most_dashes + 1, len(pieces) - i), 0, -1)
        return next((width for width in possible if is_node("-".join(pieces[i : i + width]))), 1)

    if not widths[0]:
        return _cut(pieces, longest)
    long = _cut(pieces, lambda i: widths[i][-1])
    short = _cut(pieces, lambda i: widths[i][0])
    if long != short:
        cut, other = long, short
        while cut[0] == other[0]:
            cut, other = cut[1:], other[1:]
        while cut[-1] == other[-1]:
            cut, other = cut[:-1], other[:-1]
        first, second = (" and ".join(map(excerpt, part)) for part in (cut, other))
        what = f"{excerpt(joined)} can be read in two ways: {first}, or {second}"
        raise DataError(what, hint="write row numbers, such as #12")
    return long


def _cut(pieces: list[str], width_at: Callable[[int], int]) -> list[str]:
    found, i = [], 0
    while i < len(pieces):
        width = width_at(i)
        found.append("-".join(pieces[i : i + width]))
        i += width
    return found


def is_number(text: str) -> bool:
    """Whether a text is ASCII digits alone."""
    return text.isascii() and text.isdigit()


def is_id(text: str) -> bool:
    """Whether a token is a node id: at most 18 ASCII digits."""
    return is_number(text) and len(text) <= 18


def has_leading_zero(text: str) -> bool:
    """Whether a text is digits after a zero, as ``007`` or ``-01.5``: a code rather than a number."""
    digits = text.lstrip("+-")
    return digits[:1] == "0" and digits[1:2].isdigit()


def parse_number(text: str) -> float | None:
    """A decimal number, which may be infinite or NaN; None for any other text, such as ``1_0``."""
    return float(text) if _DECIMAL.fullmatch(text) else None


def is_missing(text: str) -> bool:
    """Whether a cell says that its value is missing: it is empty, ``NA``, ``nan``, ``None``, ``null`` or the like."""
    return text in MISSING
