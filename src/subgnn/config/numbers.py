"""Types of the numbers among settings, with the bounds of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin


@dataclass(frozen=True, slots=True)
class Bounds:
    """Finite numbers from low to high, both of them included.

    Example:
        >>> 1.0 in Bounds(0, 1), 1.5 in Bounds(0, 1), math.inf in Bounds()
        (True, False, False)
        >>> str(Bounds(0, 1)), str(Bounds(1, 10**6)), str(Bounds(0.5))
        ('from 0 to 1', 'from 1 to 1,000,000', 'from 0.5')
    """

    low: float = 0
    high: float = math.inf

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and value < math.inf

    def __str__(self) -> str:
        return f"from {self.low:,}" + (f" to {self.high:,}" if self.high < math.inf else "")


LARGEST = 10**9
"""The largest whole number of a setting: compiled code counts in 32 bits."""

Count = Annotated[int, Bounds(1, LARGEST)]
"""A number of things, at least one."""

Size = Annotated[int, Bounds(1, 10**6)]
"""A length of arrays in memory: a width, a number of anchors, a length of walks."""

Width = Annotated[int, Bounds(1, 65_536)]
"""The width of a node embedding."""

Depth = Annotated[int, Bounds(1, 1000)]
"""A number of networks, layers or draws, each of which has weights or anchors."""

Seed = Annotated[int, Bounds(0, 2**63 - 1)]
"""A seed of random numbers."""

Probability = Annotated[float, Bounds(0, 1)]
"""A probability or a fraction."""

Damping = Annotated[float, Bounds(0, 0.99)]
"""The probability that a random walk goes on."""


AnyNumber = Annotated[float, None]
"""Any number of a result, also below 0, infinite or undefined (NaN)."""


def with_bounds(kind: Any) -> tuple[Any, Bounds | None]:
    """A type without its bounds, and the bounds; by default numbers are from 0 and fit into 32 bits.

    Example:
        >>> with_bounds(Probability), with_bounds(float), with_bounds(str)
        ((<class 'float'>, Bounds(low=0, high=1)), (<class 'float'>, Bounds(low=0, high=1e+30)), (<class 'str'>, None))
    """
    if get_origin(kind) is Annotated:
        plain, bounds = get_args(kind)
        return plain, bounds
    return kind, {int: Bounds(0, LARGEST), float: Bounds(0, 1e30)}.get(kind)
