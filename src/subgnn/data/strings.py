"""Text columns and node names, stored so that they open from a memory map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError
from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """A column of text: UTF-8 bytes end to end.

    Example:
        >>> list(Strings.of(["TP53", "HLA-A"]))
        ['TP53', 'HLA-A']
    """

    rows: Ragged

    @classmethod
    def of(cls, texts: Iterable[str]) -> Strings:
        """Encode texts."""
        encoded = [text.encode() for text in texts]
        values = np.frombuffer(b"".join(encoded), np.uint8)
        return cls(Ragged.from_lengths(values, np.fromiter(map(len, encoded), np.int64, len(encoded))))

    def take(self, rows: NDArray[np.int64]) -> Strings:
        """The chosen texts, in the given order."""
        return Strings(self.rows.take(rows))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> str:
        return bytes(self.rows[row]).decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        whole = self.rows.values.tobytes()
        ends = self.rows.offsets.tolist()
        return (whole[a:b].decode("utf-8", "replace") for a, b in pairwise(ends))


class NodeNames:
    """What people call the nodes: one or more text columns, a row per node.

    ``primary`` is shown; a node is found under any of its names, unless two nodes share it. Digits alone always mean an
    id, so a column of numbers (NCBI gene ids) is shown but never looked up.

    Example:
        >>> names = NodeNames({"symbol": Strings.of(["TP53", "HLA-A", "A1BG"])})
        >>> names.resolve("HLA-A-TP53-2")
        [1, 0, 2]
    """

    def __init__(self, columns: dict[str, Strings], primary: str | None = None) -> None:
        if not columns:
            raise DataError("node names need at least one column", where="NodeNames")
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise DataError(f"columns of unequal length {sorted(lengths)}", where="NodeNames")
        self.columns = dict(columns)
        self.primary_column = primary if primary is not None else next(iter(columns))
        self.primary = self.columns[self.primary_column]

    @classmethod
    def of(cls, names: Iterable[str]) -> NodeNames:
        """Names in one column."""
        return cls({"name": Strings.of(names)})

    def __len__(self) -> int:
        return len(self.primary)

    def __getitem__(self, node: int) -> str:
        return self.primary[node] or str(node)

    @cached_property
    def _ids(self) -> dict[str, int]:
        """Name to node; -1 for a name that two nodes share."""
        ids: dict[str, int] = {}
        for column in self.columns.values():
            for node, name in enumerate(column):
                if name and not name.isdigit() and ids.setdefault(name, node) != node:
                    ids[name] = -1
        return ids

    @cached_property
    def _most_dashes(self) -> int:
        return max((name.count("-") for name in self._ids), default=0)

    def find(self, name: str) -> int | None:
        """The node of that name; None where there is none, -1 where there are several."""
        return self._ids.get(name)

    def resolve(self, joined: str) -> list[int | str]:
        """Nodes of a list joined by ``-``, given by name or id; what is neither comes back as text.

        A name may itself contain ``-``: the longest run of pieces that is a name is taken.
        """
        pieces = joined.split("-")
        found: list[int | str] = []
        i = 0
        while i < len(pieces):
            for width in range(min(self._most_dashes + 1, len(pieces) - i), 0, -1):
                text = "-".join(pieces[i : i + width])
                node = int(text) if is_id(text) else self._ids.get(text, -1)
                if node >= 0 or width == 1:
                    found.append(node if node >= 0 else text)
                    i += width
                    break
        return found


def is_id(text: str) -> bool:
    """Whether a token is a node id: ASCII digits, few enough to be a number that can be meant."""
    return text.isascii() and text.isdigit() and len(text) <= 18
