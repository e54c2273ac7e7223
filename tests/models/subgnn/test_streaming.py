"""Large tables: batches that number their nodes themselves give what the whole table gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn.api.train_recipe import train
from subgnn.errors import UserError
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.subgnn import build, fitted
from subgnn.parallel import memory
from subgnn.training.run_dir import CHECKPOINT
from tests.training.examples import dataset, recipe


def run(tmp_path, monkeypatch, name, *, chosen, large, data=None, cache=False, limit=None):
    monkeypatch.setattr(build, "LARGE", 0 if large else 10**9)
    with memory.memory_limit(limit):
        train(data or dataset(), chosen, tmp_path / name, device="cpu", cache=cache, report=False)
    return load_checkpoint(tmp_path / name / CHECKPOINT)


def close(a, b):
    assert a.weights.keys() == b.weights.keys()
    for name, value in a.weights.items():
        torch.testing.assert_close(value, b.weights[name], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("features", ["none", "beside", "instead"])
def test_frozen_embeddings_and_features_come_with_the_batch(tmp_path, monkeypatch, features):
    data = dataset()
    given = np.random.default_rng(3).random((data.graph.num_nodes, 5))
    data = replace(data, graph=replace(data.graph, features=given))
    options = {"topology": True, "trainable_components": True, "hidden_norm": "batch"} if features == "none" else {}
    chosen = recipe(2, trainable=False, **options)
    chosen = replace(chosen, embeddings=replace(chosen.embeddings, features=features))
    whole = run(tmp_path, monkeypatch, "whole", chosen=chosen, large=False, data=data)
    streamed = run(tmp_path, monkeypatch, "streamed", chosen=chosen, large=True, data=data)
    assert ("table" in whole.weights, "table" in streamed.weights) == (features != "instead", False)
    # The table is no weight: it follows from the seed.
    weights = {name: value for name, value in whole.weights.items() if name != "table"}
    close(replace(whole, weights=weights), streamed)
    outputs = [Predictor(c, data.graph).outputs(data.subgraphs.nodes) for c in (whole, streamed)]
    np.testing.assert_allclose(*outputs, rtol=1e-3, atol=1e-4)


def test_learned_rows_first_move_as_in_the_whole_table(tmp_path, monkeypatch):
    chosen = recipe(1)
    # One batch: from the second on, rows that a batch does not touch rest, which plain Adam goes on moving.
    chosen = replace(chosen, training=replace(chosen.training, batch_size=64))
    whole = run(tmp_path, monkeypatch, "whole", chosen=chosen, large=False)
    streamed = run(tmp_path, monkeypatch, "streamed", chosen=chosen, large=True)
    assert streamed.spec.table_nodes.tolist() == whole.spec.table_nodes.tolist()
    close(whole, streamed)


@pytest.mark.quick(1)
@pytest.mark.parametrize("trainable", [False, True])
def test_the_same_bits_from_memory_and_from_a_file_whatever_the_limit(tmp_path, monkeypatch, trainable):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    chosen = recipe(2, trainable=trainable, layers=2)
    plain = run(tmp_path, monkeypatch, "plain", chosen=chosen, large=True)
    # Nothing fits: rows are drawn when a batch asks, and what is prepared stays in its file.
    monkeypatch.setattr(fitted, "share", lambda part: 0)
    monkeypatch.setattr("subgnn.prepare.measure.share", lambda part: 0)
    first = run(tmp_path, monkeypatch, "first", chosen=chosen, large=True, cache=True, limit="1GB")
    again = run(tmp_path, monkeypatch, "again", chosen=chosen, large=True, cache=True, limit="2GB")
    for found in (first, again):
        assert plain.weights.keys() == found.weights.keys()
        assert all(torch.equal(value, found.weights[name]) for name, value in plain.weights.items())


@pytest.mark.parametrize("trainable", [False, True])
def test_predictions_are_those_of_the_whole_table(tmp_path, monkeypatch, trainable):
    chosen = recipe(2, trainable=trainable)
    checkpoint = run(tmp_path, monkeypatch, "run", chosen=chosen, large=trainable)
    graph, subgraphs = dataset().graph, dataset().subgraphs.nodes
    streamed, whole = [], []
    for found, large in ((streamed, 0), (whole, 10**9)):
        monkeypatch.setattr(build, "LARGE", large)
        monkeypatch.setattr(fitted, "NETWORK_BATCH", 7)
        predictor = Predictor(checkpoint, graph)
        found += [predictor.outputs(subgraphs), predictor.embeddings(subgraphs)]
    for ours, theirs in zip(streamed, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_learned_table_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "limit", lambda: 1000)
    with pytest.raises(
        UserError, match=r"a learned table of \d+ nodes x 8 numbers needs .* embeddings.trainable=false"
    ):
        run(tmp_path, monkeypatch, "run", chosen=recipe(1), large=True)
