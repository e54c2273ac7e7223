"""A dataset (a graph, its labelled subgraphs and a card), and the problems found while one is read."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, warn
from subgnn.render import render
from subgnn.result import Reading

_MAX_ERRORS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """One base graph and subgraphs of it."""

    name: str
    graph: Graph
    subgraphs: SubgraphSet
    card: dict[str, Any] = field(default_factory=dict)  # what dataset.json holds: name, source, licence, ...
    unlabelled: SubgraphSet | None = None  # of tables, kept to be predicted
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        nodes = self.subgraphs.nodes.values
        if len(nodes) and int(nodes.max()) >= self.graph.num_nodes:
            hint = f"ids run 0..{self.graph.num_nodes - 1}"
            raise DataError(f"node {int(nodes.max())} is not in the graph", where="subgraphs", hint=hint)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.graph!r}, {self.subgraphs!r})"

    def _repr_html_(self) -> str:
        from subgnn.data.describe import dataset_facts

        return render("card.html", title=self.name, facts=dataset_facts(self))


class Problems:
    """Errors, of which a thousand are stored, warnings and notes of a reader, which continues after a bad line."""

    def __init__(self) -> None:
        self.errors: list[DataError] = []
        self.warnings: list[DataError] = []
        self.notes: list[DataError] = []
        self.num_errors = 0

    def error(self, where: str, what: str, hint: str = "") -> None:
        self.add(DataError(what, where=where, hint=hint))

    def add(self, error: DataError) -> None:
        self.num_errors += 1
        if len(self.errors) < _MAX_ERRORS:
            self.errors.append(error)

    def warn(self, where: str, what: str, hint: str = "") -> None:
        self.warnings.append(DataError(what, where=where, hint=hint))

    def require(self, dataset: Dataset | None, source: str | Path) -> Dataset:
        """The result; raises an error if something is wrong."""
        self.stop()
        if dataset is None:
            raise DataError("nothing could be read", where=str(source))
        return dataset

    def stop(self) -> None:
        """Raise the first error, if any; otherwise issue the warnings."""
        if self.errors:
            first = self.errors[0]
            more = f" ({self.num_errors - 1:,} more; subgnn data check lists them)" if self.num_errors > 1 else ""
            raise DataError(first.what, where=first.where, hint=first.hint + more)
        for problem in self.warnings:
            warn(str(problem))
