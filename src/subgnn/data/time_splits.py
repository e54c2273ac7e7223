"""Splits by time, and edges that are later than the subgraphs to be predicted, which are a leak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.assign_splits import split_sizes
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.data.times import time_text
from subgnn.errors import DataError


def time_split(times: NDArray[Any], fractions: Sequence[float]) -> NDArray[np.int8]:
    """A split in which train is before val and val before test; equal times stay together.

    The sizes are as near to the fractions as that allows.

    Example:
        >>> time_split(np.array([5, 1, 2, 2, 9, 7]), (0.5, 0.25, 0.25)).tolist()
        [1, 0, 0, 0, 2, 1]
    """
    known, place, counts = np.unique(times, return_inverse=True, return_counts=True)
    if len(known) < len(SPLITS):
        hint = "at least 3 are needed, as equal times stay together"
        raise DataError(f"{len(known)} different times of subgraphs", where="times", hint=hint)
    ends, wanted = np.cumsum(counts), np.cumsum(split_sizes(len(times), fractions))
    first = min(int(np.abs(ends - wanted[0]).argmin()), len(known) - 3)
    second = min(max(int(np.abs(ends - wanted[1]).argmin()), first + 1), len(known) - 2)
    return np.searchsorted([first, second], place).astype(np.int8)


def first_held_out(subgraphs: SubgraphSet) -> float | None:
    """The earliest time in val and test, where all of train is before that: the split is one by time; else None.

    Example:
        >>> given = SubgraphSet.from_lists([[0], [1]], splits=["train", "test"], times=[3, 5], num_nodes=2)
        >>> first_held_out(given)
        5
    """
    if subgraphs.times is None or subgraphs.splits is None:
        return None
    train = subgraphs.splits == SPLITS.index("train")
    if train.all() or not train.any() or subgraphs.times[train].max() >= (first := subgraphs.times[~train].min()):
        return None
    found: float = first.item()
    return found


def looks_ahead(graph: Graph, subgraphs: SubgraphSet) -> bool:
    """Whether the split is one by time, and an edge is later than the earliest subgraph of val and test."""
    first = first_held_out(subgraphs)
    return first is not None and graph.times is not None and bool((graph.times > first).any())


def refuse_look_ahead(graph: Graph, subgraphs: SubgraphSet) -> None:
    """Refuse a graph with edges from after the time at which predictions of a split by time begin.

    Raises:
        DataError: where :func:`looks_ahead`.
    """
    if graph.times is None or not looks_ahead(graph, subgraphs):
        return
    first = first_held_out(subgraphs) or 0
    later = int(np.count_nonzero(graph.times > first)) // (1 if graph.directed else 2)
    what = f"the split is by time, and {later:,} edges are later than the first subgraph of val and test"
    hint = f"drop them: --edges-until {first!r}; or train with what was not known: --allow-look-ahead"
    raise DataError(f"{what}, {time_text(first)}", where="train", hint=hint)
