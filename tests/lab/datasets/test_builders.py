"""Options as texts, and datasets by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from subgnn.config.files import parse_options
from subgnn.errors import DataError, UserError
from subgnn.lab.datasets.build import BUILDERS, build
from subgnn.lab.datasets.builder import Request, read_labels
from subgnn.lab.datasets.hpo import PhenotypeGraphSettings
from subgnn.lab.datasets.orphanet import METAB
from subgnn.lab.datasets.patients import PatientSettings
from subgnn.lab.datasets.ppi_bp import PpiBpSettings
from subgnn.lab.datasets.rare_diseases import RareDiseaseSettings, rare_disease_settings
from subgnn.lab.datasets.sources import SOURCES

KINDS = {"graph": PhenotypeGraphSettings, "set": RareDiseaseSettings}


def test_texts_become_values_of_the_right_type() -> None:
    options = {"min_shared_genes": "3", "ontology_edges": "false", "split_by": "disease", "fractions": "0.5, 0.25,0.25"}
    assert parse_options(KINDS, options, "x") == {
        "graph": {"min_shared_genes": 3, "ontology_edges": False},
        "set": {"split_by": "disease", "fractions": (0.5, 0.25, 0.25)},
    }
    words = parse_options({"x": PpiBpSettings}, {"excluded_evidence": "IEA, 7"}, "x")["x"]
    assert words == {"excluded_evidence": ("IEA", "7")}


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("min_shared_gene", "2", "x: no option 'min_shared_gene'; accepted: .*did you mean 'min_shared_genes'"),
        ("graph", "2", "no option 'graph'"),
        ("min_shared_genes", "two", "x: min_shared_genes is 'two'; accepted: a whole number"),
        ("ontology_edges", "maybe", "accepted: true or false"),
        ("fractions", "a,b", r"fractions is .*; accepted: a list of 3 numbers"),
        ("split_by", "grup", "accepted: group, disease; did you mean 'group'"),
    ],
)
def test_bad_options_are_refused(option: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_options(KINDS, {option: text}, "x")


@pytest.mark.parametrize("pair", ["A", "=1", "A=", "A-B=1", "A= ,"])
def test_bad_labels_are_refused(pair: str) -> None:
    with pytest.raises(DataError, match="is not a label; NAME=ROOT"):
        read_labels([pair], "")
    with pytest.raises(DataError, match="each name once"):
        read_labels(["A=1", "A=2"], "")


def test_options_of_the_rare_diseases() -> None:
    assert rare_disease_settings("hpo-metab", Request({})) == RareDiseaseSettings(METAB)
    found = rare_disease_settings(
        "hpo-neuro",
        Request({}, {"patients": "7", "noise": "0", "min_phenotypes": "5"}, ["A=ORPHA:1", "B=2"]),
    )
    assert found.patients == PatientSettings(per_disease=7, noise=0)
    assert found.diseases.min_phenotypes == 5
    assert found.diseases.labels == {"A": ("1",), "B": ("2",)}
    with pytest.raises(DataError, match=r"option 'noise' is one of simulated patients; state the number .* --patients"):
        rare_disease_settings("hpo-metab", Request({}, {"noise": "1"}))


def test_a_missing_source_says_where_it_is_published() -> None:
    for name, builder in BUILDERS.items():
        with pytest.raises(DataError, match=rf"{name}: no --{builder.needs[0]} is given: .*published at https://"):
            build(name, Request({}))
    assert {key for b in BUILDERS.values() for key in (*b.needs, *b.takes)} == set(SOURCES)


def test_unknown_names_and_foreign_sources_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"unknown dataset 'ppibp'; accepted: ppi-bp, .*did you mean 'ppi-bp'"):
        build("ppibp", Request({}))
    with pytest.raises(DataError, match="em-user: --go is not a source of it; accepted: --records"):
        build("em-user", Request({"records": tmp_path, "go": tmp_path}))
    with pytest.raises(DataError, match="em-user: labels are given"):
        build("em-user", Request({"records": tmp_path}, labels=["A=1"]))
