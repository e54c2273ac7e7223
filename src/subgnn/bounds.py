"""Which numbers a setting takes, written beside its type and read by :mod:`subgnn.settings_file`."""

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
        >>> str(Bounds(0, 1)), str(Bounds(1)), str(Bounds())
        ('from 0 to 1', 'from 1', 'from 0')
    """

    low: float = 0
    high: float = math.inf

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and value < math.inf

    def __str__(self) -> str:
        return f"from {self.low:g}" + (f" to {self.high:g}" if self.high < math.inf else "")


Count = Annotated[int, Bounds(1)]
"""A number of things of which there must be some."""

Probability = Annotated[float, Bounds(0, 1)]
"""A probability, or a part of a whole."""

Power = Annotated[float, Bounds(0, 4)]
"""A power of degrees: the product of two such powers of any degree is a number, and not 0."""


def with_bounds(kind: Any) -> tuple[Any, Bounds | None]:
    """A type without its bounds, and these; a number of which nothing is said is from 0.

    Example:
        >>> with_bounds(Count), with_bounds(int), with_bounds(str)
        ((<class 'int'>, Bounds(low=1, high=inf)), (<class 'int'>, Bounds(low=0, high=inf)), (<class 'str'>, None))
    """
    if get_origin(kind) is Annotated:
        plain, bounds = get_args(kind)
        return plain, bounds
    return kind, Bounds() if kind in (int, float) else None
