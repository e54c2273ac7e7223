"""The interface of a dataset format, and what a caller states about a file; columns.tsv has likely column titles."""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from subgnn.data.dataset import Dataset, Problems
from subgnn.data.formats.tables import Source, Table
from subgnn.data.formats.text import text_encoding
from subgnn.data.graph import Graph, Repeated
from subgnn.data.strings import is_missing
from subgnn.errors import DataError, choices, excerpt
from subgnn.parallel.progress import ignore
from subgnn.result import Reading
from subgnn.task import TaskName

Unknown = Literal["error", "drop"]
"""What to do with nodes that are not in the graph."""
_SHOWN = 12
_OF_EDGES = ("source", "target", "weight", "type", "time")  # roles of columns


with (Path(__file__).parent / "columns.tsv").open(encoding="utf-8", newline="") as _file:
    _ROLES = {row["role"]: row for row in csv.DictReader(_file, delimiter="\t")}
"""What a column may hold: its ``noun`` in messages, the ``option`` that names it, and likely ``titles``."""
_LIKELY = {role: tuple(row["titles"].split()) for role, row in _ROLES.items()}  # the best first
_PAIRS = tuple(zip(_LIKELY["source"], _LIKELY["target"], strict=True))
_NODE_WORDS = {
    word
    for role in ("source", "target", "node", "node_id")
    for title in (*_LIKELY[role], "partner", "ensembl")
    for word in title.split("_")
    if len(word) > 1
}


Roles = dict[str, str]
"""Titles of columns by role."""
COLUMN_OPTIONS = {role: row["option"][2:].replace("-", "_") for role, row in _ROLES.items() if row["option"]}
"""The option that names the column of a role, as a keyword."""


class Columns(dict[str, str | None]):
    """Column titles that the caller names, in upper or lower case, by role; others are guessed."""

    def find(self, table: Table, role: str, taken: Sequence[str] = ()) -> str | None:
        """The title of the column for a role: the named one, or the most likely that is not taken by another role."""
        given = self.get(role)
        if given is None:
            return likely_title([title for title in table.titles if title not in taken], role)
        if given in table.titles:
            return given
        same = [title for title in table.titles if title.casefold() == given.strip().casefold()]
        if len(same) == 1:
            return same[0]
        what = f"no column {excerpt(given)}" if not same else f"{len(same)} columns are called {excerpt(given)}"
        raise DataError(what, where=table.where, hint=choices(given, table.titles))

    def add(self, table: Table, roles: Sequence[str], found: Roles) -> None:
        for role in roles:
            if (title := self.find(table, role, list(found.values()))) is not None:
                found[role] = title

    def find_ends(self, table: Table) -> tuple[str, str] | None:
        """The columns of a table of edges: those named, a pair of likely titles, or else the first two."""
        if not self.explicit("source", "target"):
            known = {_plain(title): title for title in reversed(table.titles)}
            pair = next(((known[a], known[b]) for a, b in _PAIRS if a in known and b in known), None)
            if pair is not None:
                return pair
        source, target = (self.find(table, role) if self.explicit(role) else None for role in ("source", "target"))
        rest = [title for title in table.titles[:2] if title not in (source, target)]
        if (source is None) + (target is None) > len(rest):
            return None
        # The target is the second column, unless that is the source.
        target = target or (rest[-1] if source is None else rest[0] if source in table.titles[:2] else rest[-1])
        return source or rest[0], target

    @staticmethod
    def are_ends(titles: Sequence[str], ids: Sequence[str]) -> bool:
        """Whether two texts are likely titles of the ends of an edge: usual words, and not like the ids below them."""
        plain = [_plain(title) for title in titles]
        usual = tuple(plain) in _PAIRS or all(_NODE_WORDS & set(re.split("[_12]", title)) for title in plain)
        shapes = {re.sub("[0-9]+", "", _plain(text)) for text in ids}
        return usual and not any(re.sub("[0-9]+", "", title) in shapes for title in plain)

    def explicit(self, *roles: str) -> bool:
        return any(self.get(role) is not None for role in roles)


def _plain(title: str) -> str:
    return re.sub(r"[\W_]+", "_", title.strip().casefold()).strip("_")


def likely_title(titles: Sequence[str], role: str) -> str | None:
    """The most likely of these titles for a role; None if there is none."""
    known = {_plain(title): title for title in reversed(titles)}
    return next((known[likely] for likely in _LIKELY[role] if likely in known), None)


def naming_options(titles: Sequence[str], roles: Sequence[str]) -> str:
    """The options that name these columns."""
    quoted = [title if re.fullmatch(r"[\w.-]+", title) else f'"{title}"' for title in titles]
    return " ".join(f"{_ROLES[role]['option']} {title}" for role, title in zip(roles, quoted, strict=True))


def missing(
    where: str, titles: Sequence[str], roles: Sequence[str], taken: Sequence[str] = (), ask: str = ""
) -> DataError:
    """The error for roles without a column: the options that would name columns of the table that are not ``taken``."""
    free = [title for title in titles if title not in taken]
    options = naming_options([free[i] if i < len(free) else "COLUMN" for i in range(len(roles))], roles)
    nouns = " and ".join(f"{_ROLES[role]['noun']}s" for role in roles)
    what = f"which column holds the {nouns}? its columns are {_listed(titles)}"
    return DataError(what, where=where, hint=f"{ask}name {'it' if len(roles) == 1 else 'them'}: {options}")


def _listed(titles: Sequence[str]) -> str:
    return ", ".join(title[:40] for title in titles[:_SHOWN]) + ", ..." * (len(titles) > _SHOWN)


def unused_columns(where: str, titles: Sequence[str], role: str = "") -> str:
    """One line about columns that are not used, with the option that would use one of them; empty if there is none."""
    use = f" (use {naming_options(titles[:1], [role])})" if role else ""
    return f"{where}: ignored: {_listed(titles)}{use}" if titles else ""


def described(table: Table, found: Mapping[str, str]) -> str:
    """One line about the columns that were guessed, by role; empty if each is called what it is."""
    if all(_plain(title) in (role, _ROLES[role]["noun"]) for role, title in found.items()):
        return ""
    return f"{table.where}: " + ", ".join(f"{_ROLES[role]['noun']} from '{title}'" for role, title in found.items())


@dataclass(frozen=True, slots=True)
class LabelFormat:
    """How labels are written in a file."""

    task: TaskName | None = None  # by default, what the labels look like
    separator: str | None = None  # of several labels
    whole: bool = False  # a label with "-" is not several

    @property
    def stated_task(self) -> TaskName | None:
        """The task, as far as it follows from what is stated."""
        return "multi-label" if self.task is None and self.separator is not None else self.task

    @property
    def joins(self) -> str | None:
        """The text that may join several labels; None where labels are whole."""
        return None if self.whole and self.stated_task is None else self.separator or "-"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the caller states about a file, beyond what the file states itself."""

    id_base: int | None = None  # the first id; by default what the dataset card says
    labels: LabelFormat | None = None  # by default what the dataset card says
    columns: Columns = field(default_factory=Columns)  # the weight is also the edge attribute of a graph file
    directed: bool = False
    encoding: str | None = None
    unknown: Unknown = "error"
    on_note: Callable[[str], None] = ignore  # gets lines about what was guessed
    verify: bool = False  # check all of a file, even if it is known to be intact
    repeated: Repeated | None = None
    label_table: Source | None = None  # names of subgraphs and labels, perhaps several rows for a name
    unlabelled: Literal["drop", "predict"] = "drop"  # subgraphs without a label
    keep_na: bool = False  # NA is a class
    aliases: Source | None = None
    problems: Problems | None = None  # where to list what is wrong, in place of an error for the first

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", text_encoding(self.encoding))

    @property
    def reading(self) -> Reading:
        """What is stated about edges and labels."""
        columns = {role: title for role in _OF_EDGES if (title := self.columns.get(role)) is not None}
        separator = None if self.labels is None else self.labels.separator
        stated = {name: getattr(self, name) for name in ("id_base", "repeated", "encoding")}
        return Reading(**stated, columns=columns, label_separator=separator)

    def refuse(self, error: DataError) -> None:
        """Raise an error; or add it, where all problems are to be listed."""
        if self.problems is None:
            raise error
        self.problems.add(error)

    def read_column(self, table: Table, role: str, found: Roles, read: Callable[[str], NDArray[Any]]) -> Any:
        """Read the column of a role, if any; one that was guessed and cannot be read is dropped, with a note."""
        if role not in found:
            return None
        try:
            return read(found[role])
        except DataError as error:
            if self.columns.explicit(role) or (role == "weight" and table.has_mostly_numbers(found[role])):
                raise
            self.on_note(f"{table.where}: column '{found.pop(role)}' is not used: {error.what}")
            return None

    def no_label(self, value: str | Sequence[str]) -> bool:
        """Whether a label is missing; of several, whether all of them are."""
        texts = [value] if isinstance(value, str) else value
        return not any(texts) if self.keep_na else all(map(is_missing, texts))


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A way to store a dataset or a graph; it has a reader for each of these that it can hold.

    A reader raises :class:`~subgnn.errors.DataError`, or adds to ``problems`` what is wrong and returns None, so that
    ``subgnn data check`` can list every problem of a file.
    """

    accepts: Callable[[Path], bool]
    read_dataset: Callable[[Path, ReadOptions, Problems], Dataset | None] | None = None
    read_graph: Callable[[Path, ReadOptions], Graph] | None = None
