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
from subgnn.data.strings import NodeNames, is_id, parse_number
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
class EdgeFile:
    """An edge list on disk; ``names`` of nodes may be written in place of ids, and such a file is read more slowly."""

    path: Path
    names: NodeNames | None = None
    id_base: int = 0


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


def read_edge_list(file: EdgeFile, problems: Problems) -> EdgeList:
    """Read an edge list into memory; what is wrong with it goes to ``problems``."""
    data = np.frombuffer(read_bytes(file.path), np.uint8)
    reader = EdgeReader(file)
    edges = reader.read(data)
    if reader.needs_names:
        reader = EdgeReader(file, by_name=True)
        edges = reader.read(data)
    reader.report(problems)
    return edges


def stage_edge_list(file: EdgeFile, problems: Problems, staging: Staging) -> EdgeStore:
    """Read an edge list that may be larger than memory, a chunk at a time, and keep its edges on disk."""
    for by_name in (False, True):
        reader = EdgeReader(file, by_name=by_name)
        store = EdgeStore(staging.folder, memory=staging.memory, on_progress=staging.on_progress)
        for data in staging.chunks(file.path):
            edges = reader.read(data)
            if reader.needs_names:
                break
            if not reader.num_errors:
                store.append(edges.tails, edges.heads, edges.weights)
        if not reader.needs_names:
            break
    reader.report(problems)
    return store


def first_beyond(file: EdgeFile, limit: int) -> tuple[int, int]:
    """The line of the first edge with a node that is not below ``limit``, and that node, in a file without errors."""
    for by_name in (False, True):
        reader = EdgeReader(file, by_name=by_name)
        for data, _ in read_chunks(file.path, _CHUNK):
            before = reader.num_lines
            edges = reader.read(data)
            high = np.maximum(edges.tails, edges.heads)
            beyond = high >= limit
            if beyond.any() and not reader.needs_names:
                at = int(np.argmax(beyond))
                return before + line_of_edge(data.tobytes(), at), int(high[at]) + file.id_base
        if not reader.needs_names:
            break
    return 0, limit


class EdgeReader:
    """Parses an edge list, as a whole or in chunks, and records what is wrong with it.

    Where the first reading finds :attr:`needs_names`, the file is to be read again, ``by_name``.
    """

    def __init__(self, file: EdgeFile, *, by_name: bool = False) -> None:
        self.path, self.names, self.id_base, self.by_name = file.path, file.names, file.id_base, by_name
        self.num_lines = 0
        self.needs_names = False
        self._columns = 0
        self._found = Problems()
        self._faults_left = parser.MAX_FAULTS
        self._heaviest, self._heaviest_line = float(np.finfo(np.float32).max), 0
        self._lowest, self._low_line = file.id_base, 0

    @property
    def num_errors(self) -> int:
        """The number of problems so far."""
        return self._found.num_errors + bool(self._heaviest_line) + bool(self._low_line)

    def read(self, data: NDArray[np.uint8]) -> EdgeList:
        """The edges of these lines, which follow those read before."""
        if self.by_name and self.names is not None:
            return self._read_named(data.tobytes(), self.names)
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
        self.needs_names |= self.names is not None and any(kind == parser.NOT_AN_ID for _, _, kind in kept)
        for line, place, kind in kept:
            token, *_ = [*data[place : place + 64].tobytes().split(), b""]
            what, hint = _fault(kind, token, has_names=self.names is not None)
            self._found.error(f"{self.path}:{self.num_lines + line}", what, hint)
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

    def _read_named(self, text: bytes, names: NodeNames) -> EdgeList:
        ends: list[list[int]] = []
        weights: list[float] = []
        lines = text.decode("utf-8", "replace").split("\n")
        for number, line in enumerate(lines, self.num_lines + 1):
            tokens = line.split()
            if not tokens or tokens[0][0] in "#%":
                continue
            where = f"{self.path}:{number}"
            if len(tokens) not in (2, 3):
                self._found.error(where, f"{len(tokens)} columns", _COLUMNS)
                continue
            self._columns = self._columns or len(tokens)
            if len(tokens) != self._columns:
                self._found.error(where, *_fault(parser.OTHER_COLUMNS, b"", has_names=True))
                continue
            nodes = [node for t in tokens[:2] if (node := self._named_node(t, names, where)) is not None]
            weight = parse_number(tokens[2]) if len(tokens) == 3 else 1.0
            if weight is None or not np.isfinite(weight):
                self._found.error(where, f"weight {excerpt(tokens[2])}", "weights must be finite numbers")
            elif len(nodes) == 2:
                ends.append(nodes)
                weights.append(weight)
        self.num_lines += len(lines) - 1
        array = np.array(ends, np.int64).reshape(-1, 2)
        return EdgeList(array[:, 0], array[:, 1], np.array(weights) if self._columns == 3 and weights else None)

    def _named_node(self, token: str, names: NodeNames, where: str) -> int | None:
        node = int(token) - self.id_base if is_id(token) else names.find(token)
        if node is not None and node >= 0:
            return node
        what = "names several nodes" if node is not None else "is neither an id nor a name of nodes.tsv"
        self._found.error(where, f"{excerpt(token)} {what}", "use ids, or names that stand for one node")
        return None


def _fault(kind: int, token: bytes, *, has_names: bool) -> tuple[str, str]:
    text, known = excerpt(token), "nor a name of nodes.tsv" if has_names else "and there is no nodes.tsv with names"
    ids = "ids run from 0 to 2147483646; for other ids use data convert on a CSV"
    return {
        parser.ONE_COLUMN: ("the line has only one column", _COLUMNS),
        parser.TOO_MANY_COLUMNS: (f"the line has more than three columns ({text})", _COLUMNS),
        parser.OTHER_COLUMNS: ("some lines have a weight and some have none", "give every edge a weight, or none"),
        parser.ID_TOO_LARGE: (f"node id {text} is too large", ids),
        parser.NOT_A_WEIGHT: (f"weight {text} is not a number", "a decimal number is accepted"),
        parser.WEIGHT_NOT_FINITE: (f"weight {text} is not finite", "weights must be finite numbers"),
    }.get(kind, (f"{text} is not an integer id, {known}", "ids are integers from 0"))


def line_of_edge(text: bytes, index: int) -> int:
    """The line of edge ``index`` in a list without errors."""
    seen = -1
    for number, line in enumerate(text.split(b"\n"), 1):
        stripped = line.strip()
        seen += bool(stripped) and stripped[:1] not in b"#%"
        if seen == index:
            return number
    return 0
