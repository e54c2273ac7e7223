"""Options as texts, and datasets by name."""

import pytest

from subgnn.errors import DataError, UserError
from subgnn.lab.datasets.build import BUILDERS, build
from subgnn.lab.datasets.builder import read_settings
from subgnn.lab.datasets.ppi_bp import PpiBpSettings
from subgnn.lab.datasets.rare_diseases import RareDiseaseSettings


def rare(options: dict[str, str], labels: tuple[str, ...] = ()) -> RareDiseaseSettings:
    builder = BUILDERS["hpo-metab"]
    found: RareDiseaseSettings = read_settings(builder.settings, options, labels, "x")
    return found


def test_texts_become_settings() -> None:
    assert rare({}) == BUILDERS["hpo-metab"].settings
    options = {"min_shared_genes": "3", "ontology_edges": "false", "split_by": "disease", "fractions": "0.5, 0.25,0.25"}
    found = rare(options | {"min_phenotypes": "5"}, ("A=ORPHA:1", "B=2"))
    assert (found.graph.min_shared_genes, found.graph.ontology_edges) == (3, False)
    assert (found.split_by, found.fractions) == ("disease", (0.5, 0.25, 0.25))
    assert (found.diseases.min_phenotypes, found.diseases.labels) == (5, {"A": ("1",), "B": ("2",)})
    assert read_settings(PpiBpSettings(), {"excluded_evidence": "IEA, 7"}, (), "x").excluded_evidence == ("IEA", "7")


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("min_shared_gene", "2", "x: no option 'min_shared_gene'; accepted: .*did you mean 'min_shared_genes'"),
        ("graph", "2", "no option 'graph'"),
        ("min_shared_genes", "two", "x: min_shared_genes is 'two'; accepted: a whole number"),
        ("ontology_edges", "maybe", "accepted: true or false"),
        ("fractions", "a,b", r"fractions is .*; accepted: a list of 3 numbers"),
        ("split_by", "grup", "accepted: group, disease; did you mean 'group'"),
        ("min_phenotypes", "0", "min_phenotypes is 0; accepted: a whole number from 1"),
    ],
)
def test_bad_options_are_refused(option: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rare({option: text})


@pytest.mark.parametrize("pairs", [["A"], ["=1"], ["A="], ["A-B=1"], ["A= ,"], ["A=1", "A=2"]])
def test_bad_labels_are_refused(pairs: list[str]) -> None:
    with pytest.raises(DataError, match=r"is not a label; NAME=ROOT .*each name once"):
        rare({}, tuple(pairs))


@pytest.mark.parametrize("name", BUILDERS)
def test_a_missing_source_says_where_it_is_published(name: str) -> None:
    needed = [key for key in BUILDERS[name].sources if key not in BUILDERS[name].optional]
    with pytest.raises(DataError, match=rf"{name}: (--)?{needed[0]} is missing: .*published at https://"):
        build(name, {})
    for source in BUILDERS[name].sources.values():
        assert source.published.startswith("https://")
        assert source.licence
