"""Assign items to train, val and test: at random, stratified by label, or by whole groups; units stay together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.subgraphs import SPLITS
from subgnn.errors import DataError

FRACTIONS = (0.5, 0.25, 0.25)
_BINS = 10
_TINY = 1e-9


def split_sizes(n: int, fractions: Sequence[float] = FRACTIONS) -> NDArray[np.int64]:
    """Sizes of the splits of ``n`` items: rounded by largest remainder, and at least one.

    Example:
        >>> split_sizes(10).tolist(), split_sizes(4, (0.98, 0.01, 0.01)).tolist()
        ([5, 3, 2], [2, 1, 1])
    """
    share = np.asarray(fractions, np.float64)
    if share.shape != (len(SPLITS),) or not (share > 0).all() or abs(share.sum() - 1) > 1e-6:
        hint = "three numbers above 0 that sum to 1: train, val, test"
        raise DataError(f"fractions {list(fractions)}", where="fractions", hint=hint)
    if n < len(SPLITS):
        hint = "train, val and test each need at least one; subgraphs of one group or with equal nodes count once"
        raise DataError(f"{n} cannot be split in three", where="subgraphs", hint=hint)
    sizes = np.floor(n * share + _TINY).astype(np.int64)
    order = np.argsort(-(n * share - sizes).round(9), kind="stable")
    sizes[order[: n - sizes.sum()]] += 1
    for split in np.flatnonzero(sizes == 0):
        sizes[np.argmax(sizes)] -= 1
        sizes[split] += 1
    return sizes


def stratified_split(targets: NDArray[Any], fractions: Sequence[float], rng: np.random.Generator) -> NDArray[np.int8]:
    """A split in which every class has its share of every part.

    One class an item: within one of its share for each class, and exactly :func:`split_sizes` in all. Real targets are
    cut into ten bins of equal counts. Several labels an item: iterative stratification, the rarest label first
    (Sechidis, Tsoumakas and Vlahavas, 2011), near the share for each label and exact in all.

    Shapes:
        targets: (n,) classes or real values, or (n, classes) of 0 and 1.
    """
    labels = one_hot(np.asarray(targets))
    return stratify_units(labels, np.ones(len(labels), np.int64), fractions, rng)


def one_hot(targets: NDArray[Any]) -> NDArray[np.int64]:
    """Which labels an item has (n, labels), of 0 and 1; real targets are cut into ten bins of equal counts."""
    if targets.ndim == 2:
        return targets.astype(np.int64)
    if targets.dtype.kind == "f":
        cuts = np.quantile(targets, np.linspace(0, 1, _BINS + 1)[1:-1]) if len(targets) else np.empty(0)
        targets = np.searchsorted(cuts, targets, side="right")
    place = np.unique(targets, return_inverse=True)[1]
    return np.eye(int(place.max(initial=-1)) + 1, dtype=np.int64)[place]


class _Room:
    """The room left in each split, and the splits that may take the next unit."""

    def __init__(self, sizes: NDArray[np.int64], fractions: Sequence[float]) -> None:
        split_sizes(len(sizes), fractions)  # as many units as splits, at least
        self.left = split_sizes(int(sizes.sum()), fractions)
        self.empty = np.ones(len(self.left), bool)
        self.waiting = len(sizes)

    def candidates(self) -> NDArray[np.bool_]:
        """Splits that may take the next unit: all, but the last units go to those that have none yet."""
        return self.empty.copy() if self.waiting <= int(self.empty.sum()) else np.ones(len(self.empty), bool)

    def open(self, size: int) -> NDArray[np.bool_]:
        """Of those, the ones with room for a unit of this size, else the one with most room."""
        candidates = self.candidates()
        fits: NDArray[np.bool_] = candidates & (self.left >= size)
        return fits if fits.any() else candidates & (self.left == self.left[candidates].max())

    def take(self, split: int, size: int) -> None:
        self.left[split] -= size
        self.empty[split] = False
        self.waiting -= 1


def _large_first(sizes: NDArray[np.int64], rng: np.random.Generator) -> list[int]:
    shuffled = rng.permutation(len(sizes))
    found: list[int] = shuffled[np.argsort(-sizes[shuffled], kind="stable")].tolist()
    return found


def draw_units(sizes: NDArray[np.int64], fractions: Sequence[float], rng: np.random.Generator) -> NDArray[np.int8]:
    """Assign units to splits at random, in proportion to the room they have left."""
    room, out = _Room(sizes, fractions), np.empty(len(sizes), np.int8)
    for unit in _large_first(sizes, rng):
        weight = np.where(room.open(sizes[unit]), np.maximum(room.left, _TINY), 0.0).cumsum()
        out[unit] = np.argmax(weight > rng.random() * weight[-1])
        room.take(out[unit], sizes[unit])
    return out


def fill_units(sizes: NDArray[np.int64], fractions: Sequence[float], rng: np.random.Generator) -> NDArray[np.int8]:
    """Assign units to splits, the largest first, each to the split that lacks most; ties in random order."""
    room, out = _Room(sizes, fractions), np.empty(len(sizes), np.int8)
    for unit in _large_first(sizes, rng):
        out[unit] = np.argmax(np.where(room.candidates(), room.left, np.iinfo(np.int64).min))
        room.take(out[unit], sizes[unit])
    return out


def stratify_units(
    counts: NDArray[np.int64], sizes: NDArray[np.int64], fractions: Sequence[float], rng: np.random.Generator
) -> NDArray[np.int8]:
    """Assign units label by label, the label of fewest waiting units first, each where the label lacks most.

    Shapes:
        counts: (units, labels), how many subgraphs of a unit carry a label. sizes: (units,).
    """
    room, out = _Room(sizes, fractions), np.full(len(sizes), -1, np.int8)
    lacking = np.outer(counts.sum(axis=0), np.asarray(fractions, np.float64))
    if (counts.sum(axis=1) == sizes).all():
        lacking = _round_table(lacking, counts.sum(axis=0), room.left).astype(np.float64)
    order = _large_first(sizes, rng)
    carried = counts > 0
    while (out < 0).any():
        waiting = carried[out < 0].sum(axis=0)
        label = int(np.argmin(np.where(waiting > 0, waiting, len(sizes) + 1))) if waiting.any() else None
        for unit in order:
            if out[unit] >= 0 or (label is not None and not carried[unit, label]):
                continue
            wish = room.left if label is None else lacking[label]
            best = int(np.lexsort((-room.left, -wish, ~room.candidates()))[0])
            out[unit] = best
            room.take(best, sizes[unit])
            lacking[:, best] -= counts[unit]
    _even_out(out, counts, sizes, room.left, lacking)
    return out


def _even_out(
    out: NDArray[np.int8],
    counts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    left: NDArray[np.int64],
    lacking: NDArray[np.float64],
) -> None:
    """Move units from splits that are too large to those that lack some, with the least change of label counts."""
    while left.min() < 0:
        source, target = int(np.argmin(left)), int(np.argmax(left))
        movable = np.flatnonzero((out == source) & (sizes <= min(-left[source], left[target])))
        if not len(movable):
            return
        # The sum of squares of what labels lack changes by twice this, and by what the unit itself weighs.
        regret = counts[movable] @ (lacking[:, source] - lacking[:, target]) + (counts[movable] ** 2).sum(axis=1)
        unit = movable[np.argmin(regret)]
        out[unit] = target
        left[source] += sizes[unit]
        left[target] -= sizes[unit]
        lacking[:, source] += counts[unit]
        lacking[:, target] -= counts[unit]


def _round_table(exact: NDArray[np.float64], rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers within one of ``exact`` that sum to ``rows`` and ``columns``, where there are such numbers.

    Every entry is rounded down; what its row then lacks is added one an entry, largest remainder first, and an
    entry makes way for another where a column is full (augmenting paths, as in bipartite matching).
    """
    table = np.floor(exact + _TINY).astype(np.int64)
    extra = np.zeros(table.shape, bool)
    remainder = (exact - table).round(9)
    left = columns - table.sum(axis=0)
    for s in np.flatnonzero(left < 0):
        while left[s] < 0:
            table[np.argmax(table[:, s]), s] -= 1
            left[s] += 1

    def give(row: int, tried: set[int]) -> bool:
        for s in np.argsort(-remainder[row], kind="stable").tolist():
            if extra[row, s] or s in tried or remainder[row, s] <= 0:
                continue
            tried.add(s)
            others = [] if left[s] > 0 else np.flatnonzero(extra[:, s]).tolist()
            for other in others:
                if give(other, tried):
                    extra[other, s] = False
                    left[s] += 1
                    break
            if left[s] > 0:
                extra[row, s] = True
                left[s] -= 1
                return True
        return False

    for row in np.argsort(-remainder.max(axis=1, initial=0), kind="stable").tolist():
        for _ in range(int(rows[row] - table[row].sum())):
            if not give(row, set()):
                roomiest = int(np.argmax(left))
                table[row, roomiest] += 1
                left[roomiest] -= 1
    return table + extra
