"""Edges and memberships as tables with ids of any kind: CSV, TSV or Parquet.

Edges have a row an edge: two columns of node ids, and one of weights where it is named. Memberships have a row for each
node of each subgraph: subgraph, node, label, split. Ids are text; nodes are numbered in the order of their ids, as
numbers where all of them are.
"""

from __future__ import annotations

import csv as plain_csv
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.format import FileFormat, LabelFormat, ReadOptions
from subgnn.data.formats.subgraph_text import SUBGRAPH_TEXT
from subgnn.data.formats.text import open_unpacked, read_lines, too_much_unpacked, unpacked_limit
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, find_node, is_id
from subgnn.data.subgraphs import SPLITS, Label, SubgraphSet, split_labels
from subgnn.errors import DataError, choices, excerpt

if TYPE_CHECKING:
    import pyarrow as pa

_FILL = "fill or drop empty cells"
_DEFAULTS = ReadOptions()
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


def read_table(path: Path) -> pa.Table:
    """A CSV, TSV (also gzipped) or Parquet file as a table; CSV needs a header line."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    if not path.is_file():
        raise DataError("no such file", where=str(path), hint="check the path")
    try:
        if path.suffix == ".parquet":
            _check_parquet(parquet.read_metadata(path), path)
            return _distinct(parquet.read_table(path), path)
        delimiter = "\t" if path.name.endswith((".tsv", ".tsv.gz")) else ","
        parse = csv.ParseOptions(delimiter=delimiter)
        # Ids are text: 007 and 7 are two nodes, and an id as large as it likes.
        types = dict.fromkeys(_header(path, delimiter), pa.string())
        convert = csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        try:
            with _table_source(path) as file:
                table = csv.read_csv(file, parse_options=parse, convert_options=convert)
        except pa.ArrowInvalid:
            # One thread knows which row is wrong.
            alone = csv.ReadOptions(use_threads=False)
            with _table_source(path) as file:
                table = csv.read_csv(file, read_options=alone, parse_options=parse, convert_options=convert)
        return _distinct(table, path)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, zlib.error, plain_csv.Error) as error:
        reason = _reason(error)
        raise DataError(
            f"this cannot be read as a table ({reason})",
            where=str(path),
            hint="accepted: CSV with a header, or Parquet",
        ) from None


def _table_source(path: Path) -> Any:
    """What pyarrow reads a table from; it would unpack a compressed file without end."""
    import pyarrow as pa

    return open_unpacked(path) if path.suffix == ".gz" else pa.OSFile(str(path))


def _check_parquet(metadata: Any, path: Path) -> None:
    """Refuse a file whose few bytes stand for more cells, or unpack to more, than a table of graphs has."""
    limit = unpacked_limit(path.stat().st_size)
    groups = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if max(groups, metadata.num_rows * metadata.num_columns) > limit:
        raise too_much_unpacked(limit, str(path))


def _header(path: Path, delimiter: str) -> list[str]:
    with io.TextIOWrapper(open_unpacked(path), encoding="utf-8-sig", errors="replace", newline="") as file:
        return next(plain_csv.reader(file, delimiter=delimiter), [])


def _distinct(table: pa.Table, path: Path) -> pa.Table:
    twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if twice:
        raise DataError(
            f"two columns are called {excerpt(twice[0])}", where=str(path), hint="name each one differently"
        )
    return table


def _reason(error: Exception) -> str:
    """What a library says of a file, on one line and without raw bytes."""
    return ascii(" ".join(str(error).split())[:100])[1:-1]


def _column(table: pa.Table, path: Path, wanted: str | None, what: str, default: int = 0) -> pa.ChunkedArray:
    """A column of text without empty cells; by default the one at a place."""
    import pyarrow as pa
    from pyarrow import compute

    if wanted is not None and wanted not in table.column_names:
        raise DataError(f"no column '{wanted}'", where=str(path), hint=choices(wanted, table.column_names))
    if wanted is None and table.num_columns <= default:
        raise DataError(f"{table.num_columns} columns", where=str(path), hint=f"a column for the {what} is needed")
    column = table.column(wanted if wanted is not None else default)
    if column.null_count:
        row = int(np.argmax(np.asarray(compute.is_null(column))))
        raise DataError(f"no {what}", where=f"{path}: row {row + 1}", hint=_FILL)
    kinds = [pa.types.is_string, pa.types.is_large_string, pa.types.is_integer]
    kinds += [pa.types.is_floating] if what == "label" else []
    if not any(is_kind(column.type) for is_kind in kinds):
        raise DataError(
            f"the {what} column has type {column.type}",
            where=str(path),
            hint=f"text or {'numbers' if what == 'label' else 'integers'} are accepted",
        )
    try:
        text = compute.cast(column, pa.string())
        text.validate(full=True)
    except pa.ArrowException as error:
        raise DataError(f"the {what} column is not text ({_reason(error)})", where=str(path)) from None
    empty = np.asarray(compute.equal(text, ""))
    if empty.any():
        raise DataError(
            "the label is missing" if what == "label" else f"no {what}",
            where=f"{path}: row {int(np.argmax(empty)) + 1}",
            hint=_FILL,
        )
    return text


def read_edge_table(path: Path, options: ReadOptions = _DEFAULTS) -> Graph:
    """A graph from a table with a row for each edge."""
    import pyarrow as pa
    from pyarrow import compute

    table = read_table(path)
    ends = [_column(table, path, options.source, "source"), _column(table, path, options.target, "target", 1)]
    if len(table) == 0:
        raise DataError("no edges", where=str(path), hint="a row an edge is needed")
    names = compute.unique(pa.chunked_array([*ends[0].chunks, *ends[1].chunks]))
    header = table.column_names[:2]
    if options.source is None and all(compute.index(names, pa.scalar(title)).as_py() >= 0 for title in header):
        raise DataError(
            "the first line looks like an edge", where=f"{path}:1", hint="add a header line, such as source,target"
        )
    ordered = pa.array(_id_order(names.to_pylist()))
    codes = [np.asarray(compute.index_in(column, value_set=ordered)) for column in ends]
    return Graph.from_edges(
        codes[0],
        codes[1],
        weights=None if options.weight is None else _numbers(table, path, options.weight),
        num_nodes=len(ordered),
        names=NodeNames.of(ordered.to_pylist()),
        directed=options.directed,
    )


def _numbers(table: pa.Table, path: Path, name: str) -> NDArray[np.float64]:
    import pyarrow as pa
    from pyarrow import compute

    if name not in table.column_names:
        raise DataError(f"no column '{name}'", where=str(path), hint=choices(name, table.column_names))
    try:
        values = np.asarray(compute.cast(table.column(name), pa.float64()), np.float64)
    except pa.ArrowException as error:
        reason = _reason(error)
        raise DataError(f"column '{name}' is not all numbers ({reason})", where=str(path)) from None
    with np.errstate(over="ignore"):
        bad = ~np.isfinite(values.astype(np.float32))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"weight {values[row]}", where=f"{path}: row {row + 1}", hint="weights must be finite numbers")
    return values


def _id_order(ids: list[str]) -> list[str]:
    return sorted(ids, key=int) if all(is_id(i) for i in ids) else sorted(ids)


def read_membership_table(path: Path, graph: Graph, options: ReadOptions = _DEFAULTS) -> SubgraphSet:
    """Subgraphs from a table with a row for each node of each subgraph.

    Columns are found by name: ``subgraph``, ``node``, ``label``, ``split``; all rows of a subgraph have the same label
    and split. Without a column ``split`` the subgraphs have none.

    A label is whole unless the options state that the task is multi-label.
    """
    table = read_table(path)
    form = options.labels or LabelFormat()
    task = form.stated_task
    columns = {name: _column(table, path, name, name).to_pylist() for name in ("subgraph", "node", "label")}
    split_given = "split" in table.column_names
    columns["split"] = _column(table, path, "split", "split").to_pylist() if split_given else [SPLITS[0]] * len(table)
    if len(table) == 0:
        raise DataError("no memberships", where=str(path), hint="a row for each node of each subgraph is needed")
    rows: dict[str, dict[str, Any]] = {}
    for number, (key, node, label, split) in enumerate(zip(*columns.values(), strict=True), 1):
        where = f"{path}: row {number}"
        place = find_node(node, graph.num_nodes, graph.names)
        if place is None:
            raise DataError(
                f"node {excerpt(node)} is not in the graph", where=where, hint="it must be in the table of edges"
            )
        if place < 0:
            raise DataError(
                f"{excerpt(node)} names several nodes", where=where, hint="write the row number of one, #12"
            )
        if not label.strip():
            raise DataError("the label is missing", where=where)
        if split not in SPLITS:
            raise DataError(f"unknown split {excerpt(split)}", where=where, hint=choices(split, SPLITS))
        row = rows.setdefault(key, {"nodes": [], "label": label, "split": split})
        if (row["label"], row["split"]) != (label, split):
            raise DataError(
                f"subgraph {excerpt(key)} has two labels or splits",
                where=where,
                hint="one of each for all its rows; several labels are joined, with --task multilabel",
            )
        row["nodes"].append(place)
    for split in SPLITS if split_given else ():
        if not any(r["split"] == split for r in rows.values()):
            hint = "train, val and test each need at least one; without the column, a split is drawn"
            raise DataError(f"no subgraph in split '{split}'", where=str(path), hint=hint)
    labels: Sequence[Label] = [r["label"].strip() for r in rows.values()]
    if task == "multi-label":
        labels = split_labels([str(label) for label in labels], task, form.joins)
        for key, label in zip(rows, labels, strict=True):
            if label == ():
                raise DataError(f"subgraph {excerpt(key)} has no label", where=str(path), hint=_FILL)
    try:
        return SubgraphSet.from_lists(
            [r["nodes"] for r in rows.values()],
            num_nodes=graph.num_nodes,
            labels=labels,
            task=task,
            splits=[r["split"] for r in rows.values()] if split_given else None,
            names=list(rows),
        )
    except DataError as error:
        raise DataError(error.what, where=f"{path}: {error.where}", hint=error.hint) from None


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
