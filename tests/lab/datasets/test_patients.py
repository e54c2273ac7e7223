"""Simulated patients."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.lab.datasets.hpo import PhenotypeGraph
from subgnn.lab.datasets.orphanet import LabelledDisease
from subgnn.lab.datasets.rare_diseases import Patient, PatientSettings, similar_diseases, simulate_patients

# Node 0 is the root; 1..9 are under it, 10..99 under one of those: node n under n // 10.
PARENTS: list[tuple[int, ...]] = [(), *[(0,)] * 9, *[(n // 10,) for n in range(10, 100)]]
GRAPH = PhenotypeGraph(Graph.from_edges([], [], num_nodes=100), {f"HP:{n}": n for n in range(1, 100)}, PARENTS)


def disease(number: int, nodes: range | list[int], *labels: str, group: str = "") -> LabelledDisease:
    id_ = f"OMIM:{number}"
    return LabelledDisease(id_, f"name {id_}", frozenset(nodes), labels, group or id_)


DISEASES = [
    disease(1, range(10, 20), "A"),
    disease(2, [15, 16, 17, 18, 19, 20, 21], "B"),
    disease(3, [10, 11, 12, 13, 14, 15, 40], "A", group="OMIM:1"),
    disease(4, [19, 50, 51, 52, 53, 54], "B"),
    disease(5, range(60, 70), "B"),
    disease(6, range(70, 80), "A"),
]
PLAIN = PatientSettings(less_specific=0, distractors=0, noise=0, balanced=False)


def simulate(settings: PatientSettings, seed: int = 0, diseases: list[LabelledDisease] = DISEASES) -> list[Patient]:
    return simulate_patients(diseases, ["train"] * len(diseases), GRAPH, settings, seed)


def test_a_plain_patient_has_some_phenotypes_of_the_disease() -> None:
    patients = simulate(replace(PLAIN, per_disease=50, min_sampled=4, max_sampled=6))
    assert [p.disease for p in patients] == [i for i in range(6) for _ in range(50)]
    assert [p.number for p in patients[:50]] == list(range(1, 51))
    for patient in patients:
        assert patient.nodes <= DISEASES[patient.disease].nodes
        assert 4 <= len(patient.nodes) <= 6
    assert {len(p.nodes) for p in patients} == {4, 5, 6}
    assert frozenset().union(*(p.nodes for p in patients if p.disease == 0)) == DISEASES[0].nodes


def test_less_specific_phenotypes_are_above_and_never_the_root() -> None:
    one = simulate(replace(PLAIN, less_specific=1.0, max_steps=1))
    far = simulate(replace(PLAIN, less_specific=1.0, max_steps=9))
    for patient in (*one, *far):
        assert patient.nodes <= {node // 10 for node in DISEASES[patient.disease].nodes}
    half = simulate(replace(PLAIN, less_specific=0.5, per_disease=200))
    some = Counter(1 in p.nodes for p in half if p.disease == 0)
    assert some[True] > 100
    assert all(0 not in p.nodes for p in half)


def test_distractors_come_from_similar_diseases_with_other_labels() -> None:
    assert similar_diseases(DISEASES, 10)[0] == [1, 3]
    assert similar_diseases(DISEASES, 1)[0] == [1]
    assert similar_diseases(DISEASES, 10)[4] == []
    patients = simulate(replace(PLAIN, distractors=2, similar=1, per_disease=30))
    for patient in patients:
        wrong = patient.nodes - DISEASES[patient.disease].nodes
        if patient.disease == 0:
            assert wrong == {20, 21}
        if patient.disease in (4, 5):
            assert not wrong


def test_noise_is_unrelated_and_recorded_of_somebody() -> None:
    patients = simulate(replace(PLAIN, noise=3, per_disease=30))
    recorded = frozenset().union(*(d.nodes for d in DISEASES))
    for patient in patients:
        wrong = patient.nodes - DISEASES[patient.disease].nodes
        assert len(wrong) == 3
        assert wrong <= recorded


def test_the_draws_of_a_disease_depend_on_the_seed_and_on_it_alone() -> None:
    settings = replace(PLAIN, less_specific=0.3, noise=0)
    assert simulate(settings) == simulate(settings)
    assert simulate(settings) != simulate(settings, seed=1)
    fewer = simulate(settings, diseases=DISEASES[3:])
    assert [p.nodes for p in fewer] == [p.nodes for p in simulate(settings) if p.disease >= 3]


def test_classes_are_balanced_in_every_split() -> None:
    diseases = [disease(i, [10 + i, 30, 31, 32], "A" if i % 3 else "B") for i in range(60)]
    splits = ["train" if i < 40 else "val" if i < 50 else "test" for i in range(60)]
    patients = simulate_patients(diseases, splits, GRAPH, PatientSettings(per_disease=2), 0)
    counts = Counter((splits[p.disease], diseases[p.disease].labels[0]) for p in patients)
    for split in ("train", "val", "test"):
        assert counts[split, "A"] == counts[split, "B"] > 0


@pytest.mark.parametrize(
    "wrong",
    [{"per_disease": 0}, {"less_specific": 1.5}, {"noise": -1}, {"max_sampled": 2}, {"max_steps": 0}, {"similar": 0}],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(DataError, match="is accepted"):
        PatientSettings(**wrong)  # type: ignore[arg-type]
