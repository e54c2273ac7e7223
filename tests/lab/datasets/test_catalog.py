import pytest

from subgnn.data.subgraphs import TASKS
from subgnn.lab.datasets.catalog import CATALOG

# Appendix B of the paper: nodes, edges, subgraphs, labels.
PAPER = {
    "density": (5_000, 29_521, 250, 3),
    "cut-ratio": (5_000, 83_969, 250, 3),
    "coreness": (5_000, 118_785, 221, 3),
    "component": (19_555, 43_701, 250, 2),
    "ppi-bp": (17_080, 316_951, 1_591, 6),
    "hpo-metab": (14_587, 3_238_174, 2_400, 6),
    "hpo-neuro": (14_587, 3_238_174, 4_000, 10),
    "em-user": (57_333, 4_573_417, 324, 2),
}


def test_the_catalog_has_the_datasets_of_the_paper():
    assert list(CATALOG) == list(PAPER)
    assert all(entry.name == name for name, entry in CATALOG.items())


@pytest.mark.parametrize("name", PAPER)
def test_sizes_are_those_of_the_paper(name):
    entry = CATALOG[name]
    assert (entry.num_nodes, entry.num_edges, entry.num_subgraphs, entry.num_labels) == PAPER[name]


def test_kinds_and_tasks():
    synthetic = {"density", "cut-ratio", "coreness", "component"}
    assert {entry.name for entry in CATALOG.values() if entry.kind == "synthetic"} == synthetic
    assert {entry.name for entry in CATALOG.values() if entry.task == "binary"} == {"component", "em-user"}
    assert {entry.name for entry in CATALOG.values() if entry.task == "multi-label"} == {"hpo-neuro"}
    assert all(entry.task in TASKS for entry in CATALOG.values())
    assert all((entry.task == "binary") == (entry.num_labels == 2) for entry in CATALOG.values())


def test_every_entry_says_what_it_is_and_how_it_is_had():
    for entry in CATALOG.values():
        assert entry.about
        assert entry.how
