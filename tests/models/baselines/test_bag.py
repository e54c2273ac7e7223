"""Bags, their spread over the graph, and the linear models on them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from subgnn import Ragged, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.config.recipes import find_recipe
from subgnn.inference.predictor import Predictor
from subgnn.models.baselines.bag import Bags, LinearBag, features
from subgnn.models.kernel_machines.regression import fit_linear, fit_outputs
from subgnn.models.kernel_machines.views import bag_of_nodes, spread_one_hop
from subgnn.models.registry import MODELS
from subgnn.training.run_dir import CHECKPOINT
from tests.models.examples import recipe, training_data, two_triangles
from tests.models.subgnn.examples import random_graph, random_subgraphs
from tests.training.examples import dataset


def dense(graph):
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes))
    for node in range(graph.num_nodes):
        adjacency[node, graph.neighbors_of(node)] = 1
    return adjacency


def test_a_bag_has_a_one_for_each_node():
    found = bag_of_nodes(Ragged.from_rows([[0, 2], [1]]), 4).toarray()
    np.testing.assert_array_equal(found, [[1, 0, 1, 0], [0, 1, 0, 0]])


def test_spread_by_hand():
    """{0} of the two triangles: 0 has two neighbours; 1 has two as well, 2 has three."""
    found = spread_one_hop(bag_of_nodes(Ragged.from_rows([[0], [7]]), 8), two_triangles()).toarray()
    np.testing.assert_allclose(found[0], [0, 1 / 2, 1 / np.sqrt(6), 0, 0, 0, 0, 0])
    assert not found[1].any()


@pytest.mark.parametrize("seed", range(4))
def test_spread_equals_the_dense_formula(seed):
    graph, rows = random_graph(seed), random_subgraphs(seed)
    adjacency = dense(graph)
    degrees = adjacency.sum(axis=1)
    root = np.diag(np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1)), 0))
    bag = bag_of_nodes(rows, graph.num_nodes)
    np.testing.assert_allclose(spread_one_hop(bag, graph).toarray(), bag.toarray() @ root @ adjacency @ root)


@pytest.mark.parametrize("seed", range(3))
def test_each_half_has_rows_of_length_one(seed):
    graph, rows = random_graph(seed), random_subgraphs(seed)
    plain, unit = features(graph, rows, ways=("",))
    n = graph.num_nodes
    for half in (slice(0, n), slice(n, 2 * n)):
        given, scaled = plain[:, half].toarray(), unit[:, half].toarray()
        length = np.linalg.norm(given, axis=1, keepdims=True)
        np.testing.assert_allclose(scaled, given / np.where(length > 0, length, 1))
    np.testing.assert_array_equal(plain.indices, unit.indices)


def test_a_batch_with_empty_rows_is_only_the_bias():
    rows = sparse.csr_array(np.array([[0.0, 0.0], [2.0, 1.0], [0.0, 0.0]]))
    model = LinearBag(torch.arange(2), 1, unit=False, balanced=False, inverse_penalty=1.0)
    model.weight.copy_(torch.tensor([[10.0], [1.0]]))
    model.bias.fill_(0.5)
    source = Bags(rows, rows)
    assert model(source.batch(np.array([1, 0, 2]))).tolist() == [[21.5], [0.5], [0.5]]
    assert model(source.batch(np.array([0]))).tolist() == [[0.5]]


@pytest.mark.parametrize("classes", [2, 3])
def test_one_of_many_is_what_scikit_learn_gives(classes):
    rng = np.random.default_rng(classes)
    rows, targets = sparse.csr_array(rng.random((40, 6))), np.arange(40) % classes
    weight, bias = fit_outputs(rows, targets, "multi-class", classes, loss="logistic", inverse_penalty=3.0)
    logits = rows @ weight + bias
    found = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    model = LogisticRegression(C=3.0, max_iter=10_000, tol=1e-9).fit(rows, targets)
    np.testing.assert_allclose(found, model.predict_proba(rows), atol=1e-6)


def test_labels_are_fitted_one_against_the_rest():
    rng = np.random.default_rng(0)
    rows = sparse.csr_array(rng.random((40, 6)))
    targets = np.stack([np.arange(40) % 2, np.arange(40) % 3 == 0, np.zeros(40), np.ones(40)], axis=1).astype(np.uint8)
    weight, bias = fit_outputs(rows, targets, "multi-label", 4, loss="logistic", inverse_penalty=3.0)
    chance = 1 / (1 + np.exp(-(rows @ weight + bias)))
    for label in (0, 1):
        model = LogisticRegression(C=3.0, max_iter=10_000, tol=1e-9).fit(rows, targets[:, label])
        np.testing.assert_allclose(chance[:, label], model.predict_proba(rows)[:, 1], atol=1e-6)
    assert (chance[:, 2] < 1e-6).all()
    assert (chance[:, 3] > 1 - 1e-6).all()


def test_values_are_fitted_by_ridge():
    rng = np.random.default_rng(0)
    rows, targets = sparse.csr_array(rng.random((40, 6))), rng.random(40)
    weight, bias = fit_linear(rows, targets[:, None], 2.0, loss="squared")
    expected = Ridge(alpha=0.5).fit(rows.toarray(), targets).predict(rows.toarray())
    np.testing.assert_allclose((rows @ weight + bias)[:, 0], expected, atol=1e-7)


@pytest.mark.parametrize("present", [[0], [1, 3], [0, 2, 3]])
def test_a_class_that_training_lacks_gets_next_to_nothing(present):
    rows, targets = sparse.csr_array(np.eye(12)), np.array(present)[np.arange(12) % len(present)]
    weight, bias = fit_outputs(rows, targets, "multi-class", 4, loss="logistic", inverse_penalty=1.0)
    logits = rows @ weight + bias
    assert set(logits.argmax(axis=1)) <= set(present)
    chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert chance[:, sorted(set(range(4)) - set(present))].max() < 1e-6


@pytest.mark.parametrize("name", ["bag", "bag-1hop"])
def test_columns_are_those_that_training_has_a_value_in(name):
    data = dataset()
    few = SubgraphSet.from_lists(
        [[0, 1], [9], [20, 21]], num_nodes=24, labels=["a", "b", "a"], splits=["train", "train", "val"]
    )
    found = MODELS[name].start(training_data(data.graph, few), find_recipe(name))["columns"]
    plain, _ = features(data.graph, few.nodes.take([0, 1]), ways=("",) * (name == "bag-1hop"))
    np.testing.assert_array_equal(found, np.unique(plain.indices))


def test_open_choices_are_all_tried_and_settled_ones_are_not():
    assert len(MODELS["bag"].candidates(find_recipe("bag"))) == 2 * (4 + 5)
    weighted = find_recipe("bag", ["training.class_weights=balanced"])
    assert len(MODELS["bag"].candidates(weighted)) == 2 * 4  # all classes count the same already
    settled = find_recipe("bag", ["baseline.normalize=none", "baseline.inverse_penalty=2.0"])
    assert list(MODELS["bag"].candidates(settled)) == ["normalize=none, inverse_penalty=2"]


@pytest.mark.parametrize("name", ["bag", "bag-1hop"])
def test_a_run_answers_as_scikit_learn_on_the_dense_features(tmp_path, name):
    data = dataset()
    train(data, recipe(name, "baseline.normalize=rows", "baseline.inverse_penalty=10.0"), tmp_path / "run")
    found = Predictor(tmp_path / "run" / CHECKPOINT, data.graph).probabilities(data.subgraphs.nodes)
    bag, adjacency = bag_of_nodes(data.subgraphs.nodes, 24).toarray(), dense(data.graph)
    scale = 1 / np.sqrt(adjacency.sum(axis=1))
    parts = [bag] if name == "bag" else [bag, bag @ (scale[:, None] * adjacency * scale)]
    dense_rows = np.concatenate([part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts], axis=1)
    rows = data.subgraphs.indices("train")
    model = LogisticRegression(C=10.0, max_iter=10_000, tol=1e-9).fit(dense_rows[rows], data.subgraphs.targets[rows])
    np.testing.assert_allclose(found, model.predict_proba(dense_rows), atol=1e-5)
