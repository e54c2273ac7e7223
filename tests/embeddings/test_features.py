"""Node features, read for the nodes that are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from subgnn import Graph
from subgnn.embeddings.features import feature_rows
from subgnn.errors import DataError


def test_rows_of_the_nodes_asked_for():
    graph = Graph.from_edges([0, 1], [1, 2], features=np.array([[1, 2], [3, 4], [5, 6]]))
    rows = feature_rows(graph, np.array([2, 0], np.int32))
    assert rows.dtype == np.float64
    assert rows.tolist() == [[5, 6], [1, 2]]


@pytest.mark.parametrize("features", [None, np.zeros((3, 0))])
def test_a_graph_without_features_is_said(features):
    graph = Graph.from_edges([0, 1], [1, 2], features=features)
    with pytest.raises(DataError) as caught:
        feature_rows(graph, np.array([0], np.int32))
    assert str(caught.value).startswith("embeddings.features: the graph has no node features; add features.npy")
