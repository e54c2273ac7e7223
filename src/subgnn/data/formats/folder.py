"""A dataset as a folder of text files; docs/data.md describes each of them."""

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from subgnn.data.dataset import Dataset, Problems
from subgnn.data.edge_store import EdgeStore
from subgnn.data.formats.edge_list import EdgeList, first_beyond, read_edge_list, store_edge_list
from subgnn.data.formats.format import FileFormat, LabelFormat, ReadOptions
from subgnn.data.formats.subgraph_text import NodeField, read_subgraphs
from subgnn.data.formats.tables import read_table
from subgnn.data.formats.text import find_file, read_lines
from subgnn.data.graph import TO_JOIN, Graph
from subgnn.data.strings import NodeNames, Strings, is_id
from subgnn.data.subgraphs import SPLITS, SubgraphSet, label_card, parse_task
from subgnn.data.values import check_features, plausible_nodes
from subgnn.errors import DataError, DataWarning, excerpt
from subgnn.ragged import Ragged
from subgnn.storage.arrays import read_npy
from subgnn.storage.files import MAX_JSON, atomic_write, parse_json, read_bounded
from subgnn.task import task_of

EDGES, SUBGRAPHS, AUTHORS_SUBGRAPHS = "edge_list.txt", "subgraphs.tsv", "subgraphs.pth"
EDGE_ATTRIBUTES = "edge_attributes.tsv"
NODES, FEATURES, CARD, SUBGRAPH_NAMES = "nodes.tsv", "features.npy", "dataset.json", "subgraph_names.tsv"
_BYTES_A_BYTE = 12  # an edge of about 24 bytes in both files takes some 300 while its graphs are built
T = TypeVar("T")


def read_folder(
    folder: Path, options: ReadOptions, problems: Problems, *, store: EdgeStore | None = None, graph_alone: bool = False
) -> Dataset | None:
    """Read a dataset folder, or its graph alone, or None; with a ``store``, the graph is built on disk."""
    return _FolderReader(folder, options, problems).read(store, graph_alone=graph_alone)


def read_node_table(path: Path, problems: Problems, id_base: int = 0) -> NodeNames | None:
    """Read ``nodes.tsv``, with or without a header; names are in the column ``name``, else in the second one."""
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
            problems.error(where, f"node {fields[0]}{' again' if node in rows else ''}", "each id has one line")
        elif len(fields) < 2:
            problems.error(where, "the line has only one column", f"{accepted}, separated by tabs")
        else:
            rows[node] = fields[1:]
    if problems.num_errors:
        return None
    if not rows:
        raise DataError("no nodes", where=str(path), hint=f"{accepted}; or leave the file out")
    count = max(rows) + 1
    if count > plausible_nodes(len(rows)):
        what = f"node {max(rows)} in a table of {len(rows)} lines"
        raise DataError(what, where=str(path), hint="ids run from 0 without large gaps")
    width = max(map(len, rows.values()))
    titles = header[1 : width + 1] if header else []
    titles += [f"column{i + 2}" if i else "name" for i in range(len(titles), width)]
    if len(set(titles)) < len(titles):
        raise DataError("two columns have the same name", where=f"{path}:1", hint="name each column differently")
    table = [rows.get(node, []) for node in range(count)]
    columns = {title: Strings.of(row[i] if i < len(row) else "" for row in table) for i, title in enumerate(titles)}
    return NodeNames(columns, primary="name" if "name" in columns else titles[0])


class _FolderReader:
    def __init__(self, folder: Path, options: ReadOptions, problems: Problems) -> None:
        self.folder, self.options, self.problems = folder, options, problems
        self.card_path = folder / CARD
        self.card: dict[str, Any] = self._collect(self._read_card) or {}
        self.id_base = (self._card_int("id_base") or 0) if options.id_base is None else options.id_base
        self.directed = self.card.get("directed", False)
        if not isinstance(self.directed, bool):
            self._refuse("directed", "accepted: true or false")
        path = find_file(folder, NODES)
        self.names = None if path is None else self._collect(lambda: read_node_table(path, problems, self.id_base))
        self.labels = options.labels or LabelFormat()
        if options.labels is None:
            # As the card says; without a card, ``-`` joins labels, as in the authors' files.
            task, separator = self.card.get("task"), self.card.get("label_separator")
            if separator is not None and not (isinstance(separator, str) and separator.strip()):
                self._refuse("label_separator", "accepted: the text that joins several labels, such as ';', or null")
                separator = None
            found = None
            if task is not None and task != "unlabelled":  # the card of a graph alone, to which labels were added
                found = self._collect(lambda: parse_task(str(task), str(self.card_path)))
            self.labels = LabelFormat(found, separator, whole=self.card_path.is_file())

    def read(self, store: EdgeStore | None, *, graph_alone: bool) -> Dataset | None:
        """The dataset, or its graph alone, without subgraphs; None where something is wrong."""
        problems, declared = self.problems, self._card_int("num_nodes")
        if declared is None and self.names is not None:
            declared = len(self.names)
        edges = self._collect(lambda: self._read_edges(declared, store))
        features = self._collect(self._read_features)
        num_nodes = declared
        if declared is None and edges is not None:
            num_nodes = max(edges.num_nodes, len(features) if features is not None and features.ndim else 0)
        known = edges is None or edges.num_edges > 0 or declared is not None
        subgraphs: SubgraphSet | None = SubgraphSet(Ragged.from_rows([]))
        if not graph_alone:
            subgraphs = self._read_subgraphs(num_nodes if known else None)
        if problems.num_errors or edges is None or subgraphs is None or num_nodes is None:
            return None
        if not known:
            # A graph without edges is as large as its subgraphs and features need.
            num_nodes = max(num_nodes, int(subgraphs.nodes.values.max(initial=-1)) + 1)
        graph = self._collect(lambda: self._build(edges, num_nodes, features))
        if graph is None:
            return None
        name = str(self.card.get("name", self.folder.resolve().name))
        return Dataset(name, graph, subgraphs, self.card, reading=self.options.reading)

    def _collect(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except DataError as error:
            self.problems.add(error)
            return None

    def _read_card(self) -> dict[str, Any]:
        if not self.card_path.is_file():
            return {}
        where, hint = str(self.card_path), "a JSON object with name, source, licence and note is accepted"
        card = parse_json(read_bounded(self.card_path, MAX_JSON), where, hint)
        if not isinstance(card, dict):
            raise DataError(f"a JSON {type(card).__name__}", where=where, hint="a JSON object is accepted")
        return card

    def _card_int(self, key: str) -> int | None:
        value = self.card.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31):
            self._refuse(key, "an integer from 0 is accepted")
            return None
        return value

    def _refuse(self, key: str, hint: str) -> None:
        self.problems.error(str(self.card_path), f"{key} is {excerpt(str(self.card[key]))}", hint)

    def _read_edges(self, declared: int | None, store: EdgeStore | None) -> EdgeList | EdgeStore | None:
        problems, folder = self.problems, self.folder
        path = find_file(folder, EDGES)
        if path is None:
            what = "no such file" if folder.is_dir() else "no such folder"
            where = str(folder / EDGES if folder.is_dir() else folder)
            raise DataError(what, where=where, hint=f"a dataset folder holds {EDGES} and {SUBGRAPHS}")
        self.edge_path, before, file = path, problems.num_errors, (path, self.id_base)
        if store is not None:
            store_edge_list(*file, problems, store)
        edges = store or read_edge_list(*file, problems)
        if problems.num_errors > before:
            return None
        limit = declared if declared is not None else plausible_nodes(edges.num_edges)
        if edges.num_nodes > limit:
            line, node = first_beyond(*file, limit)
            gaps = "" if declared is not None else ", without large gaps; for other ids use data convert"
            hint = f"ids run {self.id_base}..{limit - 1 + self.id_base}{gaps}"
            raise DataError(f"node {node} is not in the graph", where=f"{path}:{line}", hint=hint)
        attributes = find_file(folder, EDGE_ATTRIBUTES)
        if attributes is None or isinstance(edges, EdgeStore):  # edges that have attributes are not staged on disk
            return edges
        # Types and times: a line for each line of the edge list, below a line of titles.
        table = read_table(attributes)
        if not set(table.titles) <= {"type", "time"} or len(table.titles) != len(set(table.titles)):
            what = f"columns {', '.join(map(excerpt, table.titles[:3]))}"
            raise DataError(what, where=str(attributes), hint="accepted: type, time, or both, in the first line")
        if len(table) != edges.num_edges:
            what = f"{len(table):,} lines below the titles, but {edges.num_edges:,} edges"
            hint = f"a line for each edge of {EDGES}, in its order, is needed"
            raise DataError(what, where=str(attributes), hint=hint)
        types = np.array(table.filled("type", "edge type").to_pylist(), str) if "type" in table.titles else None
        return replace(edges, types=types, times=table.times("time") if "time" in table.titles else None)

    def _read_features(self) -> NDArray[Any] | None:
        path = self.folder / FEATURES
        if not path.is_file():
            return None
        array = read_npy(path, "features")
        if array.ndim == 2 and array.shape[1] == 0:
            hint = "accepted: one row per node, F columns"
            raise DataError(f"the features have shape {array.shape}", where=str(path), hint=hint)
        return array

    def _read_subgraphs(self, num_nodes: int | None) -> SubgraphSet | None:
        """The subgraphs; their names are in the first column of subgraph_names.tsv, and groups in the third."""
        names = groups = None
        path = find_file(self.folder, SUBGRAPH_NAMES)
        if path is not None:
            rows = self._collect(lambda: [line.split("\t") for _, line in read_lines(path)])
            if rows is not None:
                names = Strings.of(row[0] for row in rows)
                if rows and all(len(row) > 2 and row[2].strip() for row in rows):
                    groups = Strings.of(row[2] for row in rows)
        file = find_file(self.folder, SUBGRAPHS, AUTHORS_SUBGRAPHS)
        if file is None:
            hint = f"the subgraphs are in {SUBGRAPHS} or the authors' {AUTHORS_SUBGRAPHS}"
            self.problems.error(str(self.folder / SUBGRAPHS), "no such file", hint)
            return None
        nodes = NodeField(num_nodes, self.names, self.id_base)
        found = self._collect(lambda: read_subgraphs(file, self.problems, nodes, self.labels, names))
        return None if found is None else replace(found, groups=groups)

    def _build(self, edges: EdgeList | EdgeStore, num_nodes: int, features: NDArray[Any] | None) -> Graph:
        if features is not None:
            features = check_features(features, num_nodes, where=str(self.folder / FEATURES))
        names, base, where = self.names, self.id_base, str(self.folder / NODES)
        if names is not None and len(names) != num_nodes:
            what = f"{len(names)} nodes, but the graph has {num_nodes}"
            raise DataError(what, where=where, hint="one line per node is needed")
        if names is not None and edges.num_edges and not any(names.primary.take(np.arange(edges.num_nodes))):
            what = f"none of its nodes is in the graph, whose ids run {base}..{edges.num_nodes - 1 + base}"
            raise DataError(what, where=where, hint="the first column has the ids of the edges")
        if base and names is None:
            # Rows begin at 0; the numbers in the files stay the names of the nodes.
            names = NodeNames({"name": Strings.numbers(base, base + num_nodes)})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            graph = edges.build(num_nodes, directed=self.directed, names=names)
        for warning in caught:
            # The files of a folder are read as they are: options are for tables.
            self.problems.warn(str(self.edge_path), str(warning.message).partition(TO_JOIN)[0])
        return replace(graph, features=features)


def folder_id_base(path: Path, graph: Graph) -> int | None:
    """The first id of the dataset folder of a file of subgraphs, whose nodes need the names of the graph's; or None."""
    if path.name.removesuffix(".gz") not in (SUBGRAPHS, AUTHORS_SUBGRAPHS) or find_file(path.parent, EDGES) is None:
        return None
    problems = Problems()
    reader = _FolderReader(path.parent, ReadOptions(labels=LabelFormat()), problems)
    problems.stop()
    if reader.names is not None and graph.names is not None and reader.names.content_hash != graph.names.content_hash:
        what = "the nodes of this dataset have different names from those of the run"
        raise DataError(what, where=str(path), hint="give the subgraphs in a different file, by name")
    return reader.id_base


def write_folder(
    dataset: Dataset, folder: Path, *, overwrite: bool = False, subgraph_titles: Sequence[str] | None = None
) -> None:
    """Write a dataset as a folder of text files, atomically; refused if its labels, splits or names do not fit."""
    subgraphs, graph, labels = dataset.subgraphs, dataset.graph, label_card(dataset.subgraphs)
    if len(subgraphs) and (subgraphs.targets is None or subgraphs.splits is None):
        raise DataError("the subgraphs have no labels or no splits", where=SUBGRAPHS, hint="a folder needs both")
    if task_of(subgraphs.task).several and subgraphs.targets is not None and not subgraphs.targets.any(axis=1).all():
        row = int(np.argmin(subgraphs.targets.any(axis=1)))
        raise DataError(f"subgraph {row} has no label", where=SUBGRAPHS, hint="a folder needs at least one each")
    ends = re.compile(r"[\t\n\r]")
    texts = {"label": subgraphs.classes, "subgraph name": subgraphs.names, "group": subgraphs.groups}
    for what, column in (texts | {"edge type": graph.types}).items():
        for text in column or ():
            quoted = what == "edge type" and '"' in text
            if not text.strip() or text != text.strip() or ends.search(text) or quoted:
                where = EDGE_ATTRIBUTES if what == "edge type" else SUBGRAPHS
                raise DataError(f"{what} {excerpt(text)}", where=where, hint="text files cannot hold it; rename it")
    for title, column in graph.names.columns.items() if graph.names is not None else ():
        for text in (title, *column):
            if ends.search(text):
                raise DataError(f"node name {excerpt(text)}", where=NODES, hint="tabs and line ends cannot be written")
    # The card states what the text files alone would not.
    stale = {"id_base", "task", "label_separator"} - labels.keys()
    card = {key: value for key, value in dataset.card.items() if key not in stale}
    card |= {"name": dataset.name, "num_nodes": graph.num_nodes} | labels
    card |= {"directed": True} if graph.directed else {}
    with atomic_write(folder, overwrite=overwrite) as temporary:
        temporary.mkdir()
        edges = graph.edge_columns()
        for name, kept, delimiter in (
            (EDGES, ("tail", "head", "weight"), " "),
            (EDGE_ATTRIBUTES, ("type", "time"), "\t"),
        ):
            found = {title: edges[title] for title in kept if title in edges}
            if found:
                options = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
                with (temporary / name).open("wb") as file:
                    if name != EDGES:
                        file.write((delimiter.join(found) + "\n").encode())
                    csv.write_csv(pa.table(found), file, options)
        _write_rows(temporary / SUBGRAPHS, _subgraph_rows(subgraphs))
        if subgraphs.names is not None or subgraphs.groups is not None:
            columns: list[Iterable[str]] = [subgraphs.names or map(str, range(len(subgraphs)))]
            if subgraph_titles is not None or subgraphs.groups is not None:
                columns.append(subgraph_titles or [""] * len(subgraphs))
            if subgraphs.groups is not None:
                columns.append(subgraphs.groups)
            _write_rows(temporary / SUBGRAPH_NAMES, zip(*columns, strict=True))
        if graph.names is not None:
            rows = zip(map(str, range(graph.num_nodes)), *graph.names.columns.values(), strict=True)
            _write_rows(temporary / NODES, chain([("id", *graph.names.columns)], rows))
        if graph.features is not None:
            np.save(temporary / FEATURES, np.asarray(graph.features), allow_pickle=False)
        text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
        (temporary / CARD).write_text(text, encoding="utf-8", errors="backslashreplace")


def edge_attributes_bytes(folder: Path) -> int:
    """Bytes of memory, roughly, that the edges of a folder take where they have types or times; 0 where not."""
    edges, attributes = find_file(folder, EDGES), find_file(folder, EDGE_ATTRIBUTES)
    if edges is None or attributes is None:
        return 0
    sizes = (path.stat().st_size * (5 if path.suffix == ".gz" else 1) for path in (edges, attributes))
    return _BYTES_A_BYTE * sum(sizes)


def _subgraph_rows(subgraphs: SubgraphSet) -> Iterator[list[str]]:
    times, absent = subgraphs.times, subgraphs.absent
    for i, nodes in enumerate(subgraphs.nodes):
        split = "" if subgraphs.splits is None else SPLITS[subgraphs.splits[i]]
        time = "" if times is None else repr(times[i].item())
        row = ["-".join(map(str, nodes.tolist())), subgraphs.label_text(i), split]
        row += [] if times is None and absent is None else [time]
        yield row if absent is None else [*row, "-".join(map(str, absent[i].tolist()))]


def _write_rows(path: Path, rows: Iterable[Iterable[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)


FOLDER = FileFormat(lambda path: not path.is_file(), read_dataset=read_folder)
