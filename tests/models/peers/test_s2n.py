"""S2N against dense matrices and the layers of PyTorch Geometric."""

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCN2Conv, GCNConv

from subgnn import Ragged
from subgnn.api.train_recipe import train
from subgnn.inference.predictor import Predictor
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.peers.s2n import S2NSettings, edges_between, meetings, standard_of
from subgnn.models.registry import MODELS
from subgnn.training.fit import set_up
from subgnn.training.run_dir import CHECKPOINT
from tests.models.dense import dense_adjacency
from tests.models.examples import recipe, training_data
from tests.models.subgnn.examples import random_graph, random_subgraphs
from tests.training.examples import dataset


def dense_meetings(graph, left, right):
    """M A M^T with self loops in A."""
    members = [np.zeros((len(rows), graph.num_nodes)) for rows in (left, right)]
    for member, rows in zip(members, (left, right), strict=True):
        member[rows.row_ids, rows.values] = 1
    return members[0] @ (dense_adjacency(graph, "sum").numpy() + np.eye(graph.num_nodes)) @ members[1].T


def dense_weights(counts, mean, deviation, settings):
    z = (counts - mean) / deviation
    z = np.minimum(z, settings.threshold + settings.span)
    return np.maximum((z - settings.threshold) / settings.span, 0)


@pytest.mark.parametrize("seed", range(3))
def test_meetings_and_edges_are_those_of_dense_matrices(seed, monkeypatch):
    graph, left = random_graph(seed), random_subgraphs(seed)
    right = left.take(np.arange(len(left))[::2])
    monkeypatch.setattr("subgnn.models.peers.s2n._ROWS", 3)
    wanted = dense_meetings(graph, left, right)
    np.testing.assert_array_equal(np.concatenate([b.toarray() for b in meetings(graph, left, right)]), wanted)
    mean, deviation = standard_of(graph, right)
    known = dense_meetings(graph, right, right)
    assert (mean, deviation) == (pytest.approx(known.mean()), pytest.approx(known.std()))
    settings = S2NSettings(threshold=0.25, span=0.5)
    found = edges_between(graph, left, right, np.array([mean, deviation]), settings)
    np.testing.assert_allclose(found.toarray(), dense_weights(wanted, mean, deviation, settings), atol=1e-12)
    assert (found.data > 0).all()
    assert standard_of(graph, left.take([0]))[1] == 1.0  # where there is no deviation


def directed(edges):
    """A matrix, rows are targets, as PyTorch Geometric takes edges."""
    targets, sources = np.nonzero(edges)
    index = torch.from_numpy(np.stack([sources, targets]))
    return index, torch.from_numpy(edges[targets, sources]).float()


def naive(network, checkpoint, graph, train_nodes, nodes):
    """Outputs for subgraphs by dense matrices and the layers of PyTorch Geometric."""
    spec = checkpoint.spec
    settings, width = spec.of(S2NSettings), spec.embeddings.dim
    known = dense_meetings(graph, train_nodes, train_nodes)
    standard = known.mean(), known.std()
    every = Ragged.from_rows([*train_nodes, *nodes])
    weights = dense_weights(dense_meetings(graph, every, every), *standard, settings)
    first_new = len(train_nodes)
    weights[:first_new, first_new:] = 0
    weights[first_new:, first_new:] *= np.eye(len(nodes))
    place = {int(node): i for i, node in enumerate(network.nodes)}
    adjacency = dense_adjacency(graph, "sum").numpy()

    def layer(given, kind, alpha, theta, shared, number, normalize=True):
        if kind == "gcn":
            made = GCNConv(width, width, normalize=normalize)
            made.load_state_dict({"bias": given.bias, "lin.weight": given.weight.T})
            return lambda x, x0, index, weight: made(x, index, weight)
        made = GCN2Conv(width, alpha, theta, number, shared_weights=shared, normalize=normalize)
        state = {"weight1": given.weight} | ({} if shared else {"weight2": given.first_weight})
        made.load_state_dict(state)
        return made

    rows = []
    for row in every:
        h = x0 = network.table[[place[int(v)] for v in row]]
        inside = adjacency[np.ix_(row, row)] + (0 if settings.sub_normalized else np.eye(len(row)))
        index, ones = directed(inside)
        for i, given in enumerate(network.inside, 1):
            inner = settings.alpha[1], settings.theta[1], settings.shared[1], i, settings.sub_normalized
            h = torch.relu(layer(given, settings.convolution, *inner)(h, x0, index, ones))
        degrees = adjacency[row].sum(axis=1) + 1
        share = np.sqrt(degrees / degrees.sum()) if settings.weighted else np.ones(len(row))
        rows.append((torch.from_numpy(share).float()[:, None] * h).sum(dim=0))
    x = h = torch.stack(rows)
    index, weight = directed(weights)
    for i, given in enumerate(network.layers, 1):
        conv = layer(given, settings.convolution, settings.alpha[0], settings.theta[0], settings.shared[0], i)
        out = conv(h, x, index, weight)
        out = out + network.skips[i - 1](h) if network.skips else out
        h = torch.relu(network.norms[i - 1](out) if network.norms else out)
    return network.linear(x + h)[first_new:]


VARIANTS = {
    "GCN S2N+0": ["s2n.convolution=gcn", "s2n.sub_layers=0"],
    "GCN S2N+A": ["s2n.convolution=gcn", "s2n.sub_layers=2", "s2n.weighted=true"],
    "GCNII S2N+0": [
        "s2n.convolution=gcnii",
        "s2n.sub_layers=0",
        "s2n.shared=[false, true]",
        "s2n.alpha=[0.3, 0.5]",
        "s2n.theta=[0.8, 0.5]",
    ],
    "GCNII S2N+A": ["s2n.convolution=gcnii", "s2n.sub_layers=2", "s2n.shared=[true, false]", "s2n.skip=false"],
    "sums inside": ["s2n.convolution=gcnii", "s2n.sub_layers=2", "s2n.sub_normalized=false"],
    "constant": ["s2n.constant=0.5", "s2n.sub_layers=1", "s2n.batch_norm=false"],
}


@pytest.mark.quick(4)
@pytest.mark.parametrize("variant", VARIANTS)
def test_outputs_are_those_of_dense_matrices(tmp_path, variant):
    data = dataset()
    chosen = recipe("s2n", "s2n.threshold=0.0", *VARIANTS[variant])
    train(data, chosen, tmp_path / "run")
    loaded = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    predictor = Predictor(tmp_path / "run" / CHECKPOINT, data.graph)
    nodes = data.subgraphs.nodes.take(data.subgraphs.indices("test"))
    network = MODELS["s2n"].network(loaded)
    network.load_state_dict(loaded.weights)
    train_nodes = data.subgraphs.nodes.take(data.subgraphs.indices("train"))
    with torch.no_grad():
        wanted = naive(network.eval(), loaded, data.graph, train_nodes, nodes)
    np.testing.assert_allclose(predictor.outputs(nodes), wanted.numpy(), rtol=1e-3, atol=1e-4)
    alone = np.concatenate([predictor.outputs(nodes.take([i])) for i in range(len(nodes))])
    np.testing.assert_allclose(alone, predictor.outputs(nodes), rtol=1e-3, atol=1e-4)


def test_training_is_on_the_graph_of_the_training_subgraphs():
    data = dataset()
    chosen = recipe("s2n", "s2n.edge_dropout=0.0", "model.dropout=0.0", "s2n.batch_norm=false", "s2n.threshold=0.0")
    candidates, examples = set_up(training_data(data.graph, data.subgraphs), chosen)
    network = candidates[0].network.train()
    whole = network(examples.inputs.batch(examples.train))
    some = examples.train[[5, 2]]
    torch.testing.assert_close(network(examples.inputs.batch(some)), whole[[5, 2]])
    # The same as the dense graph of the training subgraphs, which are all new to an empty one.
    nodes = data.subgraphs.nodes.take(examples.train)
    known = dense_meetings(data.graph, nodes, nodes)
    edges = dense_weights(known, known.mean(), known.std(), chosen.of(S2NSettings))
    np.testing.assert_allclose(examples.inputs.train_edges.toarray(), edges * (1 - np.eye(len(nodes))), atol=1e-6)
    np.testing.assert_allclose(examples.inputs.train_own, np.diag(edges), atol=1e-6)
