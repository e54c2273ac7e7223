"""``edge_list.txt``: one edge a line, ``u v`` or ``u v weight``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.text import read_bytes
from subgnn.data.problems import Problems
from subgnn.data.strings import NodeNames, is_id
from subgnn.errors import excerpt
from subgnn.kernels import text as parser

_COLUMNS = "accepted: 'u v' or 'u v weight', separated by spaces or tabs"


@dataclass(frozen=True, slots=True, eq=False)
class EdgeList:
    """The edges of a file, as they stand there."""

    tails: NDArray[Any]
    heads: NDArray[Any]
    weights: NDArray[Any] | None

    @property
    def num_nodes(self) -> int:
        """One more than the largest id."""
        return 1 + max(int(self.tails.max(initial=-1)), int(self.heads.max(initial=-1)))


def read_edge_list(path: Path, problems: Problems, *, names: NodeNames | None = None, id_base: int = 0) -> EdgeList:
    """Read an edge list; what is wrong with it goes to ``problems``.

    Node names may stand in place of ids where ``names`` knows them; such a file is read more slowly.
    """
    data = np.frombuffer(read_bytes(path), np.uint8)
    parsed = parser.parse_edges(data)
    if names is not None and any(kind == parser.NOT_AN_ID for _, _, kind in parsed.faults):
        return _read_named(path, data.tobytes(), problems, names, id_base)
    for line, place, kind in parsed.faults.tolist():
        what, hint = _fault(kind, _token(data, place), has_names=names is not None)
        problems.error(f"{path}:{line}", what, hint)
    problems.num_errors += parsed.num_faults - len(parsed.faults)
    edges = EdgeList(parsed.tails, parsed.heads, parsed.weights if len(parsed.weights) else None)
    largest = np.abs(parsed.weights).max(initial=0.0)
    if largest > np.finfo(np.float32).max:
        line = line_of_edge(data.tobytes(), int(np.abs(parsed.weights).argmax()))
        problems.error(f"{path}:{line}", f"weight {largest:g} is too large", "weights are kept as 32-bit numbers")
    return _rebase(path, data.tobytes, edges, id_base, problems)


def _token(data: NDArray[np.uint8], place: int) -> bytes:
    pieces = data[place : place + 64].tobytes().split()
    return pieces[0] if pieces else b""


def _fault(kind: int, token: bytes, *, has_names: bool) -> tuple[str, str]:
    if kind == parser.ONE_COLUMN:
        return "a line with one column", _COLUMNS
    if kind == parser.TOO_MANY_COLUMNS:
        return f"more than three columns ({excerpt(token)})", _COLUMNS
    if kind == parser.OTHER_COLUMNS:
        return "some lines have a weight and some have none", "give every edge a weight, or none"
    if kind == parser.ID_TOO_LARGE:
        return (
            f"node id {excerpt(token)} is too large",
            "ids run from 0 to 2147483646; for other ids use data convert on a CSV",
        )
    if kind == parser.NOT_A_WEIGHT:
        return f"weight {excerpt(token)} is no number", "a decimal number is accepted"
    if kind == parser.WEIGHT_NOT_FINITE:
        return f"weight {excerpt(token)} is not finite", "weights must be finite numbers"
    known = "nor a name of nodes.tsv" if has_names else "and there is no nodes.tsv with names"
    return f"{excerpt(token)} is not an integer id, {known}", "ids are integers from 0"


def _rebase(path: Path, text: Any, edges: EdgeList, id_base: int, problems: Problems) -> EdgeList:
    if id_base == 0 or len(edges.tails) == 0:
        return edges
    low = np.minimum(edges.tails, edges.heads)
    if int(low.min()) < id_base:
        line = line_of_edge(text(), int(np.argmax(low < id_base)))
        problems.error(f"{path}:{line}", f"node {int(low.min())}", f"with --id-base {id_base} ids run from {id_base}")
        return edges
    return EdgeList(edges.tails - id_base, edges.heads - id_base, edges.weights)


def line_of_edge(text: bytes, index: int) -> int:
    """The line on which edge ``index`` of a well-formed list stands."""
    seen = -1
    for number, line in enumerate(text.split(b"\n"), 1):
        stripped = line.strip()
        seen += bool(stripped) and stripped[:1] not in b"#%"
        if seen == index:
            return number
    return 0


def _read_named(path: Path, text: bytes, problems: Problems, names: NodeNames, id_base: int) -> EdgeList:
    ends: list[list[int]] = []
    weights: list[float] = []
    width = 0
    for number, line in enumerate(text.decode("utf-8", "replace").split("\n"), 1):
        tokens = line.split()
        if not tokens or tokens[0][0] in "#%":
            continue
        if len(tokens) not in (2, 3):
            problems.error(f"{path}:{number}", f"{len(tokens)} columns", _COLUMNS)
            continue
        width = width or len(tokens)
        if len(tokens) != width:
            problems.error(f"{path}:{number}", *_fault(parser.OTHER_COLUMNS, b"", has_names=True))
            continue
        nodes = [int(t) - id_base if is_id(t) else names.find(t) for t in tokens[:2]]
        for token, node in zip(tokens, nodes, strict=False):
            if node is None or node < 0:
                what = "names several nodes" if node is not None else "is neither an id nor a name of nodes.tsv"
                problems.error(
                    f"{path}:{number}", f"{excerpt(token)} {what}", "use ids, or names that stand for one node"
                )
        try:
            weight = float(tokens[2]) if len(tokens) == 3 else 1.0
        except ValueError:
            weight = float("nan")
        if not np.isfinite(weight):
            problems.error(f"{path}:{number}", f"weight {excerpt(tokens[2])}", "weights must be finite numbers")
        if all(node is not None and node >= 0 for node in nodes):
            ends.append([node for node in nodes if node is not None])
            weights.append(weight)
    array = np.array(ends, np.int64).reshape(-1, 2)
    return EdgeList(array[:, 0], array[:, 1], np.array(weights) if width == 3 else None)
