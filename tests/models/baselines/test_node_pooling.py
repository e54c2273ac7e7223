"""AVG is the mean; GC sees the subgraph, and nothing around it."""

from __future__ import annotations

import numpy as np
import torch

from subgnn import Graph, Ragged
from subgnn.config.settings import ModelSettings
from subgnn.kernels.induced import induced_graph
from subgnn.models.baselines.node_pooling import Average, GraphClassifier, NodeSets
from subgnn.models.spec import Checkpoint, ModelSpec
from tests.models.examples import two_triangles


def checkpoint(method, table, layers=1):
    spec = ModelSpec(0, "binary", ("a", "b"), "", method=method, model=ModelSettings(layers=layers))
    return Checkpoint(spec, {"nodes": torch.arange(len(table)), "table": table})


def test_a_subgraph_is_the_mean_of_its_nodes():
    table = torch.tensor([[1.0, 0.0], [3.0, 4.0], [5.0, -1.0]])
    model = Average(checkpoint("avg", table))
    batch = NodeSets(Ragged.from_rows([[0, 1], [2], [0, 1, 2]])).batch(np.array([2, 0, 1]))
    np.testing.assert_allclose(model.embed(batch).detach().numpy(), [[3.0, 1.0], [2.0, 2.0], [5.0, -1.0]])


def classifier(num_nodes, layers=2):
    torch.manual_seed(0)
    return GraphClassifier(checkpoint("gc", torch.randn(num_nodes, 4), layers=layers))


def answer(model, graph, rows, method="embed"):
    source = NodeSets(Ragged(rows.values.astype(np.int64), rows.offsets), induced_graph(*graph.csr, rows))
    return getattr(model, method)(source.batch(np.arange(len(rows)))).detach().numpy()


def test_edges_outside_the_subgraph_are_not_seen():
    rows = Ragged.from_rows([[0, 1, 2]])
    tails, heads, _ = two_triangles().edges()
    more = Graph.from_edges([*tails, 0, 1, 2], [*heads, 7, 6, 5], num_nodes=8)
    fewer = Graph.from_edges([0, 0, 1], [1, 2, 2], num_nodes=8)
    other = Graph.from_edges([0, 0], [1, 2], num_nodes=8)
    model = classifier(8)
    found = answer(model, two_triangles(), rows)
    np.testing.assert_array_equal(found, answer(model, more, rows))
    np.testing.assert_array_equal(found, answer(model, fewer, rows))
    assert not np.allclose(found, answer(model, other, rows))


def test_one_layer_by_hand():
    model, rows = classifier(8, layers=1), Ragged.from_rows([[2, 3, 4], [6]])
    x, mlp = model.table.detach(), model.layers[0].nn
    seen = torch.stack([x[2] + x[3], x[3] + x[2] + x[4], x[4] + x[3]])
    expected = torch.stack([torch.relu(mlp(seen)).sum(dim=0), torch.relu(mlp(x[[6]])).sum(dim=0)])
    np.testing.assert_allclose(answer(model, two_triangles(), rows), expected.detach().numpy(), atol=1e-5)
