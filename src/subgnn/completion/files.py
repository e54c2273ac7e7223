"""Complete the subgraphs of a file: a table with a row for each suggested node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.completion.completer import Completer, Completion
from subgnn.completion.features import GROUPS
from subgnn.data.formats.format import ReadOptions
from subgnn.data.formats.members import Members
from subgnn.data.formats.text import read_lines
from subgnn.data.graph import Graph
from subgnn.data.matching import match_nodes
from subgnn.data.strings import NodeNames
from subgnn.errors import DataError
from subgnn.inference.answers import AnswerTable, Asked, Files
from subgnn.inference.open import open_run
from subgnn.kernels.diffusion import COLUMNS
from subgnn.ragged import Ragged
from subgnn.storage.tables import Column, Part, distinct

_DEFAULTS = ReadOptions()
_OWN = [
    Column("rank", int),
    Column("node"),
    Column("probability", float),
    Column("neighbours", int),
    Column("reason"),
    *(Column(name, float) for name in GROUPS),
]


def read_candidates(source: Path | Iterable[Any], graph: Graph, options: ReadOptions = _DEFAULTS) -> NDArray[np.int64]:
    """The nodes of a file with one a line (before its first tab), or of a list; sorted, each once.

    Raises:
        DataError: for nodes that are not in the graph, unless ``options.unknown`` drops them; and if none is left.
    """
    where = str(source) if isinstance(source, Path) else "among"
    if isinstance(source, Path):
        texts = [line.split("\t")[0].strip() for _, line in read_lines(source, encoding=options.encoding)]
    else:
        texts = [str(node) for node in source]
    texts = list(dict.fromkeys(text for text in texts if text))
    members = Members(where, [where], texts, Ragged.from_rows([np.arange(len(texts))]), rows=[1], unit="line")
    matched = match_nodes(members, graph, unknown=options.unknown)
    matched.warn()
    if not len(matched.nodes[0]):
        raise DataError("no nodes to choose from", where=where, hint="give one node a line")
    return matched.nodes[0].astype(np.int64)


def _rows(names: NodeNames | None, found: Completion) -> list[tuple[Any, ...]]:
    """The suggested nodes of one subgraph, with the values of :data:`_OWN`."""
    nodes = [str(node) if names is None else names.written(node) for node in found.nodes.tolist()]
    numbers = (found.probabilities.tolist(), found.links.tolist(), found.reasons, *found.contributions.T.tolist())
    return list(zip(range(1, len(nodes) + 1), nodes, *numbers, strict=True))


def completion_table(
    completer: Completer, asked: Asked, *, top: int, among: NDArray[np.int64] | None = None
) -> AnswerTable:
    """Suggested nodes, a row each, the likeliest of a subgraph first; one without a node where there is none."""
    asked.refuse_empty()
    joined, names = asked.joined(), completer.features.graph.names
    shown = None if names is None else names.readable()
    columns = [(Column("subgraph"), ""), *((column, "") for column in _OWN), *((c, prefix) for c, prefix, _ in joined)]
    titles = distinct((column.title, prefix) for column, prefix in columns)

    def parts() -> Iterator[Part]:
        for rows, there, nodes in asked.parts(COLUMNS):
            answers, known = completer.complete(nodes, top=top, among=among), set(there.tolist())
            for place, row in enumerate(rows):
                own = _rows(shown, next(answers)) if place in known else []
                rest = [values[row] for _, _, values in joined]
                listed = [(asked.text(row), *some, *rest) for some in own or [(None,) * len(_OWN)]]
                yield list(zip(*listed, strict=True))

    return AnswerTable([replace(c, title=title) for (c, _), title in zip(columns, titles, strict=True)], parts())


def complete_file(run: Path, files: Files, *, top: int, among: Path | None = None) -> tuple[AnswerTable, int]:
    """:func:`completion_table` of a file of subgraphs, and how many these are."""
    opened = open_run(run, files.data)
    graph = opened.predictor.graph
    asked = files.read(graph)
    candidates = None if among is None else read_candidates(among, graph, files.reading)
    completer = Completer.of_run(opened, str(run))
    return completion_table(completer, asked, top=top, among=candidates), len(asked)
