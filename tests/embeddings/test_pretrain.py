"""Pretraining: it learns, holds edges out, repeats, and goes on after an interruption."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn import Graph
from subgnn.embeddings import pretrain as module
from subgnn.embeddings.link_prediction import Adjacency, embed_all, split_edges
from subgnn.embeddings.pretrain import METHODS, link_auroc, pretrain
from subgnn.errors import DataError, MemoryLimitError, MissingExtra, UserError
from subgnn.parallel.memory import memory_limit
from tests.embeddings.examples import blocks, quick

DIM = 8
BOTH = pytest.mark.parametrize("method", sorted(METHODS))
CPU = torch.device("cpu")


def neighbors_in(split):
    """Directed pairs of the message-passing graph."""
    tails = np.repeat(np.arange(len(split.offsets) - 1), np.diff(split.offsets))
    return set(zip(tails.tolist(), split.neighbors.tolist(), strict=True))


def messages(adjacency, sources, rows):
    """Directed pairs (receiver, sender) of an adjacency, by node id."""
    places = adjacency.matrix.to_sparse_coo().indices().numpy()
    return set(zip(rows[places[0]].tolist(), sources[places[1]].tolist(), strict=True))


def untrained_auroc(graph, method, settings):
    split = split_edges(graph, val_fraction=0.05, seed=settings.seed)
    make_encoder, make_sampler = METHODS[method]
    torch.manual_seed(0)
    encoder = make_encoder(graph.num_nodes, DIM, settings)
    vectors = embed_all(encoder, make_sampler(split, settings).rows, split.offsets, CPU)
    return link_auroc(vectors, split.val, split.val_non_edges)


@pytest.mark.slow
@BOTH
def test_it_learns_blocks_that_random_vectors_do_not_tell(method):
    graph, settings = blocks(), quick()
    found, about = pretrain(graph, method, dim=DIM, settings=settings, device="cpu")
    assert about["val_auroc"] > 0.9
    assert found.shape == (graph.num_nodes, DIM)
    split = split_edges(graph, val_fraction=0.05, seed=settings.seed)
    vectors = torch.from_numpy(found)
    assert link_auroc(vectors, split.val, split.val_non_edges) == pytest.approx(about["val_auroc"])
    assert link_auroc(vectors, split.val, split.val_matched) == pytest.approx(about["val_matched_auroc"])
    random = torch.randn(graph.num_nodes, DIM, generator=torch.Generator().manual_seed(0))
    assert link_auroc(random, split.val, split.val_non_edges) < 0.65
    assert untrained_auroc(graph, method, settings) < about["val_auroc"] - 0.05


@BOTH
def test_held_out_edges_pass_no_message_in_either_direction(method):
    graph, settings = blocks(), quick(fraction=1.0)
    split = split_edges(graph, val_fraction=0.2, seed=0)
    sampler = METHODS[method][1](split, settings)
    held_out = set(zip(*split.val.tolist(), strict=True))
    held_out |= {(v, u) for u, v in held_out}
    everyone = np.arange(graph.num_nodes)
    used = messages(sampler.rows(slice(0, graph.num_nodes)), everyone, everyone)
    for step in range(3):
        batch = sampler.batch(step)
        nodes = batch.nodes.numpy()
        for adjacency in batch.adjacencies:
            used |= messages(adjacency, nodes, nodes)
        ends = nodes[batch.pairs.numpy()[:, batch.targets.numpy() == 1]]
        used |= set(zip(*ends.tolist(), strict=True))
    assert used
    assert not used & held_out


def test_the_split_is_a_partition_of_the_edges():
    graph = blocks()
    split = split_edges(graph, val_fraction=0.2, seed=1)
    whole = set(zip(*(part.tolist() for part in graph.edges()[:2]), strict=True))
    train, val = (set(zip(*part.tolist(), strict=True)) for part in (split.train, split.val))
    assert train | val == whole
    assert not train & val
    assert len(val) == round(0.2 * len(whole))
    assert neighbors_in(split) == train | {(v, u) for u, v in train}
    for pairs in (split.val_non_edges, split.val_matched):
        assert pairs.shape == split.val.shape
        assert not set(zip(*pairs.tolist(), strict=True)) & (whole | {(v, u) for u, v in whole})


def test_matched_non_edges_have_the_degrees_of_edges():
    star = [(0, v) for v in range(1, 40)] + [(v, v + 1) for v in range(40, 79)]
    graph = Graph.from_edges(*zip(*star, strict=True))
    split = split_edges(graph, val_fraction=0.9, seed=0)
    degrees = np.diff(graph.offsets)
    assert degrees[split.val].mean() > 5 * degrees[split.val_non_edges].mean() > 0
    assert degrees[split.val_matched].mean() > 2 * degrees[split.val_non_edges].mean()


@BOTH
def test_every_parameter_moves(method):
    graph, settings = blocks(2, 10), quick(weight_decay=0.0, steps=3, fraction=0.5)
    split = split_edges(graph, val_fraction=0.1, seed=0)
    make_encoder, make_sampler = METHODS[method]
    encoder = make_encoder(graph.num_nodes, DIM, settings)
    before = {name: p.detach().clone() for name, p in encoder.named_parameters()}
    once = replace(settings, epochs=1)
    assert len(list(module.fit_epochs(encoder, make_sampler(split, settings), split, once, torch.device("cpu")))) == 1
    assert before
    for name, p in encoder.named_parameters():
        assert not torch.equal(p, before[name]), name
    moved = (encoder.inputs.table != before["inputs.table"]).any(dim=1)
    assert moved.all()


@BOTH
def test_the_pass_over_all_nodes_does_not_depend_on_its_chunks(method, monkeypatch):
    graph, settings = blocks(3, 12), quick()
    split = split_edges(graph, val_fraction=0.1, seed=0)
    make_encoder, make_sampler = METHODS[method]
    encoder, sampler = make_encoder(graph.num_nodes, DIM, settings), make_sampler(split, settings)
    whole = embed_all(encoder, sampler.rows, split.offsets, CPU)
    monkeypatch.setattr("subgnn.embeddings.link_prediction._ENTRIES_AT_A_TIME", 20)
    assert torch.allclose(whole, embed_all(encoder, sampler.rows, split.offsets, CPU), atol=1e-6)


def test_a_step_on_all_neighbours_is_the_pass_over_all_nodes():
    graph, settings = blocks(3, 12), quick(fraction=1.0, batch_size=4000)
    split = split_edges(graph, val_fraction=0.1, seed=0)
    make_encoder, make_sampler = METHODS["gin"]
    encoder, sampler = make_encoder(graph.num_nodes, DIM, settings).eval(), make_sampler(split, settings)
    batch = sampler.batch(0)
    some = encoder(batch.nodes, batch.adjacencies)
    whole = embed_all(encoder, sampler.rows, split.offsets, CPU)
    assert torch.allclose(some, whole[batch.nodes[: len(some)]], atol=1e-5)


@pytest.mark.slow
def test_samples_of_walks_are_weighted_to_the_sum_over_the_whole_graph(monkeypatch):
    graph = blocks(2, 10)
    monkeypatch.setattr("subgnn.embeddings.encoders._ROOTS", 6)
    settings = quick(walk_length=2)
    split = split_edges(graph, val_fraction=0.1, seed=0)
    sampler = METHODS["graphsaint"][1](split, settings)
    whole = sampler.rows(slice(0, graph.num_nodes)).matrix.to_dense()
    total, met = torch.zeros_like(whole), torch.zeros(len(whole))
    for step in range(400):
        batch = sampler.batch(step)
        places = batch.nodes
        total[places[:, None], places[None, :]] += batch.adjacencies[0].matrix.to_dense()
        met[places] += 1
    mean = total / met[:, None]
    assert torch.allclose(mean.sum(dim=1), whole.sum(dim=1), rtol=0.25)
    assert float(mean.sum() / whole.sum()) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph.from_edges([0], [1], num_nodes=5), "the graph has 1 edges"),
        (Graph.from_edges([0, 0, 1], [1, 2, 2]), "almost all pairs of nodes are joined"),
    ],
)
def test_a_graph_with_nothing_to_learn_is_refused(graph, message):
    with pytest.raises(DataError, match=message):
        pretrain(graph, "gin", dim=DIM)


def test_a_table_beyond_the_memory_is_refused():
    graph = Graph.from_edges([0, 1], [1, 2], num_nodes=10**6)
    with memory_limit("1GB"), pytest.raises(MemoryLimitError, match=r"needs 1\.5 GB"):
        pretrain(graph, "gin", dim=64, device="cpu")


@BOTH
def test_a_loss_that_is_no_number_stops(method):
    with pytest.raises(UserError, match=r"the loss became .* lower pretrain\.lr"):
        pretrain(blocks(2, 10), method, dim=DIM, settings=quick(lr=1e30), device="cpu")


@BOTH
def test_without_pytorch_geometric_the_extra_is_named(method, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    with pytest.raises(MissingExtra, match=r"pretraining.*torch_geometric.*pip install 'subgnn\[pyg\]'"):
        pretrain(blocks(2, 5), method, dim=DIM, settings=quick(), device="cpu")


@pytest.mark.parametrize("loops", [False, True])
def test_product_and_gradient_are_those_of_the_dense_matrix(loops):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((4, 7)) < 0.5, rng.normal(size=(4, 7)), 0).astype(np.float32)
    rows, columns = np.nonzero(dense)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=4))])
    own = rng.normal(size=4).astype(np.float32) if loops else None
    adjacency = Adjacency.of(
        offsets, columns.astype(np.int32), dense[rows, columns], num_columns=7, rows=slice(1, 5), loops=own
    )
    whole = torch.from_numpy(dense.copy())
    if own is not None:
        whole[torch.arange(4), torch.arange(1, 5)] += torch.from_numpy(own)
    x = torch.randn(7, 3, requires_grad=True)
    weights = torch.randn(4, 3)
    found = adjacency @ x
    assert torch.allclose(found, whole @ x, atol=1e-6)
    (gradient,) = torch.autograd.grad((found * weights).sum(), x)
    (expected,) = torch.autograd.grad(((whole @ x) * weights).sum(), x)
    assert torch.allclose(gradient, expected, atol=1e-6)
