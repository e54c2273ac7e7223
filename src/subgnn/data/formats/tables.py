"""Edges and memberships as tables with ids of any kind: CSV, TSV or Parquet, read by pyarrow.

Edges have a row for each edge: two columns of node ids, and one of weights where it is named. Memberships have a row
for each node of each subgraph: subgraph, node, label, split. Ids are text; nodes are numbered in the order of their
ids, as numbers where all of them are.
"""

from __future__ import annotations

import csv as plain_csv
import io
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.format import FileFormat, LabelFormat, ReadOptions
from subgnn.data.formats.subgraph_text import SUBGRAPH_TEXT
from subgnn.data.formats.text import open_unpacked, read_lines, too_much_unpacked, unpacked_limit
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, find_node, is_id
from subgnn.data.subgraphs import SPLITS, SubgraphSet, split_labels
from subgnn.errors import DataError, choices, excerpt

if TYPE_CHECKING:
    import pyarrow as pa

_FILL = "fill or drop empty cells"
_DEFAULTS = ReadOptions()
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


class _Table:
    """A CSV, TSV (also gzipped) or Parquet file; CSV needs a header line."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        if not path.is_file():
            raise DataError("no such file", where=str(path), hint="check the path")
        self.path = path
        try:
            self.data = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
            self.titles: list[str] = self.data.column_names
        except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, zlib.error, plain_csv.Error) as error:
            what = f"this cannot be read as a table ({_reason(error)})"
            raise DataError(what, where=str(path), hint="accepted: CSV with a header, or Parquet") from None
        twice = sorted({name for name in self.titles if self.titles.count(name) > 1})
        if twice:
            what = f"two columns are called {excerpt(twice[0])}"
            raise DataError(what, where=str(path), hint="name each one differently")

    def __len__(self) -> int:
        return len(self.data)

    def row(self, wrong: Any) -> str:
        """The place of the first row where ``wrong`` is true, for errors."""
        return f"{self.path}: row {int(np.argmax(np.asarray(wrong))) + 1}"

    def column(self, title: str) -> pa.ChunkedArray:
        """A column by its title."""
        if title not in self.titles:
            raise DataError(f"no column '{title}'", where=str(self.path), hint=choices(title, self.titles))
        return self.data.column(title)

    def text(self, title: str, what: str) -> pa.ChunkedArray:
        """A column of text or integers (of any numbers where it is the label), as text without empty cells."""
        import pyarrow as pa
        from pyarrow import compute

        column, where = self.column(title), str(self.path)
        if column.null_count:
            raise DataError(f"no {what}", where=self.row(compute.is_null(column)), hint=_FILL)
        kinds = [pa.types.is_string, pa.types.is_large_string, pa.types.is_integer]
        kinds += [pa.types.is_floating] if what == "label" else []
        if not any(is_kind(column.type) for is_kind in kinds):
            hint = f"text or {'numbers' if what == 'label' else 'integers'} are accepted"
            raise DataError(f"the {what} column has type {column.type}", where=where, hint=hint)
        try:
            text = compute.cast(column, pa.string())
            text.validate(full=True)
        except pa.ArrowException as error:
            raise DataError(f"the {what} column is not text ({_reason(error)})", where=where) from None
        empty = np.asarray(compute.equal(text, ""))
        if empty.any():
            missing = "the label is missing" if what == "label" else f"no {what}"
            raise DataError(missing, where=self.row(empty), hint=_FILL)
        return text

    def numbers(self, title: str) -> NDArray[np.float64]:
        """A column of numbers that are finite in 32 bits."""
        import pyarrow as pa
        from pyarrow import compute

        try:
            values = np.asarray(compute.cast(self.column(title), pa.float64()), np.float64)
        except pa.ArrowException as error:
            what = f"column '{title}' is not all numbers ({_reason(error)})"
            raise DataError(what, where=str(self.path)) from None
        with np.errstate(over="ignore"):
            bad = ~np.isfinite(values.astype(np.float32))
        if bad.any():
            hint = "weights must be finite numbers"
            raise DataError(f"weight {values[np.argmax(bad)]}", where=self.row(bad), hint=hint)
        return values


def _read_parquet(path: Path) -> pa.Table:
    """Read Parquet; a file whose few bytes stand for more cells, or unpack to more, than graphs need is refused."""
    from pyarrow import parquet

    metadata, limit = parquet.read_metadata(path), unpacked_limit(path.stat().st_size)
    groups = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if max(groups, metadata.num_rows * metadata.num_columns) > limit:
        raise too_much_unpacked(limit, str(path))
    return parquet.read_table(path)


def _read_csv(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    delimiter = "\t" if path.name.endswith((".tsv", ".tsv.gz")) else ","
    with io.TextIOWrapper(open_unpacked(path), encoding="utf-8-sig", errors="replace", newline="") as header:
        titles = next(plain_csv.reader(header, delimiter=delimiter), [])
    # Ids are text: 007 and 7 are two nodes, and ids may have any number of digits.
    convert = csv.ConvertOptions(column_types=dict.fromkeys(titles, pa.string()), strings_can_be_null=False)
    parse = csv.ParseOptions(delimiter=delimiter)

    def read(*, use_threads: bool) -> pa.Table:
        # pyarrow itself would unpack a compressed file without limit.
        with open_unpacked(path) if path.suffix == ".gz" else pa.OSFile(str(path)) as file:
            options = csv.ReadOptions(use_threads=use_threads)
            return csv.read_csv(file, read_options=options, parse_options=parse, convert_options=convert)

    try:
        return read(use_threads=True)
    except pa.ArrowInvalid:
        return read(use_threads=False)  # which reports the number of the bad row


def _reason(error: Exception) -> str:
    """The message of a library, on one line and without raw bytes."""
    return ascii(" ".join(str(error).split())[:100])[1:-1]


def read_edge_table(path: Path, options: ReadOptions = _DEFAULTS) -> Graph:
    """A graph from a table with a row for each edge."""
    import pyarrow as pa
    from pyarrow import compute

    table = _Table(path)
    ends = []
    for place, (title, what) in enumerate(((options.source, "source"), (options.target, "target"))):
        if title is None and len(table.titles) <= place:
            hint = f"a column for the {what} is needed"
            raise DataError(f"{len(table.titles)} columns", where=str(path), hint=hint)
        ends.append(table.text(table.titles[place] if title is None else title, what))
    if len(table) == 0:
        raise DataError("no edges", where=str(path), hint="a row for each edge is needed")
    names = compute.unique(pa.chunked_array([*ends[0].chunks, *ends[1].chunks]))
    if options.source is None and all(compute.index(names, pa.scalar(t)).as_py() >= 0 for t in table.titles[:2]):
        hint = "add a header line, such as source,target"
        raise DataError("the first line looks like an edge", where=f"{path}:1", hint=hint)
    ids = names.to_pylist()
    ordered = pa.array(sorted(ids, key=int) if all(map(is_id, ids)) else sorted(ids))
    tails, heads = (np.asarray(compute.index_in(column, value_set=ordered)) for column in ends)
    return Graph.from_edges(
        tails,
        heads,
        weights=None if options.weight is None else table.numbers(options.weight),
        num_nodes=len(ordered),
        names=NodeNames.of(ordered.to_pylist()),
        directed=options.directed,
    )


def read_membership_table(path: Path, graph: Graph, options: ReadOptions = _DEFAULTS) -> SubgraphSet:
    """Subgraphs from a table with a row for each node of each subgraph.

    Columns are found by name: ``subgraph``, ``node``, ``label``, ``split``; all rows of a subgraph have the same label
    and split. Without a column ``split`` the subgraphs have none. A label is whole unless the options state that the
    task is multi-label.
    """
    table, form = _Table(path), options.labels or LabelFormat()
    split_given = "split" in table.titles
    columns = [table.text(name, name).to_pylist() for name in ("subgraph", "node", "label")]
    columns.append(table.text("split", "split").to_pylist() if split_given else [SPLITS[0]] * len(table))
    if len(table) == 0:
        raise DataError("no memberships", where=str(path), hint="a row for each node of each subgraph is needed")
    members: dict[str, list[int]] = {}
    stated: dict[str, tuple[str, str]] = {}
    for number, (key, node, label, split) in enumerate(zip(*columns, strict=True), 1):
        where = f"{path}: row {number}"
        members.setdefault(key, []).append(_node(node, graph, where))
        if not label.strip():
            raise DataError("the label is missing", where=where)
        if split not in SPLITS:
            raise DataError(f"unknown split {excerpt(split)}", where=where, hint=choices(split, SPLITS))
        if stated.setdefault(key, (label, split)) != (label, split):
            hint = "one of each for all its rows; several labels are joined, with --task multilabel"
            raise DataError(f"subgraph {excerpt(key)} has two labels or splits", where=where, hint=hint)
    splits = [split for _, split in stated.values()]
    for split in SPLITS if split_given else ():
        if split not in splits:
            hint = "train, val and test each need at least one; without the column, a split is drawn"
            raise DataError(f"no subgraph in split '{split}'", where=str(path), hint=hint)
    task = form.stated_task
    labels = split_labels([label.strip() for label, _ in stated.values()], task, form.joins if task else None)
    if () in labels:
        key = list(stated)[labels.index(())]
        raise DataError(f"subgraph {excerpt(key)} has no label", where=str(path), hint=_FILL)
    try:
        return SubgraphSet.from_lists(
            list(members.values()),
            num_nodes=graph.num_nodes,
            labels=labels,
            task=task,
            splits=splits if split_given else None,
            names=list(members),
        )
    except DataError as error:
        raise DataError(error.what, where=f"{path}: {error.where}", hint=error.hint) from None


def _node(text: str, graph: Graph, where: str) -> int:
    node = find_node(text, graph.num_nodes, graph.names)
    if node is None:
        what = f"node {excerpt(text)} is not in the graph"
        raise DataError(what, where=where, hint="it must be in the table of edges")
    if node < 0:
        raise DataError(f"{excerpt(text)} names several nodes", where=where, hint="write the row number of one, #12")
    return node


def _is_edge_table(path: Path) -> bool:
    return path.name.endswith(SUFFIXES) and not path.name.endswith(SUBGRAPH_TEXT.suffixes)


def _is_membership_table(path: Path) -> bool:
    """Whether a path is CSV or Parquet, or a TSV whose first line names the columns."""
    if not path.name.endswith((".tsv", ".tsv.gz")):
        return path.name.endswith(SUFFIXES)
    first = next(read_lines(path), (0, ""))[1]
    return {"subgraph", "node"} <= set(first.split("\t"))


EDGE_TABLE = FileFormat("table of edges", SUFFIXES, read_graph=read_edge_table, matches=_is_edge_table)
MEMBERSHIP_TABLE = FileFormat(
    "table of memberships", SUFFIXES, read_subgraphs=read_membership_table, matches=_is_membership_table
)
