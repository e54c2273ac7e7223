"""SubgraphClassifier, as a notebook uses it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from subgnn.errors import DataError
from subgnn.estimator import SubgraphClassifier
from tests.training.examples import dataset

FAST = ("training.epochs=3", "embeddings.dim=4", "model.head=[8, 8]")


@pytest.mark.parametrize("task", ["multi-class", "multi-label"])
def test_fit_predict_transform_score(task):
    data = dataset(task)
    model = SubgraphClassifier("structure", settings=FAST).fit(data.graph, data.subgraphs)
    scores = model.predict_proba(data.subgraphs)
    assert scores.shape == (30, data.subgraphs.num_classes)
    assert model.transform([[0, 1, 2], [5]]).shape[0] == 2
    assert 0 <= model.score(data.subgraphs) <= 1
    predicted = model.predict(data.subgraphs)
    if task == "multi-class":
        assert list(predicted) == [model.classes_[i] for i in scores.argmax(axis=1)]
    else:
        np.testing.assert_array_equal(predicted, scores > 0.5)


def test_without_splits_a_part_is_set_aside_to_select_on():
    data = dataset()
    model = SubgraphClassifier("structure", settings=FAST, seed=1)
    model.fit(data.graph, replace(data.subgraphs, splits=None))
    assert model.results_["test"] == {}


def test_it_is_an_estimator():
    model = SubgraphClassifier("structure", settings=FAST, seed=7)
    again = clone(model)
    assert again.get_params() == model.get_params()
    again.set_params(seed=8)
    assert again.seed == 8
    with pytest.raises(NotFittedError):
        model.predict([[0]])


def test_the_same_seed_predicts_the_same():
    data = dataset()
    a, b = (SubgraphClassifier("structure", settings=FAST, seed=2).fit(data.graph, data.subgraphs) for _ in range(2))
    np.testing.assert_array_equal(a.predict_proba(data.subgraphs), b.predict_proba(data.subgraphs))


def test_what_it_cannot_learn_is_said():
    data = dataset("regression")
    with pytest.raises(DataError, match="the task is regression"):
        SubgraphClassifier("structure", settings=FAST).fit(data.graph, data.subgraphs)


def test_node_features_stand_in_for_embeddings():
    data = dataset()
    graph = replace(data.graph, features=np.random.default_rng(0).normal(size=(24, 3)), known_hash="")
    model = SubgraphClassifier("structure", settings=(*FAST, "embeddings.features=instead"))
    model.fit(graph, data.subgraphs)
    assert model.predictor_.checkpoint.weights["feature_map.weight"].shape == (4, 3)
    assert np.isfinite(model.predict_proba([[0, 1], [23]])).all()
