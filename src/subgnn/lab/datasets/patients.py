"""Simulated patients of rare diseases (paper, appendix B, HPO-NEURO).

A patient has some of the phenotypes of a disease, some of them made less specific by walking up the ontology, some
distractors from a similar but wrong disease, and some noise. The paper gives no numbers: those here are settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from subgnn.lab.datasets.builder import at_least, within
from subgnn.lab.datasets.hpo import PhenotypeGraph
from subgnn.lab.datasets.orphanet import LabelledDisease
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
            nodes |= _distract(diseases[i], near, settings.distractors, rng)
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
    most = min(settings.max_sampled, len(disease.nodes))
    least = min(settings.min_sampled, most)
    chosen = _draw(sorted(disease.nodes), int(rng.integers(least, most + 1)), rng)
    return {
        _walk_up(node, graph, int(rng.integers(1, settings.max_steps + 1)), rng)
        if rng.random() < settings.less_specific
        else node
        for node in sorted(chosen)
    }


def _walk_up(node: int, graph: PhenotypeGraph, steps: int, rng: np.random.Generator) -> int:
    """A phenotype above; the walk ends below the root, which is uninformative."""
    for _ in range(steps):
        above = [parent for parent in graph.parents[node] if graph.parents[parent]]
        if not above:
            break
        node = above[int(rng.integers(len(above)))]
    return node


def _distract(
    disease: LabelledDisease, near: Sequence[LabelledDisease], count: int, rng: np.random.Generator
) -> set[int]:
    if not near:
        return set()
    other = near[int(rng.integers(len(near)))]
    return _draw(sorted(other.nodes - disease.nodes), count, rng)


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
        for parent in graph.parents[ahead.pop()]:
            if parent not in found:
                found.add(parent)
                ahead.append(parent)
    return found
