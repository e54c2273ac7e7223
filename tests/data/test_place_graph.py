"""A graph on the machines of an engine's workers: mapped from a bundle, or sent."""

import numpy as np
import pytest

from subgnn import Dataset, Graph, SubgraphSet, write_bundle
from subgnn.data.place_graph import MappedGraph, place_graph
from subgnn.errors import DataError
from subgnn.parallel.engine import LocalEngine
from tests.models.subgnn.examples import random_graph, random_subgraphs


def test_a_bundle_is_mapped_where_it_is_the_graph_itself(tmp_path):
    graph, nodes = random_graph(0), random_subgraphs(0)
    dataset = Dataset("d", graph, SubgraphSet.from_lists(list(nodes), num_nodes=12, labels=["a"] * len(nodes)))
    write_bundle(dataset, tmp_path / "d.subgnn")
    engine = LocalEngine()
    placed = place_graph(engine, graph, source=tmp_path / "d.subgnn")
    assert placed == MappedGraph(str(tmp_path / "d.subgnn"), graph.content_hash)
    assert isinstance(placed.get().neighbors.base, np.ndarray)
    assert not isinstance(place_graph(engine, graph, source=tmp_path), MappedGraph)
    turned = Graph.from_edges([0], [1], directed=True).undirected()
    assert place_graph(engine, turned, source=tmp_path / "d.subgnn").get().oriented.directed


def test_a_bundle_that_is_not_there_or_another_one(tmp_path):
    graph = random_graph(0)
    with pytest.raises(
        DataError, match=r"d\.subgnn: there is no such file on .*; put the bundle at this path on every machine"
    ):
        MappedGraph(str(tmp_path / "d.subgnn"), graph.content_hash).get()
    write_bundle(Dataset("d", graph, SubgraphSet.from_lists([[0]], num_nodes=12)), tmp_path / "d.subgnn")
    with pytest.raises(DataError, match="holds a different graph"):
        MappedGraph(str(tmp_path / "d.subgnn"), "other").get()
