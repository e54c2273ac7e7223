"""Ontologies in OBO, and lines of source files."""

import gzip
from pathlib import Path

import pytest

from subgnn.errors import DataError
from subgnn.lab.datasets.builder import Ontology, Term, read_obo
from tests.lab.datasets.samples import obo

TERMS = [
    ("X:1", ["namespace: process"]),
    ("X:2", ["is_a: X:1 ! name of X:1", "alt_id: X:9", 'def: "words: with ! marks" [PMID:1]']),
    ("X:3", ['is_a: X:2 {source="a"} ! name', "relationship: part_of X:1 ! name", "relationship: regulates X:4"]),
    ("X:4", ["relationship: part_of X:2 ! name", "is_a: Y:1 ! of another file"]),
    ("X:5", ["is_a: X:1", "is_obsolete: true", "alt_id: X:8"]),
]


@pytest.fixture
def ontology(tmp_path: Path) -> Ontology:
    path = tmp_path / "x.obo"
    path.write_bytes(gzip.compress(obo(TERMS).encode()))
    return read_obo(path)


def test_terms_have_names_parents_and_other_ids(ontology: Ontology) -> None:
    assert list(ontology.terms) == ["X:1", "X:2", "X:3", "X:4", "X:5"]
    assert ontology.version == "releases/2022-07-01"
    assert ontology.terms["X:1"] == Term("X:1", "name of X:1")
    assert ontology.terms["X:3"].is_a == ("X:2",)
    assert ontology.terms["X:3"].part_of == ("X:1",)
    assert ontology.terms["X:5"].obsolete
    assert ontology.merged() == {"X:9": "X:2"}


def test_ancestors_follow_part_of_or_not(ontology: Ontology) -> None:
    both, is_a = ontology.ancestors(), ontology.ancestors(part_of=False)
    assert both["X:4"] == {"X:4", "X:2", "X:1"}
    assert is_a["X:4"] == {"X:4"}
    assert is_a["X:3"] == {"X:3", "X:2", "X:1"}
    assert "X:5" not in both


def test_a_term_above_itself_is_refused() -> None:
    loop = {"X:1": Term("X:1", is_a=("X:2",)), "X:2": Term("X:2", part_of=("X:1",))}
    with pytest.raises(DataError, match="term X:1 is above itself"):
        Ontology(loop).ancestors()
