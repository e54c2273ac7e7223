"""Node features of the graph, for the nodes that are asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.topology import Standard
from subgnn.data.graph import Graph
from subgnn.errors import DataError

_AT_A_TIME = 2**20  # numbers that are held in double precision


def feature_rows(graph: Graph, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
    """f: the features of the given nodes, as the graph has them.

    Shapes:
        nodes: (n,). returns: (n, F) float64.

    Raises:
        DataError: where the graph has no features.
    """
    require_features(graph)
    return np.asarray(graph.features)[nodes].astype(np.float64)


def feature_standard(graph: Graph) -> Standard:
    """The mean and deviation of each feature over all nodes of the graph, whichever subgraphs there are.

    Raises:
        DataError: where the graph has no features.
    """
    require_features(graph)
    width = np.asarray(graph.features).shape[1]
    rows = max(1, _AT_A_TIME // width)
    parts = [np.arange(i, min(i + rows, graph.num_nodes)) for i in range(0, graph.num_nodes, rows)]
    mean = sum((feature_rows(graph, part).sum(axis=0) for part in parts), np.zeros(width)) / graph.num_nodes
    squares = sum((((feature_rows(graph, part) - mean) ** 2).sum(axis=0) for part in parts), np.zeros(width))
    deviation = np.sqrt(squares / graph.num_nodes)
    return Standard(mean, np.where(deviation > 0, deviation, 1.0))


def require_features(graph: Graph) -> None:
    """Raise :class:`DataError` unless the graph has node features."""
    if graph.features is None or not graph.features.shape[1]:
        hint = 'add features.npy (a row of numbers for each node) to the dataset, or set embeddings.features="none"'
        raise DataError("the graph has no node features", where="embeddings.features", hint=hint)
