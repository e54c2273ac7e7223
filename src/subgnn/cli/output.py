"""How verbs speak: one JSON object or a short table on stdout; warnings and errors, a line each, on stderr."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from subgnn.errors import DataWarning
from subgnn.parallel.memory import within

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")]
CacheFlag = Annotated[
    bool,
    typer.Option(" /--no-cache", show_default=False, help="Neither look into the cache nor write there."),
]


def _keep_within(context: typer.Context, memory: str | None) -> str | None:
    """Put the limit in force until the verb is done."""
    context.with_resource(within(memory))
    return memory


MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        callback=_keep_within,
        help="How much memory to stay within, as 16GB; by default two thirds of the machine's. Changes no result.",
    ),
]
IdBase = Annotated[
    int | None,
    typer.Option(
        "--id-base",
        min=0,
        max=1,
        help="What the files count nodes from, 0 or 1; by default what dataset.json says, else 0.",
    ),
]


def _printable(text: str) -> str:
    """Text that any terminal takes: halves of characters, as file names may have them, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def print_json(value: Any) -> None:
    """One JSON object."""
    sys.stdout.write(_printable(json.dumps(value, ensure_ascii=False)) + "\n")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A short table; columns of numbers are aligned to the right."""
    table = Table(
        title=_printable(title), title_justify="left", title_style="bold", header_style="bold", box=box.SIMPLE_HEAD
    )
    for i, name in enumerate(header):
        numeric = bool(rows) and all(row[i][:1].isdigit() or row[i] == "" for row in rows)
        table.add_column(
            name,
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=all(" " not in row[i] for row in rows),
        )
    for row in rows:
        table.add_row(*map(_printable, row))
    Console(highlight=False, markup=False).print(table)


def print_line(text: str) -> None:
    """A line of plain text."""
    sys.stdout.write(_printable(text) + "\n")


def unused_line(by: str, unused: Sequence[str]) -> str:
    """What of the data is not looked at.

    Example:
        >>> unused_line("recipe", ["edge weights", "node features"])
        'not used by this recipe: edge weights; node features'
    """
    return f"not used by this {by}: {'; '.join(unused)}"


def print_error(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(_printable(" ".join(text.split())) + "\n")


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show what was mended as ``warning: ...`` on stderr; advice to programmers, whatever Python's filters, is not."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        print_error(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = show
        yield
