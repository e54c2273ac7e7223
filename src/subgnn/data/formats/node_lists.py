"""Lists of nodes in a cell of a table, or in a line: the text that separates the nodes, and the nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from subgnn.data.graph import Graph
from subgnn.data.strings import find_node, is_id, split_names
from subgnn.errors import DataError

_SEPARATORS = (";", "|", ",", " ", "-")


def is_known(graph: Graph) -> Callable[[str], bool]:
    """Whether a text is a node of the graph, if need be in another case."""
    names = graph.names

    def known(text: str) -> bool:
        if find_node(text, graph.num_nodes, names) is not None:
            return True
        return names is not None and names.find_ignoring_case(text) is not None

    return known


def find_separator(cells: Sequence[str], graph: Graph) -> str | None:
    """The separator by which most parts of the cells are nodes of the graph; None if whole cells are.

    Where no part is a node, it is the first that occurs in half of the cells.
    """
    candidates = (None, *(s for s in _SEPARATORS if any(s in cell for cell in cells)))
    shares = {separator: node_share(cells, separator, graph) for separator in candidates}
    best = max(candidates, key=lambda separator: shares[separator])
    if shares[best] > 0:
        return best
    return next((s for s in _SEPARATORS if 2 * sum(s in cell for cell in cells) >= len(cells)), None)


def node_share(cells: Sequence[str], separator: str | None, graph: Graph) -> float:
    """The share of the parts of cells that are nodes."""
    known = is_known(graph)
    parts = [part for cell in cells for part in ([cell] if separator is None else _parts(cell, separator, graph))]
    return sum(map(known, parts)) / max(1, len(parts))


def splitter(separator: str, graph: Graph, *, ids: bool = False) -> Callable[[str], list[str]]:
    """A function that splits a list of nodes; a name may contain ``-`` in a list that is joined by it.

    It raises a DataError without a place for a list that can be read in two ways, or a ``-`` that lacks a node.

    Args:
        ids: digits are ids although nodes have names, as in a dataset folder.
    """
    if separator != "-":
        return lambda cell: [part.strip() for part in cell.split(separator) if part.strip()]
    known, dashes = is_known(graph), 0 if graph.names is None else graph.names.most_dashes

    def exact(text: str) -> bool:
        return (ids and is_id(text)) or find_node(text, graph.num_nodes, graph.names) is not None

    def split(cell: str) -> list[str]:
        if not cell.strip():
            return []
        parts = split_names(cell, exact, dashes)
        if dashes and not all(map(exact, parts)):
            parts = split_names(cell, known, dashes)
        return [part.strip() for part in parts]

    return split


def _parts(cell: str, separator: str, graph: Graph) -> list[str]:
    try:
        return splitter(separator, graph)(cell)
    except DataError:  # not a list of nodes, or ambiguous
        return []
