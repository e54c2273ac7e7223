"""Meta nodes, and vectors by link prediction."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from subgnn import Ragged
from subgnn.errors import UserError
from subgnn.models.baselines.known_subgraphs import distinct
from subgnn.models.baselines.meta_node import LinkEncoder, link_vectors, with_meta_nodes
from tests.models.subgnn.examples import random_graph, random_subgraphs

CPU = torch.device("cpu")


@pytest.mark.parametrize("seed", range(3))
def test_a_meta_node_joins_exactly_its_nodes(seed):
    graph, rows = random_graph(seed), random_subgraphs(seed)
    joined = nx.Graph()
    joined.add_edges_from(zip(*with_meta_nodes(graph, rows), strict=True))
    assert len(distinct(Ragged.from_rows([*rows, rows[0]]))) == len(distinct(rows))
    for s, row in enumerate(rows):
        assert set(joined[graph.num_nodes + s]) == set(row.tolist())
    below = joined.subgraph(range(graph.num_nodes))
    assert {frozenset(e) for e in below.edges} == {frozenset(e) for e in zip(*graph.edges()[:2], strict=True)}


@pytest.mark.parametrize("attention", [False, True])
def test_links_are_learned(attention):
    tails, heads = np.array([(c * 8 + i, c * 8 + j) for c in range(2) for i in range(8) for j in range(i)]).T
    found = link_vectors(tails, heads, 16, dim=8, attention=attention, key=0, device=CPU).numpy()
    scores = found @ found.T
    within = np.kron(np.eye(2), np.ones((8, 8))).astype(bool)
    assert scores[within].mean() > 0 > scores[~within].mean()
    again = link_vectors(tails, heads, 16, dim=8, attention=attention, key=0, device=CPU).numpy()
    np.testing.assert_array_equal(found, again)


def test_few_edges_and_a_sample_of_them_will_do(monkeypatch):
    tails, heads = np.array([[0, 1, 2], [1, 2, 3]])
    monkeypatch.setattr("subgnn.models.baselines.meta_node._EDGES", 1)
    found = link_vectors(tails, heads, 5, dim=4, attention=False, key=0, device=CPU)
    assert found.shape == (5, 4)
    assert torch.isfinite(found).all()


def test_four_heads_need_a_width_they_can_share():
    with pytest.raises(UserError, match=r"mn-gat: embeddings\.dim is 6; accepted: a multiple of 4"):
        LinkEncoder(3, 6, attention=True)
