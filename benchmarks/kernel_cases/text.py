"""Reading a text edge list beside pandas, pyarrow, numpy and networkx; the last also builds its graph."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import csv, table

from kernel_cases.measure import Case, Rival
from kernel_cases.workloads import Workload
from subgnn.data.dataset import Problems
from subgnn.data.formats.edge_list import EdgeList, read_edge_list

_NAMES = ["tail", "head"]


def text_cases(load: Workload, folder: Path) -> Iterator[Case]:
    """All edges of the graph, one a line, separated by a tab."""
    tails, heads, _ = load.graph.edges()
    path = folder / f"edges-{load.graph.num_nodes}.tsv"
    plain = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    csv.write_csv(table([tails, heads], names=_NAMES), path, plain)
    numpy_lines, networkx_lines = load.part(100_000, 500_000), load.part(100_000, 200_000)
    short = folder / f"short-{load.graph.num_nodes}.tsv"
    with path.open() as lines:
        short.write_text("".join(islice(lines, networkx_lines)))

    def same(ours: EdgeList, theirs: Any) -> bool:
        return np.array_equal(np.stack([ours.tails, ours.heads], axis=1), theirs)

    def same_beginning(ours: EdgeList, theirs: Any) -> bool:
        return np.array_equal(np.stack([ours.tails, ours.heads], axis=1)[:numpy_lines], theirs)

    def same_edges(ours: EdgeList, theirs: Any) -> bool:
        pairs = zip(ours.tails[:networkx_lines].tolist(), ours.heads[:networkx_lines].tolist(), strict=True)
        return theirs.number_of_edges() == networkx_lines and all(theirs.has_edge(u, v) for u, v in pairs)

    yield Case(
        "read_edge_list",
        load.name,
        len(tails),
        "lines",
        lambda: _read(path),
        [
            Rival("pandas read_csv", "pandas", lambda: _pandas(path), same),
            Rival("pyarrow csv.read_csv", "pyarrow", lambda: _pyarrow(path), same),
            Rival("numpy loadtxt", "numpy", lambda: _loadtxt(path, numpy_lines), same_beginning, numpy_lines),
            Rival("networkx read_edgelist", "networkx", lambda: _networkx(short), same_edges, networkx_lines),
        ],
    )


def _read(path: Path) -> EdgeList:
    problems = Problems()
    edges = read_edge_list(path, 0, problems)
    problems.stop()
    return edges


def _pandas(path: Path) -> Any:
    import pandas

    return pandas.read_csv(path, sep="\t", header=None, dtype=np.int32).to_numpy()


def _pyarrow(path: Path) -> Any:
    options = csv.ReadOptions(column_names=_NAMES)
    found = csv.read_csv(path, read_options=options, parse_options=csv.ParseOptions(delimiter="\t"))
    return np.stack([column.to_numpy() for column in found.columns], axis=1)


def _loadtxt(path: Path, lines: int) -> Any:
    return np.loadtxt(path, np.int32, max_rows=lines)


def _networkx(path: Path) -> Any:
    import networkx

    return networkx.read_edgelist(path, nodetype=int, data=False)
