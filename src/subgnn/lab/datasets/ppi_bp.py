"""PPI-BP: genes of a biological process in the human interactome, labelled by its broad function (paper, appendix B).

*Differs from the paper:* gene sets are the direct annotations of each GO term rather than MSigDB's collection, and an
upper size excludes terms that are too general.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from subgnn.config.files import Count, Probability
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, Strings, is_id
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, excerpt
from subgnn.lab.datasets import builder
from subgnn.rng import stream

HUMAN = "9606"
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "metabolism": ("GO:0008152",),
    "development": ("GO:0032502",),
    "signal_transduction": ("GO:0007165",),
    "stress_death": ("GO:0006950", "GO:0008219"),
    "cell_org": ("GO:0016043",),
    "transport": ("GO:0006810",),
}


@dataclass(frozen=True, slots=True)
class PpiBpSettings:
    """Which gene sets are subgraphs; a term under exactly one label, by is_a and part_of, has it."""

    labels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(FUNCTIONS))
    min_genes: Count = 5  # of a set, that are in the interactome
    max_genes: Count = 160
    max_overlap: Probability = 0.7  # a set that shares this much of the smaller one with a larger kept set is dropped
    excluded_evidence: tuple[str, ...] = ("IEA", "ND")  # made by a program; no data
    fractions: builder.Fractions = (0.8, 0.1, 0.1)


@dataclass(frozen=True, slots=True, eq=False)
class Interactome:
    """The graph, the gene of each node, and counts of what was dropped, by reason."""

    graph: Graph
    genes: list[str]
    dropped: dict[str, int]


def read_gene_symbols(path: Path) -> dict[str, str]:
    """NCBI Gene id to symbol, by the columns ``GeneID`` and ``Symbol``; rows of another ``tax_id`` are skipped."""
    rows = builder.read_columns(path, ("GeneID", "Symbol"))
    symbols = {row["GeneID"]: row["Symbol"] for row in rows if row.get("tax_id", HUMAN) == HUMAN}
    if not symbols:
        raise DataError("no genes", where=str(path), hint="a table with the columns GeneID and Symbol is accepted")
    return symbols


def read_interactome(path: Path, symbols: dict[str, str] | None = None) -> Interactome:
    """The largest component of an interactome, a CSV file whose first two columns are gene ids, under a header or not.

    Self loops, repeated pairs and ids without one of the ``symbols`` are dropped and counted.
    """
    dropped = {"pairs of a gene with itself": 0, "pairs with another species": 0, "repeated pairs": 0}
    pairs: set[tuple[int, int]] = set()
    for place, (number, line) in enumerate(builder.source_lines(path)):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < 2 or not all(is_id(cell) for cell in cells[:2]):
            if place == 0 and len(cells) >= 2:
                continue  # the header
            hint = "two columns of NCBI Gene ids, separated by a comma, are accepted"
            raise DataError(f"{excerpt(line)} is not a pair of genes", where=f"{path}:{number}", hint=hint)
        if cells[0] == cells[1]:
            dropped["pairs of a gene with itself"] += 1
        elif symbols is not None and not symbols.keys() >= set(cells[:2]):
            dropped["pairs with another species"] += 1
        else:
            a, b = sorted((int(cells[0]), int(cells[1])))
            dropped["repeated pairs"] += (a, b) in pairs
            pairs.add((a, b))
    if not pairs:
        raise DataError("no pair of genes is left", where=str(path), hint=f"dropped: {dropped}")
    ids, codes = np.unique(np.array(sorted(pairs), np.int64), return_inverse=True)
    codes = codes.reshape(-1, 2)
    links = coo_array((np.ones(len(codes), np.int8), (codes[:, 0], codes[:, 1])), shape=(len(ids), len(ids)))
    label = connected_components(links, directed=False)[1]
    largest = label == np.argmax(np.bincount(label))  # of equal ones, that of the smallest id
    dropped["genes outside the largest component"] = int(len(ids) - largest.sum())
    codes = (np.cumsum(largest) - 1)[codes[largest[codes[:, 0]]]]
    genes = [str(gene) for gene in ids[largest]]
    columns = {} if symbols is None else {"symbol": Strings.of(symbols.get(gene, gene) for gene in genes)}
    names = NodeNames({**columns, "ncbi_gene_id": Strings.of(genes)})
    return Interactome(Graph.from_edges(codes[:, 0], codes[:, 1], num_nodes=len(genes), names=names), genes, dropped)


def read_annotations(path: Path, excluded_evidence: Collection[str]) -> tuple[dict[str, set[str]], dict[str, int]]:
    """The human genes directly annotated with each biological process, and counts of dropped rows of gene2go."""
    genes: dict[str, set[str]] = {}
    dropped: dict[str, int] = {}
    wanted = ("tax_id", "GeneID", "GO_ID", "Evidence", "Qualifier", "Category")
    for row in builder.read_columns(path, wanted, hint="; NCBI's gene2go is accepted"):
        reasons = {
            "other species": row["tax_id"] != HUMAN,
            "other aspect": row["Category"] != "Process",
            "negated": "NOT" in row["Qualifier"].split(),
            "weak evidence": row["Evidence"] in excluded_evidence,
        }
        if not builder.is_dropped(dropped, reasons):
            genes.setdefault(row["GO_ID"], set()).add(row["GeneID"])
    if not genes:
        what = f"no annotation of species {HUMAN} is left ({sum(dropped.values()):,} rows dropped)"
        raise DataError(what, where=str(path), hint="NCBI's gene2go is accepted")
    return genes, dropped


class _GeneSet(NamedTuple):
    term: str
    label: str
    nodes: frozenset[int]


def build_ppi_bp(files: builder.Files, settings: PpiBpSettings, seed: int, on_step: builder.OnStep) -> builder.Draft:
    """Build PPI-BP."""
    on_step("reading the interactome")
    symbols = read_gene_symbols(files["gene_symbols"]) if "gene_symbols" in files else None
    network = read_interactome(files["interactome"], symbols)
    on_step("reading the Gene Ontology")
    ontology = builder.read_obo(files["go"])
    on_step("reading annotations")
    annotations, left_out = read_annotations(files["annotations"], settings.excluded_evidence)
    on_step("choosing gene sets")
    places = {gene: node for node, gene in enumerate(network.genes)}
    candidates, dropped = _candidates(annotations, ontology, places, settings)
    kept = _drop_overlapping(candidates, settings.max_overlap)
    dropped["overlap with a larger set"] = len(candidates) - len(kept)
    if not kept:
        raise DataError("no gene set is left", where=str(files["annotations"]), hint=f"dropped: {dropped}")
    subgraphs = SubgraphSet.from_lists(
        [sorted(s.nodes) for s in kept],
        num_nodes=network.graph.num_nodes,
        labels=[s.label for s in kept],
        splits=class_splits([s.label for s in kept], settings.fractions, stream(seed, "build/ppi-bp/split")),
        names=[s.term for s in kept],
    )
    dropped = {**network.dropped, **{f"annotations ({k})": v for k, v in left_out.items()}, **dropped}
    titles = [ontology.terms[s.term].name for s in kept]
    return builder.Draft(network.graph, subgraphs, dropped, titles, versions={"go": ontology.version})


def _candidates(
    annotations: Mapping[str, set[str]], ontology: builder.Ontology, places: dict[str, int], settings: PpiBpSettings
) -> tuple[list[_GeneSet], dict[str, int]]:
    for root in (root for roots in settings.labels.values() for root in roots):
        if root not in ontology.terms:
            raise DataError(f"label root {root} is not in the ontology", where="labels", hint="is the file complete?")
    merged, above = ontology.merged(), ontology.ancestors()
    sets: dict[str, set[int]] = {}
    found, dropped = [], dict[str, int]()
    for given, genes in annotations.items():
        term = merged.get(given, given)
        if not builder.is_dropped(dropped, {"terms not in the ontology": term not in above}):
            sets.setdefault(term, set()).update(places[gene] for gene in genes if gene in places)
    for term, nodes in sorted(sets.items()):
        labels = [name for name, roots in settings.labels.items() if not above[term].isdisjoint(roots)]
        reasons = {
            "sets too small": len(nodes) < settings.min_genes,
            "sets too large": len(nodes) > settings.max_genes,
            "sets under no label": not labels,
            "sets under several labels": len(labels) > 1,
        }
        if not builder.is_dropped(dropped, reasons):
            found.append(_GeneSet(term, labels[0], frozenset(nodes)))
    return found, dropped


def _drop_overlapping(candidates: Sequence[_GeneSet], max_overlap: float) -> list[_GeneSet]:
    """Drop each set that overlaps too much with a larger one, or with one of its size and a smaller id."""
    kept: list[_GeneSet] = []
    holders: dict[int, list[int]] = {}
    for candidate in sorted(candidates, key=lambda s: (-len(s.nodes), s.term)):
        shared = Counter(place for node in candidate.nodes for place in holders.get(node, ()))
        # Kept sets are at least as large, so the candidate is the smaller of the two.
        if any(count >= max_overlap * len(candidate.nodes) - 1e-9 for count in shared.values()):
            continue
        for node in candidate.nodes:
            holders.setdefault(node, []).append(len(kept))
        kept.append(candidate)
    return sorted(kept, key=lambda s: s.term)


def class_splits(labels: Sequence[str], fractions: builder.Fractions, rng: np.random.Generator) -> list[str]:
    """A split drawn class by class: val and test get their share of each class, rounded half up, train the rest."""
    splits = ["train"] * len(labels)
    for label in sorted(set(labels)):
        rows = rng.permutation([i for i, given in enumerate(labels) if given == label]).tolist()
        val, test = (int(len(rows) * fraction + 0.5) for fraction in fractions[1:])
        for place, row in enumerate(rows[: val + test]):
            splits[row] = "val" if place < val else "test"
    return splits


PPI_BP = builder.Builder("ppi-bp", PpiBpSettings(), build_ppi_bp, optional=("gene_symbols",))
