"""Tables of answers about the subgraphs of a user's table, joined to its rows.

The result is a table in the order of the input (:mod:`subgnn.storage.tables`): the name of the subgraph, or its number;
the answer; the number of its nodes, of those in the graph (known) and of the others (new); the nodes that were dropped
and the reason if there is no answer, if unknown nodes may be dropped; the other columns of the input, if it has one row
per subgraph; and the nodes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.formats.format import ReadOptions
from subgnn.data.formats.graph_tables import read_aliases
from subgnn.data.formats.members import Members, read_members
from subgnn.data.formats.tables import Source
from subgnn.data.graph import Graph
from subgnn.data.own_times import as_rows
from subgnn.data.read_tables import Matched, match_nodes
from subgnn.data.values import check_times
from subgnn.errors import DataError
from subgnn.inference.open import OpenedRun, export_run, fit_without_labels, open_run
from subgnn.inference.predictor import Predictor
from subgnn.models.interface import BATCH, TrainableModel
from subgnn.models.spec import ModelSpec
from subgnn.parallel.memory import share
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.ragged import Ragged
from subgnn.storage.arrays import write_npy
from subgnn.storage.files import STANDARD_STREAM, atomic_write, input_file, refuse_existing
from subgnn.storage.tables import FORMATS, Column, Part, TableFormat, distinct, open_output, write_table

_NPY = ".npy"
_LISTS = 32  # subgraphs whose several rows are written together
CLASS = "class_"
"""The prefix of a column of a class whose title is taken."""

Prefixed = tuple[Column, str]
"""A column, and the prefix that its title gets if it is taken; columns without a prefix keep their titles."""
Joined = list[tuple[Column, str, Sequence[Any]]]
"""Columns that come after an answer: each with its prefix and the values of all subgraphs."""

T = TypeVar("T")


def chunk_size(recipe: Recipe | ModelSpec) -> int:
    """Number of subgraphs to measure at once: with four components each, they take a fifth of the memory.

    Chunks are large because each one searches the whole graph from the shared anchors, and a multiple of the batch
    size, so that outputs do not depend on them.
    """
    each = 4 * 12 * recipe.model.layers * sum(channel.num_anchors for channel in recipe.channels) + 1000
    return BATCH * max(1, min(64, share(0.2) // (BATCH * each)))


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """The subgraphs of a table, as written and as nodes of the graph; if it ``drops``, unknown nodes were left out."""

    members: Members
    matched: Matched
    drops: bool = False

    @classmethod
    def read(cls, source: Source, graph: Graph, options: ReadOptions = ReadOptions(), *, dated: bool = False) -> Self:
        """Read a table, with times if ``dated``; unknown nodes are an error unless ``options`` drop them."""
        if options.aliases is not None:
            graph = read_aliases(options.aliases, graph, options)
        members = read_members(source, graph, options, labelled=False, dated=dated)
        return cls(members, match_nodes(members, graph, options), options.unknown == "drop")

    def __len__(self) -> int:
        return len(self.members)

    def as_of(self, step: float | None) -> Self:
        """The subgraphs, each as of its time if the run measures them so and the table has times; else as of now."""
        if step is None or self.members.times is None:
            return self
        nodes = as_rows(self.matched.nodes, check_times(self.members.times, len(self)), step)
        return replace(self, matched=replace(self.matched, nodes=nodes))

    def refuse_empty(self) -> None:
        if not self.matched.nodes.lengths.any():
            hint = "are nodes written as in the graph of the run?"
            raise DataError("no subgraph has a node in the graph", where=self.members.where, hint=hint)

    def text(self, row: int) -> str:
        """A subgraph as text: its nodes as written, joined by ``-`` if they were in a list or in several rows."""
        return "-".join(self.members.nodes_of(row)) if self.members.named else self.members.names[row]

    def about(self, row: int) -> dict[str, Any]:
        """A subgraph in JSON: its text and, if it has one, its name."""
        return {"subgraph": self.text(row)} | ({"name": self.members.names[row]} if self.members.named else {})

    def dropped(self, row: int) -> list[str]:
        return list(dict.fromkeys(text for text in self.members.nodes_of(row) if text in self.matched.unknown))

    def parts(self, size: int, *, min_known: float = 0.0) -> Iterator[tuple[range, NDArray[np.int64], Ragged]]:
        """Yield ``size`` rows at a time, the positions of those with enough nodes in the graph, and these nodes."""
        for begin in range(0, len(self), size):
            rows = range(begin, min(begin + size, len(self)))
            nodes = self.matched.nodes.take(rows)
            known, new = nodes.lengths, self.matched.dropped[rows.start : rows.stop]
            there = np.flatnonzero([not why_empty(*pair, min_known) for pair in zip(known, new, strict=True)])
            yield rows, there, nodes.take(there)

    def answered(self, size: int, answer: Callable[[Ragged], Iterable[T]]) -> Iterator[tuple[int, T | None]]:
        """Yield each row with its answer, computed for ``size`` rows at a time; None without nodes in the graph."""
        for rows, there, nodes in self.parts(size):
            answers = dict(zip(there.tolist(), answer(nodes) if len(there) else (), strict=True))
            yield from ((row, answers.get(place)) for place, row in enumerate(rows))

    def joined(self, *, min_known: float | None = None) -> Joined:
        """The columns that come after an answer: numbers of nodes, the nodes that were dropped, those of the input.

        With ``min_known``, the answer has one row, and a note says why a subgraph has none. Without, the name of the
        subgraph comes first.
        """
        known, new = self.matched.nodes.lengths, self.matched.dropped
        numbers = {"nodes": known + new, "known": known, "new": new}
        found: Joined = [(Column(title, int), "", values.tolist()) for title, values in numbers.items()]
        if min_known is None and self.members.named:
            found.insert(0, (Column("name"), "subgraph_", self.members.names))
        if self.drops:
            found.append((Column("dropped"), "", [";".join(self.dropped(row)) for row in range(len(self))]))
            if min_known is not None:
                why = [why_empty(*pair, min_known) for pair in zip(known.tolist(), new.tolist(), strict=True)]
                found.append((Column("note"), "", why))
        return found + [(Column(title), "given_", values) for title, values in self.members.others.items()]


def why_empty(known: int, new: int, min_known: float) -> str:
    """Why a subgraph gets no answer: too small a share of its nodes is in the graph; empty if it gets one."""
    if not known:
        return "none of its nodes is in the graph"
    few = f"only {known} of {known + new} nodes are in the graph, fewer than {min_known:.0%}"
    return few if known / (known + new) < min_known else ""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTable:
    """A table of answers; its parts are computed while it is written."""

    columns: list[Column]
    parts: Iterator[Part]

    @classmethod
    def titled(cls, columns: list[Prefixed], parts: Iterator[Part]) -> Self:
        """A table whose columns have distinct titles; those without a prefix keep theirs."""
        order = sorted(range(len(columns)), key=lambda i: bool(columns[i][1]))
        by_place = dict(zip(order, distinct((columns[i][0].title, columns[i][1]) for i in order), strict=True))
        return cls([replace(column, title=by_place[i]) for i, (column, _) in enumerate(columns)], parts)

    @classmethod
    def of(
        cls,
        query: Query,
        own: list[Prefixed],
        answer: Callable[[Sequence[int], Ragged], list[Any]],
        size: int,
        *,
        min_known: float = 0.0,
        members: bool = True,
        on_progress: OnProgress = ignore,
    ) -> Self:
        """One row per subgraph with a share of at least ``min_known`` known nodes: what ``answer`` gives for these."""
        query.refuse_empty()
        joined = query.joined(min_known=min_known)
        names = query.members.names if query.members.named else None

        def parts() -> Iterator[Part]:
            for rows, there, nodes in query.parts(size, min_known=min_known):
                on_progress("subgraphs", rows.start, len(query))
                values = answer([rows[place] for place in there], nodes) if len(there) else [[] for _ in own]
                yield [
                    list(map(str, rows)) if names is None else names[rows.start : rows.stop],
                    *(_spread(column, there, len(rows)) for column in values),
                    *(column[rows.start : rows.stop] for _, _, column in joined),
                    *([[query.text(row) for row in rows]] if members else []),
                ]
            on_progress("subgraphs", len(query), len(query))

        columns = [(Column("name"), ""), *own, *((column, prefix) for column, prefix, _ in joined)]
        return cls.titled([*columns, *[(Column("members"), "")] * members], parts())

    @classmethod
    def of_lists(cls, query: Query, own: list[Column], lists: Iterator[tuple[int, Sequence[Sequence[Any]]]]) -> Self:
        """Several rows per subgraph, of the values in its list, or one with empty cells if the list is empty."""
        query.refuse_empty()
        joined, empty = query.joined(), [[None] * len(own)]

        def parts() -> Iterator[Part]:
            while some := list(islice(lists, _LISTS)):
                rows = [
                    (query.text(row), *answer, *(values[row] for _, _, values in joined))
                    for row, answers in some
                    for answer in answers or empty
                ]
                yield list(zip(*rows, strict=True))

        columns = [(column, "") for column in (Column("subgraph"), *own)]
        return cls.titled([*columns, *((column, prefix) for column, prefix, _ in joined)], parts())


def _spread(values: Any, places: NDArray[np.int64], count: int) -> Any:
    """Put values at their positions among ``count``; elsewhere None, or a vector of NaN."""
    if len(values) == count:
        return values
    if getattr(values, "ndim", 1) == 2:
        vectors = np.full((count, values.shape[1]), np.nan, np.float32)
        vectors[places] = values
        return vectors
    found = dict(zip(places.tolist(), values, strict=True))
    return [found.get(place) for place in range(count)]


def vector_table(
    predictor: Predictor, query: Query, *, members: bool = True, on_progress: OnProgress = ignore
) -> AnswerTable:
    """The vector of each subgraph."""
    query = query.as_of(predictor.as_of_step)
    query.refuse_empty()
    first = query.matched.nodes.take(np.flatnonzero(query.matched.nodes.lengths > 0)[:1])
    column = Column("vector", float, predictor.embeddings(first).shape[1]), ""
    quick = isinstance(predictor.model, TrainableModel) and predictor.model.is_fitted_in_one_go
    size = BATCH if quick else chunk_size(predictor.spec)
    how: dict[str, Any] = {"members": members, "on_progress": on_progress}
    return AnswerTable.of(query, [column], lambda _, nodes: [predictor.embeddings(nodes)], size, **how)


@dataclass(frozen=True, slots=True)
class Files:
    """A file of subgraphs, and the file to write answers to; ``-`` is the standard input or output.

    ``data`` is the dataset of the run, by default its own, and ``graph`` another graph to answer on. CSV and TSV that
    are ``excel_safe`` have no cells that a spreadsheet would take for formulas.
    """

    subgraphs: Path
    out: Path
    reading: ReadOptions = ReadOptions()
    data: Path | None = None
    overwrite: bool = False
    excel_safe: bool = False
    graph: Path | None = None

    def open(self, run: Path) -> OpenedRun:
        """Open a run on its own graph or on the given one; notes say how that differs."""
        opened = open_run(run, self.data, graph=self.graph)
        for line in opened.match.lines if opened.match else ():
            self.reading.on_note(line)
        return opened

    def output_format(self, *, default: TableFormat | None = None, others: Sequence[str] = ()) -> TableFormat | None:
        """The output format, from the file ending; TSV for the standard output, None if the ending is in ``others``.

        A name without an ending, or with ``.txt``, has the default format.

        Raises:
            DataError: for another ending; for ``excel_safe`` if the output is neither CSV
                nor TSV; and for an output that exists, unless it may be replaced.
        """
        suffix = self.out.suffix
        plain = "tsv" if self.out == STANDARD_STREAM else default if suffix in ("", ".txt") else None
        found = None if suffix in others else FORMATS.get(suffix, plain)
        if found is None and suffix not in others:
            hint = f"accepted: {', '.join([*others, *FORMATS])}, or - for the standard output"
            raise DataError(f"unknown kind of file '{suffix}'", where=str(self.out), hint=hint)
        if self.excel_safe and found not in ("csv", "tsv"):
            raise DataError(f"{self.out} is neither CSV nor TSV", where="--excel-safe", hint="leave it out")
        if self.out != STANDARD_STREAM:
            refuse_existing(self.out, overwrite=self.overwrite)
        return found

    def read(self, asked: Predictor | Graph) -> Query:
        """The subgraphs, of a run as of their times if it measures them so; a warning reports dropped nodes."""
        graph, step = (asked, None) if isinstance(asked, Graph) else (asked.graph, asked.as_of_step)
        with input_file(self.subgraphs) as path:
            where = path.name if self.subgraphs == STANDARD_STREAM else str(path)  # not the temporary file
            reading = replace(self.reading, on_note=lambda note: self.reading.on_note(note.replace(str(path), where)))
            query = Query.read(path, graph, reading, dated=step is not None).as_of(step)
        if step is not None and query.members.times is None:
            self.reading.on_note("the table has no times: subgraphs are measured on the graph as it is now")
        matched = replace(query.matched, where=where)
        matched.warn()
        return replace(query, members=replace(query.members, where=where), matched=matched)

    def write(self, form: TableFormat, table: AnswerTable) -> None:
        with open_output(self.out, overwrite=self.overwrite) as file:
            write_table(file, form, table.columns, table.parts, excel_safe=self.excel_safe)


def write_embeddings(run: Path, files: Files, *, on_progress: OnProgress = ignore) -> tuple[int, int]:
    """Write :func:`vector_table`, or the vectors alone as .npy, and return the shape of the vectors."""
    files.output_format(others=[_NPY])
    predictor = files.open(run).predictor
    return _write_vectors(predictor, files.read(predictor), files, on_progress)


def write_embeddings_without_labels(
    graph: Graph, files: Files, recipe: Recipe, *, seed: int, model: Path | None, on_progress: OnProgress
) -> tuple[int, int]:
    """Fit a model without labels to the subgraphs of the file; write their vectors and, with ``model``, an export."""
    files.output_format(others=[_NPY])
    if model is not None:
        refuse_existing(model, overwrite=files.overwrite)
    query = files.read(graph)
    query.refuse_empty()
    fitted = fit_without_labels(graph, query.matched.nodes, recipe, seed=seed)
    if model is not None:
        export_run(fitted, model, with_graph=True, overwrite=files.overwrite)
    return _write_vectors(fitted.predictor, query, files, on_progress)


def _write_vectors(predictor: Predictor, query: Query, files: Files, on_progress: OnProgress) -> tuple[int, int]:
    form = files.output_format(others=[_NPY])
    table = vector_table(predictor, query, members=form is not None, on_progress=on_progress)
    if form is None:
        with atomic_write(files.out, overwrite=files.overwrite) as temporary:
            write_npy(temporary, (np.asarray(part[1], np.float32) for part in table.parts))
    else:
        files.write(form, table)
    return len(query), table.columns[1].width or 0
