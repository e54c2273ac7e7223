"""GLASS and SSNP by their formulas, with a dense matrix and a pass over all nodes for each subgraph."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from subgnn import Graph
from subgnn.models.interface import TrainingData
from subgnn.models.recipes import parse_recipe
from subgnn.models.registry import MODELS


def dense_adjacency(graph: Graph, kind: str) -> torch.Tensor:
    """A of the given kind, with the weights of the graph in units of their mean magnitude, if it has any."""
    a = np.zeros((graph.num_nodes, graph.num_nodes), np.float32)
    unit = 1 if graph.weights is None else np.abs(graph.weights).mean()
    for u in range(graph.num_nodes):
        row = slice(graph.offsets[u], graph.offsets[u + 1])
        a[u, graph.neighbors_of(u)] = 1 if graph.weights is None else graph.weights[row] / unit
    degrees = np.abs(a).sum(axis=1)
    degrees[degrees == 0] = 1
    if kind == "mean":
        a = a / degrees[:, None]
    elif kind == "symmetric":
        a = a / np.sqrt(degrees)[:, None] / np.sqrt(degrees)[None, :]
    return torch.from_numpy(a)


class Norms:
    """GraphNorm in the order of use; the means and variances are recorded, or those of an earlier pass are used."""

    def __init__(self, recorded=None):
        self.recorded, self.given = [], recorded

    def __call__(self, norm, x):
        if self.given is None:
            mean = x.mean(dim=0)
            variance = ((x - norm.mean_scale * mean) ** 2).mean(dim=0)
        else:
            mean, variance = self.given[len(self.recorded)]
        self.recorded.append((mean, variance))
        return norm.weight * (x - norm.mean_scale * mean) / torch.sqrt(variance + 1e-5) + norm.bias


def mixed(linear: nn.Linear, x, z, ratio, act=lambda h: h):
    """a act(W1 x) + (1 - a) act(W0 x) where z is 1, and the other way round where it is 0."""
    if ratio is None:
        return act(linear(x))
    half = linear.out_features // 2
    h0 = act(functional.linear(x, linear.weight[:half], linear.bias[:half]))
    h1 = act(functional.linear(x, linear.weight[half:], linear.bias[half:]))
    z = z[:, None].float()
    return z * (ratio * h1 + (1 - ratio) * h0) + (1 - z) * (ratio * h0 + (1 - ratio) * h1)


def dense_pass(network, a, z, recorded=None):
    """Vectors of all nodes without dropout, and the moments of all norms."""
    norms = Norms(recorded)
    x = norms(network.first, network.table.expand(len(z), -1))
    outs = []
    for i, layer in enumerate(network.layers):
        messages = mixed(layer.message, x, z, layer.ratio, functional.elu)
        y = norms(layer.norm, a @ messages)
        out = mixed(layer.combine, torch.cat([y, x], dim=1), z, layer.ratio)
        outs.append(norms(layer.jump, out))
        if i < len(network.layers) - 1:
            x = functional.elu(norms(layer.between, out))
    return torch.cat(outs, dim=1), norms.recorded


def pooled(rows, how):
    if not len(rows):
        return torch.zeros(rows.shape[1])
    if how == "size":
        return (rows / len(rows) ** 0.5).sum(dim=0)
    return {"sum": rows.sum(dim=0), "mean": rows.mean(dim=0), "max": rows.amax(dim=0)}[how]


def labels(num_nodes, *sets):
    z = torch.zeros(num_nodes, dtype=torch.bool)
    for nodes in sets:
        z[torch.as_tensor(np.asarray(nodes, np.int64))] = True
    return z


def unfitted(method, data, *overrides, seed=0):
    """A network whose parameters are all random, norms included, and its source."""
    plain = ("model.dropout=0.0", "embeddings.dim=6", "training.batch_size=7")
    recipe = parse_recipe({"method": method}, "test", [*plain, *overrides])
    found = MODELS[method].set_up(TrainingData(data.graph, data.subgraphs, seed, torch.device("cpu")), recipe)
    network, generator = found.candidates[0].network, torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator))
    return network, found.source
