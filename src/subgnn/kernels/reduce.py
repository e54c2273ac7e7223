"""Hop distances of the nodes of a component to an anchor, reduced to one number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, frozen
from subgnn.kernels.compile import compiled, compiled_parallel

_MOST = np.iinfo(np.int32).max


@compiled
def _finish(
    total: float, reached: int, size: int, lowest: int, nearest: bool, distance: Array, fraction: Array, at: int
) -> None:
    if reached > 0:
        distance[at] = lowest if nearest else total / reached
        fraction[at] = 1.0 if nearest else reached / size


@compiled_parallel
def _reduce_table(table: Array, slots: Array, rows: Array, nearest: bool, distance: Array, fraction: Array) -> None:
    columns = table.shape[1]
    for c in prange(len(rows) - 1):
        total, reached = np.zeros(columns), np.zeros(columns, np.int64)
        lowest = np.full(columns, np.iinfo(np.int32).max)
        for i in range(rows[c], rows[c + 1]):
            for a in range(columns):
                hops = table[slots[i], a]
                if hops >= 0:
                    total[a] += hops
                    reached[a] += 1
                    lowest[a] = min(lowest[a], hops)
        for a in range(columns):
            _finish(total[a], reached[a], rows[c + 1] - rows[c], lowest[a], nearest, distance[c], fraction[c], a)


@compiled_parallel
def _add_runs(
    hops: Array, skip: Array, starts: Array, sizes: Array, first: int, total: Array, reached: Array, lowest: Array
) -> None:
    for run in prange(len(sizes)):
        at = first + run
        for i in range(starts[run], starts[run] + sizes[run]):
            if hops[i] >= 0 and not skip[i]:
                total[at] += hops[i]
                reached[at] += 1
                lowest[at] = min(lowest[at], hops[i])


@compiled
def _add_pairs(hops: Array, slots: Array, total: Array, reached: Array, lowest: Array) -> None:
    for i in range(len(hops)):
        if hops[i] >= 0:
            total[slots[i]] += hops[i]
            reached[slots[i]] += 1
            lowest[slots[i]] = min(lowest[slots[i]], hops[i])


@compiled_parallel
def _measures(
    total: Array, reached: Array, lowest: Array, sizes: Array, nearest: bool, distance: Array, fraction: Array
) -> None:
    for i in prange(len(total)):
        _finish(total[i], reached[i], sizes[i], lowest[i], nearest, distance, fraction, i)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Hops of components to anchors, added up: whole numbers, so the order in which they come does not matter.

    Shapes:
        total: (anchors in all,) int64. reached, lowest: (anchors in all,) int32.
    """

    total: Array
    reached: Array
    lowest: Array

    @classmethod
    def zeros(cls, count: int) -> Tally:
        """Nothing added yet."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.int32), np.full(count, _MOST, np.int32))

    def add_runs(self, hops: Array, skip: Array, sizes: Array, counts: Array, *, first: int) -> None:
        """Add runs of hops, -1 where there is no path.

        Args:
            hops: for each component and each of its anchors a run, over the nodes of the component.
            skip: hops that are not to be added.
            sizes, counts: nodes and anchors of each component.
            first: the place of the first anchor.
        """
        lengths = np.repeat(sizes, counts)
        starts = np.cumsum(lengths) - lengths
        _add_runs(
            frozen(hops, np.int32),
            frozen(skip, np.bool_),
            frozen(starts, np.int64),
            frozen(lengths, np.int64),
            first,
            self.total,
            self.reached,
            self.lowest,
        )

    def add_pairs(self, hops: Array, slots: Array) -> None:
        """Add hops one by one, each to an anchor's place."""
        _add_pairs(frozen(hops, np.int32), frozen(slots, np.int64), self.total, self.reached, self.lowest)

    def measures(self, sizes: Array, *, nearest: bool) -> tuple[Array, Array]:
        """Distance and the fraction of nodes that reach, as :func:`reduce_table` gives them.

        Args:
            sizes: nodes of each anchor's component.

        Shapes:
            returns: both (anchors in all,) float32.
        """
        distance, fraction = (np.zeros(len(self.total), np.float32) for _ in range(2))
        _measures(self.total, self.reached, self.lowest, frozen(sizes, np.int64), nearest, distance, fraction)
        return distance, fraction


def reduce_table(table: Array, slots: Array, rows: Array, *, nearest: bool) -> tuple[Array, Array]:
    """Distances of components to shared anchors.

    Args:
        table: hops of each wanted node to each anchor, -1 where there is no path.
        slots, rows: the nodes of the components, as places in ``table``, and where each component begins.
        nearest: take the smallest distance, else the mean over the nodes that reach the anchor.

    Shapes:
        table: (nodes, anchors) int32. returns: distance and the fraction of nodes that reach, (C, anchors) float32;
        both are 0 where none does. For the nearest node the fraction is 1 as soon as one does.
    """
    distance = np.zeros((len(rows) - 1, table.shape[1]), np.float32)
    fraction = np.zeros_like(distance)
    _reduce_table(frozen(table, np.int32), frozen(slots, np.int64), frozen(rows, np.int64), nearest, distance, fraction)
    return distance, fraction
