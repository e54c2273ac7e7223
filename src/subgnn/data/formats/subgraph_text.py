"""``subgraphs.tsv``: nodes joined by ``-``, label or labels, split; the authors' subgraphs.pth is the same.

A fourth column holds the times of subgraphs, where every line has one and that of the first line is a time, and a
fifth one their absent nodes, joined by ``-``, where every line has five; it may be empty.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Problems
from subgnn.data.formats.format import LabelFormat
from subgnn.data.formats.text import read_lines
from subgnn.data.strings import NodeNames, Strings, find_node, is_id, is_missing, is_number, several_nodes, split_names
from subgnn.data.subgraphs import SPLITS, SubgraphSet, encode_labels, present_and_absent, with_absent
from subgnn.data.values import MAX_NODES, parse_time, parse_times, plausible_nodes
from subgnn.errors import DataError, choices, counted, excerpt
from subgnn.ragged import Ragged

ASK_ID_BASE = "; was the file written with ids from 1? pass --id-base 1"
_COLUMNS = "three columns, separated by tabs: nodes joined by '-', label, train|val|test"


class NodeField:
    """Parses nodes joined by ``-`` in a dataset folder: ids, even where nodes have names, or names, or ``#12``."""

    def __init__(self, num_nodes: int | None, names: NodeNames | None = None, id_base: int = 0) -> None:
        self.num_nodes, self.names, self.id_base = num_nodes, names, id_base
        self._limit = MAX_NODES if num_nodes is None else num_nodes

    def parse(self, text: str) -> tuple[NDArray[np.int64], int]:
        """Sorted nodes, and how many repeats were dropped; a DataError has no place, which the caller knows."""
        joined = text.strip()
        if not joined:
            raise DataError("empty subgraph", hint="at least one node is needed")
        hyphens = 0 if self.names is None else self.names.most_dashes
        tokens = split_names(joined, lambda token: self._find(token) is not None, hyphens)
        nodes = np.array([self._node(token) for token in tokens], np.int64)
        unique = np.unique(nodes)
        return unique, len(nodes) - len(unique)

    def _find(self, token: str) -> int | None:
        if not is_id(token):
            return find_node(token, self._limit, self.names)
        return node if 0 <= (node := int(token) - self.id_base) < self._limit else None

    def _node(self, token: str) -> int:
        node = self._find(token)
        if node is not None and node < 0:
            raise several_nodes(token, self.names)
        if node is not None:
            return node
        if token.isdigit():
            last = self._limit - 1 + self.id_base
            asks = token == str(last + 1) and self.id_base == 0
            what = f"node {token if is_id(token) else excerpt(token)} is not in the graph"
            hint = f"ids run {self.id_base}..{last}{ASK_ID_BASE if asks else ''}"
        elif token.startswith("#") and is_number(token[1:]):
            what, hint = f"node {excerpt(token)} is not in the graph", f"row numbers run #0..#{self._limit - 1}"
        elif self.names is None:
            what = f"{excerpt(token)} is not an integer id"
            hint = "nodes are ids from 0, or names where nodes.tsv gives them"
        else:
            what, hint = f"{excerpt(token)} is neither an id nor a name of a node", "names are those of nodes.tsv"
        raise DataError(what, hint=hint)


class _Row(NamedTuple):
    number: int
    nodes: NDArray[np.int64]
    repeated: int
    label: str
    split: int
    time: str
    absent: NDArray[np.int64] | None


def _parse(line: str, number: int, nodes: NodeField) -> _Row:
    cells = [column.strip() for column in line.split("\t")]
    text, label, split, time, *_ = [*cells, "", "", ""]
    members, repeated = nodes.parse(text)
    absent = None if len(cells) < 5 else nodes.parse(cells[4])[0] if cells[4] else np.empty(0, np.int64)
    if absent is not None and np.isin(absent, members).any():
        raise present_and_absent(str(np.intersect1d(absent, members)[0]), "")
    for name, cell in (("label", label), ("split", split)):
        if is_missing(cell):
            raise DataError(f"the {name} is missing{f' ({excerpt(cell)})' if cell else ''}", hint=_COLUMNS)
    if split not in SPLITS:
        raise DataError(f"unknown split {excerpt(split)}", hint=choices(split, SPLITS))
    return _Row(number, members, repeated, label, SPLITS.index(split), time, absent)


def read_subgraphs(
    path: Path, problems: Problems, nodes: NodeField, labels: LabelFormat, names: Strings | None = None
) -> SubgraphSet | None:
    """Read labelled subgraphs; what is wrong goes to ``problems``, and None comes back where nothing is usable."""
    rows, number = list[_Row](), 0
    for number, line in read_lines(path):
        try:
            rows.append(_parse(line, number, nodes))
        except DataError as error:
            problems.error(f"{path}:{number}", error.what, error.hint)
    again = [row for row in rows if row.repeated]
    if again:
        what = f"{counted(sum(row.repeated for row in again), 'repeated node')} in subgraphs; each counts once"
        problems.warn(f"{path}:{again[0].number}", what)
    if not number:
        problems.error(str(path), "no subgraphs", _COLUMNS)
    if problems.num_errors:
        return None
    highest = max(int(row.nodes[-1]) for row in rows)
    if nodes.num_nodes is None and highest >= plausible_nodes(sum(len(row.nodes) for row in rows)):
        what = f"node {highest + nodes.id_base} in a graph without edges"
        problems.error(str(path), what, "ids run from 0 without large gaps")
    for split in SPLITS:
        if not any(row.split == SPLITS.index(split) for row in rows):
            problems.error(str(path), f"no subgraph in split '{split}'", "train, val and test each need at least one")
    if names is not None and len(names) != len(rows):
        what = f"{len(names)} names for {len(rows)} subgraphs"
        problems.error(str(path.with_name("subgraph_names.tsv")), what, "one per line is needed")

    def place(i: int) -> str:
        return f"{path}:{rows[i].number}"

    texts = [row.label for row in rows]
    try:
        task, targets, classes = encode_labels(texts, labels.stated_task, place, separator=labels.joins)
    except DataError as error:
        problems.error(str(path) if error.where == "labels" else error.where, error.what, error.hint)
    times = read_times([row.time for row in rows], place, problems)
    if problems.num_errors:
        return None
    splits = np.array([row.split for row in rows], np.int8)
    given, absent = Ragged.from_rows(row.nodes for row in rows), [row.absent for row in rows if row.absent is not None]
    if len(absent) == len(rows):
        given = with_absent(given, Ragged.from_rows(absent))
    return SubgraphSet(given, task, targets, classes, splits, names, times=times)


def read_times(texts: Sequence[str], where: Callable[[int], str], problems: Problems) -> NDArray[Any] | None:
    """The fourth column as times; None where a line has none, or the first is not a time."""
    with suppress(DataError):
        parse_time(texts[0])
        try:
            return parse_times(texts, where) if all(texts) else None
        except DataError as error:
            problems.add(error)
    return None
