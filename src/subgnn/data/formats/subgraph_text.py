"""``subgraphs.tsv``: nodes joined by ``-``, label or labels, split; the authors' subgraphs.pth is the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.text import read_lines
from subgnn.data.graph import plausible_nodes
from subgnn.data.problems import Problems
from subgnn.data.strings import NodeNames, Strings, is_id
from subgnn.data.subgraphs import SPLITS, SubgraphSet, Task, encode_labels, split_labels
from subgnn.errors import DataError, choices, excerpt
from subgnn.ragged import Ragged

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
    """Reads the first column, nodes joined by ``-``, by id or by name.

    Args:
        num_nodes: N of the graph; None accepts every id.
        names: names that may stand in place of ids.
        id_base: what the file counts from.
    """

    def __init__(self, num_nodes: int | None, names: NodeNames | None = None, id_base: int = 0) -> None:
        self.num_nodes, self.names, self.id_base = num_nodes, names, id_base

    def parse(self, text: str) -> tuple[NDArray[np.int64], int]:
        """Sorted nodes, and how many repeats were dropped.

        Raises:
            DataError: for an empty field or a token that is no node; without a place, which the caller knows.
        """
        if not text.strip():
            raise DataError("empty subgraph", hint="at least one node is needed")
        tokens: list[int | str] = [int(t) if is_id(t) else t for t in text.strip().split("-")]
        if self.names is not None and not all(isinstance(t, int) for t in tokens):
            tokens = self.names.resolve(text.strip())
        nodes = np.array([self._node(token) for token in tokens], np.int64)
        unique = np.unique(nodes)
        return unique, len(nodes) - len(unique)

    def _node(self, token: int | str) -> int:
        if isinstance(token, str):
            raise self._unknown(token)
        node = token - self.id_base
        if node < 0 or (self.num_nodes is not None and node >= self.num_nodes) or node >= 2**31 - 1:
            raise self._outside(token)
        return node

    def _unknown(self, token: str) -> DataError:
        if token.isdigit():
            return self._outside(token)
        if self.names is None:
            return DataError(
                f"{excerpt(token)} is not an integer id",
                hint="nodes are ids from 0, or names where nodes.tsv gives them",
            )
        if self.names.find(token) == -1:
            return DataError(f"{excerpt(token)} names several nodes", hint="use the id of the one that is meant")
        return DataError(f"{excerpt(token)} is neither an id nor a name of a node", hint="names are those of nodes.tsv")

    def _outside(self, token: int | str) -> DataError:
        last = (2**31 - 1 if self.num_nodes is None else self.num_nodes) - 1 + self.id_base
        value = token if isinstance(token, int) else excerpt(token)
        hint = f"ids run {self.id_base}..{last}"
        if token == last + 1 and self.id_base == 0:
            hint += "; was the file written with ids from 1? pass --id-base 1"
        return DataError(f"node {value} is not in the graph", hint=hint)


def read_subgraphs(
    path: Path,
    problems: Problems,
    *,
    num_nodes: int | None = None,
    names: NodeNames | None = None,
    id_base: int = 0,
    task: Task | None = None,
    subgraph_names: Strings | None = None,
) -> SubgraphSet | None:
    """Read labelled subgraphs; what is wrong goes to ``problems``, and None comes back where nothing is usable."""
    rows = _Rows()
    field_reader = NodeField(num_nodes, names, id_base)
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
            split_labels(rows.labels, task), task, lambda i: f"{path}:{rows.lines[i]}"
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


def _read_line(line: str, number: int, field_reader: NodeField, rows: _Rows) -> None:
    columns = line.split("\t")
    nodes, repeated = field_reader.parse(columns[0])
    if len(columns) < 2 or not columns[1].replace("-", "").strip():
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
