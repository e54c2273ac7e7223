"""SSNP: nodes and a sampled border, pooled apart; a prediction walks the same way each time."""

import numpy as np
import pytest
import torch

from subgnn.kernels.draws import node_set_keys
from subgnn.models.peers import ssnp
from subgnn.models.peers.ssnp import border_sample
from subgnn.rng import stream_key
from tests.models.dense import dense_adjacency, dense_pass, labels, pooled, unfitted
from tests.models.subgnn.examples import random_graph, random_subgraphs
from tests.training.examples import dataset


@pytest.mark.parametrize("how", ["sum", "mean", "max", "size"])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_prediction_pools_members_and_border_apart(layers, how):
    data = dataset()
    settings = (f"model.layers={layers}", f"message_passing.pool={how}", "message_passing.walk_length=3")
    network, source = unfitted("ssnp", data, *settings, seed=3)
    network.eval()
    nodes = data.subgraphs.nodes
    keys = node_set_keys(stream_key(3, "ssnp/walks/0"), nodes)
    borders = border_sample(data.graph, nodes, walks=1, length=3, keys=keys)
    with torch.no_grad():
        vectors, _ = dense_pass(network, dense_adjacency(data.graph, "mean"), labels(24))
        expected = [
            torch.cat([pooled(vectors[torch.from_numpy(part.astype(np.int64))], how) for part in parts])
            for parts in zip(nodes, borders, strict=True)
        ]
        found = network.embed(source.batch(np.arange(30)))
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_border_sample_is_what_walks_can_reach(seed):
    graph, rows = random_graph(seed), random_subgraphs(seed)
    for length in (1, 2):
        keys = np.arange(len(rows), dtype=np.uint64)
        found = border_sample(graph, rows, walks=200, length=length, keys=keys)
        for nodes, border in zip(rows, found, strict=True):
            ball = set(nodes.tolist())
            for _ in range(length):
                ball |= {int(v) for u in ball for v in graph.neighbors_of(u)}
            assert set(border.tolist()) == ball - set(nodes.tolist())
            assert sorted(set(border.tolist())) == border.tolist()


def test_samples_in_pieces_are_the_same(monkeypatch):
    graph, rows, keys = random_graph(1), random_subgraphs(1), np.arange(5, dtype=np.uint64)
    whole = border_sample(graph, rows, walks=2, length=3, keys=keys)
    monkeypatch.setattr(ssnp, "_VISITS_AT_A_TIME", 7)
    pieces = border_sample(graph, rows, walks=2, length=3, keys=keys)
    np.testing.assert_array_equal(whole.values, pieces.values)
    np.testing.assert_array_equal(whole.offsets, pieces.offsets)


def test_training_walks_anew_and_prediction_does_not():
    data = dataset()
    network, source = unfitted("ssnp", data, "model.layers=1")
    rows = np.arange(30)
    with torch.no_grad():
        torch.manual_seed(0)
        first, second = (network.train().embed(source.batch(rows)) for _ in range(2))
        torch.manual_seed(0)
        assert torch.equal(first, network.train().embed(source.batch(rows)))
        assert not torch.equal(first, second)
        network.eval()
        state = torch.get_rng_state()
        assert torch.equal(network.embed(source.batch(rows)), network.embed(source.batch(rows)))
        assert torch.equal(state, torch.get_rng_state())
        one = network.embed(source.batch(rows[[7]]))
    torch.testing.assert_close(one, network.embed(source.batch(rows)).detach()[[7]])
