"""Node features of the graph, for the nodes that are asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.errors import DataError


def feature_rows(graph: Graph, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
    """f: the features of the given nodes, as the graph has them.

    Shapes:
        nodes: (n,). returns: (n, F) float64.

    Raises:
        DataError: where the graph has no features.
    """
    require_features(graph)
    return np.asarray(graph.features)[nodes].astype(np.float64)


def require_features(graph: Graph) -> None:
    """Raise :class:`DataError` unless the graph has node features."""
    if graph.features is None or not graph.features.shape[1]:
        hint = 'add features.npy (a row of numbers for each node) to the dataset, or set embeddings.features="none"'
        raise DataError("the graph has no node features", where="embeddings.features", hint=hint)
