"""PPI-BP: genes of a biological process in the human interactome, labelled by its broad function (paper, appendix B).

*Differs from the paper:* gene sets are the direct annotations of each GO term rather than MSigDB's collection, and an
upper size excludes terms that are too general.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from subgnn.config.files import parse_options
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError
from subgnn.lab.datasets.builder import (
    Builder,
    BuiltDataset,
    OnStep,
    Provenance,
    Request,
    at_least,
    check_fractions,
    make_dataset,
    read_labels,
    within,
)
from subgnn.lab.datasets.genes import (
    Annotations,
    Interactome,
    read_annotations,
    read_gene_symbols,
    read_interactome,
    read_node_ids,
)
from subgnn.lab.datasets.obo import Ontology, read_obo
from subgnn.lab.datasets.sources import SourceFile
from subgnn.parallel.progress import ignore
from subgnn.rng import stream

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
    """Which gene sets are subgraphs.

    Args:
        labels: the GO terms that each label stands for; a term under exactly one label, by is_a and part_of, has it.
        min_genes, max_genes: genes of a set that are in the interactome.
        max_overlap: a set that shares this much of the smaller one with a larger kept set is dropped.
        excluded_evidence: evidence codes that do not count.
        fractions: of train, val and test, in every class.
    """

    labels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(FUNCTIONS))
    min_genes: int = 5
    max_genes: int = 160
    max_overlap: float = 0.7
    excluded_evidence: tuple[str, ...] = ("IEA", "ND")
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)

    def __post_init__(self) -> None:
        at_least(1, min_genes=self.min_genes)
        at_least(self.min_genes, max_genes=self.max_genes)
        within(0, 1, max_overlap=self.max_overlap)
        check_fractions(self.fractions)


@dataclass(frozen=True, slots=True)
class _GeneSet:
    term: str
    label: str
    nodes: frozenset[int]


@dataclass(frozen=True, slots=True)
class PpiBpFiles:
    """The files that PPI-BP is built from.

    Args:
        interactome: CSV of pairs of NCBI Gene ids, with a header line.
        go: the Gene Ontology in OBO.
        annotations: in the columns of gene2go or of GAF 2.
        gene_symbols: ids and symbols of all human genes; other ids are then dropped, and nodes get their symbols.
        node_ids: the gene of each node of the released graph; the graph is then that one, and the subgraphs that the
            authors released fit it. From the interactome alone it cannot be had: nodes are the genes that its authors
            took for human, then the others, and which these are is not published.
    """

    interactome: Path
    go: Path
    annotations: Path
    gene_symbols: Path | None = None
    node_ids: Path | None = None


def build_ppi_bp(
    files: PpiBpFiles, *, settings: PpiBpSettings | None = None, seed: int = 0, on_step: OnStep = ignore
) -> BuiltDataset:
    """Build PPI-BP.

    Raises:
        DataError: for a file of another kind, or where no gene set is left.
    """
    settings = settings or PpiBpSettings()
    on_step("reading the interactome")
    symbols = None if files.gene_symbols is None else read_gene_symbols(files.gene_symbols)
    node_ids = None if files.node_ids is None else read_node_ids(files.node_ids)
    network = read_interactome(files.interactome, symbols=symbols, node_ids=node_ids)
    on_step("reading the Gene Ontology")
    ontology = read_obo(files.go)
    on_step("reading annotations")
    annotated = read_annotations(files.annotations, excluded_evidence=settings.excluded_evidence)
    on_step("choosing gene sets")
    places = _places(network, annotated, symbols, files.annotations)
    candidates, dropped = _candidates(annotated, ontology, places, settings)
    kept = _drop_overlapping(candidates, settings.max_overlap)
    dropped["overlap with a larger set"] = len(candidates) - len(kept)
    if not kept:
        raise DataError("no gene set is left", where=str(files.annotations), hint=f"dropped: {dropped}")
    splits = class_splits([s.label for s in kept], settings.fractions, stream(seed, "build/ppi-bp/split"))
    subgraphs = SubgraphSet.from_lists(
        [sorted(s.nodes) for s in kept],
        num_nodes=network.graph.num_nodes,
        labels=[s.label for s in kept],
        splits=splits,
        names=[s.term for s in kept],
    )
    note = (
        "Nodes are human genes, edges physical interactions, a subgraph the genes directly annotated with one "
        "GO biological process, its label the one broad function above it. Not the paper's own file: releases differ."
    )
    given = {key: getattr(files, key) for key in ("interactome", "go", "annotations", "gene_symbols", "node_ids")}
    versions = {"go": ontology.version}
    sources = [SourceFile(key, (path,), versions.get(key, "")) for key, path in given.items() if path is not None]
    dropped = {**network.dropped, **{f"annotations ({k})": v for k, v in annotated.dropped.items()}, **dropped}
    provenance = Provenance(note, sources, settings, seed, dropped)
    dataset = make_dataset("ppi-bp", network.graph, subgraphs, provenance)
    return BuiltDataset(dataset, [ontology.terms[s.term].name for s in kept])


def _places(network: Interactome, annotated: Annotations, symbols: dict[str, str] | None, path: Path) -> dict[str, int]:
    """The node of each gene, by the name that the annotations use."""
    if annotated.key == "ncbi_gene_id":
        return {gene: node for node, gene in enumerate(network.genes)}
    if symbols is None:
        hint = "pass the gene symbols as well, or annotations in gene2go columns"
        raise DataError("GAF names genes by symbol, the interactome by id", where=str(path), hint=hint)
    places: dict[str, int] = {}
    for node, gene in enumerate(network.genes):
        places.setdefault(symbols.get(gene, gene), node)
    return places


def _candidates(
    annotated: Annotations, ontology: Ontology, places: dict[str, int], settings: PpiBpSettings
) -> tuple[list[_GeneSet], dict[str, int]]:
    """Gene sets of the right size under exactly one label."""
    for roots in settings.labels.values():
        for root in roots:
            if root not in ontology.terms:
                raise DataError(f"label root {root} is not in the ontology", where="labels", hint="is the file whole?")
    merged, above = ontology.merged(), ontology.ancestors()
    sets: dict[str, set[int]] = {}
    unknown = 0
    for given, genes in annotated.genes.items():
        term = merged.get(given, given)
        if term not in above:
            unknown += 1
            continue
        sets.setdefault(term, set()).update(places[gene] for gene in genes if gene in places)
    found = []
    dropped = {"terms not in the ontology": unknown, "sets too small": 0, "sets too large": 0}
    dropped |= {"sets under no label": 0, "sets under several labels": 0}
    for term in sorted(sets):
        labels = [name for name, roots in settings.labels.items() if not above[term].isdisjoint(roots)]
        if len(sets[term]) < settings.min_genes:
            dropped["sets too small"] += 1
        elif len(sets[term]) > settings.max_genes:
            dropped["sets too large"] += 1
        elif len(labels) != 1:
            dropped["sets under several labels" if labels else "sets under no label"] += 1
        else:
            found.append(_GeneSet(term, labels[0], frozenset(sets[term])))
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


def class_splits(labels: Sequence[str], fractions: tuple[float, float, float], rng: np.random.Generator) -> list[str]:
    """A split drawn class by class: val and test get their share of each class, rounded half up, train the rest.

    Example:
        >>> splits = class_splits(["a"] * 25 + ["b"] * 4, (0.8, 0.1, 0.1), np.random.default_rng(0))
        >>> [splits.count(split) for split in SPLITS]
        [23, 3, 3]
    """
    splits = [SPLITS[0]] * len(labels)
    for label in sorted(set(labels)):
        rows = rng.permutation([i for i, given in enumerate(labels) if given == label]).tolist()
        val, test = (int(len(rows) * fraction + 0.5) for fraction in fractions[1:])
        for i in rows[:val]:
            splits[i] = SPLITS[1]
        for i in rows[val : val + test]:
            splits[i] = SPLITS[2]
    return splits


def _build(request: Request) -> BuiltDataset:
    values = parse_options({"ppi_bp": PpiBpSettings}, request.options, "ppi-bp")["ppi_bp"]
    if request.labels:
        values["labels"] = read_labels(request.labels, "")
    settings = PpiBpSettings(**values)
    return build_ppi_bp(PpiBpFiles(**request.sources), settings=settings, seed=request.seed, on_step=request.on_step)


PPI_BP = Builder("ppi-bp", ("interactome", "go", "annotations"), ("gene_symbols", "node_ids"), _build)
