"""Find nodes by name (digits, too), by a part of a name or by row number (``#12``), and read those of requests."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.strings import find_node
from subgnn.errors import excerpt
from subgnn.inference.predictor import names_of
from subgnn.ragged import Ragged
from subgnn.serve.limits import Limits, Refusal, refuse_above
from subgnn.serve.schemas import FoundNode

_MAX_HITS = 1000  # of each kind that are ranked
_MAX_LISTED = 20
_KEPT_NAMES = 2**17
Written = Sequence[Sequence[int | str]]
"""The nodes of subgraphs as a request has them."""


class NodeIndex:
    """Names and row numbers of a graph's nodes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        # The text that identifies a node in a request: its name, or its row number.
        self.name = lru_cache(_KEPT_NAMES)(lambda node: names_of(graph, [node])[0])
        self._names = {} if graph.names is None else graph.names.columns
        self._folded = {
            name: pa.array((_folded(text) for text in names), pa.large_binary()) for name, names in self._names.items()
        }

    def search(self, query: str, *, limit: int) -> list[FoundNode]:
        """Find nodes: the exact name or row, then names that begin with the query, then that contain it."""
        wanted = _folded(query.strip())
        if not wanted:
            return []
        ranked: dict[int, tuple[tuple[int, int, int, int], str]] = {}
        exact = find_node(query.strip(), self._graph.num_nodes, self._graph.names)
        if exact is not None and exact >= 0:
            ranked[exact] = ((-1, 0, 0, 0), query.strip())
        for rank, matches in enumerate((pc.equal, pc.starts_with, pc.match_substring)):
            if len(ranked) >= limit:
                break
            for name, column in self._folded.items():
                for node in np.flatnonzero(matches(column, wanted))[:_MAX_HITS].tolist():
                    matched = self._names[name][node]
                    # Among equals, short names come first, then nodes with many neighbours.
                    key = (rank, len(matched), -self._degree(node), node)
                    if node not in ranked or key < ranked[node][0]:
                        ranked[node] = key, matched
        return [
            FoundNode(id=node, name=self.name(node), matched=matched, degree=self._degree(node))
            for node, (_, matched) in sorted(ranked.items(), key=lambda item: item[1][0])[:limit]
        ]

    def find(self, given: int | str) -> int | None:
        """The node of a name, or of ``#12`` (``12`` without names); ignores case if that helps; -1 if several match."""
        names = self._graph.names
        node = find_node(str(given), self._graph.num_nodes, names)
        return node if node is not None or names is None else names.find_ignoring_case(str(given))

    def _degree(self, node: int) -> int:
        return int(self._graph.offsets[node + 1] - self._graph.offsets[node])


def _folded(text: str) -> bytes:
    return text.casefold().replace("\n", " ").encode("utf-8", "replace")


def resolve(index: NodeIndex, given: Sequence[int | str]) -> tuple[dict[int, str], list[str], list[str]]:
    """The nodes, each with its text; names that match no node; names that match several."""
    found: dict[int, str] = {}
    unknown: list[str] = []
    several: list[str] = []
    for item in given:
        node = index.find(item)
        if node is None:
            unknown.append(str(item))
        elif node < 0:
            several.append(str(item))
        else:
            found.setdefault(node, str(item))
    return found, unknown, several


def subgraphs_of(index: NodeIndex, given: Written, *, drop: bool = False) -> tuple[Ragged, list[list[str]]]:
    """The subgraphs of a request, as sorted nodes, and the unknown names dropped from each."""
    found = [known_nodes(index, nodes, f"subgraph {place}", drop=drop) for place, nodes in enumerate(given)]
    return Ragged.from_rows(rows for rows, _ in found), [dropped for _, dropped in found]


def known_nodes(
    index: NodeIndex, given: Sequence[int | str], where: str, *, drop: bool = False
) -> tuple[NDArray[np.int32], list[str]]:
    """The nodes of a list, sorted, and those that were dropped; 422 for names that match no node or several."""
    found, unknown, several = resolve(index, given)
    if not several and (not unknown or (drop and found)):
        return np.array(sorted(found), np.int32), unknown
    bad = unknown + several
    shown = ", ".join(excerpt(name) for name in bad[:3]) + (", ..." if len(bad) > 3 else "")
    what = f"{len(bad)} {'node is' if len(bad) == 1 else 'nodes are'} not known"
    hint = "give names, or row numbers from 0 if the graph has no names; #12 is always row 12; /nodes finds names"
    if not unknown:
        what = f"{len(bad)} {'name matches' if len(bad) == 1 else 'names match'} several nodes"
        hint = "give the row number of one of them, such as #12; /nodes finds it"
    raise Refusal(422, f"{where}: {what}: {shown}", hint=hint, nodes=bad[:_MAX_LISTED])


def check_size(given: Sequence[Sequence[object]], limits: Limits, *, explained: bool = False) -> int:
    """The number of nodes of a request; 422 if it has too many subgraphs or nodes."""
    refuse_above(limits.explained if explained else limits.subgraphs, "the request", len(given), "subgraphs")
    total = sum(map(len, given))
    refuse_above(limits.nodes, "the request", total, "nodes")
    return total
