"""Hop distances of the nodes of a component to an anchor, reduced to one number."""

from __future__ import annotations

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, frozen
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.ragged import Ragged


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
def _reduce_pairs(
    hops: Array,
    starts: Array,
    rows: Array,
    sizes: Array,
    anchors: Array,
    turned: Array,
    nearest: bool,
    distance: Array,
    fraction: Array,
) -> None:
    for c in prange(len(sizes)):
        for a in range(anchors[c + 1] - anchors[c]):
            total, reached, lowest = 0.0, 0, np.iinfo(np.int32).max
            for i in range(sizes[c]):
                d = hops[starts[rows[c] + a] + i] if turned[c] else hops[starts[rows[c] + i] + a]
                if d >= 0:
                    total += d
                    reached += 1
                    lowest = min(lowest, d)
            _finish(total, reached, sizes[c], lowest, nearest, distance, fraction, anchors[c] + a)


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


def reduce_pairs(
    hops: Array, starts: Ragged, *, sizes: Array, anchors: Array, turned: Array, nearest: bool
) -> tuple[Array, Array]:
    """Distances of components to anchors of their own.

    Args:
        hops: a run of distances for each node of each component, one to each of the component's anchors; where the
            component is turned, for each of its anchors, one to each of its nodes.
        starts: where in ``hops`` each run begins, a row for each component.
        sizes: nodes of each component. anchors: where each component's anchors begin, and their number.
        turned: whether the component's runs are those of its anchors.

    Shapes:
        returns: distance and fraction, (anchors in all,) float32.
    """
    distance = np.zeros(int(anchors[-1]), np.float32)
    fraction = np.zeros_like(distance)
    _reduce_pairs(
        frozen(hops, np.int32),
        frozen(starts.values, np.int64),
        frozen(starts.offsets, np.int64),
        frozen(sizes, np.int64),
        frozen(anchors, np.int64),
        frozen(turned, np.bool_),
        nearest,
        distance,
        fraction,
    )
    return distance, fraction
