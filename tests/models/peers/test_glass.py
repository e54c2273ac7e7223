"""GLASS: a subgraph by itself equals a pass over the whole graph with its nodes labelled; batches as published."""

import networkx as nx
import numpy as np
import pytest
import torch

from subgnn import Dataset, SubgraphSet
from subgnn.models.peers import glass
from subgnn.models.peers.glass import Neighborhoods
from subgnn.models.registry import MODELS
from tests.models.dense import dense_adjacency, dense_pass, labels, pooled, unfitted
from tests.models.examples import recipe, training_data
from tests.models.subgnn.examples import random_graph, random_subgraphs
from tests.training.examples import dataset

N = 30


def example(seed: int = 0) -> Dataset:
    """A sparse graph with isolated nodes; of the subgraphs one is the whole graph."""
    rows = random_subgraphs(seed, nodes=N, count=12)
    subgraphs = SubgraphSet.from_lists(list(rows), num_nodes=N, labels=["a", "b"] * 6, splits=["train"] * 12)
    return Dataset("random", random_graph(seed, nodes=N, edges=34), subgraphs)


def one_by_one(network, data, rows, *, kind, how, recorded):
    """The vector of each subgraph by a pass over the whole graph of its own."""
    a = dense_adjacency(data.graph, kind)
    found = []
    for nodes in rows:
        vectors, _ = dense_pass(network, a, labels(N, nodes), recorded)
        found.append(pooled(vectors[torch.from_numpy(nodes.astype(np.int64))], how))
    return torch.stack(found)


@pytest.mark.parametrize(
    ("kind", "how", "ratio"),
    [("mean", "sum", 0.9), ("sum", "mean", 1.0), ("symmetric", "size", 0.6), ("mean", "max", 0.5)],
)
@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5])
def test_a_prediction_is_a_pass_with_the_nodes_of_the_subgraph_labelled(layers, kind, how, ratio):
    data = example(layers)
    settings = [f"model.layers={layers}", f"message_passing.adjacency={kind}", f"message_passing.pool={how}"]
    network, source = unfitted("glass", data, *settings, f"message_passing.ratio={ratio}")
    assert len(network.reference)
    network.eval()
    z = labels(N, network.reference.numpy())
    with torch.no_grad():
        _, recorded = dense_pass(network, dense_adjacency(data.graph, kind), z)
        expected = one_by_one(network, data, data.subgraphs.nodes, kind=kind, how=how, recorded=recorded)
        found = network.embed(source.batch(np.arange(12)))
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-3)


def test_neighborhoods_in_pieces_change_nothing(monkeypatch):
    data = example()
    network, source = unfitted("glass", data, "model.layers=3")
    whole = network.eval().embed(source.batch(np.arange(12)))
    monkeypatch.setattr(glass, "ENTRIES_AT_A_TIME", 9)
    network, source = unfitted("glass", data, "model.layers=3")
    torch.testing.assert_close(network.eval().embed(source.batch(np.arange(12))), whole, rtol=1e-3, atol=1e-3)


def test_training_labels_the_nodes_of_the_whole_batch():
    data = example(3)
    network, source = unfitted("glass", data, "model.layers=2", "message_passing.pool=sum")
    rows = data.subgraphs.nodes.take([4, 1, 6])
    found = network.train().embed(source.batch(np.array([4, 1, 6])))
    vectors, _ = dense_pass(network, dense_adjacency(data.graph, "mean"), labels(N, *rows))
    expected = torch.stack([vectors[torch.from_numpy(nodes.astype(np.int64))].sum(dim=0) for nodes in rows])
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_prediction_does_not_depend_on_other_subgraphs():
    network, source = unfitted("glass", example(2), "model.layers=2")
    rows = np.arange(5)
    with torch.no_grad():
        each = torch.cat([network.eval().embed(source.batch(rows[[i]])) for i in rows])
        torch.testing.assert_close(network.embed(source.batch(rows)), each, rtol=1e-4, atol=1e-4)


def test_the_reference_is_a_batch_of_training_subgraphs():
    data = dataset()
    found = MODELS["glass"].start(training_data(data.graph, data.subgraphs), recipe("glass", "training.batch_size=1"))
    train = [set(data.subgraphs.nodes[i].tolist()) for i in data.subgraphs.indices("train")]
    assert set(found["reference"].tolist()) in train


@pytest.mark.parametrize("radius", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_neighborhoods_are_those_of_networkx(seed, radius):
    graph, rows = random_graph(seed), random_subgraphs(seed)
    whole = nx.Graph(list(zip(*graph.edges()[:2], strict=True)))
    whole.add_nodes_from(range(graph.num_nodes))
    found = Neighborhoods.of(graph, rows, radius)
    expected = []
    for i, nodes in enumerate(rows):
        far = nx.multi_source_dijkstra_path_length(whole, set(nodes.tolist()))
        expected += [(i, node, hops) for node, hops in sorted(far.items()) if hops <= radius]
    assert list(zip(found.keys // 12, found.nodes, found.hops, strict=True)) == expected


@pytest.mark.parametrize("limit", [0, 2**20])
def test_neighborhoods_that_are_kept_change_nothing(monkeypatch, limit):
    monkeypatch.setattr(glass, "KEPT_ENTRIES", {"cpu": limit})
    network, source = unfitted("glass", example(), "model.layers=3")
    fresh, _ = unfitted("glass", example(), "model.layers=3")
    with torch.no_grad():
        found = [network.eval().embed(source.batch(np.arange(12))) for _ in range(3)]
        for one in (network, fresh):
            one.output.weight.add_(0.1)
            one.layers[0].norm.weight.mul_(0.5)
        found.append(network.embed(source.batch(np.arange(12))))
        expected = fresh.eval().embed(source.batch(np.arange(12)))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[3], expected)
    assert not torch.equal(found[3], found[0])
    assert [one is None for one in network._corrections.values()] == [limit == 0]
