"""The interface of a dataset format: which paths it accepts, and what it reads from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from subgnn.data.dataset import Dataset, Problems
from subgnn.data.formats.columns import GUESSED, Columns
from subgnn.data.formats.text import text_encoding
from subgnn.data.graph import Graph
from subgnn.parallel.progress import ignore
from subgnn.task import TaskName

Unknown = Literal["error", "drop"]
"""What to do with nodes that are not in the graph."""


@dataclass(frozen=True, slots=True)
class LabelFormat:
    """How labels are written in a file.

    Args:
        task: by default what the labels look like.
        separator: joins several labels of a subgraph; without a task, the task is multi-label then.
        whole: without a task and a separator, keep labels whole; otherwise a ``-`` in any of them joins several.
    """

    task: TaskName | None = None
    separator: str | None = None
    whole: bool = False

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
    """What the caller states about a file, beyond what the file states itself.

    Args:
        id_base: the number that node ids begin with; by default what the dataset card says, else 0.
        labels: how labels are written; by default what the dataset card says.
        columns: titles of columns of tables; ``columns.weight`` is also the edge attribute of a graph file.
        encoding: of text tables; UTF-8 by default.
        on_note: called with a line about what was guessed.
        verify: check all of a file, even where it is known to be intact.
    """

    id_base: int | None = None
    labels: LabelFormat | None = None
    columns: Columns = GUESSED
    directed: bool = False
    encoding: str | None = None
    unknown: Unknown = "error"
    on_note: Callable[[str], None] = ignore
    verify: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", text_encoding(self.encoding))


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A way to store a dataset or a graph; it has a reader for each of these that it can hold.

    A reader raises :class:`~subgnn.errors.DataError`, or adds to ``problems`` what is wrong and returns None, so that
    ``subgnn data check`` can list every problem of a file.

    Args:
        suffixes: endings of names of such files.
        matches: whether a path is of this format; by default whether its name ends in one of the suffixes.
    """

    name: str
    suffixes: tuple[str, ...]
    read_dataset: Callable[[Path, ReadOptions, Problems], Dataset | None] | None = None
    read_graph: Callable[[Path, ReadOptions], Graph] | None = None
    matches: Callable[[Path], bool] | None = None

    def accepts(self, path: Path) -> bool:
        """Whether a path is of this format."""
        return path.name.endswith(self.suffixes) if self.matches is None else self.matches(path)
