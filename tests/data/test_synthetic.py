"""The recipes: the paper's tables, classes that are equal in size and exactly separated, and the same bytes again."""

import runpy
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from subgnn.data.dataset import Dataset
from subgnn.data.describe import check, describe
from subgnn.data.formats import read_dataset
from subgnn.data.formats.folder import write_folder
from subgnn.data.synthetic import RECIPES, generate
from subgnn.errors import UserError
from subgnn.kernels.induced import core_numbers, induced_components, induced_graph, shapes
from subgnn.lab.datasets.catalog import CATALOG
from tests.pages import ROOT

differences_from_paper = runpy.run_path(str(ROOT / "benchmarks" / "synthetic_table.py"))["differences_from_paper"]
PAPER = {name: entry for name, entry in CATALOG.items() if entry.kind == "synthetic"}

SEEDS = range(10)
SMALL: dict[str, dict[str, float]] = {
    "density": {"num_nodes": 600, "num_subgraphs": 31, "subgraph_size": 10},
    "cut-ratio": {"num_nodes": 1_500, "num_subgraphs": 32, "subgraph_size": 8},
    "coreness": {"num_nodes": 600, "num_subgraphs": 31, "subgraph_size": 14},
    "component": {"num_nodes": 200, "num_subgraphs": 31},
}


@cache
def full(name: str, seed: int) -> Dataset:
    return generate(name, seed=seed)


@cache
def small(name: str, seed: int) -> Dataset:
    return generate(name, seed=seed, **SMALL[name])


def realised(name: str, dataset: Dataset) -> np.ndarray:
    """The property that the label follows from, computed on the finished graph."""
    csr, nodes = dataset.graph.csr, dataset.subgraphs.nodes
    if name == "density":
        return shapes(*csr, nodes).density
    if name == "cut-ratio":
        return shapes(*csr, nodes).cut_edges
    if name == "coreness":
        return np.bincount(nodes.row_ids, core_numbers(*induced_graph(*csr, nodes)))
    return induced_components(*csr, nodes).counts


# Nodes that are cut off from the graph are dropped: some subgraphs of DENSITY have 19 nodes, in the paper all have 20.
KNOWN_MISSES = {"density": {"nodes mean", "nodes spread"}}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER)
def test_ten_seeds_land_in_the_paper_s_tables(name: str) -> None:
    found = [describe(full(name, seed)) for seed in SEEDS]
    assert differences_from_paper(name, found) == KNOWN_MISSES.get(name, set())
    assert {one["num_labels"] for one in found} == {PAPER[name].num_labels}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER)
def test_classes_are_balanced_and_exactly_separated_over_ten_seeds(name: str) -> None:
    for seed in SEEDS:
        dataset = full(name, seed)
        values, labels = realised(name, dataset), dataset.subgraphs.targets
        counts = Counter(labels.tolist())
        if name == "component":
            single = dataset.subgraphs.classes.index("single")
            assert ((values == 1) == (labels == single)).all()
            assert counts[single] == 100
            continue
        assert max(counts.values()) - min(counts.values()) <= (10 if name == "density" else 1)  # ties stay together
        for low in range(len(counts) - 1):
            assert values[labels == low].max() < values[labels == low + 1].min()


@pytest.mark.parametrize("name", ["coreness", "component"])
def test_no_node_is_in_two_subgraphs(name: str) -> None:
    for seed in range(3):
        nodes = full(name, seed).subgraphs.nodes.values
        assert len(np.unique(nodes)) == len(nodes)


# Graph and subgraphs of small(name, 3): results that name a seed hold only as long as it names the same dataset.
ALWAYS = {
    "density": ("28f75605ee9ad348", "eceaf0ee9270403e"),
    "cut-ratio": ("a9aa717d19dac5cb", "0ed3aa756a0f4444"),
    "coreness": ("bf872ce5729bfc5c", "079ed29782f5647f"),
    "component": ("336a121270a15cfa", "16f11a275c9f4c44"),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_seed_gives_the_dataset_it_always_gave(name: str) -> None:
    dataset = small(name, 3)
    assert (dataset.graph.content_hash[:16], dataset.subgraphs.content_hash[:16]) == ALWAYS[name]
    assert len(dataset.subgraphs) == SMALL[name]["num_subgraphs"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_written_dataset_is_fine_and_says_where_it_comes_from(name: str, tmp_path: Path) -> None:
    write_folder(small(name, 0), tmp_path / "out")
    problems, _ = check(tmp_path / "out")
    assert problems.num_errors == 0
    assert problems.warnings == []
    again = read_dataset(tmp_path / "out")
    assert again.graph.content_hash == small(name, 0).graph.content_hash
    assert again.subgraphs.content_hash == small(name, 0).subgraphs.content_hash
    assert again.card["licence"] == "CC0"
    assert f"recipe {name}, seed 0" in again.card["source"]
    assert again.card["settings"]["num_subgraphs"] == SMALL[name]["num_subgraphs"]
    assert set(again.card["classes"]) == set(again.subgraphs.classes)


IMPOSSIBLE = [
    ("density", {"num_subgraphs": 9, "bins": 9, "subgraph_size": 2}, "different values for 9 bins; use fewer bins"),
    ("density", {"subgraph_size": 3_000}, "at most 2,000 is accepted"),
    ("density", {"num_subgraphs": 2}, "at least 3 are needed"),
    ("density", {"num_nodes": 10**12}, "to 1,000,000,000"),
    ("cut-ratio", {"num_nodes": 50}, "cut ratios up to 1.51; use more nodes"),
    ("cut-ratio", {"subgraph_size": 2}, "at least 3"),
    ("coreness", {"num_subgraphs": 251}, "at most 250"),
    ("coreness", {"num_nodes": 500, "num_subgraphs": 25, "bins": 25}, "use fewer bins"),
    ("coreness", {"num_nodes": 10**6}, "at most 688,000"),
    ("component", {"num_subgraphs": 10**9}, "at most"),
]


@pytest.mark.parametrize(("name", "options", "says"), IMPOSSIBLE)
def test_what_cannot_be_met_is_an_error_that_says_what_can(name: str, options: dict[str, float], says: str) -> None:
    with pytest.raises(UserError) as caught:
        generate(name, seed=0, **options)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
