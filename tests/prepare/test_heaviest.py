"""The heaviest of borders as anchors: the same in every layer and draw, for new subgraphs, on disk and in a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subgnn import Graph, Ragged, write_folder
from subgnn.api.train_recipe import train
from subgnn.inference.open import open_run
from subgnn.kernels.borders import border_sets, heaviest_borders
from subgnn.models.examples import outputs_of
from subgnn.models.subgnn import Inputs
from subgnn.models.subgnn.build import NodeTable, build_network
from subgnn.prepare.measure import Plan, prepare, prepare_cached, prepare_draws_cached
from tests.models.subgnn.examples import (
    ALL_CHANNELS,
    SMALL,
    prepare_example,
    random_graph,
    random_subgraphs,
)
from tests.prepared_equal import assert_same
from tests.training.examples import dataset, recipe

HEAVY = replace(SMALL, border_anchors="heaviest")
BORDER = 3  # its place among all channels
SETS = Ragged.from_rows([[0, 1, 2], [5, 9, 20], [23]])


def case():
    return random_graph(0), random_subgraphs(0)


@pytest.mark.parametrize("seed", range(6))
def test_anchors_and_similarities_are_those_of_the_kernel_in_every_layer(seed):
    settings = replace(HEAVY, hops=2)
    graph, found = prepare_example(seed, layers=3, settings=settings)
    components = found.components.nodes
    nodes, weights = heaviest_borders(*graph.csr, components, most=3, powers=(1.0, 0.25))
    present = border_sets(*graph.csr, components, hops=1).lengths > 0
    assert not present.all()  # one subgraph is the whole graph
    for layer in range(3):
        inputs = found.inputs[layer][BORDER]
        assert np.array_equal(inputs.own.nodes, nodes)
        assert np.array_equal(inputs.own.present, present)
        assert np.array_equal(inputs.measured.similarity, weights)
        assert inputs.measured.similarity.dtype == np.float32


@pytest.mark.parametrize("seed", range(3))
def test_seed_and_draw_do_not_matter(seed):
    one, other = (prepare(*case(), Plan(ALL_CHANNELS, 2, HEAVY, seed=s)) for s in (seed, seed + 7))
    assert_same(one.inputs[0][BORDER], other.inputs[0][BORDER])
    assert not np.array_equal(one.inputs[0][0].own.nodes, other.inputs[0][0].own.nodes)


@pytest.mark.parametrize("seed", range(4))
def test_a_new_subgraph_is_measured_as_it_would_have_been_together(seed):
    graph, together = prepare_example(seed, settings=HEAVY)
    subgraphs = random_subgraphs(seed)
    first = prepare(graph, subgraphs.take([0, 1]), Plan(channels=ALL_CHANNELS, layers=2, settings=HEAVY, seed=seed))
    later = first.extend(graph, subgraphs.take([4, 2]))
    rows = np.concatenate([np.flatnonzero(together.components.subgraph == s) for s in (4, 2)])
    for ours, theirs in zip(later.inputs, together.inputs, strict=True):
        for i in range(len(ALL_CHANNELS)):
            assert np.array_equal(ours[i].measured.similarity, theirs[i].measured.similarity[rows])
        assert np.array_equal(ours[BORDER].own.nodes, theirs[BORDER].own.nodes[rows])
        assert np.array_equal(ours[BORDER].own.present, theirs[BORDER].own.present[rows])


def test_the_cache_gives_the_same_and_tells_drawn_anchors_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path))
    options = {"channels": ALL_CHANNELS[3:4], "layers": 2, "seed": 0}
    first, second = (prepare_cached(*case(), Plan(**options, settings=HEAVY)) for _ in range(2))
    assert (first.found, second.found) == (False, True)
    assert_same(first.prepared, second.prepared)
    drawn = replace(HEAVY, border_anchors="drawn")
    assert not prepare_cached(*case(), Plan(**options, settings=drawn)).found
    settings = recipe(2, channels=ALL_CHANNELS[3:4])
    draws = replace(settings, prepare=replace(HEAVY, draws=2))
    ours, theirs = (each.prepared for each in prepare_draws_cached(draws, *case(), seed=0))
    assert_same(ours.inputs, theirs.inputs)


def test_graphs_with_next_to_nothing_in_them():
    options = {"channels": ALL_CHANNELS[3:4], "layers": 1, "settings": HEAVY, "seed": 0}
    bare = prepare(Graph.from_edges([], [], num_nodes=3), Ragged.from_rows([[0, 2]]), Plan(**options))
    assert bare.inputs[0][0].own.present.tolist() == [False, False]
    assert bare.touched().tolist() == [0, 2]
    pair = prepare(Graph.from_edges([0], [1], num_nodes=3), Ragged.from_rows([[0, 2], [0, 1]]), Plan(**options))
    inputs = pair.inputs[0][0]
    assert inputs.own.present.tolist() == [True, False, False]
    assert inputs.own.nodes[0].tolist() == [1, 1, 1]
    assert inputs.measured.similarity.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert len(prepare(*case(), Plan(**options)).extend(random_graph(0), Ragged.from_rows([])).components.nodes) == 0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two epochs and two layers, as the command line leaves it."""
    folder = tmp_path_factory.mktemp("heavy")
    data = dataset()
    write_folder(data, folder / "data")
    settings = recipe(2, layers=2)
    settings = replace(settings, prepare=replace(settings.prepare, border_anchors="heaviest"))
    train(data, settings, folder / "run", device="cpu", source=str(folder / "data"), cache=False, report=False)
    return data, folder / "run"


def test_a_run_answers_as_in_training(run):
    data, path = run
    predictor = open_run(path).predictor
    checkpoint = predictor.checkpoint
    assert checkpoint.spec.prepare.border_anchors == "heaviest"
    options = {"channels": checkpoint.spec.channels, "layers": 2, "settings": checkpoint.spec.prepare, "seed": 0}
    prepared = prepare(data.graph, data.subgraphs.nodes, Plan(**options))
    assert set(prepared.touched()) <= set(checkpoint.spec.table_nodes)
    model = build_network(checkpoint, data.graph, NodeTable(checkpoint.spec.table_nodes))
    trained = outputs_of(model, Inputs(prepared, checkpoint.spec.table_nodes), np.arange(len(data.subgraphs)), 7)
    np.testing.assert_allclose(predictor.outputs(data.subgraphs.nodes), trained, atol=1e-5)
    whole = predictor.outputs(SETS)
    assert np.isfinite(whole).all()
    for i in range(len(SETS)):
        np.testing.assert_allclose(predictor.outputs(SETS.take([i]))[0], whole[i], atol=1e-5)
