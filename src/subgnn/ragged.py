"""Rows of unequal length, stored end to end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError

_AT_ONCE = 2**22  # values that are sorted at a time


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Row ``i`` is ``values[offsets[i]:offsets[i + 1]]``; no padding, so no sentinel can be mistaken for a value.

    Shapes:
        values: (total,). offsets: (rows + 1,) int64, from 0 to total, never falling.

    Example:
        >>> r = Ragged.from_rows([[1, 2], [], [7]])
        >>> len(r), r[0].tolist(), r.lengths.tolist()
        (3, [1, 2], [2, 0, 1])
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[Any] | NDArray[Any]], dtype: Any = np.int32) -> Ragged:
        given = list(rows)
        if np.dtype(dtype).kind in "iu":
            for i, row in enumerate(given):
                if len(row) and np.asarray(row).dtype.kind == "f":
                    raise DataError("it has real numbers", where=f"row {i}", hint="integers are accepted")
        arrays = [np.asarray(row, dtype=dtype) for row in given]
        values = np.concatenate(arrays) if arrays else np.empty(0, dtype)
        return cls.from_lengths(values, [len(a) for a in arrays])

    @classmethod
    def from_lengths(cls, values: NDArray[Any], lengths: Sequence[int] | NDArray[Any]) -> Ragged:
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(values, offsets)

    @property
    def is_valid(self) -> bool:
        """Whether the offsets rise from 0 to the number of values."""
        o = self.offsets
        # Compared, as a difference of numbers that mean nothing may overflow.
        return len(o) > 0 and bool(o[0] == 0 and o[-1] == len(self.values) and (o[1:] >= o[:-1]).all())

    def validate(self, where: str) -> None:
        """Raise :class:`DataError` unless the offsets describe the values."""
        if not self.is_valid:
            hint = "they must rise from 0 to len(values)"
            raise DataError("offsets do not describe the values", where=where, hint=hint)

    @property
    def digest(self) -> str:
        """SHA-256 of rows of integers, whatever their type."""
        digest = hashlib.sha256(str(len(self)).encode())
        for part in (self.offsets, self.values):
            digest.update(np.ascontiguousarray(part, "<i8").data)
        return digest.hexdigest()

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @property
    def row_ids(self) -> NDArray[np.int64]:
        """For each value, the row it is in."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.lengths)

    def take(self, rows: NDArray[Any] | Sequence[int]) -> Ragged:
        """The chosen rows, in the given order."""
        index = np.asarray(rows, np.int64)
        index = np.where(index < 0, index + len(self), index)
        lengths = self.lengths[index]
        out = Ragged.from_lengths(np.empty(int(lengths.sum()), self.values.dtype), lengths)
        within = np.arange(len(out.values), dtype=np.int64) - np.repeat(out.offsets[:-1], lengths)
        out.values[:] = self.values[np.repeat(self.offsets[index], lengths) + within]
        return out

    def mapped(self, places: NDArray[np.int64]) -> Ragged:
        """Rows of the places of their values, each once, sorted, without places below 0."""
        found, lengths = [np.empty(0, np.int32)], np.zeros(len(self), np.int64)
        for part in runs(self.lengths, _AT_ONCE):
            offsets = self.offsets[part.start : part.stop + 1]
            given = places[self.values[offsets[0] : offsets[-1]]]
            pairs = np.unique((np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)) << 32 | given)[given >= 0])
            found.append((pairs & (2**32 - 1)).astype(np.int32))
            lengths[part] = np.bincount(pairs >> 32, minlength=len(offsets) - 1)
        return Ragged.from_lengths(np.concatenate(found), lengths)

    def batches(self, most: int, *, least: int = 0) -> Iterator[Ragged]:
        """Consecutive rows, one or more at a time, of at most ``most`` values; short rows count as ``least`` values."""
        for run in runs(np.maximum(self.lengths, least), most):
            yield self.take(np.arange(run.start, run.stop))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        if not -len(self) <= row < len(self):
            raise IndexError(f"there is no row {row} among {len(self)}")
        row %= len(self)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[i] for i in range(len(self)))


def hashed(head: str, arrays: Iterable[tuple[str, NDArray[Any] | None]]) -> hashlib._Hash:
    """A SHA-256 of a text and of arrays with their names, types and shapes; more can be added to it."""
    digest = hashlib.sha256(head.encode())
    for name, array in arrays:
        if array is not None:
            digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest


def runs(sizes: NDArray[Any], most: int) -> Iterator[slice]:
    """Consecutive items, one or more at a time, whose sizes sum to at most ``most``."""
    ends, begin = np.append(0, np.cumsum(sizes)), 0
    while begin < len(sizes):
        end = max(begin + 1, int(np.searchsorted(ends, ends[begin] + most, side="right")) - 1)
        yield slice(begin, end)
        begin = end
