"""Output of commands: one JSON object or a short table on stdout; warnings and errors, a line each, on stderr.

A command gives its result in both forms, and one of them is printed.
"""

import json
import logging
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from subgnn.errors import DataWarning, on_command_line
from subgnn.storage.files import finite

# Commands that can be continued, and the options that they need for it.
_CONTINUING = {("train",): ("--resume",), ("tune",): (), ("benchmark", "run"): ()}
_AS_JSON = ContextVar("as_json", default=False)


@contextmanager
def as_json() -> Iterator[None]:
    """Print only what :func:`print_json` prints, which otherwise prints nothing, and errors."""
    token = _AS_JSON.set(True)
    try:
        yield
    finally:
        _AS_JSON.reset(token)


def _printable(text: str) -> str:
    """Text that any terminal accepts: lone surrogates, which file names may contain, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def print_json(value: Any) -> None:
    """Print one JSON object, with --json."""
    if _AS_JSON.get():
        sys.stdout.write(_printable(json.dumps(finite(value), ensure_ascii=False)) + "\n")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, with columns of numbers aligned to the right."""
    if _AS_JSON.get():
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=_printable(title), title_justify="left", title_style="bold", header_style="bold", box=box.SIMPLE_HEAD
    )
    for i, name in enumerate(header):
        numeric = bool(rows) and all(row[i][:1].isdigit() or row[i] == "" for row in rows)
        one_word = all(" " not in row[i] for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=one_word)
    for row in rows:
        table.add_row(*map(_printable, row))
    Console(highlight=False, markup=False).print(table)


def print_line(text: str) -> None:
    """Print a line of plain text."""
    if not _AS_JSON.get():
        sys.stdout.write(_printable(text) + "\n")


def print_next(*words: object) -> None:
    """Print the command of subgnn to give next."""
    print_line(f"next: {command_line(words)}")


def command_line(words: Iterable[object]) -> str:
    """A command of subgnn as it is typed, quoted where a shell needs it."""
    return shlex.join(["subgnn", *map(str, words)])


def continuing_command(words: Sequence[str], time: str = "") -> str:
    """The command that continues an interrupted one, or gives it another ``--time``; empty if it would start again."""
    for name, options in _CONTINUING.items():
        if words[: len(name)] == list(name):
            before = ["", *words]
            kept = [w for w, last in zip(words, before, strict=False) if "--time" not in (last, w.partition("=")[0])]
            again = [*kept, "--time", time] if time else words
            return command_line([*again, *(option for option in options if option not in words)])
    return ""


def print_notes(notes: Sequence[str]) -> None:
    """Print notes, a line each."""
    for note in notes:
        print_line(f"note: {note}")


def print_error(text: str) -> None:
    """Print one line on stderr."""
    sys.stderr.write(_printable(" ".join(text.split())) + "\n")


class _TerminalLines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr.isatty():
            print_error(record.getMessage())


@contextmanager
def messages_as_lines() -> Iterator[None]:
    """Print warnings on stderr, a line each, without deprecation warnings; in a terminal, also when kernels compile."""
    logger, handler = logging.getLogger("subgnn.kernels"), _TerminalLines()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings(), on_command_line():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("always", DataWarning)
            warnings.showwarning = lambda message, *_, **__: print_error(f"warning: {message}")
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
