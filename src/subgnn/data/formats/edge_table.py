"""Edges as a table: a row for each edge, two columns of node ids, and those of weights, types and times.

Ids are text; nodes are numbered in the order of their ids, as numbers where all of them are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.columns import described, missing
from subgnn.data.formats.format import FileFormat, ReadOptions
from subgnn.data.formats.subgraph_text import SUBGRAPH_TEXT
from subgnn.data.formats.table import Table
from subgnn.data.formats.tables import Source, read_table
from subgnn.data.graph import Graph
from subgnn.data.graph_checks import MAX_TYPES
from subgnn.data.strings import NodeNames, is_id, is_number
from subgnn.errors import DataError

_DEFAULTS = ReadOptions()
_ATTRIBUTES = ("weight", "type", "time")


def read_edges(source: Source, options: ReadOptions = _DEFAULTS) -> Graph:
    """A graph from a table with a row for each edge, with or without a header; its nodes are named by their ids.

    Args:
        source: a file of any kind that :func:`~subgnn.data.formats.tables.read_table` reads, or a data frame.
        options: the columns (``columns.source``, ``target``, ``weight``, ``type``, ``time``), by default those with
            likely titles, and as ends else the first two; ``encoding``; ``directed``. Each guess is told to
            ``on_note``.
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
    if not columns.explicit(*_ATTRIBUTES, "source", "target") and _is_edge(table, found):
        table = table.without_header()
        titles = table.titles
        found = titles[0], titles[1]
        # A third column of numbers is the weight, as in edge_list.txt.
        if len(titles) > 2 and table.is_number(titles[2]):
            more_roles["weight"] = titles[2]
        more = " and weights the third" if more_roles else ""
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


def _is_edge(table: Table, ends: tuple[str, str]) -> bool:
    """Whether the first line, taken as a header, is an edge: of two numbers, or of two ids that occur below."""
    import pyarrow as pa
    from pyarrow import compute

    if table.header is None or ends != tuple(table.titles[:2]):
        return False
    cells = [cell.strip() for cell in table.header[:2]]
    if all(is_number(cell.removeprefix("-")) for cell in cells):
        return True
    if len(table) == 0:
        return False
    below = [compute.unique(table.data.column(i)) for i in range(2)]
    return all(any(compute.index(ids, pa.scalar(cell)).as_py() >= 0 for ids in below) for cell in cells)


def _is_edge_table(path: Path) -> bool:
    return not path.name.endswith(SUBGRAPH_TEXT.suffixes)


EDGE_TABLE = FileFormat(
    "table of edges",
    (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".jsonl"),
    read_graph=read_edges,
    matches=_is_edge_table,
)
