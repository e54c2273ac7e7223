"""``edge_list.txt``: one edge per line, ``u v`` or ``u v weight``; lines that begin with # or % are comments.

pyarrow parses chunks of lines. One that is not edges alone is read line by line, to say what is wrong.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from subgnn.data.dataset import Problems
from subgnn.data.edge_store import EdgeStore
from subgnn.data.formats.text import read_chunks
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, parse_number
from subgnn.errors import excerpt

_COLUMNS = "accepted: 'u v' or 'u v weight', separated by spaces or tabs"
_COMMENTS, _FIRST_LINE = re.compile(rb"(?m)^[ \t]*[#%].*$"), re.compile(rb"\S[^\n]*")
_SIGNED_ID = re.compile(rb"(?m)^ *(\d+ +)?-")
_NUMERALS = b"0123456789.eE+- \n"
_LARGEST_ID, _LARGEST_WEIGHT = 2**31 - 2, float(np.finfo(np.float32).max)
_CHUNK, _SMALLEST_CHUNK = 2**24, 2**12


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
        return len(self.tails)

    @property
    def num_nodes(self) -> int:
        return 1 + max(int(self.tails.max(initial=-1)), int(self.heads.max(initial=-1)))

    def build(self, num_nodes: int, *, directed: bool, names: NodeNames | None = None) -> Graph:
        more: dict[str, Any] = {"weights": self.weights, "types": self.types, "times": self.times}
        return Graph.from_edges(self.tails, self.heads, num_nodes=num_nodes, names=names, directed=directed, **more)


def read_edge_list(path: Path, id_base: int, problems: Problems) -> EdgeList:
    """Read an edge list into memory; what is wrong with it goes to ``problems``."""
    reader = _EdgeReader(path, id_base, problems)
    parts = [part for data, _ in read_chunks(path, _CHUNK) if len((part := reader.read(data)).tails)]
    if not parts or problems.num_errors:
        return EdgeList(np.empty(0, np.int32), np.empty(0, np.int32), None)
    tails, heads = (np.concatenate([getattr(part, name) for part in parts]) for name in ("tails", "heads"))
    weights = [part.weights for part in parts if part.weights is not None]
    return EdgeList(tails, heads, np.concatenate(weights) if weights else None)


def store_edge_list(path: Path, id_base: int, problems: Problems, store: EdgeStore) -> None:
    """Read an edge list that may be larger than memory, a chunk at a time, and keep its edges on disk."""
    reader, total = _EdgeReader(path, id_base, problems), path.stat().st_size // 10**6
    for data, done in read_chunks(path, max(_SMALLEST_CHUNK, min(_CHUNK, store.memory // 16))):
        edges = reader.read(data)
        if not problems.num_errors:
            store.append(edges.tails, edges.heads, edges.weights)
        store.on_progress("reading edges, MB", done // 10**6, total)


def first_beyond(path: Path, id_base: int, limit: int) -> tuple[int, int]:
    """The line of the first edge with a node that is not below ``limit``, and that node, in a file without errors."""
    reader = _EdgeReader(path, id_base, Problems())
    for data, _ in read_chunks(path, _CHUNK):
        before, edges = reader.num_lines, reader.read(data)
        high = np.maximum(edges.tails, edges.heads)
        if (high >= limit).any():
            at = int(np.argmax(high >= limit))
            line, _ = next(islice(_lines(data, before), at, None))
            return line, int(high[at]) + id_base
    return 0, limit


def _lines(text: bytes, before: int) -> Iterator[tuple[int, list[bytes]]]:
    """The lines that should be edges, cut at spaces and tabs, with their numbers."""
    for number, line in enumerate(text.split(b"\n"), before + 1):
        tokens = re.findall(rb"[^ \t\r]+", line)
        if tokens and tokens[0][:1] not in b"#%":
            yield number, tokens


def _columns(text: bytes, width: int) -> list[NDArray[Any]]:
    """The columns of lines, separated by one space: two of ids, and one of weights."""
    types = {str(i): pa.float64() if i == 2 else pa.int64() for i in range(width)}
    read, parse = csv.ReadOptions(column_names=list(types)), csv.ParseOptions(delimiter=" ", quote_char=False)
    found = csv.read_csv(pa.py_buffer(text), read, parse, csv.ConvertOptions(column_types=types, null_values=[]))
    # Not by to_numpy, which imports pandas.
    return [np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks]) for column in found.columns]


class _EdgeReader:
    """Parses the chunks of an edge list, one after the other, and adds what is wrong to ``problems``."""

    def __init__(self, path: Path, id_base: int, problems: Problems) -> None:
        self.path, self.id_base, self.problems = path, id_base, problems
        self.num_lines = self._columns = 0

    def read(self, text: bytes) -> EdgeList:
        table = self._parse(_COMMENTS.sub(b"", text) if b"#" in text or b"%" in text else text)
        if table is None:
            rows = list[list[bytes]]()
            for number, tokens in _lines(text, self.num_lines):
                if fault := self._fault(tokens):
                    self.problems.error(f"{self.path}:{number}", *fault)
                else:
                    self._columns = len(tokens)
                    rows.append(tokens)
            ends = (np.array([int(row[end]) for row in rows], np.int64) for end in (0, 1))
            table = [*ends, np.array([float(row[2]) for row in rows if len(row) > 2])][: self._columns or 2]
        self.num_lines += text.count(b"\n")
        tails, heads = ((ids - self.id_base).astype(np.int32) for ids in table[:2])
        return EdgeList(tails, heads, table[2] if len(table) > 2 else None)

    def _parse(self, text: bytes) -> list[NDArray[Any]] | None:
        """The columns of lines that are all edges; None for others."""
        text = text.replace(b"\r\n", b"\n").replace(b"\t", b" ")
        first = _FIRST_LINE.search(text)
        if first is None:
            return [np.empty(0, np.int64)] * 2
        width = len(first[0].split())
        if width not in (2, 3) or self._columns not in (0, width):
            return None
        if text.translate(None, _NUMERALS) or (b"-" in text and _SIGNED_ID.search(text)):
            return None
        try:
            columns = _columns(text, width)
        except pa.ArrowInvalid:
            try:  # with one space between columns
                columns = _columns(b"\n".join(b" ".join(line.split()) for line in text.split(b"\n")), width)
            except pa.ArrowInvalid:
                return None
        wrong = any(ids.min() < self.id_base or ids.max() > _LARGEST_ID for ids in columns[:2])
        if wrong or not (np.abs(columns[2:]) <= _LARGEST_WEIGHT).all():
            return None
        self._columns = width
        return columns

    def _fault(self, tokens: list[bytes]) -> tuple[str, str] | None:
        other_ids = "for other ids use data convert on a CSV"
        for token in tokens[:2]:
            if not token.isdigit():
                return f"{excerpt(token)} is not an integer id", f"ids are integers from 0; {other_ids}"
            if len(token.lstrip(b"0")) > 10 or int(token) > _LARGEST_ID:
                return f"node id {excerpt(token)} is too large", f"ids run from 0 to {_LARGEST_ID}; {other_ids}"
        if len(tokens) == 1:
            return "the line has only one column", _COLUMNS
        if len(tokens) > 3:
            return f"the line has more than three columns ({excerpt(tokens[3])})", _COLUMNS
        if self._columns not in (0, len(tokens)):
            return "some lines have a weight and some have none", "give every edge a weight, or none"
        for token in tokens[2:]:
            weight = parse_number(token.decode("latin-1"))
            if weight is None:
                return f"weight {excerpt(token)} is not a number", "a decimal number is accepted"
            if not np.isfinite(weight):
                return f"weight {excerpt(token)} is not finite", "weights must be finite numbers"
            if abs(weight) > _LARGEST_WEIGHT:
                return f"weight {weight:g} is too large", "weights are kept as 32-bit numbers"
        if low := [int(token) for token in tokens[:2] if int(token) < self.id_base]:
            return f"node {low[0]}", f"with --id-base {self.id_base} ids run from {self.id_base}"
        return None
