"""Find the nodes that a user's file or request names in the graph, and report those that are not there.

A text is a node if it is its name exactly, or, where that fails, in another case. The same function serves conversion,
training, prediction and the server, so that they accept the same names.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.format import Unknown
from subgnn.data.formats.members import Members
from subgnn.data.graph import Graph
from subgnn.data.strings import find_node
from subgnn.errors import DataError, DataWarning, excerpt
from subgnn.ragged import Ragged

_SHOWN = 3
_MOST_COMPARED = 20_000
_DATE = re.compile(r"\d{4}-\d\d-\d\d( 00:00:00)?|\d{1,2}-(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)")


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """The nodes of subgraphs, and what was not found.

    Args:
        nodes: for each subgraph its nodes, sorted, each once; without those that are not in the graph.
        unknown: texts that are not in the graph, with the number of subgraphs they are in, the most frequent first.
        dropped: for each subgraph, how many of its nodes are not in the graph.
        by_case: texts that were found in another case only, with the name they were found as.
        repeated: how many nodes a subgraph names more than once.
        where: the file.
        nearest: for the first unknown texts, the most similar name in the graph.
    """

    nodes: Ragged
    unknown: dict[str, int]
    dropped: NDArray[np.int64]
    by_case: dict[str, str]
    repeated: int
    where: str
    nearest: dict[str, str]

    @property
    def empty(self) -> NDArray[np.int64]:
        """The subgraphs that have no node in the graph."""
        return np.flatnonzero(self.nodes.lengths == 0)

    def unknown_text(self) -> str:
        """The nodes that are not in the graph in a few words: how many, in how many subgraphs, the nearest names."""
        within = f"in {int(np.count_nonzero(self.dropped)):,} of {len(self.nodes):,} subgraphs"
        dates = "; a spreadsheet has turned names into dates" if any(map(_DATE.fullmatch, self.unknown)) else ""
        near = {text: f"nearest: {excerpt(name)}" for text, name in self.nearest.items()}
        if len(self.unknown) == 1:
            (text,) = self.unknown
            details = [within] * (len(self.nodes) > 1) + list(near.values())
            return f"node {excerpt(text)} is not in the graph" + (f" ({', '.join(details)})" if details else "") + dates
        shown = [excerpt(text) + (f" ({near[text]})" if text in near else "") for text in list(self.unknown)[:_SHOWN]]
        more = ", ..." if len(self.unknown) > _SHOWN else ""
        return f"{len(self.unknown):,} nodes are not in the graph, {within}: {', '.join(shown)}{more}{dates}"

    def warn(self) -> None:
        """Warn of nodes that were dropped, and of those that were found in another case only."""
        if self.unknown:
            warnings.warn(f"{self.where}: {self.unknown_text()}; left out", DataWarning, stacklevel=2)
        if self.by_case:
            text, name = next(iter(self.by_case.items()))
            what = f"{len(self.by_case):,} name{'s' if len(self.by_case) > 1 else ''} found in another case only"
            warnings.warn(f"{self.where}: {what}: {excerpt(text)} is {excerpt(name)}", DataWarning, stacklevel=2)


def match_nodes(members: Members, graph: Graph, *, unknown: Unknown = "error") -> Matched:
    """Find the nodes of subgraphs in the graph: by exact name (``#12`` is row 12), then in another case.

    Args:
        unknown: ``error`` refuses nodes that are not in the graph; ``drop`` leaves them out, and a subgraph may then
            be empty.

    Raises:
        DataError: for nodes that are not in the graph, listed once with counts and the nearest names; and, with
            either choice, for a text that names several nodes.
    """
    places = np.empty(len(members.texts), np.int64)
    by_case: dict[str, str] = {}
    for i, text in enumerate(members.texts):
        node = find_node(text, graph.num_nodes, graph.names)
        if node is None and graph.names is not None:
            node = graph.names.find_ignoring_case(text)
            if node is not None and node >= 0:
                by_case[text] = graph.names[node]
        if node is not None and node < 0:
            raise _several(members, i, graph)
        places[i] = -1 if node is None else node
    found = _collect(members, places, by_case, graph)
    if found.unknown and unknown == "error":
        hint = f"correct {_them(found.unknown)}, or pass --unknown drop to leave {_them(found.unknown)} out"
        first = int(np.argmax(found.dropped > 0))
        where = members.place(first) if len(members) > 1 else members.where
        raise DataError(found.unknown_text(), where=where, hint=hint + _about_ids(list(found.unknown), graph))
    return found


def _them(unknown: dict[str, int]) -> str:
    return "it" if len(unknown) == 1 else "them"


def _collect(members: Members, places: NDArray[np.int64], by_case: dict[str, str], graph: Graph) -> Matched:
    values, rows = places[members.nodes.values], members.nodes.row_ids
    known = values >= 0
    # Each node of a subgraph once, sorted.
    pairs = np.unique(np.stack([rows[known], values[known]]), axis=1) if known.any() else np.empty((2, 0), np.int64)
    nodes = Ragged.from_lengths(pairs[1].astype(np.int32), np.bincount(pairs[0], minlength=len(members)))
    lost = np.unique(np.stack([rows[~known], members.nodes.values[~known].astype(np.int64)]), axis=1)
    counts = np.bincount(lost[1], minlength=len(members.texts)) if lost.size else np.zeros(len(members.texts), int)
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    unknown = {members.texts[i]: int(counts[i]) for i in order}
    return Matched(
        nodes=nodes,
        unknown=unknown,
        dropped=np.bincount(lost[0], minlength=len(members)) if lost.size else np.zeros(len(members), np.int64),
        by_case=by_case,
        repeated=int(np.count_nonzero(known)) - pairs.shape[1],
        where=members.where,
        nearest=_nearest(list(unknown)[:_SHOWN], graph),
    )


def _nearest(texts: Sequence[str], graph: Graph) -> dict[str, str]:
    """The most similar name of each text, among names that begin alike where there are many."""
    if graph.names is None or not texts:
        return {}
    names, found = list(graph.names.primary), {}
    for text in texts:
        near = names
        if len(names) > _MOST_COMPARED:
            begin = text[:2].casefold()
            near = [name for name in names if name[:2].casefold() == begin][:_MOST_COMPARED]
        if best := difflib.get_close_matches(text[:100], near, n=1):
            found[text] = best[0]
    return found


def _several(members: Members, text: int, graph: Graph) -> DataError:
    """The error for a text that names several nodes."""
    given = members.texts[text]
    shared = [] if graph.names is None else graph.names.shared(given)
    shown = ", ".join(f"#{row}" for row in shared[:5]) + (", ..." if len(shared) > 5 else "")
    subgraph = int(members.nodes.row_ids[np.argmax(members.nodes.values == text)])
    hint = f"write the row number of one of them: {shown}" if shown else "write it in the case of the graph"
    return DataError(f"{excerpt(given)} names several nodes", where=members.place(subgraph), hint=hint)


def _about_ids(unknown: Sequence[str], graph: Graph) -> str:
    """A hint about ids that are row numbers."""
    if graph.names is not None:
        number = next((text for text in unknown if text.isdigit()), None)
        return "" if number is None else f"; where nodes have names, row {number[:18]} is written #{number[:18]}"
    last = graph.num_nodes - 1
    asks = "; was the file written with ids from 1? pass --id-base 1" if str(last + 1) in unknown else ""
    return f"; ids run 0..{last}{asks}"
