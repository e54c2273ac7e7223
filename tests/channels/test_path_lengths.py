"""Distances by lengths of edges against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import Graph, Ragged, UserError
from subgnn.channels.channel import NodeAnchors, OwnAnchors, Work
from subgnn.channels.distances import check_lengths, own_hops, shared_hops
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.models.recipes import check_recipe, find_recipe


@st.composite
def cases(draw) -> tuple[Graph, Ragged, np.ndarray]:
    """A directed graph in its undirected form, node sets and anchors."""
    n = draw(st.integers(2, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = rng.integers(0, n, (draw(st.integers(1, 25)), 2))
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0).reshape(-1, 2)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], len(ends))
    graph = Graph.from_edges(ends[:, 0], ends[:, 1], num_nodes=n, weights=weights, directed=True).undirected()
    rows = [np.sort(rng.choice(n, rng.integers(1, n + 1), replace=False)) for _ in range(3)]
    return graph, Ragged.from_rows(rows), rng.integers(0, n, 4).astype(np.int32)


def oracle(graph: Graph, settings: PrepareSettings, row: np.ndarray, anchor: int) -> tuple[float, float]:
    there = graph.oriented if settings.directed else graph
    tails, heads, weights = there.edges()
    kept = [(u, v, w) for u, v, w in zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True) if w]
    lengths = [w if settings.edge_length == "weight" else 1 / w for _, _, w in kept]
    network = nx.DiGraph() if settings.directed else nx.Graph()
    network.add_nodes_from(range(graph.num_nodes))
    for (u, v, _), length in zip(kept, lengths, strict=True):
        network.add_edge(u, v, length=length / np.mean(lengths))
    found = []
    for node in row.tolist():
        if nx.has_path(network, node, anchor):
            found.append(nx.shortest_path_length(network, node, anchor, weight="length"))
    if not found:
        return 0.0, 0.0
    return float(np.mean(found)), len(found) / len(row)


@settings(max_examples=40)
@given(cases(), st.sampled_from(["weight", "inverse weight"]), st.booleans())
def test_lengths_of_paths_equal_those_of_networkx(case, edge_length, directed):
    graph, rows, anchors = case
    chosen = PrepareSettings(edge_length=edge_length, directed=directed)
    work = Work(graph, chosen, ChannelSettings("position", "border", len(anchors)), 1, 0)
    wanted = [[oracle(graph, chosen, row, int(anchor)) for anchor in anchors] for row in rows]
    nodes = np.tile(anchors, (len(rows), 1))
    measured = [
        *shared_hops(work, rows, [NodeAnchors(anchors)]),
        *own_hops(work, rows, [OwnAnchors(nodes, np.ones(len(rows), np.bool_))]),
    ]
    for found in measured:
        np.testing.assert_allclose(found.distance, np.array(wanted)[:, :, 0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.reached, np.array(wanted)[:, :, 1], rtol=1e-6)


def test_what_has_no_lengths_is_refused():
    signed = Graph.from_edges([0, 1], [1, 2], weights=[1.0, -2.0])
    recipe = find_recipe("subgnn", ["prepare.edge_length=weight"])
    with pytest.raises(UserError, match="an edge has the weight -2"):
        check_recipe(recipe, signed)
    with pytest.raises(UserError, match="the edges have no weights"):
        check_recipe(recipe, Graph.from_edges([0], [1]))
    with pytest.raises(UserError, match=r"prepare.own_hops is bounded"):
        check_lengths(
            Graph.from_edges([0], [1], weights=[1.0]), PrepareSettings(edge_length="weight", own_hops="bounded")
        )
