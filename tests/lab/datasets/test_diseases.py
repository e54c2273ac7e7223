"""Rare diseases: labels, groups, the split by group, simulated patients, and the two datasets."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn.data.describe import check
from subgnn.data.formats.folder import write_folder
from subgnn.errors import DataError
from subgnn.lab.datasets.build import BUILDERS, build
from subgnn.lab.datasets.builder import Ontology, Term
from subgnn.lab.datasets.rare_diseases import (
    Disorder,
    HpoRelease,
    LabelledDisease,
    Orphanet,
    RareDiseaseSettings,
    build_phenotype_graph,
    disorder_codes,
    disorder_groups,
    label_diseases,
    labelled_group_split,
)
from tests.lab.datasets.samples import write_hpo

ORPHANET = Orphanet(
    {
        d.code: d
        for d in (
            Disorder("10", "class A", "Category"),
            Disorder("20", "class B", "Category"),
            Disorder("11", "group of A", "Clinical group", ("10",), (("109", "E"),)),
            Disorder("1", "in A", "Disease", ("11",), (("101", "E"), ("102", "BTNT"), ("103", "NTBT"))),
            Disorder("2", "form of 1", "Clinical subtype", ("1", "10")),
            Disorder("3", "in B", "Disease", ("20",), (("102", "E"),)),
            Disorder("4", "in both", "Disease", ("10", "20"), (("104", "E"),)),
            Disorder("5", "in neither", "Disease", ()),
            Disorder("6", "in B too", "Disease", ("20",)),
        )
    }
)
ROOT = "HP:0000118"
TERMS = {ROOT: Term(ROOT)} | {f"HP:{i}": Term(f"HP:{i}", is_a=(ROOT,)) for i in range(1, 10)}
PHENOTYPES = {
    "OMIM:101": "1 2 3",
    "OMIM:102": "1 2 4",
    "OMIM:103": "1 2 5",
    "OMIM:104": "1 2 6",
    "OMIM:109": "1 2 7",
    "ORPHA:1": "1 2 3",
    "ORPHA:11": "2 3 4",
    "ORPHA:2": "3 4 5 6",
    "ORPHA:3": "4 5",
    "ORPHA:5": "5 6 7",
    "ORPHA:6": "6 7 8",
}
RELEASE = HpoRelease(
    Ontology(TERMS),
    {d: {f"HP:{i}" for i in given.split()} for d, given in PHENOTYPES.items()},
    {d: f"name {d}" for d in PHENOTYPES},
    {},
    (),
    {},
)
GRAPH = build_phenotype_graph(RELEASE)
TWO = RareDiseaseSettings({"A": "10", "B": "20"}, multi_label=True)


def found(settings: RareDiseaseSettings = TWO) -> dict[str, LabelledDisease]:
    return {disease.id: disease for disease in label_diseases(RELEASE, ORPHANET, GRAPH, settings)[0]}


def test_labels_come_from_the_classification_and_the_mappings() -> None:
    assert {id_: disease.labels for id_, disease in found().items()} == {
        "OMIM:101": ("A",),
        "OMIM:102": ("A", "B"),
        "OMIM:104": ("A", "B"),
        "ORPHA:2": ("A",),
        "ORPHA:6": ("B",),
    }
    single = RareDiseaseSettings(TWO.labels, multi_label=False)
    assert set(found(single)) == {"OMIM:101", "ORPHA:2", "ORPHA:6"}
    assert label_diseases(RELEASE, ORPHANET, GRAPH, TWO)[1] == {
        "diseases not mapped to a disorder": 3,  # narrower than 103; 109 and 11 are a heading
        "diseases under no label": 1,
        "diseases under several labels": 0,
        "diseases with too few phenotypes": 1,
        "diseases with the phenotypes of another": 1,
    }


def test_forms_of_a_disorder_are_one_group() -> None:
    codes = disorder_codes(ORPHANET)
    assert codes["OMIM:102"] == ("1", "3")
    assert "OMIM:109" not in codes
    # 2 is a form of 1, and OMIM:102 stands for 1 and 3.
    assert disorder_groups(ORPHANET, codes) == {"1": "1", "2": "1", "3": "1", "4": "4", "5": "5", "6": "6"}
    assert {disease.group for disease in found().values()} == {"ORPHA:1", "ORPHA:4", "ORPHA:6"}


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 40), st.sets(st.sampled_from("abc"), min_size=1)), min_size=60, max_size=120))
def test_groups_stay_whole(rows: list[tuple[int, set[str]]]) -> None:
    groups = [group for group, _ in rows] + [100, 101, 102]
    labels = [sorted(given) for _, given in rows] + [["a"], ["b"], ["c"]]
    splits = labelled_group_split(groups, labels, (0.6, 0.2, 0.2), np.random.default_rng(0))
    assert set(splits) == {"train", "val", "test"}
    for group in set(groups):
        assert len({split for g, split in zip(groups, splits, strict=True) if g == group}) == 1


def test_every_split_gets_its_share_of_every_label() -> None:
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 300, 900).tolist()
    labels = [["x"] if i % 4 else ["x", "y"] for i in range(900)]
    splits = labelled_group_split(groups, labels, (0.8, 0.1, 0.1), rng)
    sizes = Counter(splits)
    assert abs(sizes["val"] - 90) <= 4
    assert abs(sizes["test"] - 90) <= 4
    rare = Counter(split for split, given in zip(splits, labels, strict=True) if "y" in given)
    assert abs(rare["val"] - 22.5) <= 4


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    hpo, orphapacket = write_hpo(tmp_path_factory.mktemp("sources"))
    return {"hpo": hpo, "orphapacket": orphapacket}


def test_a_build_is_a_dataset_that_reads_back(sources: dict[str, Path], tmp_path: Path) -> None:
    made, titles = build("hpo-metab", sources)
    write_folder(made, tmp_path / "out", subgraph_titles=titles)
    problems, dataset = check(tmp_path / "out")
    assert dataset is not None
    assert not problems.errors
    assert dataset.graph.num_nodes == 1 + 8 + 64
    assert set(dataset.subgraphs.label_counts()) == {"Energy", "Lipid"}
    assert dataset.card["counts"]["subgraphs"] == len(dataset.subgraphs)
    assert dataset.card["sources"][0]["version"] == "hp/releases/2025-01-16"
    assert set(dataset.card["sources"][0]["files"]) == {"hp.obo", "phenotype.hpoa", "phenotype_to_genes.txt"}
    rows = [line.split("\t") for line in (tmp_path / "out" / "subgraph_names.tsv").read_text().splitlines()]
    assert rows[0][:2] == ["OMIM:600000", "name of OMIM:600000"]
    splits = (tmp_path / "out" / "subgraphs.tsv").read_text().splitlines()
    by_group: dict[str, set[str]] = {}
    for row, line in zip(rows, splits, strict=True):
        by_group.setdefault(row[2], set()).add(line.split("\t")[2])
    assert all(len(found) == 1 for found in by_group.values())


def test_neuro_is_multi_label(sources: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    roots = {"Epilepsy": "79200", "Ataxia": "309005", "Movement": "309005"}
    builder = BUILDERS["hpo-neuro"]
    monkeypatch.setitem(BUILDERS, "hpo-neuro", replace(builder, settings=replace(builder.settings, labels=roots)))
    subgraphs = build("hpo-neuro", sources)[0].subgraphs
    assert subgraphs.task == "multi-label"
    counts = subgraphs.label_counts()
    assert counts["Ataxia"] == counts["Movement"] == len(subgraphs) - counts["Epilepsy"]


def test_a_build_without_any_disease_says_so(sources: dict[str, Path]) -> None:
    with pytest.raises(DataError, match=r"no disease is left; dropped: .*too few phenotypes"):
        build("hpo-metab", sources, options={"min_phenotypes": 9})
