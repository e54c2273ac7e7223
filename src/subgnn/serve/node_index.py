"""Nodes found by what people call them: by the beginning of a name, or by any part of it.

Where nodes have names, digits are a part of a name like any other; a row number is written ``#12``.

All names of a column stand in one string of bytes, a line each, in lower case; a search is a search in that string. It
takes a few milliseconds among a million nodes, and needs little more memory than the names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, find_node, is_number

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
_LOOKED_AT = 1000  # hits of each kind that are ranked


@dataclass(frozen=True, slots=True)
class Found:
    """A node, what it is called, and the name by which it was found."""

    node: int
    name: str
    matched: str
    degree: int


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """Names, folded; line i begins at ``starts[i]`` and is node i's. ``order`` puts their hashes in order."""

    text: bytes
    starts: NDArray[np.int64]
    hashes: NDArray[np.int64]
    order: NDArray[np.int64]

    def called(self, name: bytes) -> list[int]:
        """Nodes of that very name, at most two of them; found by its hash, however many there are."""
        value = hash(name)
        begin, end = (int(np.searchsorted(self.hashes, value, side=side, sorter=self.order)) for side in _SIDES)
        line = b"\n" + name + b"\n"
        nodes = (int(node) for node in self.order[begin:end])
        same = (node for node in nodes if self.text.startswith(line, int(self.starts[node]) - 1))
        return list(islice(same, 2))

    def hits(self, query: bytes) -> Iterator[int]:
        """Nodes whose line holds the query, which may have the newlines around a line in it; rising."""
        at, last = self.text.find(query), -1
        while at >= 0:
            node = int(np.searchsorted(self.starts, at + query.startswith(b"\n"), side="right")) - 1
            if node != last:
                yield node
                last = node
            at = self.text.find(query, at + 1)


class NodeIndex:
    """Names and row numbers of a graph's nodes.

    Example:
        >>> from subgnn import Graph
        >>> names = NodeNames.of(["TP53", "TP53BP1", "BRCA1", "p53-like"])
        >>> index = NodeIndex(Graph.from_edges([0, 1], [1, 2], num_nodes=4, names=names))
        >>> [found.name for found in index.search("p53", limit=3)]
        ['p53-like', 'TP53', 'TP53BP1']
        >>> index.find("tp53")
        0
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._columns = {} if graph.names is None else {n: _fold(c) for n, c in graph.names.columns.items()}

    def search(self, query: str, *, limit: int) -> list[Found]:
        """The nodes a query may mean: the very name or row first, then names that begin with it, then that hold it.

        Among equals, short names come first, and nodes with many neighbours.
        """
        wanted = _folded(query.strip())
        if not wanted:
            return []
        ranked: dict[int, tuple[tuple[int, int, int, int], str]] = {}
        meant = find_node(query.strip(), self._graph.num_nodes, self._graph.names)
        if meant is not None and meant >= 0:
            ranked[meant] = ((-1, 0, 0, 0), query.strip())
        for rank, pattern in enumerate((b"\n" + wanted + b"\n", b"\n" + wanted, wanted)):
            if len(ranked) >= limit:
                break
            for name, column in self._columns.items():
                for place, node in enumerate(column.hits(pattern)):
                    if place >= _LOOKED_AT:
                        break
                    matched = self._names.columns[name][node]
                    key = (rank, len(matched), -self._degree(node), node)
                    if node not in ranked or key < ranked[node][0]:
                        ranked[node] = key, matched
        best = sorted(ranked.items(), key=lambda item: item[1][0])[:limit]
        return [Found(node, self.name(node), matched, self._degree(node)) for node, (_, matched) in best]

    def find(self, given: int | str) -> int | None:
        """The node of a name, or of a row number (``12`` where there are no names, ``#12`` anywhere).

        A number is a name, too, where there are names. Of names, any case will do where only one node is called so.

        Returns:
            The node; None for none, -1 for several.
        """
        text = str(given)
        node = find_node(text, self._graph.num_nodes, self._graph.names)
        if node is not None or self._graph.names is None or is_number(text):
            return node
        nodes = {node for column in self._columns.values() for node in column.called(_folded(text))}
        return None if not nodes else nodes.pop() if len(nodes) == 1 else -1

    def name(self, node: int) -> str:
        """What to write so that this node is meant: its name, or its row number."""
        return str(node) if self._graph.names is None else self._graph.names.written(node)

    @property
    def row_prefix(self) -> str:
        """What to write before a row number."""
        return "#" if self._graph.names is None else self._graph.names.row_prefix

    @property
    def _names(self) -> NodeNames:
        if self._graph.names is None:
            raise ValueError("the graph has no names")
        return self._graph.names

    def _degree(self, node: int) -> int:
        return int(self._graph.offsets[node + 1] - self._graph.offsets[node])


def _folded(text: str) -> bytes:
    return text.casefold().replace("\n", " ").encode("utf-8", "replace")


def _fold(column: object) -> _Column:
    lines = [_folded(text) for text in column]  # type: ignore[attr-defined]
    starts = np.zeros(len(lines), np.int64)
    if lines:
        np.cumsum([len(line) + 1 for line in lines[:-1]], out=starts[1:])
    hashes = np.fromiter(map(hash, lines), np.int64, len(lines))
    text = b"\n" + b"\n".join(lines) + b"\n"
    return _Column(text, starts + 1, hashes, np.argsort(hashes, kind="stable"))
