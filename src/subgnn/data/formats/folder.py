"""A dataset as a folder of text files; what each holds is in docs/data.md."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.edge_store import EdgeStore
from subgnn.data.formats.edge_list import EdgeList, first_beyond, read_edge_list
from subgnn.data.formats.node_table import read_node_table, write_node_table
from subgnn.data.formats.staged_edges import Staging, stage_edge_list
from subgnn.data.formats.subgraph_text import NodeField, read_subgraphs
from subgnn.data.formats.text import find_file, read_lines
from subgnn.data.formats.vectors import read_npy
from subgnn.data.graph import Graph, check_features, plausible_nodes
from subgnn.data.problems import Problems
from subgnn.data.strings import NodeNames, Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet, Task, label_card, parse_task
from subgnn.errors import DataError, DataWarning, excerpt
from subgnn.storage.files import atomic_write
from subgnn.storage.parsing import MAX_JSON, parse_json, read_bounded

EDGES, SUBGRAPHS, AUTHORS_SUBGRAPHS = "edge_list.txt", "subgraphs.tsv", "subgraphs.pth"
NODES, FEATURES, CARD, SUBGRAPH_NAMES = "nodes.tsv", "features.npy", "dataset.json", "subgraph_names.tsv"


@dataclass(frozen=True, slots=True)
class LabelForm:
    """How labels stand in a text file.

    Args:
        task: what they are; by default what they look like.
        separator: what joins several labels; without a task, the task is multi-label then.
    """

    task: Task | None = None
    separator: str | None = None

    @property
    def stated(self) -> Task | None:
        """The task, as far as it is stated."""
        return "multi-label" if self.task is None and self.separator is not None else self.task


def read_folder(
    folder: Path,
    problems: Problems,
    *,
    id_base: int | None = None,
    labels: LabelForm | None = None,
    staging: Staging | None = None,
) -> Dataset | None:
    """Read a dataset folder; what is wrong goes to ``problems``, and None comes back where it is not whole.

    Args:
        id_base: what the files count nodes from; by default what the card says, else 0.
        labels: how labels stand in the file; by default what the card says.
        staging: where to build the graph on disk; by default it is built in memory.
    """
    card = _gather(problems, lambda: _read_card(folder / CARD)) or {}
    base = _card_int(card, "id_base", problems, folder) or 0 if id_base is None else id_base
    if not isinstance(card.get("directed", False), bool):
        problems.error(str(folder / CARD), f"directed is {excerpt(str(card['directed']))}", "accepted: true or false")
    names = _read_names(folder, problems, base)
    form = labels if labels is not None else _card_labels(card, problems, folder)
    declared = _card_int(card, "num_nodes", problems, folder)
    if declared is None and names is not None:
        declared = len(names)
    edges, edge_path = _read_edges(folder, problems, names, base, declared, staging)
    features = _gather(problems, lambda: _read_features(folder / FEATURES))
    num_nodes = declared if declared is not None or edges is None else _count_nodes(edges, features)
    subgraph_path = find_file(folder, SUBGRAPHS, AUTHORS_SUBGRAPHS)
    subgraphs, called = None, _read_subgraph_names(folder, problems)
    if subgraph_path is None:
        problems.error(
            str(folder / SUBGRAPHS),
            "no such file",
            f"the subgraphs are in {SUBGRAPHS} or the authors' {AUTHORS_SUBGRAPHS}",
        )
    else:
        subgraphs = _gather(
            problems,
            lambda: read_subgraphs(
                subgraph_path,
                problems,
                num_nodes=num_nodes if edges is None or edges.num_edges or declared is not None else None,
                names=names,
                id_base=base,
                ids=True,
                task=form.stated,
                separator=form.separator or "-",
                subgraph_names=called.names,
            ),
        )
    if problems.num_errors or edges is None or subgraphs is None or num_nodes is None:
        return None
    subgraphs = replace(subgraphs, groups=called.groups)
    if not edges.num_edges and declared is None:
        # A graph without edges is as large as its subgraphs and features ask.
        num_nodes = max(num_nodes, int(subgraphs.nodes.values.max()) + 1)
    graph = _gather(problems, lambda: _build(edges, edge_path, num_nodes, names, features, card, problems))
    if graph is None:
        return None
    if base and names is None:
        # Rows begin at 0; the numbers that the files use stay what people call the nodes.
        graph = replace(graph, names=NodeNames({"name": Strings.numbers(base, base + graph.num_nodes)}))
    return Dataset(name=str(card.get("name", folder.resolve().name)), graph=graph, subgraphs=subgraphs, card=card)


def _gather(problems: Problems, read: Any) -> Any:
    try:
        return read()
    except DataError as error:
        problems.add(error)
        return None


def _read_card(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    hint = "a JSON object with name, source, licence, note is accepted"
    card = parse_json(read_bounded(path, MAX_JSON), str(path), hint)
    if not isinstance(card, dict):
        raise DataError(f"a JSON {type(card).__name__}", where=str(path), hint="a JSON object is accepted")
    return card


def _card_int(card: dict[str, Any], key: str, problems: Problems, folder: Path) -> int | None:
    value = card.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31):
        problems.error(str(folder / CARD), f"{key} is {excerpt(str(value))}", "an integer from 0 is accepted")
        return None
    return value


def _card_labels(card: dict[str, Any], problems: Problems, folder: Path) -> LabelForm:
    """What the card says of labels; a folder whose card says nothing is read as the SubGNN authors' files are."""
    task, separator = _stated_task(card), card.get("label_separator")
    if separator is not None and not (isinstance(separator, str) and separator.strip()):
        what = f"label_separator is {excerpt(str(separator))}"
        problems.error(str(folder / CARD), what, "accepted: the text that joins several labels, such as ';', or null")
        separator = None
    try:
        return LabelForm(None if task is None else parse_task(str(task), str(folder / CARD)), separator)
    except DataError as error:
        problems.add(error)
        return LabelForm()


def splits_by_default(card: dict[str, Any]) -> bool:
    """Whether a folder with this card has its labels split at ``-`` because nothing is said of them."""
    return _stated_task(card) is None and card.get("label_separator") is None


def _stated_task(card: dict[str, Any]) -> Any:
    """The card's word on the task; the card of a graph alone may say that it has no labels, which then were added."""
    return None if card.get("task") == "unlabelled" else card.get("task")


def is_own_subgraphs(path: Path) -> bool:
    """Whether a file is the subgraphs.tsv, or the authors' subgraphs.pth, of a dataset folder."""
    named = path.name.removesuffix(".gz") in (SUBGRAPHS, AUTHORS_SUBGRAPHS)
    return named and find_file(path.parent, EDGES) is not None


def own_node_field(path: Path, graph: Graph) -> NodeField:
    """Read nodes of the subgraphs.tsv of a dataset folder, which holds ids, as nodes of a graph.

    Raises:
        DataError: where that folder names its nodes otherwise, so that its ids may be those of another graph.
    """
    problems = Problems()
    card = _gather(problems, lambda: _read_card(path.with_name(CARD))) or {}
    base = _card_int(card, "id_base", problems, path.parent) or 0
    names = _read_names(path.parent, problems, base)
    problems.stop()
    if names is not None and graph.names is not None and not names.agrees_with(graph.names):
        hint = "give the subgraphs in a file of their own, by name"
        raise DataError(
            "the nodes of this dataset are named otherwise than those of the run", where=str(path), hint=hint
        )
    return NodeField(graph.num_nodes, graph.names, base, ids=True)


def _read_names(folder: Path, problems: Problems, id_base: int) -> NodeNames | None:
    path = find_file(folder, NODES)
    return None if path is None else _gather(problems, lambda: read_node_table(path, problems, id_base=id_base))


class _Called(NamedTuple):
    """Names and groups of subgraphs, where there are any."""

    names: Strings | None = None
    groups: Strings | None = None


def _read_subgraph_names(folder: Path, problems: Problems) -> _Called:
    """The first column of subgraph_names.tsv, and the third where every line has one."""
    path = find_file(folder, SUBGRAPH_NAMES)
    rows = None
    if path is not None:
        rows = _gather(problems, lambda: [line.split("\t") for _, line in read_lines(path)])
    if rows is None:
        return _Called()
    grouped = bool(rows) and all(len(row) > 2 and row[2].strip() for row in rows)
    return _Called(Strings.of(row[0] for row in rows), Strings.of(row[2] for row in rows) if grouped else None)


def _read_features(path: Path) -> NDArray[Any] | None:
    if not path.is_file():
        return None
    array = read_npy(path, "features")
    if array.ndim == 2 and array.shape[1] == 0:
        raise DataError(f"features of shape {array.shape}", where=str(path), hint="accepted: a row a node, F columns")
    return array


def _read_edges(
    folder: Path,
    problems: Problems,
    names: NodeNames | None,
    id_base: int,
    declared: int | None,
    staging: Staging | None,
) -> tuple[EdgeList | EdgeStore | None, Path]:
    path = find_file(folder, EDGES)
    if path is None:
        what = "no such file" if folder.is_dir() else "no such folder"
        problems.error(
            str(folder / EDGES if folder.is_dir() else folder), what, f"a dataset folder holds {EDGES} and {SUBGRAPHS}"
        )
        return None, folder / EDGES
    before = problems.num_errors
    edges = _gather(
        problems,
        lambda: (
            read_edge_list(path, problems, names=names, id_base=id_base)
            if staging is None
            else stage_edge_list(path, problems, staging, names=names, id_base=id_base)
        ),
    )
    if edges is None or problems.num_errors > before:
        return None, path
    limit = declared if declared is not None else plausible_nodes(edges.num_edges)
    if edges.num_nodes > limit:
        line, node = first_beyond(path, limit, names=names, id_base=id_base)
        what = f"node {node} is not in the graph"
        hint = f"ids run {id_base}..{limit - 1 + id_base}" + (
            "" if declared is not None else ", without large gaps; for other ids use data convert"
        )
        problems.error(f"{path}:{line}", what, hint)
        return None, path
    return edges, path


def _count_nodes(edges: EdgeList | EdgeStore, features: NDArray[Any] | None) -> int:
    return max(edges.num_nodes, len(features) if features is not None and features.ndim else 0)


def _build(
    edges: EdgeList | EdgeStore,
    path: Path,
    num_nodes: int,
    names: NodeNames | None,
    features: NDArray[Any] | None,
    card: dict[str, Any],
    problems: Problems,
) -> Graph:
    if features is not None:
        features = check_features(features, num_nodes, where=str(path.with_name(FEATURES)))
    if names is not None and len(names) != num_nodes:
        raise DataError(
            f"{len(names)} nodes, but the graph has {num_nodes}",
            where=str(path.with_name(NODES)),
            hint="one line a node",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        graph = edges.build(num_nodes, directed=card.get("directed", False))
    if graph.dropped.self_loops or graph.dropped.duplicates:
        problems.warn(
            str(path),
            f"{graph.dropped.self_loops:,} self loops and {graph.dropped.duplicates:,} repeated edges dropped",
        )
    return replace(graph, names=names, features=features)


def write_folder(
    dataset: Dataset,
    folder: Path,
    *,
    compress: bool = False,
    overwrite: bool = False,
    subgraph_titles: Sequence[str] | None = None,
) -> None:
    """Write a dataset as a folder of text files; it appears whole or not at all.

    Args:
        compress: gzip the edge list.
        subgraph_titles: what people call each subgraph: the second column of subgraph_names.tsv, before the group.

    Raises:
        DataError: for what text files cannot hold: no labels or splits, tabs and line ends in names, spaces around
            labels.
    """
    _check_writable(dataset)
    with atomic_write(folder, overwrite=overwrite) as temporary:
        temporary.mkdir()
        _write_edges(temporary / (EDGES + ".gz" if compress else EDGES), dataset.graph)
        _write_subgraphs(temporary / SUBGRAPHS, dataset.subgraphs)
        if dataset.subgraphs.names is not None or dataset.subgraphs.groups is not None:
            columns: list[Iterable[str]] = [dataset.subgraphs.names or map(str, range(len(dataset.subgraphs)))]
            if subgraph_titles is not None or dataset.subgraphs.groups is not None:
                columns.append(subgraph_titles or [""] * len(dataset.subgraphs))
            if dataset.subgraphs.groups is not None:
                columns.append(dataset.subgraphs.groups)
            text = "".join("\t".join(row) + "\n" for row in zip(*columns, strict=True))
            (temporary / SUBGRAPH_NAMES).write_text(text, encoding="utf-8", newline="\n")
        if dataset.graph.names is not None:
            write_node_table(temporary / NODES, dataset.graph.names)
        if dataset.graph.features is not None:
            np.save(temporary / FEATURES, np.asarray(dataset.graph.features), allow_pickle=False)
        card = json.dumps(_card(dataset), indent=2, ensure_ascii=False) + "\n"
        (temporary / CARD).write_text(card, encoding="utf-8", errors="backslashreplace")


def _check_writable(dataset: Dataset) -> None:
    subgraphs, names = dataset.subgraphs, dataset.graph.names
    if len(subgraphs) and (subgraphs.targets is None or subgraphs.splits is None):
        raise DataError("the subgraphs have no labels or no splits", where=SUBGRAPHS, hint="a folder needs both")
    several = subgraphs.task == "multi-label"
    if several and subgraphs.targets is not None and not subgraphs.targets.any(axis=1).all():
        row = int(np.argmin(subgraphs.targets.any(axis=1)))
        raise DataError(f"subgraph {row} has no label", where=SUBGRAPHS, hint="a folder needs at least one each")
    for what, texts in (
        ("label", subgraphs.classes),
        ("subgraph name", subgraphs.names or ()),
        ("group", subgraphs.groups or ()),
    ):
        for text in texts:
            if not text.strip() or text != text.strip() or not _fits_a_field(text):
                raise DataError(f"{what} {excerpt(text)}", where=SUBGRAPHS, hint="text files cannot hold it; rename it")
    for title, column in names.columns.items() if names is not None else ():
        for text in (title, *column):
            if not _fits_a_field(text):
                raise DataError(f"node name {excerpt(text)}", where=NODES, hint="tabs and line ends cannot be written")


def _fits_a_field(text: str) -> bool:
    return not any(end in text for end in "\t\n\r")


def _card(dataset: Dataset) -> dict[str, Any]:
    """The card, with what the text files alone would not say."""
    labels = label_card(dataset.subgraphs)
    stale = {"id_base", "task", "label_separator"} - labels.keys()
    card = {key: value for key, value in dataset.card.items() if key not in stale}
    card |= {"name": dataset.name, "num_nodes": dataset.graph.num_nodes, **labels}
    if dataset.graph.directed:
        card["directed"] = True
    return card


@contextmanager
def _open_for_edges(path: Path) -> Iterator[BinaryIO]:
    if path.suffix == ".gz":
        # No name and no time in the header: the same edges give the same bytes.
        with (
            path.open("wb") as raw,
            gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed,
        ):
            yield cast(BinaryIO, packed)
    else:
        with path.open("wb") as plain:
            yield plain


def _write_edges(path: Path, graph: Graph) -> None:
    import pyarrow as pa
    from pyarrow import csv

    tails, heads, weights = graph.edges()
    columns = {"u": tails, "v": heads} | ({} if weights is None else {"w": weights})
    options = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    with _open_for_edges(path) as file:
        csv.write_csv(pa.table(columns), file, options)


def _write_subgraphs(path: Path, subgraphs: SubgraphSet) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for i, nodes in enumerate(subgraphs.nodes):
            split = "" if subgraphs.splits is None else SPLITS[subgraphs.splits[i]]
            file.write(f"{'-'.join(map(str, nodes.tolist()))}\t{subgraphs.label_text(i)}\t{split}\n")
