"""Collect the problems of a dataset while it is read.

A reader continues after a bad line; :meth:`Problems.stop` then raises the first problem, and a check lists all.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from subgnn.errors import DataError, DataWarning

_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: where it is, what it is, and what is accepted or to do."""

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return str(DataError(self.what, where=self.where, hint=self.hint))


class Problems:
    """Errors, warnings and notes so far; the first thousand errors are stored, and all are counted."""

    def __init__(self) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []
        self.notes: list[Problem] = []
        self.num_errors = 0

    def error(self, where: str, what: str, hint: str = "", *, count: int = 1) -> None:
        """Add an error, which may stand for ``count`` similar ones."""
        self.num_errors += count
        if len(self.errors) < _KEPT:
            self.errors.append(Problem(where, what, hint))

    def add(self, error: DataError) -> None:
        """Add an error that was raised."""
        self.error(error.where, error.what, error.hint)

    def warn(self, where: str, what: str, hint: str = "") -> None:
        """Add a warning of something that was repaired."""
        self.warnings.append(Problem(where, what, hint))

    def stop(self) -> None:
        """Raise the first error, if any; otherwise issue the warnings."""
        if self.errors:
            first = self.errors[0]
            more = f" ({self.num_errors - 1:,} more; subgnn data check lists them)" if self.num_errors > 1 else ""
            raise DataError(first.what, where=first.where, hint=first.hint + more)
        for problem in self.warnings:
            warnings.warn(str(problem), DataWarning, stacklevel=3)
