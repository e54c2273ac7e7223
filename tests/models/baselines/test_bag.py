"""Bags, their spread over the graph, and the linear models on them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from subgnn import SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.inference.predictor import Predictor
from subgnn.models.baselines.bag import Bags, LinearBag, features
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.kernel_machines.kernel_machine import stored_sets
from subgnn.models.kernel_machines.views import bag_of_nodes
from subgnn.models.recipes import find_recipe
from subgnn.models.registry import MODELS
from subgnn.models.spec import Checkpoint, ModelSpec
from subgnn.ragged import Ragged
from subgnn.training.run_dir import CHECKPOINT
from tests.models.dense import dense_adjacency
from tests.models.examples import recipe, training_data
from tests.models.subgnn.examples import random_graph, random_subgraphs
from tests.training.examples import dataset


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
    known = {"columns": np.arange(2), "nodes": np.arange(2), "offsets": np.arange(3)}
    model = LinearBag(Checkpoint(ModelSpec(0, "regression", (), "", method="bag"), known))
    model.arrays |= {"weight": np.array([[10.0], [1.0]]), "bias": np.array([0.5])}
    source = Bags(rows, rows, Ragged.from_rows([[], [0, 1], []]))
    assert model(source.batch(np.array([1, 0, 2]))).tolist() == [[21.5], [0.5], [0.5]]
    assert model(source.batch(np.array([0]))).tolist() == [[0.5]]


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
    settled = find_recipe("bag", ["bag.normalize=none", "bag.inverse_penalty=2.0"])
    assert list(MODELS["bag"].candidates(settled)) == ["normalize=none, inverse_penalty=2"]


@pytest.mark.parametrize("name", ["bag", "bag-1hop"])
def test_a_run_answers_as_scikit_learn_on_the_dense_features(tmp_path, name):
    data = dataset()
    train(data, recipe(name, "bag.normalize=rows", "bag.inverse_penalty=10.0"), tmp_path / "run")
    found = Predictor(tmp_path / "run" / CHECKPOINT, data.graph).probabilities(data.subgraphs.nodes)
    bag, adjacency = bag_of_nodes(data.subgraphs.nodes, 24).toarray(), dense_adjacency(data.graph, "sum").numpy()
    scale = 1 / np.sqrt(adjacency.sum(axis=1))
    parts = [bag] if name == "bag" else [bag, bag @ (scale[:, None] * adjacency * scale)]
    dense_rows = np.concatenate([part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts], axis=1)
    rows = data.subgraphs.indices("train")
    model = LogisticRegression(C=10.0, max_iter=10_000, tol=1e-9).fit(dense_rows[rows], data.subgraphs.targets[rows])
    np.testing.assert_allclose(found, model.predict_proba(dense_rows), atol=1e-5)


@pytest.mark.parametrize("task", ["binary", "multi-class", "multi-label", "regression"])
@pytest.mark.parametrize("balance", ["none", "classes"])
def test_weights_are_those_of_the_training_subgraphs(tmp_path, task, balance):
    """W = X^T a, whether the fit saw rows or their inner products: on another graph a run measures X again."""
    data, found = dataset(task), {}
    settings = ("bag.normalize=rows", "bag.inverse_penalty=10.0", f"bag.balance={balance}")
    for few in (0, 10**9):  # rows as they are, and inner products
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("subgnn.models.baselines.bag._FEW_ROWS", few)
            train(data, recipe("bag-1hop", *settings), tmp_path / f"run{few}", report=False)
        weights = found[few] = load_checkpoint(tmp_path / f"run{few}" / CHECKPOINT).weights
        _, rows = features(data.graph, stored_sets(weights), ways=("",))
        np.testing.assert_allclose(rows[:, weights["columns"]].T @ weights["duals"], weights["weight"], atol=1e-5)
    if balance == "none":  # the others estimate what each row adds in two ways
        np.testing.assert_allclose(found[0]["weight"], found[10**9]["weight"], atol=1e-5)
