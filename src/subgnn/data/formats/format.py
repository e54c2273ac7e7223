"""The interface of a dataset format: which paths it accepts, and what it reads from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from subgnn.data.dataset import Dataset, Problems
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet, Task


@dataclass(frozen=True, slots=True)
class LabelFormat:
    """How labels are written in a file.

    Args:
        task: by default what the labels look like.
        separator: the text that joins several labels of a subgraph; without a task, the task is multi-label then.
        whole: without a task and a separator, keep labels whole; otherwise a ``-`` in any of them joins several.
        numbers: labels are real numbers, written as 3.0; classes made of them are called 3.
    """

    task: Task | None = None
    separator: str | None = None
    whole: bool = False
    numbers: bool = False

    @property
    def stated_task(self) -> Task | None:
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
        source, target: columns of a table of edges; the first two by default.
        weight: column of a table of edges, or edge attribute of a graph file; by default edges have no weights.
        directed: keep the direction of edges.
        verify: check all of a file, even where it is known to be intact.
    """

    id_base: int | None = None
    labels: LabelFormat | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    directed: bool = False
    verify: bool = False


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A way to store a dataset, a graph or subgraphs; it has a reader for each of these that it can hold.

    A reader raises :class:`~subgnn.errors.DataError`, or adds to ``problems`` what is wrong and returns None, so that
    ``subgnn data check`` can list every problem of a file.

    Args:
        suffixes: endings of names of such files.
        read_dataset: reads a graph and its subgraphs.
        read_graph: reads a graph.
        read_subgraphs: reads subgraphs of a graph.
        matches: whether a path is of this format; by default whether its name ends in one of the suffixes.
    """

    name: str
    suffixes: tuple[str, ...]
    read_dataset: Callable[[Path, ReadOptions, Problems], Dataset | None] | None = None
    read_graph: Callable[[Path, ReadOptions], Graph] | None = None
    read_subgraphs: Callable[[Path, Graph, ReadOptions], SubgraphSet] | None = None
    matches: Callable[[Path], bool] | None = None

    def accepts(self, path: Path) -> bool:
        """Whether a path is of this format."""
        return path.name.endswith(self.suffixes) if self.matches is None else self.matches(path)
