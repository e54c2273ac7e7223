"""Tables of nodes: names from the nodes.tsv of a folder, and attributes from a table of the user.

Of attributes, numbers and categories become features. A column of numbers is standardised; a missing cell (empty, NA,
nan, null and the like) counts as the mean. A column of few distinct texts is a category, with a feature for each value.
Any other column is text by which nodes are found, too, such as symbols beside gene ids; so are numbers with leading
zeros.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Problems
from subgnn.data.formats.format import ReadOptions, missing
from subgnn.data.formats.tables import Source, Table, read_table
from subgnn.data.formats.text import read_lines
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, Strings, has_leading_zero, is_id, is_missing, parse_number
from subgnn.data.values import plausible_nodes
from subgnn.errors import DataError, DataWarning, excerpt

MAX_CATEGORIES = 50
MAX_FEATURES = 1024
_DEFAULTS = ReadOptions()


class _Feature(NamedTuple):
    """The features of a column: a row for each row of the table, and how they were made."""

    values: NDArray[np.float32]
    card: dict[str, Any]


def read_node_table(path: Path, problems: Problems, id_base: int = 0) -> NodeNames | None:
    """Read ``nodes.tsv``: id, name, any further columns; a header line is one whose first field is not an id.

    The names are the column headed ``name`` where there is one, else the second column.
    """
    accepted = "accepted: id, name, further columns"
    header: list[str] | None = None
    rows: dict[int, list[str]] = {}
    for number, line in read_lines(path):
        fields, where = line.split("\t"), f"{path}:{number}"
        if not is_id(fields[0]):
            if rows or header is not None:
                problems.error(where, f"{excerpt(fields[0])} is not an integer id", accepted)
            else:
                header = fields
            continue
        node = int(fields[0]) - id_base
        if node < 0 or node in rows:
            again = " again" if node in rows else ""
            problems.error(where, f"node {fields[0]}{again}", "each id has one line")
        elif len(fields) < 2:
            problems.error(where, "a line with one column", f"{accepted}, separated by tabs")
        else:
            rows[node] = fields[1:]
    if problems.num_errors:
        return None
    if not rows:
        problems.error(str(path), "no nodes", f"{accepted}; or leave the file out")
        return None
    count = max(rows) + 1
    if count > plausible_nodes(len(rows)):
        what = f"node {max(rows)} in a table of {len(rows)} lines"
        problems.error(str(path), what, "ids run from 0 without large gaps")
        return None
    width = max(map(len, rows.values()))
    titles = header[1 : width + 1] if header else []
    titles += [f"column{i + 2}" if i else "name" for i in range(len(titles), width)]
    if len(set(titles)) < len(titles):
        problems.error(f"{path}:1", "two columns of one name", "name each column differently")
        return None
    empty: list[str] = []
    table = [rows.get(node, empty) for node in range(count)]
    columns = {title: Strings.of(row[i] if i < len(row) else "" for row in table) for i, title in enumerate(titles)}
    return NodeNames(columns, primary="name" if "name" in columns else titles[0])


def read_attributes(source: Source, graph: Graph, options: ReadOptions = _DEFAULTS) -> tuple[Graph, dict[str, Any]]:
    """A graph with the attributes of a table of nodes, and the entries of the dataset card that describe them.

    Nodes that only the table has are added, without edges, with a warning. Nodes that it does not have get the mean of
    each number and no category. The column of node ids is the named one, a likely title, or the first; a node or
    numbers in place of titles mean that there is no header line.
    """
    table, header = read_table(source, encoding=options.encoding), ""
    title = options.columns.find(table, "node_id")
    if title is None and table.header is not None and table.titles[0]:
        numbers = any(parse_number(cell) is not None for cell in table.titles[1:])
        if numbers or graph.knows(table.titles[0]):
            table, header = table.without_header(), "no header line; "
    title = title or table.titles[0]
    ids = table.filled(title, "node").to_pylist()
    if len(table.titles) < 2:
        raise missing(table.where, table.titles, ["node_id"])
    graph, rows = _rows_of(graph, ids, table)
    features: list[_Feature] = []
    texts: dict[str, list[str]] = {}
    odd = ""
    for each in (each for each in table.titles if each != title):
        cells = table.cells(each, "attribute").to_pylist()
        # A title says that the column identifies nodes, so that its numbers measure nothing.
        is_key = each.casefold() == "id" or each.casefold().endswith(("_id", " id")) or each.endswith("ID")
        made = None if is_key else _numbers(each, cells, table) or _categories(each, cells)
        if not is_key and (made is None or made.card["kind"] != "number"):
            odd += _odd_cell(each, cells)
        if made is None:
            texts[each] = ["" if is_missing(cell) else cell for cell in cells]
        else:
            features.append(made)
    width = sum(feature.values.shape[1] for feature in features)
    if width > MAX_FEATURES:
        what = f"{width:,} features from {len(features)} columns"
        raise DataError(what, where=table.where, hint=f"accepted: up to {MAX_FEATURES:,}; give fewer columns")
    if graph.names is not None:
        columns = dict(graph.names.columns)
        for each, cells in texts.items():
            column = [""] * graph.num_nodes
            for row, cell in zip(rows, cells, strict=True):
                column[row] = cell
            while not each or each in columns:  # the column of names is called name in a dataset folder
                each += "_2"
            columns[each] = Strings.of(column)
        graph = replace(graph, names=NodeNames(columns, primary=graph.names.primary_column))
    absent = graph.num_nodes - len(rows)
    without = f"; {absent:,} nodes have no row" if absent else ""
    options.on_note(f"{table.where}: {header}node from '{title}'; {_described(features, texts)}{without}{odd}")
    if not features:
        return graph, {}
    values = np.zeros((graph.num_nodes, width), np.float32)
    values[rows] = np.concatenate([feature.values for feature in features], axis=1)
    return replace(graph, features=values, known_hash=""), {"features": [feature.card for feature in features]}


def _rows_of(graph: Graph, ids: list[str], table: Table) -> tuple[Graph, NDArray[np.int64]]:
    """The graph with the nodes that only the table has, and the node of each row of the table."""
    rows = np.empty(len(ids), np.int64)
    added: dict[str, int] = {}
    by_case: dict[str, str] = {}
    taken: dict[int, int] = {}
    for i, text in enumerate(ids):
        node, in_another_case = graph.find(text)
        if node is None:
            if graph.names is None:
                hint = f"nodes of this graph are row numbers, from 0 to {graph.num_nodes - 1}"
                raise DataError(f"node {excerpt(text)} is not in the graph", where=table.place(i), hint=hint)
            node = added.setdefault(text, graph.num_nodes + len(added))
        elif node < 0:
            raise DataError(f"{excerpt(text)} names several nodes", where=table.place(i), hint="write one as #12")
        elif in_another_case and graph.names is not None:
            by_case[text] = graph.names[node]
        if taken.setdefault(node, i) != i:
            raise DataError(f"node {excerpt(text)} again", where=table.place(i), hint="a row for each node is needed")
        rows[i] = node
    if len(added) == len(ids) > 0:
        what = f"none of its {len(ids):,} nodes is in the graph ({excerpt(ids[0])})"
        hint = "are nodes written as in the edges, and is this their column? --node-id COLUMN names another"
        raise DataError(what, where=table.where, hint=hint)
    if by_case:
        text, name = next(iter(by_case.items()))
        what = f"{len(by_case):,} nodes found in another case only: {excerpt(text)} is {excerpt(name)}"
        warnings.warn(f"{table.where}: {what}", DataWarning, stacklevel=4)
    if added:
        what = f"{len(added):,} of {len(ids):,} nodes are not in the graph and are added without edges"
        warnings.warn(f"{table.where}: {what} ({excerpt(next(iter(added)))})", DataWarning, stacklevel=4)
    if added and graph.names is not None:
        columns = {
            name: Strings.of([*column, *(added if name == graph.names.primary_column else [""] * len(added))])
            for name, column in graph.names.columns.items()
        }
        names = NodeNames(columns, primary=graph.names.primary_column)
        graph = replace(graph.with_nodes(graph.num_nodes + len(added)), names=names)
    return graph, rows


def _numbers(title: str, cells: list[str], table: Table) -> _Feature | None:
    """Standardised numbers; None if there is something else in the column."""
    present = np.array([not is_missing(cell) for cell in cells])
    texts = [cell.replace(",", ".") if table.kind == ";" else cell for cell in cells if not is_missing(cell)]
    numbers = [number for text in texts if (number := parse_number(text)) is not None]
    if not numbers or len(numbers) < len(texts) or any(map(has_leading_zero, texts)):
        return None
    known = np.array(numbers)
    if not np.isfinite(known).all() or np.abs(known).max() > 1e30:
        row = int(np.flatnonzero(present)[np.argmax(~(np.abs(known) <= 1e30))])
        raise DataError(f"{cells[row]} in '{title}'", where=table.place(row), hint="accepted: numbers up to 1e30")
    mean, std = float(known.mean()), float(known.std())
    values = np.zeros((len(cells), 1), np.float32)
    values[present, 0] = (known - mean) / (std or 1.0)
    card = {"column": title, "kind": "number", "mean": mean, "std": std, "missing": int((~present).sum())}
    return _Feature(values, card)


def _odd_cell(title: str, cells: list[str]) -> str:
    """The cell that keeps a column, most of whose cells are numbers, from being one of numbers; none for any other."""
    texts = [cell for cell in cells if not is_missing(cell)]
    others = [cell for cell in texts if parse_number(cell) is None or has_leading_zero(cell)]
    return f"; {excerpt(others[0])} in '{title}' is not a number" if 0 < 2 * len(others) < len(texts) else ""


def _categories(title: str, cells: list[str]) -> _Feature | None:
    """A feature for each of the values; None if there are so many that they are not categories."""
    found = sorted({cell for cell in cells if not is_missing(cell)})
    if not found or len(found) > min(MAX_CATEGORIES, len(cells) / 2):
        return None
    values = (np.array(cells)[:, None] == np.array(found)).astype(np.float32)
    return _Feature(values, {"column": title, "kind": "category", "values": found})


def _described(features: list[_Feature], texts: dict[str, list[str]]) -> str:
    """What became of the columns, in a few words."""
    kinds: dict[str, list[str]] = {"number": [], "category": []}
    for feature in features:
        lacking = feature.card.get("missing")
        mean = f" ({lacking:,} missing, taken as the mean)" if lacking else ""
        kinds[feature.card["kind"]].append(feature.card["column"] + mean)
    named = {"standardised numbers": kinds["number"], "categories": kinds["category"], "names": list(texts)}
    return "; ".join(f"{noun} {', '.join(titles)}" for noun, titles in named.items() if titles) or "no attributes"
