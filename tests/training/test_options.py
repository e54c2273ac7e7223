"""Features and component offsets, from training to prediction and back from disk."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn.api.train_recipe import train
from subgnn.data.formats.folder import write_folder
from subgnn.errors import UserError
from subgnn.inference.open import evaluate_split
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.recipes import check_recipe, find_recipe, parse_recipe
from subgnn.models.subgnn.build import NodeTable, build_network
from subgnn.ragged import Ragged
from subgnn.training import run as run_module
from subgnn.training.fit import set_up as set_up_run
from subgnn.training.run_dir import CHECKPOINT, METRICS
from tests.models.examples import training_data

from .examples import CHANNELS, assert_equal_runs, dataset, recipe, train_until, weights


def with_features(task: str = "multi-class"):
    data = dataset(task)
    rng = np.random.default_rng(5)
    # Three columns: noise in another unit, a constant, and the clique a node is in.
    columns = [rng.normal(1000, 50, 24), np.full(24, 7.0), np.arange(24) // 8]
    return replace(data, graph=replace(data.graph, features=np.stack(columns, axis=1), known_hash=""))


def changed(epochs: int = 4, *, channels=CHANNELS, prepare=None, embeddings=None, **model):
    found = recipe(epochs, channels=channels, **model)
    return replace(
        found,
        prepare=replace(found.prepare, **(prepare or {})),
        embeddings=replace(found.embeddings, **(embeddings or {})),
    )


VARIANTS = {
    "beside": changed(embeddings={"features": "beside"}),
    "instead": changed(embeddings={"features": "instead"}),
    "frozen": changed(embeddings={"features": "beside", "trainable": False}),
    "component states": changed(trainable_components=True),
    "states": changed(hidden_norm="batch", norm="none", layers=2),
    "all": changed(embeddings={"features": "instead"}, trainable_components=True, layers=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_a_run_is_the_same_at_load_time_whatever_the_batch_and_after_an_interruption(tmp_path, monkeypatch, name):
    monkeypatch.setattr(run_module, "SECONDS_BETWEEN_SAVES", 0.0)
    data, chosen = with_features(), VARIANTS[name]
    write_folder(data, tmp_path / "data")
    results = train(data, chosen, tmp_path / "whole", seed=3, source=str(tmp_path / "data"))
    for split in ("val", "test"):
        again = evaluate_split(tmp_path / "whole", split).scores(split)
        expected = {k: v for k, v in results.scores(split).items() if k != "loss"}
        assert again == pytest.approx(expected, abs=1e-6, nan_ok=True)
    predictor = Predictor(tmp_path / "whole" / CHECKPOINT, data.graph)
    whole = predictor.outputs(data.subgraphs.nodes)
    for rows in ([3], [29, 0, 0]):
        np.testing.assert_allclose(predictor.outputs(data.subgraphs.nodes.take(rows)), whole[rows], atol=1e-5)
    train_until(1, data, chosen, tmp_path / "cut", seed=3)
    train(data, chosen, tmp_path / "cut", seed=3, resume=True)
    assert_equal_runs(tmp_path / "whole", tmp_path / "cut")


def test_features_alone_tell_the_cliques_apart(tmp_path):
    # One column names the clique; embeddings are left out, so whatever is learned came through the features.
    data = with_features()
    chosen = changed(40, channels=CHANNELS[2:4], embeddings={"features": "instead"}, dropout=0.0)
    train(data, chosen, tmp_path / "run")
    lines = (tmp_path / "run" / METRICS).read_text().splitlines()
    assert json.loads(lines[-1])["train_loss"] < 0.1
    checkpoint = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    assert "table" not in checkpoint.weights
    assert checkpoint.weights["feature_map.weight"].shape == (8, 3)
    whole = data.graph.features
    np.testing.assert_allclose(checkpoint.spec.standards["feature"].mean, whole.mean(axis=0))
    deviations = [whole[:, 0].std(), 1, whole[:, 2].std()]
    np.testing.assert_allclose(checkpoint.spec.standards["feature"].deviation, deviations)


@pytest.mark.parametrize("how", ["beside", "instead"])
def test_a_node_first_met_in_prediction_has_its_features(tmp_path, how):
    data = with_features()
    # Without nodes 5..7 in any subgraph and with few anchors, node 6 is not in the table.
    kept = [row[(row < 5) | (row > 7)] for row in data.subgraphs.nodes]
    subgraphs = replace(data.subgraphs, nodes=Ragged.from_rows(kept))
    chosen = changed(2, channels=CHANNELS[2:3], embeddings={"features": how})
    train(replace(data, subgraphs=subgraphs), chosen, tmp_path / "run", seed=1)
    predictor = Predictor(tmp_path / "run" / CHECKPOINT, data.graph)
    checkpoint = predictor.checkpoint
    assert 6 not in checkpoint.spec.table_nodes
    table = np.union1d(checkpoint.spec.table_nodes, [6]).astype(np.int32)
    model = build_network(checkpoint, data.graph, NodeTable(table))
    place = int(np.searchsorted(table, 6))
    standard = checkpoint.spec.standards["feature"]
    mapped = torch.from_numpy((data.graph.features[6] - standard.mean) / standard.deviation).float()
    expected = checkpoint.weights["feature_map.weight"] @ mapped
    expected = expected + (model.table[place] if how == "beside" else checkpoint.weights["feature_map.bias"])
    torch.testing.assert_close(model.node_vectors()[place], expected)
    assert np.isfinite(predictor.outputs(Ragged.from_rows([[6], [5, 6, 20]]))).all()


def set_up(chosen, data=None):
    data = data or dataset()
    candidates, examples = set_up_run(training_data(data.graph, data.subgraphs, 3), chosen)
    return candidates[0].network, examples, candidates[0].checkpoint


def test_only_components_of_the_training_split_have_a_learned_state(tmp_path):
    data = dataset()
    train(data, changed(4, trainable_components=True), tmp_path / "run", seed=3)
    _, examples, checkpoint = set_up(changed(4, trainable_components=True))
    whole = examples.inputs.whole
    nodes = [part.tolist() for part in torch.tensor_split(whole.nodes, whole.node_starts[1:])]
    table = checkpoint.spec.table_nodes
    sets = [frozenset(table[part].tolist()) for part in nodes]
    trained = {s for s, owner in zip(sets, whole.subgraph.tolist(), strict=True) if owner in set(examples.train)}
    assert len(checkpoint.spec.component_keys) == len(trained)
    rows = dict(zip(sets, whole.beside.known.tolist(), strict=True))
    assert {s for s, row in rows.items() if row} == trained
    assert len({rows[s] for s in trained}) == len(trained)
    states = weights(tmp_path / "run")["component_states"]
    assert states.shape == (len(trained) + 1, 8)
    assert states[0].abs().max() == 0
    assert (states[1:].abs().amax(dim=1) > 0).all()


def test_learned_states_start_at_the_sum_of_node_vectors_and_change_only_the_neighborhood_channel():
    settings = changed(4, trainable_components=True)
    network, examples, _ = set_up(settings)
    batch = examples.inputs.batch(examples.train)
    initial = network.component_vectors(batch, network.node_vectors(batch))
    torch.testing.assert_close(network.component_states[batch.beside.known], initial)
    torch.nn.init.ones_(network.component_states)
    states = network.initial_states(batch, initial)
    for channel, state in zip(network.channels, states, strict=True):
        expected = torch.ones_like(initial) if channel.kind == "neighborhood" else initial
        torch.testing.assert_close(state, expected)


def test_a_learned_state_is_found_again_at_load_time(tmp_path):
    data = dataset()
    chosen = changed(4, channels=CHANNELS[2:3], trainable_components=True)
    train(data, chosen, tmp_path / "run", seed=3)
    checkpoint = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    without = replace(checkpoint, weights={**checkpoint.weights})
    without.weights["component_states"] = torch.zeros_like(checkpoint.weights["component_states"])
    asked = Ragged.from_rows([data.subgraphs.nodes[0], [0, 1, 2, 3, 4, 5, 6, 7]])
    outputs = [Predictor(one, data.graph).outputs(asked) for one in (checkpoint, without)]
    moved, still = np.abs(outputs[0] - outputs[1])
    assert moved.max() > 1e-4
    assert still.max() == 0  # this node set was in no training subgraph


def test_settings_that_do_not_fit_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(UserError, match="the graph has no node features; add features"):
        train(dataset(), VARIANTS["beside"], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_network_that_sees_nothing_is_refused(tmp_path):
    blind = parse_recipe({"model": {"initial": False}}, "test")
    for wrong in (blind, find_recipe("structure", ["model.initial=false", "model.layers=0"])):
        with pytest.raises(UserError, match="the network sees nothing of a subgraph; give it"):
            train(dataset(), wrong, tmp_path / "run", device="cpu", report=False)
        assert not (tmp_path / "run").exists()
    check_recipe(blind, dataset().graph, complete=False)  # a search may start from it
    for seeing in ("structure", "subgnn"):
        check_recipe(find_recipe(seeing, ["model.initial=false"]), dataset().graph)
