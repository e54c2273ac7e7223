"""Models with a vector for each known subgraph: meta nodes and link prediction; walks inside subgraphs and doc2vec."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import torch

from subgnn import Ragged
from subgnn.channels.structure import distinct_rows
from subgnn.errors import UserError
from subgnn.kernels.induced import induced_graph
from subgnn.models.baselines.known_subgraphs import (
    LinkEncoder,
    degree_bins,
    document_vectors,
    documents,
    inside_walks,
    link_vectors,
    with_meta_nodes,
)
from tests.models.examples import two_triangles
from tests.models.subgnn.examples import random_graph, random_subgraphs

CPU = torch.device("cpu")


@pytest.mark.parametrize("seed", range(3))
def test_a_meta_node_joins_exactly_its_nodes(seed):
    graph, rows = random_graph(seed), random_subgraphs(seed)
    joined = nx.Graph()
    joined.add_edges_from(zip(*with_meta_nodes(graph, rows).tolist(), strict=True))
    assert len(distinct_rows(Ragged.from_rows([*rows, rows[0]]))[0]) == len(distinct_rows(rows)[0])
    for s, row in enumerate(rows):
        assert set(joined[graph.num_nodes + s]) == set(row.tolist())
    below = joined.subgraph(range(graph.num_nodes))
    assert {frozenset(e) for e in below.edges} == {frozenset(e) for e in zip(*graph.edges()[:2], strict=True)}


@pytest.mark.parametrize("attention", [False, True])
def test_links_are_learned(attention):
    edges = np.array([(c * 8 + i, c * 8 + j) for c in range(2) for i in range(8) for j in range(i)]).T
    found = link_vectors(edges, 16, dim=8, attention=attention, key=0, device=CPU).numpy()
    scores = found @ found.T
    within = np.kron(np.eye(2), np.ones((8, 8))).astype(bool)
    assert scores[within].mean() > 0 > scores[~within].mean()
    again = link_vectors(edges, 16, dim=8, attention=attention, key=0, device=CPU).numpy()
    np.testing.assert_array_equal(found, again)


def test_few_edges_and_a_sample_of_them_will_do(monkeypatch):
    monkeypatch.setattr("subgnn.models.baselines.known_subgraphs._EDGES", 1)
    found = link_vectors(np.array([[0, 1, 2], [1, 2, 3]]), 5, dim=4, attention=False, key=0, device=CPU)
    assert found.shape == (5, 4)
    assert torch.isfinite(found).all()


def test_four_heads_need_a_width_they_can_share():
    with pytest.raises(UserError, match=r"mn-gat: embeddings\.dim is 6; accepted: a multiple of 4"):
        LinkEncoder(3, 6, attention=True)


ROWS = Ragged.from_rows([[0, 1, 2], [3, 4, 5], [2, 3, 7], [7], [0, 4]])


def walks_of(graph, rows, *, seed=0, walks=6, length=7):
    return inside_walks(rows, induced_graph(*graph.csr, rows), walks, length, seed=seed)


@pytest.mark.parametrize("seed", range(4))
def test_walks_stay_inside_and_follow_edges(seed):
    graph, rows = random_graph(seed), random_subgraphs(seed)
    walks = walks_of(graph, rows, seed=seed)
    for subgraph, texts in zip(rows, documents(walks, rows.values), strict=True):
        inside = set(subgraph.tolist())
        for text in texts:
            walk = [int(word) for word in text]
            assert set(walk) <= inside
            assert all(b in graph.neighbors_of(a) for a, b in pairwise(walk))
            friends = inside & set(graph.neighbors_of(walk[0]).tolist())
            assert len(walk) == (7 if friends else 1)


def test_a_walk_at_a_node_without_neighbours_inside_is_that_node():
    texts = documents(walks_of(two_triangles(), ROWS), ROWS.values)
    assert all(text == ["7"] for text in texts[3])
    assert {tuple(text) for text in texts[4]} == {("0",), ("4",)}


def test_degrees_over_size_in_bins():
    bins = degree_bins(ROWS, induced_graph(*two_triangles().csr, ROWS), 10)
    assert bins.tolist() == [6, 6, 6, 6, 6, 6, 3, 3, 0, 0, 0, 0]


def test_the_same_shape_gives_the_same_structural_documents_and_other_nodes():
    graph = two_triangles()
    walks, bins = walks_of(graph, ROWS), degree_bins(ROWS, induced_graph(*graph.csr, ROWS), 10)
    structural, nodes = documents(walks, bins), documents(walks, ROWS.values)
    assert structural[0] == structural[1]
    assert structural[0] != structural[2]
    assert not {w for t in nodes[0] for w in t} & {w for t in nodes[1] for w in t}


def test_a_subgraph_walks_the_same_in_any_company():
    some = ROWS.take([2])
    together, alone = walks_of(two_triangles(), ROWS), walks_of(two_triangles(), some)
    assert documents(alone, some.values)[0] == documents(together, ROWS.values)[2]


def test_doc2vec_repeats_and_tells_documents_apart(monkeypatch):
    texts = [[["a", "b"] * 10]] * 6 + [[["c", "d"] * 10]] * 6
    monkeypatch.setattr("subgnn.models.baselines.known_subgraphs._EPOCHS", 60)
    found = document_vectors(texts, 8, seed=1)
    np.testing.assert_array_equal(found, document_vectors(texts, 8, seed=1))
    assert not np.array_equal(found, document_vectors(texts, 8, seed=2))
    unit = found / np.linalg.norm(found, axis=1, keepdims=True)
    near = unit @ unit.T
    assert near[:6, :6].mean() > near[:6, 6:].mean() + 0.2
