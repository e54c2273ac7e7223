"""Node features, read for the nodes that are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from subgnn import Graph
from subgnn.embeddings.sources import feature_rows, feature_standard
from subgnn.errors import DataError


def test_rows_of_the_nodes_asked_for():
    graph = Graph.from_edges([0, 1], [1, 2], features=np.array([[1, 2], [3, 4], [5, 6]]))
    rows = feature_rows(graph, np.array([2, 0], np.int32))
    assert rows.dtype == np.float64
    assert rows.tolist() == [[5, 6], [1, 2]]


def test_constants_are_those_of_all_nodes_however_many_are_read_at_a_time(monkeypatch):
    features = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32) * [1, 0, 1e6] + [1e4, 5, 0]
    graph = Graph.from_edges([0, 1], [1, 2], num_nodes=7, features=features)
    for at_a_time in (1, 6, 2**20):
        monkeypatch.setattr("subgnn.embeddings.sources._NUMBERS_AT_A_TIME", at_a_time)
        found = feature_standard(graph)
        np.testing.assert_allclose(found.mean, features.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found.deviation, [features[:, 0].std(), 1, features[:, 2].std()], rtol=1e-9)


@pytest.mark.parametrize("features", [None, np.zeros((3, 0))])
def test_a_graph_without_features_is_said(features):
    graph = Graph.from_edges([0, 1], [1, 2], features=features)
    with pytest.raises(DataError) as caught:
        feature_rows(graph, np.array([0], np.int32))
    assert str(caught.value).startswith("embeddings.features: the graph has no node features; add features.npy")
