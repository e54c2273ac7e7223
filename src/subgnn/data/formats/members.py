"""Subgraphs as a user's file states them: tables of memberships or of subgraphs, gene sets (GMT), or lines of nodes."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Problems
from subgnn.data.formats.folder import folder_id_base
from subgnn.data.formats.format import Columns, ReadOptions, Roles, described, missing, unused_columns
from subgnn.data.formats.labels import one_each, read_label_table, role_values
from subgnn.data.formats.subgraph_text import read_times
from subgnn.data.formats.tables import Source, Table, UnequalRows, read_table
from subgnn.data.formats.text import read_lines
from subgnn.data.graph import Graph
from subgnn.data.strings import find_node, is_id, split_names
from subgnn.errors import DataError, excerpt
from subgnn.ragged import Ragged

_ROLES = ("subgraph", "label", "split", "subgraph_time", "absent")  # of columns beside that of nodes
_YES, _NO = ("true", "yes", "1", "1.0"), ("false", "no", "0", "0.0", "")
_SWAPPED = "are the two tables swapped? the edges come first; if not, "
_MAX_GUESSED = 200  # columns whose cells are looked at
_SAMPLE, _FIRST = 100, 20
_SEPARATORS = (";", "|", ",", " ", "-")
_SEPARATOR_NAMES = {" ": "spaces", ",": "commas"}


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """Subgraphs of a file, in its order, with nodes as text."""

    where: str
    names: Sequence[str]
    texts: Sequence[str]  # of nodes, each once
    nodes: Ragged  # places in texts
    labels: Sequence[str | tuple[str, ...]] | None = None
    splits: Sequence[str] | None = None
    rows: Sequence[int] = ()  # in which subgraphs begin, from 1
    unit: str = "row"  # or line
    named: bool = True  # else names are the texts of nodes
    titles: Sequence[str] = ()  # of columns that hold none of these
    others: Mapping[str, Sequence[str | None]] = field(default_factory=dict)  # all columns but names and nodes
    times: NDArray[Any] | None = None
    absent: Ragged | None = None  # places in texts
    text_rows: Sequence[int] = ()  # in which texts are first, where each row has one

    def __len__(self) -> int:
        return len(self.nodes)

    def place(self, subgraph: int) -> str:
        number = self.rows[subgraph]
        return f"{self.where}: row {number}" if self.unit == "row" else f"{self.where}:{number}"

    def place_of_text(self, text: int) -> str:
        """The first place of a text, by its place in ``texts``."""
        if len(self.text_rows):
            return f"{self.where}: row {self.text_rows[text]}"
        rows = self.nodes if self.absent is None or text in self.nodes.values else self.absent
        return self.place(int(rows.row_ids[np.argmax(rows.values == text)]))

    def nodes_of(self, subgraph: int) -> list[str]:
        return [self.texts[i] for i in self.nodes[subgraph]]

    def take(self, subgraphs: Sequence[int] | NDArray[np.int64]) -> Members:
        chosen = [int(i) for i in subgraphs]
        columns = {"names": self.names, "labels": self.labels, "splits": self.splits, "rows": self.rows}
        taken: dict[str, Any] = {name: one and [one[i] for i in chosen] for name, one in columns.items()}
        others = {title: [values[i] for i in chosen] for title, values in self.others.items()}
        times = None if self.times is None else self.times[chosen]
        absent = None if self.absent is None else self.absent.take(chosen)
        return replace(self, **taken, nodes=self.nodes.take(chosen), others=others, times=times, absent=absent)


def read_members(
    source: Source, graph: Graph, options: ReadOptions = ReadOptions(), *, labelled: bool = True, dated: bool = False
) -> Members:
    """Read subgraphs, with nodes as text; unless ``labelled``, only names and nodes, and times if ``dated``."""
    wanted = _ROLES if labelled else ("subgraph", *["subgraph_time"] * dated, "absent")
    found = _read(source, graph, options, wanted)
    if found.named and len(set(found.names)) < len(found):
        # Each name once: subgraphs of one name have to have the same nodes, and only their labels may differ.
        first = dict[str, int]()
        owners = np.array([first.setdefault(name, i) for i, name in enumerate(found.names)])
        for row in np.flatnonzero(owners != np.arange(len(found))).tolist():
            before = int(owners[row])
            if labelled and set(found.nodes[row].tolist()) == set(found.nodes[before].tolist()):
                continue
            what = f"the subgraph {excerpt(found.names[row])} again, which is in {found.unit} {found.rows[before]}"
            what += " with other nodes" if labelled else ""
            hint = "give each its own name; a table with a row for each node joins the rows of a name"
            options.refuse(DataError(what, where=found.place(row), hint=hint))
        kept, codes = np.unique(owners, return_inverse=True)
        table = Table(found.where, None, numbers_of_rows=np.array(found.rows) - 1)
        values: dict[str, Any] = {}
        for role in ("label", "split"):
            if (column := getattr(found, f"{role}s")) is not None:
                own = one_each(codes, list(column), role=role, names=found.names, table=table, options=options)
                values[f"{role}s"] = own
        options.on_note(f"{found.where}: {len(found) - len(kept):,} rows repeat a subgraph of the same name and nodes")
        found = replace(found.take(kept), **values)
    unused = [title for title in found.titles if title and found.unit == "row"]
    given_back = [title for title in unused if title in found.others]
    if labelled and (line := unused_columns(found.where, given_back)):
        options.on_note(f"{line} (predictions give {'it' if len(given_back) == 1 else 'them'} back)")
    if line := unused_columns(found.where, [title for title in unused if title not in given_back]):
        options.on_note(f"{line} (different within a subgraph)")
    if not labelled:
        return replace(found, labels=None, splits=None)
    if options.label_table is None:
        return found
    if not found.named:
        hint = "give each a name, in a column subgraph"
        raise DataError("the subgraphs have no names to find labels by", where=found.where, hint=hint)
    labels, splits = read_label_table(found.names, options)
    return replace(found, labels=labels, splits=found.splits if splits is None else splits)


def _read(source: Source, graph: Graph, options: ReadOptions, wanted: Sequence[str]) -> Members:
    if not isinstance(source, str | Path):
        return _from_table(read_table(source), graph, options, wanted)
    path = Path(source)
    if (ids_from := folder_id_base(path, graph)) is not None:
        return _from_lines(path, graph, options, wanted, ids_from=ids_from)
    if path.name.removesuffix(".gz").endswith(".gmt"):
        return _from_gene_sets(path, options)
    table: Table | None = None
    with suppress(UnequalRows):
        table = read_table(path, encoding=options.encoding)
    is_text = table is None or (table.header is not None and table.kind != "xlsx")
    titled = table is not None and options.columns.find(table, "node") is not None
    if is_text and not (titled or options.columns.explicit("subgraph", "label", "split")):
        first = [line for _, line in islice(read_lines(path, encoding=options.encoding), _SAMPLE)]
        if _looks_like_gene_sets(first, graph):
            return _from_gene_sets(path, options)
        cells = first[0].split("\t")[:1] if table is None or table.kind == "\t" else table.titles[:_FIRST]
        known = sum(node_share([cell], find_separator([cell], graph), graph) > 0 for cell in cells)
        if (table is not None and len(table.titles) == 1) or 2 * known > len(cells):
            return _from_lines(path, graph, options, wanted)
    if table is None:
        table = read_table(path, encoding=options.encoding, problems=options.problems)
    return _from_table(table, graph, options, wanted)


def _from_table(table: Table, graph: Graph, options: ReadOptions, wanted: Sequence[str]) -> Members:
    columns, found = options.columns, dict[str, str]()
    node = columns.find(table, "node")
    if node is None:
        node = _column_of_nodes(table, graph, columns)
        if node and table.header is not None and node_share([node], find_separator([node], graph), graph) == 1:
            what = f"no header line: the first line has {excerpt(node)} above other nodes"
            titles = "write titles above the rows, such as subgraph, node, label, split"
            raise DataError(what, where=table.where, hint=f"{titles}; or pass --node-column if it is a title")
    if node is not None:
        found["node"] = node
    roles = list(wanted)
    if options.label_table is not None:  # whose columns may be named, too
        roles = [role for role in roles if role != "label" and columns.get(role) in (None, *table.titles)]
    columns.add(table, roles, found)
    if node is None:
        lacking = [role for role in ("subgraph", "node") if role not in found]
        swapped = _SWAPPED * columns.are_ends(table.titles[:2], [])
        raise missing(table.where, table.titles, lacking, list(found.values()), swapped)
    if len(table) == 0:
        hint = "a row for each node of each subgraph is needed, or for each subgraph with a list of nodes"
        raise DataError("no subgraphs", where=table.where, hint=hint)
    times = options.read_column(table, "subgraph_time", found, table.times)
    ordered = {role: found[role] for role in ("subgraph", *found) if role in found}
    if (note := described(table, ordered)) and not columns.explicit("node"):
        options.on_note(note)
    if not table.is_list(node):
        required = [role for role in ("subgraph", "node") if role in found]
        whole = table.complete_rows({role: found[role] for role in required}, options.refuse)
        if times is not None and whole is not table:
            times = times[whole.numbers_of_rows]
        table = whole
    names = table.filled(found["subgraph"], "subgraph").to_pylist() if "subgraph" in found else None
    if table.is_list(node):
        lists = table.lists(node, "node")
        encoded = encode_texts(lists, table.lists(found["absent"], "absent") if "absent" in found else None)
        return replace(_wide(table, found, names or list(map(" ".join, lists)), encoded), times=times)
    cells = table.cells(node, "node").to_pylist()
    sample = cells[:_SAMPLE]
    separator = find_separator(sample, graph)
    repeats = names is not None and len(set(names)) < len(names)
    if separator is None or (repeats and node_share(sample, separator, graph) <= 0.5):
        if names is None:
            edges = _column_of_nodes(table, graph, columns, [node]) is not None
            raise missing(table.where, table.titles, ["subgraph"], list(found.values()), _SWAPPED * edges)
        return _long(table, found, names, cells, times, options)
    called = _SEPARATOR_NAMES.get(separator, f"'{separator}'")
    options.on_note(f"{table.where}: a subgraph in each row, its nodes in '{node}' separated by {called}")
    absent = None
    if "absent" in found:
        absent = _split_all(table.cells(found["absent"], "absent").to_pylist(), separator, graph, table.place)
    encoded = encode_texts(_split_all(cells, separator, graph, table.place), absent)
    return replace(_wide(table, found, names or cells, encoded), times=times)


def _column_of_nodes(table: Table, graph: Graph, columns: Columns, taken: Sequence[str] = ()) -> str | None:
    """The column with the largest share of nodes of the graph, at least half; a title that is named is another's."""
    named = {str(columns.get(role)).casefold() for role in ("subgraph", "label", "split") if columns.explicit(role)}
    titles = [title for title in table.titles[:_MAX_GUESSED] if title.casefold() not in named and title not in taken]
    return table.best_column(
        titles, lambda cells: node_share(cells, find_separator(cells, graph), graph), rows=_SAMPLE, least=0.5
    )


def _long(
    table: Table, found: Roles, names: list[str], cells: list[str], times: NDArray[Any] | None, options: ReadOptions
) -> Members:
    """A row for each membership; a subgraph is as old as its latest row."""
    first, texts = dict[str, int](), dict[str, int]()
    subgraphs = np.fromiter((first.setdefault(name, len(first)) for name in names), np.int64, len(names))
    begins = np.unique(subgraphs, return_index=True)[1]
    codes = np.fromiter((texts.setdefault(cell, len(texts)) for cell in cells), np.int32, len(cells))
    order, count = np.argsort(subgraphs, kind="stable"), len(first)

    def chosen(rows: NDArray[np.int64]) -> Ragged:
        return Ragged.from_lengths(codes[rows], np.bincount(subgraphs[rows], minlength=count))

    lacks = np.zeros(len(order), bool)
    if "absent" in found:
        told = [(cell or "").strip().casefold() for cell in table.cells(found["absent"], "label").to_pylist()]
        wrong = next((row for row, cell in enumerate(told) if cell not in (*_YES, *_NO)), None)
        if wrong is not None:
            what = f"column '{found['absent']}' has {excerpt(told[wrong])}"
            hint = "accepted with a row for each node: true or false, yes or no, 1 or 0; or rename the column"
            raise DataError(what, where=table.place(wrong), hint=hint)
        lacks = np.array([cell in _YES for cell in told], bool)
    nodes, absent = (chosen(order[rows[order]]) for rows in (~lacks, lacks))
    values: dict[str, list[Any]] = {}
    for role in ("label", "split"):
        if role in found:
            column = role_values(table, found[role], role)
            values[role] = one_each(subgraphs, column, role=role, names=names, table=table, options=options)
    if times is not None:
        latest = np.full(count, times.min(), times.dtype)
        np.maximum.at(latest, subgraphs, times)
        times = latest
    rows = [table.number(int(row)) for row in begins]
    titles = [title for title in table.titles if title not in found.values()]
    others: dict[str, Sequence[str | None]] = {}
    for title in dict.fromkeys(titles):
        cells_of = table.data.column(table.titles.index(title)).to_pylist()
        texts_of = [None if cell is None else str(cell) for cell in cells_of]
        if all(cell == texts_of[begins[subgraph]] for cell, subgraph in zip(texts_of, subgraphs.tolist(), strict=True)):
            others[title] = [texts_of[begin] for begin in begins]
    labels, splits = values.get("label"), values.get("split")
    made = Members(table.where, list(first), list(texts), nodes, labels, splits, rows, titles=titles, times=times)
    text_rows = [table.number(int(row)) for row in np.unique(codes, return_index=True)[1]]
    return replace(made, others=others, absent=absent if "absent" in found else None, text_rows=text_rows)


def _wide(table: Table, found: Roles, called: list[str], encoded: tuple[list[str], Ragged, Ragged | None]) -> Members:
    """A row for each subgraph; without a name, it is called by the cell of its nodes."""
    texts, nodes, lacking = encoded
    labels, splits = (role_values(table, found[role], role) if role in found else None for role in ("label", "split"))
    _refuse_empty(nodes.lengths, table.place)
    others = {
        title: [None if cell is None else str(cell) for cell in table.column(title).to_pylist()]
        for title in table.titles
        if title not in (found["node"], found.get("subgraph"), found.get("absent"))
    }
    rows, named = [table.number(row) for row in range(len(nodes))], "subgraph" in found
    made = Members(table.where, called, texts, nodes, labels, splits, rows, named=named, absent=lacking)
    return replace(made, titles=[title for title in table.titles if title not in found.values()], others=others)


def _refuse_empty(sizes: NDArray[Any], place: Callable[[int], str]) -> None:
    if not sizes.all():
        raise DataError("empty subgraph", where=place(int(np.argmin(sizes))), hint="at least one node is needed")


def encode_texts(
    lists: Iterable[Sequence[str]], absent: Iterable[Sequence[str]] | None = None
) -> tuple[list[str], Ragged, Ragged | None]:
    """The texts of nodes, each once, and the places of those of each list, and of each list of absent nodes."""
    texts = defaultdict[str, int](count().__next__)

    def encoded(given: Iterable[Sequence[str]]) -> Ragged:
        codes, lengths = array("i"), array("q")
        for row in given:
            codes.extend(map(texts.__getitem__, row))
            lengths.append(len(row))
        return Ragged.from_lengths(np.array(codes), np.array(lengths))

    nodes, lacking = encoded(lists), None if absent is None else encoded(absent)
    return list(texts), nodes, lacking


def _from_gene_sets(path: Path, options: ReadOptions) -> Members:
    """GMT: in each line a name, a description and genes, separated by tabs; a description may be the label."""
    names, about, lists, lines = [], [], [], []
    for number, line in read_lines(path, encoding=options.encoding):
        cells, where = [cell.strip() for cell in line.split("\t")], f"{path}:{number}"
        genes = [cell for cell in cells[2:] if cell]
        if not genes:
            hint = "accepted: a name, a description and nodes, separated by tabs"
            options.refuse(DataError("the set has no nodes", where=where, hint=hint))
            continue
        names.append(cells[0])
        lines.append(number)
        about.append(cells[1])
        lists.append(genes)
    if not names:
        raise DataError("no subgraphs", where=str(path), hint="a line for each set is needed")
    label, others = options.columns.get("label") if options.label_table is None else None, {"description": about}
    if label is not None and label.casefold() != "description":
        what = f"no column {excerpt(label)} in a file of gene sets"
        raise DataError(what, where=str(path), hint="--label-column description takes the second column")
    texts, nodes, _ = encode_texts(lists)
    labels = about if label else None
    return Members(str(path), names, texts, nodes, labels, None, lines, "line", titles=list(others), others=others)


def _looks_like_gene_sets(lines: Sequence[str], graph: Graph) -> bool:
    """Whether lines have three columns or more, the third and later of which are mostly nodes of the graph."""
    cells = [line.split("\t") for line in lines]
    if not cells or min(map(len, cells)) < 3:
        return False
    genes = [text.strip() for row in cells for text in row[2:] if text.strip()]
    return 2 * sum(map(graph.knows, genes)) > len(genes) and not all(graph.knows(row[0].strip()) for row in cells)


def _from_lines(
    path: Path, graph: Graph, options: ReadOptions, wanted: Sequence[str], *, ids_from: int | None = None
) -> Members:
    """Lines as in subgraphs.tsv; in a dataset folder, digits are ids although nodes have names, from ``ids_from``."""
    fields, cells, lines = [], [], array("q")
    for number, line in read_lines(path, encoding=options.encoding):
        first, *others = line.split("\t")
        fields.append(first.strip())
        cells.append(tuple(map(str.strip, others)))
        lines.append(number)
    if not cells:
        raise DataError("no subgraphs", where=str(path), hint="write one subgraph in each line")
    base = options.id_base or 0 if ids_from is None else ids_from
    separator = "-" if ids_from is not None else find_separator(fields[:_SAMPLE], graph) or "-"
    if separator != "-":
        called = _SEPARATOR_NAMES.get(separator, f"'{separator}'")
        options.on_note(f"{path}: a subgraph in each line, its nodes separated by {called}")

    def place(row: int) -> str:
        return f"{path}:{lines[row]}"

    width, ids = min(map(len, cells)), ids_from is not None
    lists = _split_all(fields, separator, graph, place, ids=ids)
    lacking = _split_all((row[3] for row in cells), separator, graph, place, ids=ids)
    if ids or base:
        prefix = "#" if graph.names is None else graph.names.row_prefix
        lists, lacking = (
            ([f"{prefix}{int(t) - base}" if is_id(t) and int(t) >= base else t for t in row] for row in rows)
            for rows in (lists, lacking)
        )
    texts, nodes, absent = encode_texts(lists, lacking if width > 3 else None)
    _refuse_empty(nodes.lengths, place)
    labels, splits = ([row[i] for row in cells] if width > i else None for i in (0, 1))
    problems, times = Problems(), None
    if "subgraph_time" in wanted and width > 2:
        times = read_times([row[2] for row in cells], place, problems)
    problems.stop()
    found = Members(str(path), fields, texts, nodes, labels, splits, lines, "line", times=times, absent=absent)
    return replace(found, named=False)


def find_separator(cells: Sequence[str], graph: Graph) -> str | None:
    """The separator by which most parts are nodes, None if whole cells are; or else one that half of them have."""
    candidates = (None, *(s for s in _SEPARATORS if any(s in cell for cell in cells)))
    shares = {separator: node_share(cells, separator, graph) for separator in candidates}
    best = max(candidates, key=lambda separator: shares[separator])
    if shares[best] > 0:
        return best
    return next((s for s in _SEPARATORS if 2 * sum(s in cell for cell in cells) >= len(cells)), None)


def node_share(cells: Sequence[str], separator: str | None, graph: Graph) -> float:
    """The share of the parts of cells that are nodes; a cell that can be read in two ways has no parts."""
    parts: list[str] = []
    for cell in cells:
        with suppress(DataError):
            parts += [cell] if separator is None else _split(cell, separator, graph)
    return sum(map(graph.knows, parts)) / max(1, len(parts))


def _split(cell: str, separator: str, graph: Graph, *, ids: bool = False) -> list[str]:
    """The nodes of a list; in one that is joined by ``-``, a name may contain it. If ``ids``, digits are ids."""
    if separator != "-":
        return [part.strip() for part in cell.split(separator) if part.strip()]
    if not cell.strip():
        return []

    def exact(text: str) -> bool:
        return (ids and is_id(text)) or find_node(text, graph.num_nodes, graph.names) is not None

    dashes = 0 if graph.names is None else graph.names.most_dashes
    parts = split_names(cell, exact, dashes)
    if dashes and not all(map(exact, parts)):
        parts = split_names(cell, graph.knows, dashes)
    return list(map(str.strip, parts))


def _split_all(
    cells: Iterable[str], separator: str, graph: Graph, place: Callable[[int], str], *, ids: bool = False
) -> Iterator[list[str]]:
    """The nodes of each list; ``place`` names that of a list for errors."""
    for row, cell in enumerate(cells):
        try:
            yield _split(cell, separator, graph, ids=ids)
        except DataError as error:
            raise DataError(error.what, where=place(row), hint=error.hint) from None
