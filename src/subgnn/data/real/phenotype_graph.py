"""The base graph of HPO-METAB and HPO-NEURO: phenotypes, joined by shared causal genes or by the ontology.

*Differs from the paper:* two phenotypes need two shared genes by default. With one, the graph has nearly the paper's
number of edges, but every disease of a single gene is a clique.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from subgnn.data.graph import Graph
from subgnn.data.real.hpo import HpoRelease
from subgnn.data.real.settings import at_least
from subgnn.data.strings import NodeNames, Strings
from subgnn.errors import DataError


@dataclass(frozen=True, slots=True)
class PhenotypeGraphSettings:
    """Which phenotypes are nodes, and what joins them.

    Args:
        root: live terms under it, by is_a, and itself are the nodes; to be annotated with the root itself says nothing.
        min_shared_genes: causal genes that two phenotypes have in common.
        ontology_edges: join parents and children as well.
    """

    root: str = "HP:0000118"
    min_shared_genes: int = 2
    ontology_edges: bool = True

    def __post_init__(self) -> None:
        at_least(1, min_shared_genes=self.min_shared_genes)


@dataclass(frozen=True, slots=True, eq=False)
class PhenotypeGraph:
    """The graph, the node of each phenotype (the root is none), and the nodes above each node."""

    graph: Graph
    nodes: dict[str, int]
    parents: list[tuple[int, ...]]

    def places(self, phenotypes: frozenset[str]) -> frozenset[int]:
        """The nodes of phenotypes; what is no node is left out."""
        return frozenset(self.nodes[p] for p in phenotypes if p in self.nodes)


def build_phenotype_graph(release: HpoRelease, settings: PhenotypeGraphSettings) -> PhenotypeGraph:
    """Join phenotypes that share causal genes, and parents with children.

    A gene belongs to a phenotype where a disease that it causes is annotated with that phenotype directly.
    """
    ontology, root = release.ontology, settings.root
    if root not in ontology.terms:
        raise DataError(f"no term {root}", where="root", hint="HP:0000118 is the root of all phenotypes")
    above = ontology.ancestors(("is_a",))
    terms = sorted(term for term, found in above.items() if root in found)
    nodes = {term: node for node, term in enumerate(terms)}
    parents = [tuple(nodes[p] for p in ontology.parents(term, ("is_a",)) if p in nodes) for term in terms]
    del nodes[root]
    edges = [_shared_genes(release, nodes, settings.min_shared_genes, len(terms))]
    if settings.ontology_edges:
        edges.append(_ontology_edges(parents))
    tails, heads = np.divmod(np.unique(np.concatenate(edges)), len(terms))
    names = NodeNames(
        {"hpo_id": Strings.of(terms), "name": Strings.of(ontology.terms[t].name for t in terms)}, primary="name"
    )
    return PhenotypeGraph(Graph.from_edges(tails, heads, num_nodes=len(terms), names=names), nodes, parents)


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
    keys: NDArray[np.int64] = shared.row[enough].astype(np.int64) * size + shared.col[enough]
    return keys


def _ontology_edges(parents: list[tuple[int, ...]]) -> NDArray[np.int64]:
    size = len(parents)
    return np.array([min(n, p) * size + max(n, p) for n, above in enumerate(parents) for p in above], np.int64)
