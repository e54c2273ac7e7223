"""Rare diseases as subgraphs: their phenotypes, their Orphanet classes, and which of them are forms of one disorder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from subgnn.data.real.hpo import HpoRelease
from subgnn.data.real.orphapacket import Orphanet
from subgnn.data.real.phenotype_graph import PhenotypeGraph
from subgnn.data.real.settings import at_least
from subgnn.errors import DataError

METABOLIC: dict[str, tuple[str, ...]] = {
    "Energy": ("79200",),
    "Amino_Acid": ("79062",),
    "Lysosomal": ("68366",),
    "Glycosylation": ("137",),
    "Lipid": ("309005",),
    "Carbohydrate": ("79161",),
}
# The paper's tenth class, Intellectual (183757), covers two thirds of all entries of recent releases.
NEUROLOGICAL: dict[str, tuple[str, ...]] = {
    "Epilepsy": ("183512",),
    "Neuromuscular": ("183497",),
    "Neurodegenerative": ("183500",),
    "Neurometabolic": ("68385",),
    "CNS_Malformation": ("183506",),
    "Peripheral_Neuropathy": ("98497",),
    "Genetic_Dementia": ("158124",),
    "Movement": ("183521",),
    "Ataxia": ("183518",),
}


@dataclass(frozen=True, slots=True)
class DiseaseSettings:
    """Which diseases become subgraphs, and what their labels are.

    Args:
        labels: the Orphanet entries whose descendants have each label.
        multi_label: keep all labels of a disease; otherwise one with several is dropped.
        mappings: how an OMIM entry may relate to the Orphanet entries whose labels it takes.
        min_phenotypes: phenotypes of a disease that are in the graph.
    """

    labels: Mapping[str, tuple[str, ...]]
    multi_label: bool
    mappings: tuple[str, ...] = ("E", "BTNT")
    min_phenotypes: int = 3

    def __post_init__(self) -> None:
        at_least(1, min_phenotypes=self.min_phenotypes)
        if len(self.labels) < 2:
            raise DataError(f"{len(self.labels)} labels", where="labels", hint="at least 2 are needed")


METAB = DiseaseSettings(labels=METABOLIC, multi_label=False)
NEURO = DiseaseSettings(labels=NEUROLOGICAL, multi_label=True)


@dataclass(frozen=True, slots=True)
class LabelledDisease:
    """A disease with its nodes and labels; ``group`` is the same for all forms of one disorder."""

    id: str
    name: str
    nodes: frozenset[int]
    labels: tuple[str, ...]
    group: str


def label_diseases(
    release: HpoRelease, orphanet: Orphanet, graph: PhenotypeGraph, settings: DiseaseSettings
) -> tuple[list[LabelledDisease], dict[str, int]]:
    """Diseases with enough phenotypes and a label, in the order of their ids, and how many were dropped, by reason.

    An ORPHA id has the labels of its entry, an OMIM id those of all entries it is mapped to. Headings of the
    classification (categories and clinical groups) are no disorders and give no labels. Of diseases with equal
    phenotypes the first is kept.
    """
    below = {label: set().union(*map(orphanet.below, roots)) for label, roots in settings.labels.items()}
    codes = disorder_codes(orphanet, settings.mappings)
    groups = disorder_groups(orphanet, codes)
    seen: set[frozenset[int]] = set()
    found = []
    dropped = {"diseases not mapped to a disorder": 0, "diseases under no label": 0, "diseases under several labels": 0}
    dropped |= {"diseases with too few phenotypes": 0, "diseases with the phenotypes of another": 0}
    for id_ in sorted(release.diseases):
        disease = release.diseases[id_]
        nodes, entries = graph.places(disease.phenotypes), codes.get(id_, ())
        labels = tuple(label for label, under in below.items() if not under.isdisjoint(entries))
        if not entries:
            dropped["diseases not mapped to a disorder"] += 1
        elif not labels:
            dropped["diseases under no label"] += 1
        elif len(labels) > 1 and not settings.multi_label:
            dropped["diseases under several labels"] += 1
        elif len(nodes) < settings.min_phenotypes:
            dropped["diseases with too few phenotypes"] += 1
        elif nodes in seen:
            dropped["diseases with the phenotypes of another"] += 1
        else:
            seen.add(nodes)
            found.append(LabelledDisease(id_, disease.name, nodes, labels, f"ORPHA:{groups[entries[0]]}"))
    return found, dropped


def disorder_codes(orphanet: Orphanet, mappings: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The disorders that each ORPHA or OMIM id of an annotated disease stands for."""
    codes: dict[str, list[str]] = {}
    for disorder in orphanet.disorders.values():
        if disorder.is_group:
            continue
        codes.setdefault(f"ORPHA:{disorder.code}", []).append(disorder.code)
        for reference, relation in disorder.omim:
            if relation in mappings:
                codes.setdefault(f"OMIM:{reference}", []).append(disorder.code)
    return {id_: tuple(sorted(found)) for id_, found in codes.items()}


def disorder_groups(orphanet: Orphanet, codes: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """For each disorder, the smallest code of its group.

    A subtype is grouped with the disorder above it, and all disorders that one OMIM entry is mapped to with each other.
    """
    parent = {code: code for code, disorder in orphanet.disorders.items() if not disorder.is_group}

    def root(code: str) -> str:
        while parent[code] != code:
            parent[code] = parent[parent[code]]
            code = parent[code]
        return code

    def join(a: str, b: str) -> None:
        first, second = sorted((root(a), root(b)), key=_code_order)
        parent[second] = first

    for code in parent:
        disorder = orphanet.disorders[code]
        for above in disorder.parents if disorder.is_subtype else ():
            if above in parent:
                join(code, above)
    for together in codes.values():
        for other in together[1:]:
            join(together[0], other)
    return {code: root(code) for code in parent}


def _code_order(code: str) -> tuple[int, str]:
    return len(code), code
