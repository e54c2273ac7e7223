"""Targets and labels: classes of equal size, exactly separated by a property."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.synthetic.settings import require
from subgnn.errors import DataError


def class_sizes(count: int, bins: int) -> NDArray[np.int64]:
    """How many of ``count`` subgraphs fall in each bin, equal to within one."""
    return np.diff(np.arange(bins + 1, dtype=np.int64) * count // bins)


def numbered(bins: NDArray[np.int64]) -> list[str]:
    """Class names of bins: 0 is the lowest."""
    return [str(b) for b in bins.tolist()]


def spread_targets(low: int, high: int, *, count: int, bins: int, where: str) -> NDArray[np.int64]:
    """Whole numbers spread evenly over low..high, rising, so that no value occurs in two bins.

    Raises:
        DataError: where the range has too few whole numbers.

    Example:
        >>> spread_targets(0, 5, count=6, bins=3, where="edges").tolist()
        [0, 1, 2, 3, 4, 5]
    """
    room = high - low + 1
    require(
        room >= bins,
        f"{room} possible values for {bins} bins",
        where=where,
        hint=f"at most {max(room, 1)} bins, or a wider range of targets",
    )
    edges = low + np.arange(bins + 1, dtype=np.int64) * room // bins
    sizes = class_sizes(count, bins)
    return np.concatenate(
        [np.linspace(edges[k], edges[k + 1] - 1, sizes[k]).round().astype(np.int64) for k in range(bins)]
    )


def quantile_bins(values: NDArray[Any], bins: int, *, where: str = "property") -> NDArray[np.int64]:
    """The bin of every value, by rank: bins are equal in size to within one, and no value occurs in two of them.

    Raises:
        DataError: where equal values stand on both sides of a boundary.

    Example:
        >>> quantile_bins(np.array([0.3, 0.1, 0.9, 0.2]), 2).tolist()
        [1, 0, 1, 0]
    """
    order = np.argsort(values, kind="stable")
    sizes = class_sizes(len(values), bins)
    for cut in np.cumsum(sizes)[:-1].tolist():
        if 0 < cut < len(values) and values[order[cut - 1]] == values[order[cut]]:
            raise DataError(
                f"the value {values[order[cut]]:g} stands on both sides of a quantile",
                where=where,
                hint="use fewer bins, or widen the range of targets",
            )
    out = np.empty(len(values), np.int64)
    out[order] = np.repeat(np.arange(bins), sizes)
    return out
