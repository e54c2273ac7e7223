"""Checks that the settings of the builders share."""

from __future__ import annotations

from subgnn.data.splits import split_sizes
from subgnn.errors import DataError


def at_least(least: float, **given: float) -> None:
    """Raise :class:`DataError` for a setting below what makes sense."""
    for name, value in given.items():
        if not value >= least:
            raise DataError(f"{value:g}", where=name, hint=f"at least {least:g} is accepted")


def within(low: float, high: float, **given: float) -> None:
    """Raise :class:`DataError` for a setting outside a closed range."""
    for name, value in given.items():
        if not low <= value <= high:
            raise DataError(f"{value:g}", where=name, hint=f"{low:g} to {high:g} is accepted")


def check_fractions(fractions: tuple[float, ...]) -> None:
    """Raise :class:`DataError` unless there are three shares above 0 that sum to 1."""
    split_sizes(len(fractions) or 3, fractions)
