"""Attributes of nodes from a table: numbers and categories become features, other text becomes names.

A column of numbers is standardised; missing cells count as the mean. A column of few distinct texts is a category,
with a feature for each value. Any other column is text by which nodes are found, too, such as symbols beside gene ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.columns import missing
from subgnn.data.formats.format import ReadOptions
from subgnn.data.formats.table import Table
from subgnn.data.formats.tables import Source, read_table
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, Strings, find_node
from subgnn.errors import DataError, excerpt

MAX_CATEGORIES = 50
MAX_FEATURES = 1024
_DEFAULTS = ReadOptions()


@dataclass(frozen=True, slots=True, eq=False)
class _Feature:
    """The features of a column: a row for each row of the table, and how they were made."""

    values: NDArray[np.float32]
    card: dict[str, Any]


def read_attributes(source: Source, graph: Graph, options: ReadOptions = _DEFAULTS) -> tuple[Graph, dict[str, Any]]:
    """A graph with the attributes of a table of nodes, and the entries of the dataset card that describe them.

    Nodes that only the table has are added, without edges. Nodes that it does not have get the mean of each number and
    no category.

    Args:
        options: ``columns.node_id``, the column of node ids; by default a likely title, else the first column.

    Raises:
        DataError: for a node that has two rows, or is not in a graph whose nodes have no names.
    """
    table = read_table(source, encoding=options.encoding)
    title = options.columns.find(table, "node_id") or table.titles[0]
    ids = table.filled(title, "node").to_pylist()
    if len(table.titles) < 2:
        raise missing(table.where, table.titles, ["node_id"])
    graph, rows = _rows_of(graph, ids, table)
    features: list[_Feature] = []
    texts: dict[str, list[str]] = {}
    for each in (each for each in table.titles if each != title):
        cells = table.cells(each, "attribute").to_pylist()
        made = None if _is_id(each) else _numbers(each, cells, table) or _categories(each, cells)
        if made is None:
            texts[each] = cells
        else:
            features.append(made)
    width = sum(feature.values.shape[1] for feature in features)
    if width > MAX_FEATURES:
        what = f"{width:,} features from {len(features)} columns"
        raise DataError(what, where=table.where, hint=f"accepted: up to {MAX_FEATURES:,}; give fewer columns")
    graph = _with_names(graph, rows, texts)
    absent = graph.num_nodes - len(rows)
    without = f"; {absent:,} nodes have no row" if absent else ""
    options.on_note(f"{table.where}: node from '{title}'; {_described(features, texts)}{without}")
    if not features:
        return graph, {}
    values = np.zeros((graph.num_nodes, width), np.float32)
    values[rows] = np.concatenate([feature.values for feature in features], axis=1)
    return replace(graph, features=values, known_hash=""), {"features": [feature.card for feature in features]}


def _rows_of(graph: Graph, ids: list[str], table: Table) -> tuple[Graph, NDArray[np.int64]]:
    """The graph with the nodes that only the table has, and the node of each row of the table."""
    rows = np.empty(len(ids), np.int64)
    added: dict[str, int] = {}
    taken: dict[int, int] = {}
    for i, text in enumerate(ids):
        node = find_node(text, graph.num_nodes, graph.names)
        if node is None and graph.names is not None:
            node = graph.names.find_ignoring_case(text)
        if node is None and graph.names is None:
            hint = f"nodes of this graph are row numbers, from 0 to {graph.num_nodes - 1}"
            raise DataError(f"node {excerpt(text)} is not in the graph", where=table.place(i), hint=hint)
        if node is not None and node < 0:
            raise DataError(f"{excerpt(text)} names several nodes", where=table.place(i), hint="write one as #12")
        if node is None:
            node = added.setdefault(text, graph.num_nodes + len(added))
        if taken.setdefault(node, i) != i:
            raise DataError(f"node {excerpt(text)} again", where=table.place(i), hint="a row for each node is needed")
        rows[i] = node
    if added and graph.names is not None:
        columns = {
            name: Strings.of([*column, *(added if name == graph.names.primary_column else [""] * len(added))])
            for name, column in graph.names.columns.items()
        }
        names = NodeNames(columns, primary=graph.names.primary_column)
        graph = replace(graph.with_nodes(graph.num_nodes + len(added)), names=names)
    return graph, rows


def _is_id(title: str) -> bool:
    """Whether a title says that the column identifies nodes, so that its numbers measure nothing."""
    return title.casefold() == "id" or title.casefold().endswith(("_id", " id")) or title.endswith("ID")


def _numbers(title: str, cells: list[str], table: Table) -> _Feature | None:
    """Standardised numbers; None if there is something else in the column."""
    present = np.array([bool(cell) for cell in cells])
    comma = table.kind == ";"
    try:
        known = np.array([float(cell.replace(",", ".") if comma else cell) for cell in cells if cell])
    except ValueError:
        return None
    if not len(known):
        return None
    if not np.isfinite(known).all() or np.abs(known).max() > 1e30:
        row = int(np.flatnonzero(present)[np.argmax(~(np.abs(known) <= 1e30))])
        raise DataError(f"{cells[row]} in '{title}'", where=table.place(row), hint="accepted: numbers up to 1e30")
    mean, std = float(known.mean()), float(known.std())
    values = np.zeros((len(cells), 1), np.float32)
    values[present, 0] = (known - mean) / (std or 1.0)
    card = {"column": title, "kind": "number", "mean": mean, "std": std, "missing": int((~present).sum())}
    return _Feature(values, card)


def _categories(title: str, cells: list[str]) -> _Feature | None:
    """A feature for each of the values; None if there are so many that they are not categories."""
    found = sorted({cell for cell in cells if cell})
    if not found or len(found) > min(MAX_CATEGORIES, len(cells) / 2):
        return None
    place = {value: i for i, value in enumerate(found)}
    values = np.zeros((len(cells), len(found)), np.float32)
    for row, cell in enumerate(cells):
        if cell:
            values[row, place[cell]] = 1
    return _Feature(values, {"column": title, "kind": "category", "values": found})


def _with_names(graph: Graph, rows: NDArray[np.int64], texts: dict[str, list[str]]) -> Graph:
    """The graph with further columns of names."""
    if not texts or graph.names is None:
        return graph
    columns = dict(graph.names.columns)
    for title, cells in texts.items():
        column = [""] * graph.num_nodes
        for row, cell in zip(rows, cells, strict=True):
            column[row] = cell
        while not title or title in columns:  # the column of names is called name in a dataset folder
            title += "_2"
        columns[title] = Strings.of(column)
    return replace(graph, names=NodeNames(columns, primary=graph.names.primary_column))


def _described(features: list[_Feature], texts: dict[str, list[str]]) -> str:
    """What became of the columns, in a few words."""
    kinds: dict[str, list[str]] = {"number": [], "category": []}
    for feature in features:
        kinds[feature.card["kind"]].append(feature.card["column"])
    parts = [
        f"{noun} {', '.join(titles)}"
        for noun, titles in (
            ("standardised numbers", kinds["number"]),
            ("categories", kinds["category"]),
            ("names", list(texts)),
        )
        if titles
    ]
    return "; ".join(parts) or "no attributes"
