"""Which genes take part in which biological process: annotations in the columns of NCBI gene2go or of GAF 2.

The layout is told from the file itself: gene2go begins with ``#tax_id``, GAF with ``!``. gene2go knows a gene by its
NCBI Gene id, GAF by a symbol. Annotations of other species, of other aspects than biological process and those that
say *not* are passed over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from subgnn.data.real.streaming import numbered_lines
from subgnn.errors import DataError, excerpt

HUMAN = "9606"
_GENE2GO = ("tax_id", "GeneID", "GO_ID", "Evidence", "Qualifier", "GO_term", "PubMed", "Category")
_GAF_COLUMNS = 15
_LAYOUTS = "accepted: NCBI gene2go (8 columns headed #tax_id) or GAF 2 (15 columns or more, headed !gaf-version)"


@dataclass(frozen=True, slots=True)
class Annotations:
    """Genes by term.

    ``key`` is what a gene is known by: ``ncbi_gene_id`` or ``symbol``. ``dropped`` counts rows left out, by reason.
    """

    genes: dict[str, set[str]]
    key: Literal["ncbi_gene_id", "symbol"]
    dropped: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Row:
    gene: str
    term: str
    evidence: str
    qualifier: str
    process: bool
    taxon: str


def read_annotations(path: Path, *, excluded_evidence: Collection[str], taxon: str = HUMAN) -> Annotations:
    """Read the genes directly annotated with each biological process.

    Args:
        excluded_evidence: evidence codes that do not count, such as IEA (made by a program) and ND (no data).
        taxon: the species, as an NCBI Taxonomy id.

    Raises:
        DataError: for a file in neither layout, or a row with too few columns.
    """
    genes: dict[str, set[str]] = {}
    dropped = {"other species": 0, "other aspect": 0, "negated": 0, "weak evidence": 0}
    layout = _layout(path)
    for row in _gene2go_rows(path) if layout == "gene2go" else _gaf_rows(path):
        if row.taxon != taxon:
            dropped["other species"] += 1
        elif not row.process:
            dropped["other aspect"] += 1
        elif "NOT" in row.qualifier.split("|")[0].split():
            dropped["negated"] += 1
        elif row.evidence in excluded_evidence:
            dropped["weak evidence"] += 1
        else:
            genes.setdefault(row.term, set()).add(row.gene)
    if not genes:
        what = f"no annotation of species {taxon} is left ({sum(dropped.values()):,} rows dropped)"
        raise DataError(what, where=str(path), hint=_LAYOUTS)
    return Annotations(genes, "ncbi_gene_id" if layout == "gene2go" else "symbol", dropped)


def _layout(path: Path) -> Literal["gene2go", "gaf"]:
    for number, line in numbered_lines(path):
        if line.startswith("!"):
            return "gaf"
        columns = line.lstrip("#").split("\t")
        if columns[:4] == list(_GENE2GO[:4]):
            return "gene2go"
        raise DataError(f"an unknown layout: {excerpt(line)}", where=f"{path}:{number}", hint=_LAYOUTS)
    raise DataError("an empty file", where=str(path), hint=_LAYOUTS)


def _gene2go_rows(path: Path) -> Iterator[_Row]:
    for number, line in numbered_lines(path):
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) < len(_GENE2GO):
            hint = f"gene2go has {len(_GENE2GO)}: {', '.join(_GENE2GO)}"
            raise DataError(f"{len(columns)} columns", where=f"{path}:{number}", hint=hint)
        taxon, gene, term, evidence, qualifier, _, _, category = columns[: len(_GENE2GO)]
        yield _Row(gene, term, evidence, qualifier, category == "Process", taxon)


def _gaf_rows(path: Path) -> Iterator[_Row]:
    for number, line in numbered_lines(path):
        if line.startswith("!"):
            continue
        columns = line.split("\t")
        if len(columns) < _GAF_COLUMNS:
            hint = f"GAF 2 has {_GAF_COLUMNS} or more"
            raise DataError(f"{len(columns)} columns", where=f"{path}:{number}", hint=hint)
        taxon = columns[12].split("|")[0].removeprefix("taxon:")
        yield _Row(columns[2], columns[4], columns[6], columns[3], columns[8] == "P", taxon)
