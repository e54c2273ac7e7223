"""Errors that say where, what is wrong, what is accepted and what to do; one line and exit code 2 for users."""

import difflib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_MAX_EXCERPT = 40
_MAX_NAME = 100
_MANY = 40
_NEAREST = 5
_WITHOUT = ("directed", "keep-na", "force", "include-test", "allow-look-ahead")  # a value
_RENAMED = {"force": "overwrite", "set": "settings"}
_OPTION = re.compile(
    r"--(aliases|as-of|data|distance|edge-time|edge-type|edges-until|encoding|graph|id-base|label-column|label-separator|"
    r"labels|node-column|node-id|nodes|recipe|repeated|seed|set|source|split|split-column|subgraph-column|target|task|"
    rf"threshold|time|time-column|top|unknown|unlabelled|weight|{'|'.join(_WITHOUT)})(?![\w-])"
    r"(?: (?!--)((?:[\w./=-]+|'[^']*'|\"[^\"]*\")(?=[\s;,:)|]|$)))?"
)
"""Options that are arguments of functions, too, with or without a value, and the word that follows."""
_SMALL_WORDS = ("and", "as", "at", "for", "from", "if", "in", "is", "it", "of", "on", "or", "out", "to", "with")
"""Words that may follow an option in a sentence, and are not its value."""
_names_options = False


class SubgnnError(Exception):
    """Any error that this package raises on purpose."""


class UserError(SubgnnError):
    """The caller's mistake: *where: what; hint*, on one line.

    The parts are written with options of commands; in Python, the message has arguments in their place.

    Args:
        what: what is wrong, with the offending value.
        where: the file and line, the argument or the setting, if there is such a place.
        hint: what is accepted, or what to do about it.

    Example:
        >>> print(UserError("node 9 is not in the graph", where="subgraphs.tsv:4", hint="ids run 0..8"))
        subgraphs.tsv:4: node 9 is not in the graph; ids run 0..8
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        message = (f"{where}: {what}" if where else what) + (f"; {hint}" if hint else "")
        super().__init__(message if _names_options else as_arguments(message))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle, which would call a subclass with the message alone."""
        return _rebuild, (type(self), self.what, self.where, self.hint)


def _rebuild(kind: type[UserError], what: str, where: str, hint: str) -> UserError:
    error = kind.__new__(kind)
    UserError.__init__(error, what, where=where, hint=hint)
    return error


class DataError(UserError):
    """Malformed or inconsistent data in a file, or in arrays passed to the library."""


class MemoryLimitError(UserError):
    """More memory is needed than this process may use."""


class MissingExtra(UserError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, package: str, *, extra: str, feature: str) -> None:
        super().__init__(
            f"{feature} needs the package {package}", hint=f"install it with: pip install 'subgnn[{extra}]'"
        )


@contextmanager
def extra_package(package: str, *, extra: str, feature: str) -> Iterator[None]:
    """Import an optional package in this block; :class:`MissingExtra` if it is not installed."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(error.name or package, extra=extra, feature=feature) from None


class DataWarning(UserWarning):
    """Input was corrected automatically (a self loop, a repeated node); the message says what and how often."""


def warn(message: str, category: type[Warning] = DataWarning) -> None:
    """Warn at the caller's line: the first one outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "subgnn":
        frame, level = frame.f_back, level + 1
    warnings.warn(message if _names_options else as_arguments(message), category, stacklevel=level)


@contextmanager
def on_command_line() -> Iterator[None]:
    """In this block, messages name options of commands; elsewhere they name arguments of functions."""
    global _names_options
    before, _names_options = _names_options, True
    try:
        yield
    finally:
        _names_options = before


def as_arguments(text: str) -> str:
    """A message with arguments of Python in place of options of the command line.

    Example:
        >>> as_arguments("correct it, or pass --unknown drop to leave it out; --id-base 1, --node-column if it is one")
        "correct it, or pass unknown='drop' to leave it out; id_base=1, node_column if it is one"
    """

    def written(match: re.Match[str]) -> str:
        option, value = match[1], match[2]
        of_suite = option == "data" and "=" in (value or "")
        if of_suite or "subgnn " in re.split("[;,(]", text[: match.start()])[-1]:  # a command to type
            return match[0]
        name = _RENAMED.get(option, option.replace("-", "_"))
        if option in _WITHOUT:
            return f"{name}=True{'' if value is None else f' {value}'}"
        if value is None or value in _SMALL_WORDS:
            return name if value is None else f"{name} {value}"
        plain = value.isdigit() or value.isupper() or value[0] in "'\""
        return f"{name}={value if plain else repr(value)}"

    return _OPTION.sub(written, text)


def excerpt(value: str | bytes) -> str:
    r"""A value for a one-line message: escaped, and cut if it is long.

    Example:
        >>> excerpt(b"ab\x00c")
        "'ab\\x00c'"
    """
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    cut = text[:_MAX_EXCERPT]
    return ascii(cut) + ("..." if len(text) > len(cut) else "")


def counted(count: int, noun: str) -> str:
    """A number of things, as ``1 subgraph`` or ``2,000 subgraphs``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def shortened(name: str) -> str:
    """A name for a message, cut if it is very long."""
    return name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}..."


def choices(name: str, names: Iterable[str]) -> str:
    """The hint for an unknown name: all accepted names, and the closest; of very many, the nearest five.

    Example:
        >>> choices("tset", ["train", "val", "test"])
        "accepted: train, val, test; did you mean 'test'?"
    """
    known = list(names)
    if len(known) > _MANY:
        nearest = difflib.get_close_matches(name[:_MAX_NAME], known, n=_NEAREST, cutoff=0)
        accepted = f"the nearest of {len(known):,} accepted names: {', '.join(nearest)}"
    else:
        accepted = f"accepted: {', '.join(known)}"
    near = difflib.get_close_matches(name[:_MAX_NAME], known, n=1)
    return accepted + (f"; did you mean '{near[0]}'?" if near else "")
