"""Small files in the layouts that the sources of real datasets have."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.data.samples import write_files

GO_ROOTS = ("GO:0008152", "GO:0032502", "GO:0007165", "GO:0006950", "GO:0008219", "GO:0016043", "GO:0006810")
METAB_ROOTS = {
    "79200": "Energy",
    "79062": "Amino",
    "68366": "Lysosomal",
    "137": "Glycosylation",
    "309005": "Lipid",
    "79161": "Carbohydrate",
}


def obo(terms: Iterable[tuple[str, Sequence[str]]], *, version: str = "releases/2022-07-01") -> str:
    """An OBO file of (id, further lines)."""
    stanzas = "".join(
        "\n".join(("", "[Term]", f"id: {id_}", f"name: name of {id_}", *lines)) + "\n" for id_, lines in terms
    )
    return f"format-version: 1.2\ndata-version: {version}\n{stanzas}\n[Typedef]\nid: part_of\nname: part of\n"


def gene2go(rows: Iterable[tuple[int, str, str]], *, qualifier: str = "involved_in") -> str:
    """gene2go rows of (gene, term, evidence)."""
    header = "#tax_id\tGeneID\tGO_ID\tEvidence\tQualifier\tGO_term\tPubMed\tCategory\n"
    return header + "".join(f"9606\t{g}\t{t}\t{e}\t{qualifier}\ta process\t-\tProcess\n" for g, t, e in rows)


def symbols(genes: Iterable[int]) -> str:
    """A table of gene ids and symbols."""
    return "GeneID\tSymbol\n" + "".join(f"{g}\tGENE{g}\n" for g in genes)


def ppi_rows() -> list[tuple[int, str, str]]:
    """Ten processes of five genes each, five under metabolism and five under transport."""
    return [(100 + 5 * k + i, f"GO:00000{10 + k}", "IDA") for k in range(10) for i in range(5)]


def write_ppi(folder: Path) -> Path:
    """Everything that PPI-BP is built from: fifty genes in a ring."""
    genes = range(100, 150)
    pairs = [(g, 100 + (g - 99) % 50) for g in genes]
    extra = [(100, 100), (101, 100), (100, 999), (100, 7), (7, 8)]
    terms: list[tuple[str, Sequence[str]]] = [(root, ["namespace: biological_process"]) for root in GO_ROOTS]
    for k in range(10):
        parent = "GO:0008152" if k < 5 else "GO:0006810"
        terms.append((f"GO:00000{10 + k}", [f"is_a: {parent} ! name of {parent}"]))
    files = {
        "network.csv": "Gene 1,Gene 2\n" + "".join(f"{a},{b}\n" for a, b in [*pairs, *extra]),
        "go.obo": obo(terms),
        "gene2go.tsv": gene2go(ppi_rows()),
        "symbols.tsv": symbols([*genes, 7, 8]),
    }
    return write_files(folder, files)


def hpoa(rows: Iterable[tuple[str, str, Mapping[str, str]]]) -> str:
    """A phenotype.hpoa of (disease, term, other columns)."""
    columns = (
        "database_id", "disease_name", "qualifier", "hpo_id", "reference", "evidence", "onset", "frequency", "sex",
        "modifier", "aspect", "biocuration",
    )  # fmt: skip
    lines = ['#description: "HPO annotations for rare diseases"', "#version: 2025-01-16", "\t".join(columns)]
    for disease, term, other in rows:
        row = {"database_id": disease, "disease_name": f"name of {disease}", "hpo_id": term, "aspect": "P", **other}
        lines.append("\t".join(row.get(column, "") for column in columns))
    return "\n".join(lines) + "\n"


def phenotype_to_genes(rows: Iterable[tuple[str, int, str]]) -> str:
    """A phenotype_to_genes.txt of (term, gene, disease)."""
    header = "hpo_id\thpo_name\tncbi_gene_id\tgene_symbol\tdisease_id\n"
    return header + "".join(f"{t}\tname\t{g}\tGENE{g}\t{d}\n" for t, g, d in rows)


def packet(
    code: str,
    *,
    type: str = "Disease",
    parents: Sequence[str] = (),
    omim: Sequence[tuple[str, str]] = (),
    wrapped: bool = False,
) -> dict[str, Any]:
    """An ORPHApacket; ``wrapped`` uses the second layout of references that real packets have."""
    entry: dict[str, Any] = {
        "ORPHApacketId": code,
        "creationDate": "2025-12-09 10:41:42",
        "version": "1.3.42",
        "ORPHAcode": code,
        "Label": f"disorder {code}",
        "DisorderType": {"value": type, "PURL": "http://www.orpha.net/ORDO/Orphanet_1"},
    }
    if parents:
        entry["Parents"] = [{"Parent": [{"ORPHAcode": p, "Label": "above"}]} for p in parents]
    references = [
        {"Source": "OMIM", "Reference": ref, "DisorderMappingRelation": f"{rel} (some words)"} for ref, rel in omim
    ]
    if references:
        entry["ExternalReferences"] = [{"ExternalReference": r} for r in references] if wrapped else references
    return {"Orphapacket": entry}


def write_packets(folder: Path, packets: Iterable[dict[str, Any]]) -> Path:
    """ORPHApackets as a folder of files."""
    return write_files(folder, {f"ORPHApacket_{p['Orphapacket']['ORPHAcode']}.json": json.dumps(p) for p in packets})


def write_hpo(folder: Path) -> tuple[Path, Path]:
    """An HPO folder and an ORPHApacket folder: 24 diseases under each of two metabolic classes, in pairs."""
    terms: list[tuple[str, Sequence[str]]] = [("HP:0000001", []), ("HP:0000118", ["is_a: HP:0000001 ! All"])]
    for k in range(8):
        terms.append((f"HP:000020{k}", ["is_a: HP:0000118 ! Phenotypic abnormality"]))
        terms += [(f"HP:00003{k}{i}", [f"is_a: HP:000020{k} ! above"]) for i in range(8)]
    rows, genes = [], []
    packets = [packet(code, type="Category") for code in METAB_ROOTS]
    for d in range(48):
        root = "79200" if d < 24 else "309005"
        code, omim = str(1000 + d), str(600000 + d)
        packets.append(packet(code, parents=[root], omim=[(omim, "E")], wrapped=bool(d % 3)))
        chosen = [f"HP:00003{(d + j) % 8}{(d // 8 + j * j) % 8}" for j in range(5)]
        rows += [(f"OMIM:{omim}", term, {}) for term in chosen]
        rows += [(f"ORPHA:{code}", term, {"frequency": "HP:0040281"}) for term in chosen[:4]]
        genes += [(chosen[0], 1 + d % 10, f"OMIM:{omim}"), (chosen[0], 20 + d % 7, f"OMIM:{omim}")]
    release = {
        "hp.obo": obo(terms, version="hp/releases/2025-01-16"),
        "phenotype.hpoa": hpoa(rows),
        "phenotype_to_genes.txt": phenotype_to_genes(genes),
    }
    return write_files(folder / "hpo", release), write_packets(folder / "orpha", packets)
