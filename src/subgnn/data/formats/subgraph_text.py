"""``subgraphs.tsv``: nodes joined by ``-``, label or labels, split; the authors' subgraphs.pth is the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.text import read_lines
from subgnn.data.graph import plausible_nodes
from subgnn.data.problems import Problems
from subgnn.data.strings import NodeNames, Strings, find_node, is_id, is_number, split_names
from subgnn.data.subgraphs import SPLITS, Label, SubgraphSet, Task, encode_labels, split_labels
from subgnn.errors import DataError, choices, excerpt
from subgnn.ragged import Ragged

_MOST_NODES = 2**31 - 1
_SHOWN = 5
_COLUMNS = "three columns, separated by tabs: nodes joined by '-', label, train|val|test"


@dataclass(slots=True)
class _Rows:
    """What has been read so far."""

    nodes: list[NDArray[np.int64]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    splits: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    repeated: int = 0
    first_repeat: int = 0


class NodeField:
    """Reads the first column, nodes joined by ``-``.

    What a user writes is a name where there are names, and a row number where there are none; ``#12`` is row 12 in
    either case. The files of a dataset folder hold ids, in which names may stand as well.

    Args:
        num_nodes: N of the graph; None accepts every id.
        names: of the nodes.
        id_base: what ids count from.
        ids: whether digits are ids although there are names, as in a dataset folder.
    """

    def __init__(
        self, num_nodes: int | None, names: NodeNames | None = None, id_base: int = 0, *, ids: bool = False
    ) -> None:
        self.num_nodes, self.names, self.id_base = num_nodes, names, id_base
        self._ids = ids or names is None

    def parse(self, text: str) -> tuple[NDArray[np.int64], int]:
        """Sorted nodes, and how many repeats were dropped.

        Raises:
            DataError: for an empty field, a token that is not a node, or a list that can be read in two ways; without a
                place, which the caller knows.
        """
        joined = text.strip()
        if not joined:
            raise DataError("empty subgraph", hint="at least one node is needed")
        dashes = 0 if self.names is None else self.names.most_dashes
        tokens = split_names(joined, lambda token: self._find(token) is not None, dashes)
        nodes = np.array([self._node(token) for token in tokens], np.int64)
        unique = np.unique(nodes)
        return unique, len(nodes) - len(unique)

    def _find(self, token: str) -> int | None:
        limit = _MOST_NODES if self.num_nodes is None else self.num_nodes
        if not (self._ids and is_id(token)):
            return find_node(token, limit, self.names)
        node = int(token) - self.id_base
        return node if 0 <= node < limit else None

    def _node(self, token: str) -> int:
        node = self._find(token)
        if node is None:
            raise self._unknown(token)
        if node < 0:
            raise self._several(token)
        return node

    def _unknown(self, token: str) -> DataError:
        if self._ids and token.isdigit():
            return self._outside(token)
        if token.startswith("#") and is_number(token[1:]):
            last = (_MOST_NODES if self.num_nodes is None else self.num_nodes) - 1
            return DataError(f"node {excerpt(token)} is not in the graph", hint=f"row numbers run #0..#{last}")
        if self.names is None:
            return DataError(
                f"{excerpt(token)} is not an integer id",
                hint="nodes are ids from 0, or names where nodes.tsv gives them",
            )
        if self._ids:
            return DataError(
                f"{excerpt(token)} is neither an id nor a name of a node", hint="names are those of nodes.tsv"
            )
        hint = "names are those of nodes.tsv; a row number is written #12"
        if is_number(token):
            hint = f"where nodes have names, digits are a name; row {token[:18]} is written #{token[:18]}"
        return DataError(f"{excerpt(token)} is not the name of a node", hint=hint)

    def _several(self, token: str) -> DataError:
        shared = [] if self.names is None else self.names.shared(token)
        shown = ", ".join(f"#{node}" for node in shared[:_SHOWN]) + (", ..." if len(shared) > _SHOWN else "")
        return DataError(f"{excerpt(token)} names several nodes", hint=f"write the row number of one of them: {shown}")

    def _outside(self, token: str) -> DataError:
        last = (_MOST_NODES if self.num_nodes is None else self.num_nodes) - 1 + self.id_base
        hint = f"ids run {self.id_base}..{last}"
        if token == str(last + 1) and self.id_base == 0:
            hint += "; was the file written with ids from 1? pass --id-base 1"
        value = token if is_id(token) else excerpt(token)
        return DataError(f"node {value} is not in the graph", hint=hint)


def read_subgraphs(
    path: Path,
    problems: Problems,
    *,
    num_nodes: int | None = None,
    names: NodeNames | None = None,
    id_base: int = 0,
    ids: bool = False,
    task: Task | None = None,
    separator: str = "-",
    subgraph_names: Strings | None = None,
) -> SubgraphSet | None:
    """Read labelled subgraphs; what is wrong goes to ``problems``, and None comes back where nothing is usable.

    Args:
        ids: whether digits are ids although nodes have names, as in a dataset folder.
        task: what the labels are; by default what they look like, and a ``-`` in any of them joins several.
        separator: what joins several labels.
    """
    rows = _Rows()
    field_reader = NodeField(num_nodes, names, id_base, ids=ids)
    lines = 0
    for number, line in read_lines(path):
        lines += 1
        try:
            _read_line(line, number, field_reader, rows)
        except DataError as error:
            problems.error(f"{path}:{number}", error.what, error.hint)
    if rows.repeated:
        problems.warn(f"{path}:{rows.first_repeat}", f"{rows.repeated} repeated nodes in subgraphs; each counts once")
    if not lines:
        problems.error(str(path), "no subgraphs", _COLUMNS)
    if problems.num_errors:
        return None
    highest = max(int(row[-1]) for row in rows.nodes)
    if num_nodes is None and highest >= plausible_nodes(sum(map(len, rows.nodes))):
        problems.error(
            str(path), f"node {highest + id_base} in a graph without edges", "ids run from 0 without large gaps"
        )
    for place, split in enumerate(SPLITS):
        if place not in rows.splits:
            problems.error(str(path), f"no subgraph in split '{split}'", "train, val and test each need at least one")
    if subgraph_names is not None and len(subgraph_names) != len(rows.nodes):
        problems.error(
            str(path.with_name("subgraph_names.tsv")),
            f"{len(subgraph_names)} names for {len(rows.nodes)} subgraphs",
            "one a line",
        )
    try:
        found, targets, classes = encode_labels(
            _cut_labels(rows.labels, task, separator), task, lambda i: f"{path}:{rows.lines[i]}"
        )
    except DataError as error:
        problems.error(str(path) if error.where == "labels" else error.where, error.what, error.hint)
    if problems.num_errors:
        return None
    return SubgraphSet(
        nodes=Ragged.from_rows(rows.nodes),
        task=found,
        targets=targets,
        classes=classes,
        splits=np.array(rows.splits, np.int8),
        names=subgraph_names,
    )


def _cut_labels(texts: list[str], task: Task | None, separator: str) -> list[Label | None]:
    """Labels, cut apart where several are joined; None for a text of separators alone."""
    return [None if label == () else label for label in split_labels(texts, task, separator)]


def _read_line(line: str, number: int, field_reader: NodeField, rows: _Rows) -> None:
    columns = line.split("\t")
    nodes, repeated = field_reader.parse(columns[0])
    if len(columns) < 2 or not columns[1].strip():
        raise DataError("the label is missing", hint=_COLUMNS)
    if len(columns) < 3 or not columns[2].strip():
        raise DataError("the split is missing", hint=_COLUMNS)
    split = columns[2].strip()
    if split not in SPLITS:
        raise DataError(f"unknown split {excerpt(split)}", hint=choices(split, SPLITS))
    if repeated:
        rows.first_repeat = rows.first_repeat or number
        rows.repeated += repeated
    rows.nodes.append(nodes)
    rows.labels.append(columns[1].strip())
    rows.splits.append(SPLITS.index(split))
    rows.lines.append(number)
