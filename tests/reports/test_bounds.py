"""Pages stay small: large subgraphs are thinned out, and rare classes are gathered."""

from __future__ import annotations

import numpy as np

from subgnn import Graph
from subgnn.data.layout import lay_out
from subgnn.reports.predictions import drawing_values

from .reading import drawn, read


def draw(graph: Graph, nodes: np.ndarray, name: str) -> str:
    return drawn("subgraph.html", "drawing", drawing_values(graph, lay_out(graph, nodes), name))


def test_a_large_dense_subgraph_is_thinned_out_and_says_so():
    tails, heads = np.triu_indices(400, 1)
    graph = Graph.from_edges(tails, heads)
    made = draw(graph, np.arange(300), "large")
    assert len(made) < 40_000
    assert "300 nodes, 1 component, 100 border nodes; 200 of the nodes are drawn; 60 of the border" in made
    assert len(read(made).all("circle")) == 260
