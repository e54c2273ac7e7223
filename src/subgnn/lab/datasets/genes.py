"""Human genes: their symbols, their interactions, and the biological processes they take part in."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, Strings, is_id
from subgnn.errors import DataError, excerpt
from subgnn.lab.datasets.sources import read_columns, source_lines

HUMAN = "9606"


@dataclass(frozen=True, slots=True, eq=False)
class Interactome:
    """The graph, the gene of each node, and counts of what was dropped, by reason."""

    graph: Graph
    genes: list[str]
    dropped: dict[str, int]


def read_gene_symbols(path: Path) -> dict[str, str]:
    """NCBI Gene id to symbol, from a table with the columns ``GeneID`` and ``Symbol``.

    NCBI's gene_info has them, and ``tax_id`` as well: rows of another species are skipped.
    """
    rows = read_columns(path, ("GeneID", "Symbol"))
    symbols = {row["GeneID"]: row["Symbol"] for row in rows if row.get("tax_id", HUMAN) == HUMAN}
    if not symbols:
        raise DataError("no genes", where=str(path), hint="a table with the columns GeneID and Symbol is accepted")
    return symbols


def read_node_ids(path: Path) -> list[str]:
    """The NCBI Gene id of each node, from a table with the columns ``node``, which counts from 0, and ``GeneID``.

    Raises:
        DataError: where a number or a gene is missing, there twice, or not a whole number.
    """
    genes: dict[int, str] = {}
    for row in read_columns(path, ("node", "GeneID")):
        node, gene = row["node"].strip(), row["GeneID"].strip()
        if not is_id(node) or not is_id(gene) or int(node) in genes:
            hint = "accepted: a number from 0 and an NCBI Gene id a line, each once"
            raise DataError(f"node {excerpt(node)}, gene {excerpt(gene)}", where=str(path), hint=hint)
        genes[int(node)] = str(int(gene))
    if sorted(genes) != list(range(len(genes))) or len(set(genes.values())) < len(genes):
        hint = "accepted: every number from 0 to one less than their count, and every gene, once"
        raise DataError(
            f"{len(genes)} nodes, of which some share a gene or a number is missing", where=str(path), hint=hint
        )
    return [genes[node] for node in range(len(genes))]


def read_interactome(
    path: Path, *, symbols: dict[str, str] | None = None, node_ids: list[str] | None = None
) -> Interactome:
    """The largest component of an interactome, or the genes of a given numbering.

    Self loops, repeated pairs and, where symbols are given, ids that are not in them are dropped and counted. Nodes are
    numbered in the order of their gene ids.

    Args:
        path: CSV with a header line and two columns of gene ids; further columns are ignored.
        symbols: the symbol of each human gene; without it, every id counts as one.
        node_ids: the gene of each node. All of these are kept, human or not, and no others.

    Raises:
        DataError: for a row without two ids.
    """
    if node_ids is None:
        pairs, dropped = _read_pairs(path, symbols, "pairs with another species")
    else:
        pairs, dropped = _read_pairs(path, set(node_ids), "pairs with a gene that has no node")
    if not len(pairs):
        raise DataError("no pair of genes is left", where=str(path), hint=f"dropped: {dropped}")
    if node_ids is None:
        ids, codes = np.unique(pairs, return_inverse=True)
        codes = codes.reshape(pairs.shape)
        component = _largest_component(codes, len(ids))
        dropped["genes outside the largest component"] = int(len(ids) - component.sum())
        codes = (np.cumsum(component) - 1)[codes[component[codes[:, 0]]]]
        genes = [str(gene) for gene in ids[component]]
    else:
        genes, ids = node_ids, np.array(node_ids, np.int64)
        order = np.argsort(ids)
        codes = order[np.searchsorted(ids[order], pairs)]
    columns = {} if symbols is None else {"symbol": Strings.of(symbols.get(gene, gene) for gene in genes)}
    names = NodeNames({**columns, "ncbi_gene_id": Strings.of(genes)})
    graph = Graph.from_edges(codes[:, 0], codes[:, 1], num_nodes=len(genes), names=names)
    return Interactome(graph, genes, dropped)


def _read_pairs(path: Path, known: Collection[str] | None, unknown: str) -> tuple[NDArray[np.int64], dict[str, int]]:
    """Distinct pairs of two different genes, smaller id first; pairs with others are counted as ``unknown``."""
    dropped = {"pairs of a gene with itself": 0, unknown: 0, "repeated pairs": 0}
    pairs: set[tuple[int, int]] = set()
    for place, (number, line) in enumerate(source_lines(path)):
        columns = [column.strip() for column in line.split(",")]
        if len(columns) < 2 or not all(is_id(column) for column in columns[:2]):
            if place == 0 and len(columns) >= 2:
                continue  # the header
            hint = "two columns of NCBI Gene ids, separated by a comma, are accepted"
            raise DataError(f"{excerpt(line)} is not a pair of genes", where=f"{path}:{number}", hint=hint)
        if columns[0] == columns[1]:
            dropped["pairs of a gene with itself"] += 1
        elif known is not None and (columns[0] not in known or columns[1] not in known):
            dropped[unknown] += 1
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


@dataclass(frozen=True, slots=True)
class _Layout:
    """Places of the columns of a table of annotations; ``key`` is how it names genes."""

    title: str
    key: Literal["ncbi_gene_id", "symbol"]
    comment: str
    width: int
    gene: int
    term: int
    evidence: int
    qualifier: int
    aspect: int
    process: str
    taxon: int


_GENE2GO_HEADER = ["tax_id", "GeneID", "GO_ID", "Evidence"]
_GENE2GO = _Layout("gene2go has 8", "ncbi_gene_id", "#", 8, 1, 2, 3, 4, 7, "Process", 0)
_GAF = _Layout("GAF 2 has 15 or more", "symbol", "!", 15, 2, 4, 6, 3, 8, "P", 12)
_LAYOUTS = "accepted: NCBI gene2go (8 columns headed #tax_id) or GAF 2 (15 columns or more, headed !gaf-version)"


@dataclass(frozen=True, slots=True)
class Annotations:
    """Genes by term.

    ``key`` is how genes are named: ``ncbi_gene_id`` or ``symbol``. ``dropped`` counts rows left out, by reason.
    """

    genes: dict[str, set[str]]
    key: Literal["ncbi_gene_id", "symbol"]
    dropped: dict[str, int]


def read_annotations(path: Path, *, excluded_evidence: Collection[str]) -> Annotations:
    """Read the human genes directly annotated with each biological process, from NCBI gene2go or GAF 2.

    The layout is recognised by the first line: gene2go begins with ``#tax_id``, GAF with ``!``. gene2go names a gene by
    its NCBI Gene id, GAF by a symbol. Annotations of other species, of other aspects than biological process and
    negated ones are skipped.

    Args:
        excluded_evidence: evidence codes that do not count, such as IEA (made by a program) and ND (no data).

    Raises:
        DataError: for a file in neither layout, or a row with too few columns.
    """
    genes: dict[str, set[str]] = {}
    dropped = {"other species": 0, "other aspect": 0, "negated": 0, "weak evidence": 0}
    layout = _find_layout(path)
    for number, line in source_lines(path):
        if line.startswith(layout.comment):
            continue
        row = line.split("\t")
        if len(row) < layout.width:
            raise DataError(f"{len(row)} columns", where=f"{path}:{number}", hint=layout.title)
        if row[layout.taxon].split("|")[0].removeprefix("taxon:") != HUMAN:
            dropped["other species"] += 1
        elif row[layout.aspect] != layout.process:
            dropped["other aspect"] += 1
        elif "NOT" in row[layout.qualifier].split("|")[0].split():
            dropped["negated"] += 1
        elif row[layout.evidence] in excluded_evidence:
            dropped["weak evidence"] += 1
        else:
            genes.setdefault(row[layout.term], set()).add(row[layout.gene])
    if not genes:
        what = f"no annotation of species {HUMAN} is left ({sum(dropped.values()):,} rows dropped)"
        raise DataError(what, where=str(path), hint=_LAYOUTS)
    return Annotations(genes, layout.key, dropped)


def _find_layout(path: Path) -> _Layout:
    for number, line in source_lines(path):
        if line.startswith("!"):
            return _GAF
        if line.lstrip("#").split("\t")[:4] == _GENE2GO_HEADER:
            return _GENE2GO
        raise DataError(f"an unknown layout: {excerpt(line)}", where=f"{path}:{number}", hint=_LAYOUTS)
    raise DataError("an empty file", where=str(path), hint=_LAYOUTS)
