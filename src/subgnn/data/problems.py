"""Everything that is wrong with a dataset, gathered while it is read.

A reader goes on after a bad line; :meth:`Problems.stop` then raises the first one, and a checker lists them all.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from subgnn.errors import DataError, DataWarning

_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: where, what, and what is accepted or to do."""

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return str(DataError(self.what, where=self.where, hint=self.hint))


class Problems:
    """Errors, warnings and notes met so far; of very many the first thousand are kept, and all are counted."""

    def __init__(self) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []
        self.notes: list[Problem] = []
        self.num_errors = 0

    def error(self, where: str, what: str, hint: str = "", *, count: int = 1) -> None:
        """Note an error; ``count`` more like it may stand behind it."""
        self.num_errors += count
        if len(self.errors) < _KEPT:
            self.errors.append(Problem(where, what, hint))

    def add(self, error: DataError) -> None:
        """Note an error that was raised."""
        self.error(error.where, error.what, error.hint)

    def warn(self, where: str, what: str, hint: str = "") -> None:
        """Note something that was mended."""
        self.warnings.append(Problem(where, what, hint))

    def stop(self) -> None:
        """Raise the first error, if any; otherwise let the warnings out."""
        if self.errors:
            first = self.errors[0]
            more = f" ({self.num_errors - 1:,} more; subgnn data check lists them)" if self.num_errors > 1 else ""
            raise DataError(first.what, where=first.where, hint=first.hint + more)
        for problem in self.warnings:
            warnings.warn(str(problem), DataWarning, stacklevel=3)
