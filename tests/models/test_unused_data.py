"""What of a graph a recipe does not look at, held against recipes that do."""

import json
from dataclasses import replace

import numpy as np
import pytest

from subgnn import DataWarning, Graph, train
from subgnn.data.formats.folder import write_folder
from subgnn.models.recipes import find_recipe, unused_data, unused_line
from subgnn.models.registry import MODELS
from tests.cli.command import call
from tests.training.examples import dataset, recipe

RNG = np.random.default_rng(0)
GRAPH = dataset().graph
DIRECTION = "direction of edges"


def rich(*, weights: bool = True, directed: bool = True, features: bool = True) -> Graph:
    """The graph of the examples, with more to it."""
    rows = np.repeat(np.arange(GRAPH.num_nodes), np.diff(GRAPH.offsets))
    u, v = rows[rows < GRAPH.neighbors], GRAPH.neighbors[rows < GRAPH.neighbors]
    return Graph.from_edges(
        u,
        v,
        weights=RNG.uniform(1, 2, len(u)) if weights else None,
        directed=directed,
        features=RNG.normal(size=(GRAPH.num_nodes, 3)) if features else None,
    )


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ([], [DIRECTION, "node features"]),
        (["embeddings.features=beside"], [DIRECTION]),
        (["embeddings.source=gin"], [DIRECTION]),
        (["embeddings.features=instead"], [DIRECTION]),
    ],
)
def test_settings_that_use_more(settings, told):
    assert unused_data(find_recipe("subgnn", settings), rich(weights=False)) == told


@pytest.mark.slow
def test_the_verbs_say_it(tmp_path):
    data = dataset()
    write_folder(replace(data, graph=rich()), tmp_path / "data")
    small = [word for s in ("training.epochs=1", "embeddings.dim=4", "prepare.patch_length=5") for word in ("--set", s)]
    line = unused_line(find_recipe("subgnn"), rich())
    assert line.startswith("not used by recipe subgnn: edge weights (")
    assert "direction of edges (recipes that use it: auto, diffusion-directed)" in line
    assert "node features (--set embeddings.features=beside; recipes that use them: auto, " in line
    run = call("train", tmp_path / "data", "--recipe", "subgnn", "--out", tmp_path / "run", "--device", "cpu", *small)
    assert run.out.splitlines()[1] == line
    assert json.loads((tmp_path / "run" / "run.json").read_text())["unused"] == unused_data(recipe(), rich())
    assert "Not used by this recipe" in (tmp_path / "run" / "report.html").read_text()
    assert line in call("prepare", tmp_path / "data", *small).out.splitlines()
    given = ("pretrain", tmp_path / "data", "--dim", 4, "--set", "pretrain.epochs=1", "--set", "pretrain.steps=1")
    made = call(*given, "--out", tmp_path / "v.safetensors", "--device", "cpu", "--json")
    assert made.json["unused"] == ["edge weights", "direction of edges"]


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if getattr(model, "switches", None)])
def test_switches_have_the_effect_they_are_named_for(name):
    for attribute, switch in MODELS[name].switches.items():
        recipe = find_recipe("subgnn" if name == "subgnn" else name, [switch])
        assert attribute in MODELS[name].uses(recipe) or name == "bag"  # which has no edges to look at


def test_one_line_says_what_would_use_it():
    line = unused_line(find_recipe("topology"), rich(features=False))
    assert "edge weights (--set topology.weighted=true; recipes that use them: auto, " in line
    assert unused_line(find_recipe("auto"), rich()) == ""
    assert "--set" not in unused_line(find_recipe("bag"), rich())
    only_bag = unused_line(find_recipe("auto", ['auto.only=["bag"]']), rich(features=False))
    assert "edge weights (candidates that use them: profiles, diffusion-directed, topology-weighted, " in only_bag


def test_settings_without_effect_are_named():
    weighted = ["bag.weighted=true", "bag.directed=true"]
    assert unused_data(find_recipe("bag-1hop", weighted), GRAPH) == [
        "bag.weighted (the graph has no edge weights)",
        "bag.directed (the graph has no direction of edges)",
    ]
    assert unused_data(find_recipe("bag-1hop", weighted), rich(features=False)) == []


def test_a_network_uses_what_the_baseline_uses_that_it_corrects():
    corrected = find_recipe("neighborhood", ["model.baseline=diffusion"])
    assert unused_data(corrected, rich(directed=False, features=False)) == []


def test_python_warns_once(tmp_path):
    data = replace(dataset(), graph=rich(directed=False, features=False))
    with pytest.warns(DataWarning, match="not used by recipe bag: edge weights"):
        train(data, tmp_path / "run", recipe="bag", report=False, progress=False)
