"""Tables of a graph: its edges, and attributes of nodes, which become features, or text by which nodes are found."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from subgnn.data import strings
from subgnn.data.formats.format import ReadOptions, described, likely_title, missing, naming_options, unused_columns
from subgnn.data.formats.tables import Source, Table, read_table
from subgnn.data.graph import Graph
from subgnn.data.values import MAX_TYPES
from subgnn.errors import DataError, excerpt, warn

MAX_CATEGORIES = 50
MAX_FEATURES = 1024
_ATTRIBUTES = ("weight", "type", "time")
_SAMPLE = 1000
_MANY, _FEW = 20, 0.01


def read_edges(source: Source, options: ReadOptions = ReadOptions()) -> Graph:
    """A graph from a table with a row for each edge, with or without a header; its nodes are named by their ids."""
    whole, columns = read_table(source, encoding=options.encoding, problems=options.problems), options.columns
    table, found = _edge_columns(whole, options)
    titled = table is whole
    if len(table) == 0:
        raise DataError("no edges", where=table.where, hint="a row for each edge is needed")
    table = table.complete_rows({role: found[role] for role in ("source", "target")}, options.refuse)

    def read_types(title: str) -> NDArray[Any]:
        types = table.filled(title, "edge type")
        count = len(types.unique())
        if count > MAX_TYPES:
            what, hint = f"{count:,} different types of edges", f"at most {MAX_TYPES:,}; join the rare ones"
            raise DataError(what, where=f"{table.where}: column '{title}'", hint=hint)
        return np.array(types.to_pylist(), dtype=str)

    titles = [title for title in table.titles if title and title not in found.values()]
    values: dict[str, Any] = {"directed": options.directed, "repeated": options.repeated}
    for role, read in (("type", read_types), ("time", table.times), ("weight", table.numbers)):
        try:
            values[f"{role}s"] = options.read_column(table, role, found, read)
        except DataError as error:
            options.refuse(error)
    if not columns.explicit("source", "target") and titled and (note := described(table, found)):
        # Edges of a sender have a direction.
        loses_direction = not options.directed and likely_title([found["source"]], "sender") is not None
        options.on_note(note + "; directions are ignored (--directed keeps them)" * loses_direction)
    if titled and titles:
        numeric = [title for title in titles if table.has_mostly_numbers(title)]
        asked = numeric and "weight" not in found
        ordered = [*numeric, *(title for title in titles if title not in numeric)] if asked else titles
        options.on_note(unused_columns(table.where, ordered, "weight" if asked else ""))
    ends = [table.cells(found[role], role) for role in ("source", "target")]
    for role, cells in zip(("source", "target"), ends, strict=True):
        if len(rows := np.flatnonzero(np.asarray(compute.match_substring(cells, "\n")))):
            what, hint = f"the {role} {excerpt(cells[rows[0]].as_py())} has a line end", "do its quotes match?"
            options.refuse(DataError(what, where=table.place(int(rows[0])), hint=hint))
    ids = compute.unique(pa.chunked_array([*ends[0].chunks, *ends[1].chunks])).to_pylist()
    ordered = pa.array(sorted(ids, key=int) if all(map(strings.is_id, ids)) else sorted(ids))
    tails, heads = (np.asarray(compute.index_in(column, value_set=ordered)) for column in ends)
    return Graph.from_edges(tails, heads, names=strings.NodeNames.of(ordered.to_pylist()), **values)


def _edge_columns(table: Table, options: ReadOptions) -> tuple[Table, dict[str, str]]:
    """The table, without its header if that is an edge, and the titles of its columns by role."""
    columns = options.columns
    ends = columns.find_ends(table)
    if ends is None:
        if len(table.titles) < 2:
            raise DataError("one column", where=table.where, hint="an edge needs two: its source and its target")
        raise missing(table.where, table.titles, ["source", "target"])
    first = "titles" if columns.explicit(*_ATTRIBUTES, "source", "target") else _first_line(table, ends, options)
    found = dict(zip(("source", "target"), ends, strict=True))
    told = [cell.strip() for cell in (table.header or ())[:2]]
    if first == "unclear" and len(table) >= _MANY:
        cells = pa.chunked_array([chunk for column in table.data.columns[:2] for chunk in column.chunks])
        cells = compute.utf8_trim_whitespace(cells)
        codes = np.asarray(compute.index_in(cells, value_set=(texts := compute.unique(cells))))
        alone = (np.bincount(codes)[codes] == 1).reshape(2, -1).all(axis=0)
        # Titles if the first line has two texts of its own, and hardly any row has nodes of its own.
        if compute.index_in(pa.array(told), value_set=texts).null_count == 2 and alone.mean() <= _FEW:
            what = f"the first line is read as titles, because no other has {excerpt(told[0])} or {excerpt(told[1])}"
            hint = "if it is an edge, write titles above it, such as source and target"
            options.on_note(f"{table.where}: {what}; {hint}")
            first = "titles"
    if first == "titles":
        columns.add(table, _ATTRIBUTES, found)
        return table, found
    table = table.without_header()
    titles = table.titles
    found, more = {"source": titles[0], "target": titles[1]}, ""
    if len(titles) > 2:
        # A third column of numbers is the weight, as in edge_list.txt.
        try:
            table.numbers(titles[2])
            found["weight"], more = titles[2], " and weights the third"
        except DataError as error:
            more = f"; {error.what}, so it is not used"
    if len(titles) > 3:
        more += f"; ignored: {', '.join(titles[3:6])}{', ...' * (len(titles) > 6)}"
    if first == "unclear":
        more += f"; if the first line has titles, pass {naming_options(told, ('source', 'target'))}"
    options.on_note(f"{table.where}: no header line; edges are the first two columns{more}")
    return table, found


def _first_line(table: Table, ends: tuple[str, str], options: ReadOptions) -> Literal["edge", "titles", "unclear"]:
    """What the first line is; if unclear, an edge, since a title among the nodes is seen, and a lost edge is not."""
    if table.header is None or ends != tuple(table.titles[:2]):
        return "titles"
    cells = [cell.strip() for cell in table.header]
    if all(strings.is_number(cell.removeprefix("-")) for cell in cells[:2]):
        return "edge"
    if not all(cells[:2]) or (cells[0][0] == "#" and not strings.is_number(cells[0][1:])):  # a comment
        return "titles"
    columns = table.data.columns
    below = [compute.unique(column) for column in columns[:2]]
    known = [any(compute.index(ids, pa.scalar(cell)).as_py() >= 0 for ids in below) for cell in cells[:2]]
    if all(known):
        return "edge"
    numeric = [
        strings.parse_number(cell) is None and not strings.is_missing(cell) and _has_numbers(column)
        for cell, column in zip(cells, columns, strict=True)
    ]
    ids = [str(text) for some in below for text in some.slice(0, _SAMPLE).to_pylist()]
    usual = options.columns.are_ends(cells[:2], ids) or all(numeric[:2]) or not len(table)
    others = any(numeric[2:]) or any(likely_title(table.titles[2:], role) for role in _ATTRIBUTES)
    return "titles" if others or (usual and not any(known)) else "unclear"


def _has_numbers(column: Any) -> bool:
    """Whether a column of text holds numbers, and nothing else but cells that are missing."""
    cells = compute.utf8_trim_whitespace(column)
    numbers = compute.match_substring_regex(cells, "^[+-]?[0-9.,]+([eE][+-]?[0-9]+)?$")
    lacking = compute.is_in(cells, value_set=pa.array(sorted(strings.MISSING)))
    return bool(compute.any(numbers).as_py() and compute.all(compute.or_(numbers, lacking)).as_py())


_Feature = tuple[NDArray[np.float32], dict[str, Any]]
"""The features of a column: a row for each row of the table, and how they were made."""


def read_attributes(source: Source, graph: Graph, options: ReadOptions = ReadOptions()) -> tuple[Graph, dict[str, Any]]:
    """A graph with the attributes of a table of nodes, and the entries of the dataset card that describe them."""
    table, header = read_table(source, encoding=options.encoding, problems=options.problems), ""
    title = options.columns.find(table, "node_id")
    if title is None and table.header is not None and table.titles[0]:
        numbers = any(strings.parse_number(cell) is not None for cell in table.titles[1:])
        if numbers or graph.knows(table.titles[0]):
            table, header = table.without_header(), "no header line; "
    title = title or table.titles[0]
    if len(table.titles) < 2:
        raise missing(table.where, table.titles, ["node_id"])
    table = table.complete_rows({"node": title}, options.refuse)
    graph, rows = _rows_of(graph, table.cells(title, "node").to_pylist(), table)
    features: list[_Feature] = []
    texts: dict[str, list[str]] = {}
    aliases: dict[int, list[str]] = {}
    odd = ""
    for each in (each for each in table.titles if each != title):
        cells = table.cells(each, "attribute").to_pylist()
        lists = [cell for cell in cells if "|" in cell.strip("|")]  # of names, where few of them repeat
        names = bool(lists) and 2 * len(set(lists)) > len(lists) and 2 * len(set(cells)) > len(cells)
        if names or likely_title([each], "alias"):
            for row, cell in zip(rows.tolist(), cells, strict=True):
                aliases.setdefault(row, []).extend(_names_in(cell))
            continue
        # A title says that the column identifies nodes, so that its numbers measure nothing.
        is_key = each.casefold() == "id" or each.casefold().endswith(("_id", " id")) or each.endswith("ID")
        made, odd_cell = (None, "") if is_key else _feature(each, cells, table)
        odd += odd_cell
        if made is None:
            texts[each] = ["" if strings.is_missing(cell) else cell for cell in cells]
        else:
            features.append(made)
    width = sum(values.shape[1] for values, _ in features)
    if width > MAX_FEATURES:
        what = f"{width:,} features from {len(features)} columns"
        raise DataError(what, where=table.where, hint=f"accepted: up to {MAX_FEATURES:,}; give fewer columns")
    graph = _with_aliases(graph, aliases)
    if graph.names is not None:
        columns = dict(graph.names.columns)
        for each, cells in texts.items():
            column = [""] * graph.num_nodes
            for row, cell in zip(rows, cells, strict=True):
                column[row] = cell
            while not each or each in columns:  # the column of names is called name in a dataset folder
                each += "_2"
            columns[each] = strings.Strings.of(column)
        graph = replace(graph, names=strings.NodeNames(columns, primary=graph.names.primary_column))
    absent = graph.num_nodes - len(rows)
    without = f"; {absent:,} nodes have no row" if absent else ""
    called = f"; {sum(map(len, aliases.values())):,} aliases" if aliases else ""
    options.on_note(f"{table.where}: {header}node from '{title}'; {_described(features, texts)}{called}{without}{odd}")
    if not features:
        return graph, {}
    values = np.zeros((graph.num_nodes, width), np.float32)
    values[rows] = np.concatenate([own for own, _ in features], axis=1)
    return replace(graph, features=values, known_hash=""), {"features": [card for _, card in features]}


def _names_in(cell: str) -> list[str]:
    return [name for text in cell.split("|") if not strings.is_missing(name := text.strip())]


def _with_aliases(graph: Graph, aliases: Mapping[int, list[str]]) -> Graph:
    if not any(aliases.values()):
        return graph
    names = graph.names or strings.NodeNames({"name": strings.Strings.numbers(0, graph.num_nodes)})
    known = list(names.columns.get(strings.ALIASES, [""] * len(names)))
    for node, texts in aliases.items():
        known[node] = "|".join(dict.fromkeys(filter(None, [*known[node].split("|"), *texts])))
    columns = names.columns | {strings.ALIASES: strings.Strings.of(known)}
    return replace(graph, names=strings.NodeNames(columns, primary=names.primary_column))


def read_aliases(source: Source, graph: Graph, options: ReadOptions = ReadOptions()) -> Graph:
    """A graph with the aliases of a table; if only an alias of a row is in the graph, the others become its names."""
    table = read_table(source, encoding=options.encoding)
    alias = likely_title(table.titles, "alias")
    if alias is None and table.header is not None and any(graph.knows(name) for name in table.titles[:2]):
        table = table.without_header()
    if len(table.titles) < 2:
        raise DataError("one column", where=table.where, hint="two are needed: alias and name")
    alias = alias or table.titles[0]
    rest = [title for title in table.titles if title != alias]
    called = likely_title(rest, "node_id") or rest[0]
    found: dict[int, list[str]] = {}
    unknown: list[str] = []
    for name, cell in zip(*(table.cells(title, "node").to_pylist() for title in (called, alias)), strict=True):
        texts = [text for text in [name, *_names_in(cell)] if text]
        nodes = [node for text in texts if (node := graph.find(text)[0]) is not None and node >= 0]
        if not nodes:
            unknown += texts[:1]
            continue
        found.setdefault(nodes[0], []).extend(text for text in texts if graph.find(text)[0] != nodes[0])
    if not found:
        example = f" ({excerpt(unknown[0])})" if unknown else ""
        what = f"none of its {len(table):,} rows has a node of the graph{example}"
        raise DataError(what, where=table.where, hint="a column of aliases and one of names are needed")
    without = f"; {len(unknown):,} rows name no node of the graph ({excerpt(unknown[0])})" if unknown else ""
    count = sum(map(len, found.values()))
    options.on_note(f"{table.where}: {count:,} aliases from '{alias}', names from '{called}'{without}")
    return _with_aliases(graph, found)


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
            what, hint = f"{excerpt(text)} names several nodes", "write a row number, such as #12"
            raise DataError(what, where=table.place(i), hint=hint)
        elif in_another_case and graph.names is not None:
            by_case[text] = graph.names[node]
        if taken.setdefault(node, i) != i:
            what, hint = f"node {excerpt(text)} occurs twice", "a row for each node is needed"
            raise DataError(what, where=table.place(i), hint=hint)
        rows[i] = node
    if len(added) == len(ids) > 0:
        what = f"none of its {len(ids):,} nodes is in the graph ({excerpt(ids[0])})"
        hint = "are nodes named as in the edges? if this is the wrong column, pass --node-id COLUMN"
        raise DataError(what, where=table.where, hint=hint)
    if by_case:
        text, name = map(excerpt, next(iter(by_case.items())))
        warn(f"{table.where}: {len(by_case):,} nodes matched by ignoring case: {text} is {name}")
    if added:
        what = f"{len(added):,} of {len(ids):,} nodes are not in the graph and are added without edges"
        warn(f"{table.where}: {what} ({excerpt(next(iter(added)))})")
    if added and graph.names is not None:
        columns = {
            name: strings.Strings.of([*column, *(added if name == graph.names.primary_column else [""] * len(added))])
            for name, column in graph.names.columns.items()
        }
        names = strings.NodeNames(columns, primary=graph.names.primary_column)
        graph = replace(graph.with_nodes(graph.num_nodes + len(added)), names=names)
    return graph, rows


def _feature(title: str, cells: list[str], table: Table) -> tuple[_Feature | None, str]:
    """A column of numbers or of few categories as a feature; and a note on the cell that keeps most numbers from it."""
    present = np.array([not strings.is_missing(cell) for cell in cells])
    texts = [cell for cell in cells if not strings.is_missing(cell)]
    plain = [text.replace(",", ".") if table.kind == ";" else text for text in texts]
    numbers = [number for text in plain if (number := strings.parse_number(text)) is not None]
    if numbers and len(numbers) == len(texts) and not any(map(strings.has_leading_zero, plain)):
        known = np.array(numbers)
        if not np.isfinite(known).all() or np.abs(known).max() > 1e30:
            row = int(np.flatnonzero(present)[np.argmax(~(np.abs(known) <= 1e30))])
            raise DataError(f"{cells[row]} in '{title}'", where=table.place(row), hint="accepted: numbers up to 1e30")
        mean, std = float(known.mean()), float(known.std())
        values = np.zeros((len(cells), 1), np.float32)
        values[present, 0] = (known - mean) / (std or 1.0)
        card = {"column": title, "kind": "number", "mean": mean, "std": std, "missing": int((~present).sum())}
        return (values, card), ""
    others = [text for text in texts if strings.parse_number(text) is None or strings.has_leading_zero(text)]
    odd = f"; {excerpt(others[0])} in '{title}' is not a number" if 0 < 2 * len(others) < len(texts) else ""
    found = sorted(set(texts))
    if not found or len(found) > min(MAX_CATEGORIES, len(cells) / 2):
        return None, odd
    values = (np.array(cells)[:, None] == np.array(found)).astype(np.float32)
    return (values, {"column": title, "kind": "category", "values": found}), odd


def _described(features: list[_Feature], texts: dict[str, list[str]]) -> str:
    kinds: dict[str, list[str]] = {"number": [], "category": []}
    for _, card in features:
        mean = f" ({card['missing']:,} missing, taken as the mean)" if card.get("missing") else ""
        kinds[card["kind"]].append(card["column"] + mean)
    named = {"standardised numbers": kinds["number"], "categories": kinds["category"], "names": list(texts)}
    return "; ".join(f"{noun} {', '.join(titles)}" for noun, titles in named.items() if titles) or "no attributes"
