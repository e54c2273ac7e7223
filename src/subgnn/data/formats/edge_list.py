"""``edge_list.txt``: one edge per line, ``u v`` or ``u v weight``.

The parser is ours: pyarrow's CSV reader is not faster (5 million lines, two cores), takes one separator and no
comments, and reports the first bad line of a file rather than all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Problems
from subgnn.data.edge_store import MEMORY, EdgeStore
from subgnn.data.formats.text import read_bytes, read_chunks
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames
from subgnn.errors import excerpt
from subgnn.kernels import text as parser
from subgnn.parallel.progress import OnProgress, ignore

_COLUMNS = "accepted: 'u v' or 'u v weight', separated by spaces or tabs"
_CHUNK = 2**24
_LARGEST_CHUNK, _SMALLEST_CHUNK = 2**26, 2**12


@dataclass(frozen=True, slots=True, eq=False)
class EdgeList:
    """The edges of a file, in its order; types and times come from edge_attributes.tsv."""

    tails: NDArray[Any]
    heads: NDArray[Any]
    weights: NDArray[Any] | None
    types: NDArray[Any] | None = None
    times: NDArray[Any] | None = None

    @property
    def num_edges(self) -> int:
        """How many there are, self loops and repeats too."""
        return len(self.tails)

    @property
    def num_nodes(self) -> int:
        """One more than the largest id."""
        return 1 + max(int(self.tails.max(initial=-1)), int(self.heads.max(initial=-1)))

    def build(self, num_nodes: int, *, directed: bool, names: NodeNames | None = None) -> Graph:
        """The graph of these edges."""
        more: dict[str, Any] = {"weights": self.weights, "types": self.types, "times": self.times}
        return Graph.from_edges(self.tails, self.heads, num_nodes=num_nodes, names=names, directed=directed, **more)


@dataclass(frozen=True, slots=True)
class Staging:
    """Where a graph is built on disk, within how many bytes of memory, and how progress is reported."""

    folder: Path
    memory: int = MEMORY
    on_progress: OnProgress = ignore

    def chunks(self, path: Path) -> Iterator[NDArray[np.uint8]]:
        """A file's text in chunks, with progress in megabytes of the file."""
        size = max(_SMALLEST_CHUNK, min(_LARGEST_CHUNK, self.memory // 16))
        total = path.stat().st_size // 10**6
        for data, done in read_chunks(path, size):
            yield data
            self.on_progress("reading edges, MB", done // 10**6, total)


def read_edge_list(path: Path, id_base: int, problems: Problems) -> EdgeList:
    """Read an edge list into memory; what is wrong with it goes to ``problems``."""
    reader = EdgeReader(path, id_base)
    edges = reader.read(np.frombuffer(read_bytes(path), np.uint8))
    reader.report(problems)
    return edges


def stage_edge_list(path: Path, id_base: int, problems: Problems, staging: Staging) -> EdgeStore:
    """Read an edge list that may be larger than memory, a chunk at a time, and keep its edges on disk."""
    reader = EdgeReader(path, id_base)
    store = EdgeStore(staging.folder, memory=staging.memory, on_progress=staging.on_progress)
    for data in staging.chunks(path):
        edges = reader.read(data)
        if not reader.num_errors:
            store.append(edges.tails, edges.heads, edges.weights)
    reader.report(problems)
    return store


def first_beyond(path: Path, id_base: int, limit: int) -> tuple[int, int]:
    """The line of the first edge with a node that is not below ``limit``, and that node, in a file without errors."""
    reader = EdgeReader(path, id_base)
    for data, _ in read_chunks(path, _CHUNK):
        before = reader.num_lines
        edges = reader.read(data)
        high = np.maximum(edges.tails, edges.heads)
        beyond = high >= limit
        if beyond.any():
            at = int(np.argmax(beyond))
            return before + line_of_edge(data.tobytes(), at), int(high[at]) + id_base
    return 0, limit


class EdgeReader:
    """Parses an edge list, as a whole or in chunks, and records what is wrong with it."""

    def __init__(self, path: Path, id_base: int) -> None:
        self.path, self.id_base = path, id_base
        self.num_lines = self._columns = 0
        self._found = Problems()
        self._faults_left = parser.MAX_FAULTS
        self._heaviest, self._heaviest_line = float(np.finfo(np.float32).max), 0
        self._lowest, self._low_line = id_base, 0

    @property
    def num_errors(self) -> int:
        """The number of problems so far."""
        return self._found.num_errors + bool(self._heaviest_line) + bool(self._low_line)

    def read(self, data: NDArray[np.uint8]) -> EdgeList:
        """The edges of these lines, which follow those read before."""
        parsed = parser.parse_edges(data, self._columns)
        self._note_faults(data, parsed)
        edges = EdgeList(parsed.tails, parsed.heads, parsed.weights if len(parsed.weights) else None)
        heaviest = float(np.abs(parsed.weights).max(initial=0.0))
        if heaviest > self._heaviest:
            at = int(np.abs(parsed.weights).argmax())
            self._heaviest, self._heaviest_line = heaviest, self.num_lines + line_of_edge(data.tobytes(), at)
        edges = self._rebase(data, edges)
        self._columns = parsed.columns
        self.num_lines += parsed.num_lines
        return edges

    def report(self, problems: Problems) -> None:
        """Add what is wrong to ``problems``."""
        for error in self._found.errors:
            problems.error(error.where, error.what, error.hint)
        problems.num_errors += self._found.num_errors - len(self._found.errors)
        if self._heaviest_line:
            what = f"weight {self._heaviest:g} is too large"
            problems.error(f"{self.path}:{self._heaviest_line}", what, "weights are kept as 32-bit numbers")
        if self._low_line:
            hint = f"with --id-base {self.id_base} ids run from {self.id_base}"
            problems.error(f"{self.path}:{self._low_line}", f"node {self._lowest}", hint)

    def _note_faults(self, data: NDArray[np.uint8], parsed: parser.ParsedEdges) -> None:
        kept = parsed.faults[: self._faults_left].tolist()
        self._faults_left -= len(kept)
        for line, place, kind in kept:
            token, *_ = [*data[place : place + 64].tobytes().split(), b""]
            self._found.error(f"{self.path}:{self.num_lines + line}", *_fault(kind, excerpt(token)))
        self._found.num_errors += parsed.num_faults - len(kept)

    def _rebase(self, data: NDArray[np.uint8], edges: EdgeList) -> EdgeList:
        if self.id_base == 0 or len(edges.tails) == 0:
            return edges
        low = np.minimum(edges.tails, edges.heads)
        if int(low.min()) < self.id_base:
            self._lowest = min(self._lowest, int(low.min()))
            at = int(np.argmax(low < self.id_base))
            self._low_line = self._low_line or self.num_lines + line_of_edge(data.tobytes(), at)
            return edges
        return EdgeList(edges.tails - self.id_base, edges.heads - self.id_base, edges.weights)


def _fault(kind: int, text: str) -> tuple[str, str]:
    other_ids = "for other ids use data convert on a CSV"
    return {
        parser.ONE_COLUMN: ("the line has only one column", _COLUMNS),
        parser.TOO_MANY_COLUMNS: (f"the line has more than three columns ({text})", _COLUMNS),
        parser.OTHER_COLUMNS: ("some lines have a weight and some have none", "give every edge a weight, or none"),
        parser.ID_TOO_LARGE: (f"node id {text} is too large", f"ids run from 0 to 2147483646; {other_ids}"),
        parser.NOT_A_WEIGHT: (f"weight {text} is not a number", "a decimal number is accepted"),
        parser.WEIGHT_NOT_FINITE: (f"weight {text} is not finite", "weights must be finite numbers"),
    }.get(kind, (f"{text} is not an integer id", f"ids are integers from 0; {other_ids}"))


def line_of_edge(text: bytes, index: int) -> int:
    """The line of edge ``index`` in a list without errors."""
    seen = -1
    for number, line in enumerate(text.split(b"\n"), 1):
        stripped = line.strip()
        seen += bool(stripped) and stripped[:1] not in b"#%"
        if seen == index:
            return number
    return 0
