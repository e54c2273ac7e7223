"""Message passing over the whole graph equals its formulas with a dense matrix, in blocks or at once."""

import pytest
import torch
from torch_geometric.nn import GraphNorm as PyGGraphNorm

from subgnn.models.peers import message_passing
from subgnn.models.peers.message_passing import Dropout, GraphNorm, WholeGraph, in_blocks
from tests.models.dense import dense_adjacency, dense_pass, labels, unfitted
from tests.models.examples import two_triangles
from tests.training.examples import dataset


@pytest.mark.parametrize("scale", [1.0, 0.3, 0.0])
def test_graph_norm_is_that_of_pyg(scale):
    torch.manual_seed(0)
    ours, theirs = GraphNorm(5), PyGGraphNorm(5)
    x = (3 + 2 * torch.randn(9, 5)).requires_grad_()
    again = x.detach().clone().requires_grad_()
    with torch.no_grad():
        for norm in (ours, theirs):
            norm.weight.copy_(torch.linspace(0.5, 2, 5))
            norm.bias.copy_(torch.linspace(-1, 1, 5))
            norm.mean_scale.fill_(scale)
    found, expected = ours(x, ours.moments(x)), theirs(again)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    weight = torch.randn(9, 5)
    for out in (found, expected):
        (out.square() * weight).sum().backward()
    torch.testing.assert_close(x.grad, again.grad, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(ours.mean_scale.grad, theirs.mean_scale.grad, rtol=1e-3, atol=1e-4)


def test_dropout_drops_the_given_share_and_keeps_the_mean():
    torch.manual_seed(0)
    layer, x = Dropout(0.3), torch.ones(1001, 99)
    out = layer(x)
    assert float((out == 0).float().mean()) == pytest.approx(0.3, abs=0.01)
    assert float(out.max()) == pytest.approx(1 / 0.7, rel=1e-4)
    assert torch.equal(layer.eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert not Dropout(1.0)(x).any()


@pytest.mark.parametrize("kind", ["mean", "sum", "symmetric"])
def test_the_product_is_that_of_the_dense_matrix(kind):
    graph = two_triangles()
    x = torch.randn(8, 3, requires_grad=True)
    dense, out = dense_adjacency(graph, kind), WholeGraph(graph, kind) @ x
    torch.testing.assert_close(out, dense @ x)
    (out * torch.arange(24.0).view(8, 3)).sum().backward()
    torch.testing.assert_close(x.grad, dense.T @ torch.arange(24.0).view(8, 3))


@pytest.mark.parametrize(
    ("kind", "inputs"),
    # Means of one vector are equal at all nodes, and a norm of equal rows is one of their rounding errors.
    [("mean", "embeddings"), ("sum", "embeddings"), ("symmetric", "embeddings"), ("sum", "constant")],
)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("method", ["glass", "ssnp"])
def test_a_pass_is_that_of_the_formulas(method, layers, kind, inputs):
    data = dataset()
    settings = (f"model.layers={layers}", f"message_passing.adjacency={kind}", f"message_passing.inputs={inputs}")
    network, source = unfitted(method, data, *settings)
    z = labels(data.graph.num_nodes, [0, 5, 9])
    expected, _ = dense_pass(network, dense_adjacency(data.graph, kind), z)
    found = network.vectors_at(network.whole_pass(source.graph, z)[0], torch.arange(data.graph.num_nodes))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", ["glass", "ssnp"])
def test_blocks_of_nodes_change_nothing(monkeypatch, method):
    data = dataset()
    network, source = unfitted(method, data, "model.layers=2")
    z, everyone = labels(24, [0, 5, 9]), torch.arange(24)

    def gradients():
        network.zero_grad()
        out = network.vectors_at(network.whole_pass(source.graph, z)[0], everyone)
        out.square().sum().backward()
        return [out.detach(), *(p.grad.clone() for p in network.parameters() if p.grad is not None)]

    whole = gradients()
    monkeypatch.setattr(message_passing, "BLOCK", 5)
    for a, b in zip(whole, gradients(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
    with torch.no_grad():
        torch.testing.assert_close(in_blocks(torch.exp, everyone.float()), everyone.float().exp())
