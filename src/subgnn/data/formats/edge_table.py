"""Edges as a table: a row for each edge, two columns of node ids, and those of weights, types and times.

Ids are text; nodes are numbered in the order of their ids, as numbers where all of them are.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.format import (
    FileFormat,
    ReadOptions,
    are_ends,
    described,
    likely_title,
    missing,
    naming_options,
)
from subgnn.data.formats.subgraph_text import SUBGRAPH_TEXT
from subgnn.data.formats.tables import Source, Table, read_table
from subgnn.data.graph import Graph
from subgnn.data.strings import MISSING, NodeNames, is_id, is_missing, is_number, parse_number
from subgnn.data.values import MAX_TYPES
from subgnn.errors import DataError

_DEFAULTS = ReadOptions()
_ATTRIBUTES = ("weight", "type", "time")
_SAMPLE = 1000


def read_edges(source: Source, options: ReadOptions = _DEFAULTS) -> Graph:
    """A graph from a table with a row for each edge, with or without a header; its nodes are named by their ids.

    Columns that ``options`` do not name are those with likely titles, the ends else the first two; ``on_note`` is told.
    """
    import pyarrow as pa
    from pyarrow import compute

    table, columns = read_table(source, encoding=options.encoding), options.columns
    found = columns.find_ends(table)
    if found is None:
        if len(table.titles) < 2:
            raise DataError("one column", where=table.where, hint="an edge needs two: its source and its target")
        raise missing(table.where, table.titles, ["source", "target"])
    more_roles: dict[str, str] = {}
    first = "titles" if columns.explicit(*_ATTRIBUTES, "source", "target") else _first_line(table, found)
    if first != "titles":
        told = [cell.strip() for cell in (table.header or ())[:2]]
        table = table.without_header()
        titles = table.titles
        found = titles[0], titles[1]
        more = ""
        if len(titles) > 2:
            # A third column of numbers is the weight, as in edge_list.txt.
            try:
                table.numbers(titles[2])
                more_roles["weight"], more = titles[2], " and weights the third"
            except DataError as error:
                more = f"; {error.what}, and is not used"
        if first == "unclear":
            more += f"; if the first line has titles, pass {naming_options(told, ('source', 'target'))}"
        options.on_note(f"{table.where}: no header line; edges are the first two columns{more}")
    else:
        for role in _ATTRIBUTES:
            title = columns.find(table, role, [*found, *more_roles.values()])
            if title is not None:
                more_roles[role] = title
    types = _types(table, more_roles, options)
    times = columns.read_times(table, "time", more_roles, options.on_note)
    roles = {"source": found[0], "target": found[1], **more_roles}
    if not columns.explicit("source", "target") and table.header is not None and (note := described(table, roles)):
        options.on_note(note)
    if len(table) == 0:
        raise DataError("no edges", where=table.where, hint="a row for each edge is needed")
    ends = [table.filled(title, role) for role, title in zip(("source", "target"), found, strict=True)]
    ids = compute.unique(pa.chunked_array([*ends[0].chunks, *ends[1].chunks])).to_pylist()
    ordered = pa.array(sorted(ids, key=int) if all(map(is_id, ids)) else sorted(ids))
    tails, heads = (np.asarray(compute.index_in(column, value_set=ordered)) for column in ends)
    return Graph.from_edges(
        tails,
        heads,
        weights=table.numbers(more_roles["weight"]) if "weight" in more_roles else None,
        types=types,
        times=times,
        num_nodes=len(ordered),
        names=NodeNames.of(ordered.to_pylist()),
        directed=options.directed,
    )


def _types(table: Table, found: dict[str, str], options: ReadOptions) -> NDArray[Any] | None:
    """The types of edges; a column that is only called like them, and cannot be used, is left out with a note."""
    if "type" not in found:
        return None
    try:
        types = table.filled(found["type"], "edge type")
        count = len(types.unique())
        if count > MAX_TYPES:
            what, hint = f"{count:,} different types of edges", f"at most {MAX_TYPES:,}; join the rare ones"
            raise DataError(what, where=f"{table.where}: column '{found['type']}'", hint=hint)
        return np.array(types.to_pylist(), dtype=str)
    except DataError as error:
        if options.columns.type is not None:
            raise
        options.on_note(f"{table.where}: column '{found.pop('type')}' is not used: {error.what}")
        return None


def _first_line(table: Table, ends: tuple[str, str]) -> Literal["edge", "titles", "unclear"]:
    """What the first line of a table is.

    An edge has two numbers, or two ids that occur below. Titles have usual words, or stand above columns of numbers. A
    line that shows neither is kept as an edge, for a title that is taken as a node is seen, and a lost edge is not.
    """
    import pyarrow as pa
    from pyarrow import compute

    if table.header is None or ends != tuple(table.titles[:2]):
        return "titles"
    cells = [cell.strip() for cell in table.header]
    if all(is_number(cell.removeprefix("-")) for cell in cells[:2]):
        return "edge"
    if not all(cells[:2]) or (cells[0][0] == "#" and not is_number(cells[0][1:])):  # a comment
        return "titles"
    columns = table.data.columns
    below = [compute.unique(column) for column in columns[:2]]
    if all(any(compute.index(ids, pa.scalar(cell)).as_py() >= 0 for ids in below) for cell in cells[:2]):
        return "edge"
    ids = [str(text) for some in below for text in some.slice(0, _SAMPLE).to_pylist()]
    if are_ends(cells[:2], ids) or any(likely_title(table.titles[2:], role) for role in _ATTRIBUTES):
        return "titles"
    numeric = [
        parse_number(cell) is None and not is_missing(cell) and _has_numbers(column)
        for cell, column in zip(cells, columns, strict=True)
    ]
    return "titles" if all(numeric[:2]) or any(numeric[2:]) or not len(table) else "unclear"


def _has_numbers(column: Any) -> bool:
    """Whether a column of text holds numbers, and nothing else but cells that are missing."""
    import pyarrow as pa
    from pyarrow import compute

    cells = compute.utf8_trim_whitespace(column)
    numbers = compute.match_substring_regex(cells, "^[+-]?[0-9.,]+([eE][+-]?[0-9]+)?$")
    lacking = compute.is_in(cells, value_set=pa.array(sorted(MISSING)))
    return bool(compute.any(numbers).as_py() and compute.all(compute.or_(numbers, lacking)).as_py())


EDGE_TABLE = FileFormat(
    "table of edges",
    (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".jsonl"),
    read_graph=read_edges,
    matches=lambda path: not path.name.endswith(SUBGRAPH_TEXT.suffixes),
)
