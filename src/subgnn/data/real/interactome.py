"""The human interactome: which proteins touch, from a table of pairs of genes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from subgnn.data.graph import Graph
from subgnn.data.real.gene_annotations import HUMAN
from subgnn.data.real.streaming import numbered_lines
from subgnn.data.strings import NodeNames, Strings, is_id
from subgnn.errors import DataError, excerpt


@dataclass(frozen=True, slots=True, eq=False)
class Interactome:
    """The graph, the gene of each node, and what was dropped on the way, by reason."""

    graph: Graph
    genes: list[str]
    dropped: dict[str, int]


def read_gene_symbols(path: Path) -> dict[str, str]:
    """NCBI Gene id to symbol, from a table with the columns ``GeneID`` and ``Symbol``.

    NCBI's gene_info has them, and ``tax_id`` as well: rows of another species are passed over.
    """
    symbols: dict[str, str] = {}
    header: list[str] = []
    for number, line in numbered_lines(path):
        columns = line.split("\t")
        if not header:
            header = [column.lstrip("#") for column in columns]
            if "GeneID" not in header or "Symbol" not in header:
                hint = "a header with GeneID and Symbol, separated by tabs, is accepted"
                raise DataError(f"no such columns: {excerpt(line)}", where=f"{path}:{number}", hint=hint)
            continue
        if len(columns) < len(header):
            hint = f"the header has {len(header)}"
            raise DataError(f"{len(columns)} columns", where=f"{path}:{number}", hint=hint)
        row = dict(zip(header, columns, strict=False))
        if row.get("tax_id", HUMAN) == HUMAN:
            symbols[row["GeneID"]] = row["Symbol"]
    if not symbols:
        raise DataError("no genes", where=str(path), hint="a table with the columns GeneID and Symbol is accepted")
    return symbols


def read_interactome(path: Path, *, symbols: dict[str, str] | None = None) -> Interactome:
    """The largest component of an interactome.

    Self loops, repeated pairs and, where symbols are given, ids that are not in them are dropped and counted. Nodes are
    numbered in the order of their gene ids.

    Args:
        path: CSV with a header line and two columns of gene ids; further columns are passed over.
        symbols: the symbol of each human gene; without it, every id counts as one.

    Raises:
        DataError: for a row without two ids.
    """
    pairs, dropped = _read_pairs(path, symbols)
    if not len(pairs):
        raise DataError("no pair of genes is left", where=str(path), hint=f"dropped: {dropped}")
    ids, codes = np.unique(pairs, return_inverse=True)
    codes = codes.reshape(pairs.shape)
    component = _largest_component(codes, len(ids))
    dropped["genes outside the largest component"] = int(len(ids) - component.sum())
    codes = codes[component[codes[:, 0]]]
    number = np.cumsum(component) - 1
    genes = [str(gene) for gene in ids[component]]
    if symbols is None:
        names = NodeNames({"ncbi_gene_id": Strings.of(genes)})
    else:
        names = NodeNames({"symbol": Strings.of(symbols[g] for g in genes), "ncbi_gene_id": Strings.of(genes)})
    graph = Graph.from_edges(number[codes[:, 0]], number[codes[:, 1]], num_nodes=len(genes), names=names)
    return Interactome(graph, genes, dropped)


def _read_pairs(path: Path, symbols: dict[str, str] | None) -> tuple[NDArray[np.int64], dict[str, int]]:
    """Distinct pairs of two different genes, smaller id first."""
    dropped = {"pairs of a gene with itself": 0, "pairs with another species": 0, "repeated pairs": 0}
    pairs: set[tuple[int, int]] = set()
    for place, (number, line) in enumerate(numbered_lines(path)):
        columns = [column.strip() for column in line.split(",")]
        if len(columns) < 2 or not all(is_id(column) for column in columns[:2]):
            if place == 0 and len(columns) >= 2:
                continue  # the header
            hint = "two columns of NCBI Gene ids, separated by a comma, are accepted"
            raise DataError(f"{excerpt(line)} is no pair of genes", where=f"{path}:{number}", hint=hint)
        if columns[0] == columns[1]:
            dropped["pairs of a gene with itself"] += 1
        elif symbols is not None and (columns[0] not in symbols or columns[1] not in symbols):
            dropped["pairs with another species"] += 1
        else:
            a, b = int(columns[0]), int(columns[1])
            pair = (a, b) if a < b else (b, a)
            dropped["repeated pairs"] += pair in pairs
            pairs.add(pair)
    return np.array(sorted(pairs), np.int64).reshape(-1, 2), dropped


def _largest_component(codes: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Which nodes are in the largest component; of equal ones, in that of the smallest node."""
    links = coo_array((np.ones(len(codes), np.int8), (codes[:, 0], codes[:, 1])), shape=(size, size))
    _, label = connected_components(links, directed=False)
    largest: NDArray[np.bool_] = label == np.argmax(np.bincount(label))
    return largest
