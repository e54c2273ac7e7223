"""Features of pairs of a subgraph and a node, against definitions that are written out."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn.channels import diffusion
from subgnn.data.graph import Graph
from subgnn.inference.complete import DAMPING, NAMES, PairFeatures
from subgnn.ragged import Ragged

N = 12


@st.composite
def cases(draw):
    """A graph, known subgraphs, some of them unused, and a subgraph."""
    pairs = st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda pair: pair[0] < pair[1])
    edges = draw(st.lists(pairs, min_size=1, max_size=30, unique=True))
    nodes = st.lists(st.integers(0, N - 1), min_size=1, max_size=6, unique=True).map(sorted)
    known = draw(st.lists(nodes, min_size=1, max_size=5))
    unused = draw(st.lists(st.integers(0, len(known) - 1), max_size=2, unique=True))
    return edges, known, unused, draw(nodes)


def by_definition(edges, known, unused, subgraph, node):
    """The features of one node, by loops over sets."""
    graph = nx.Graph(edges)
    graph.add_nodes_from(range(N))
    degree = {v: max(1, graph.degree(v)) for v in graph}
    walk = np.array([[1 / degree[u] if graph.has_edge(u, v) else 0 for v in range(N)] for u in range(N)])
    for u in range(N):
        if graph.degree(u) == 0:
            walk[u, u] = 1
    start = np.array([1 / len(subgraph) if v in subgraph else 0 for v in range(N)])
    p = (1 - DAMPING) * start @ np.linalg.inv(np.eye(N) - DAMPING * walk)
    pi = np.array([degree[v] for v in range(N)]) / sum(degree.values())
    lifts = np.log1p(p / pi)
    members, size = set(subgraph), len(subgraph)
    sets = [set(t) for i, t in enumerate(known) if i not in unused and not (members <= set(t) and 2 * size >= len(t))]
    count = {v: sum(v in t for t in sets) for v in range(N)}
    paths = sum(len(members & set(graph[w])) / math.log(2 + graph.degree(w)) for w in graph[node])
    together = sum(sum(u in t and node in t for t in sets) / math.sqrt(max(1, count[u])) for u in subgraph)
    overlap = sum(len(members & t) ** 2 / (size * len(t)) for t in sets if node in t)
    nearby = sum(max(0, np.mean([lifts[v] for v in t]) - lifts.mean()) ** 2 for t in sets if node in t)
    return {
        "diffusion": math.log(p[node] + 1e-7),
        "lift": lifts[node],
        "degree": math.log1p(graph.degree(node)),
        "paths": math.log1p(paths),
        "frequency": math.log1p(count[node]),
        "together": math.log1p(10 * together / (size * math.sqrt(1 + count[node]))),
        "overlap": math.log(1e-3 + overlap),
        "nearby": math.log1p(nearby),
    }


def features_of(edges, known):
    graph = Graph.from_edges([u for u, _ in edges], [v for _, v in edges], num_nodes=N)
    return PairFeatures(graph, Ragged.from_rows(known))


@settings(max_examples=60)
@given(cases())
def test_features_by_definition(case):
    edges, known, unused, subgraph = case
    features = features_of(edges, known)
    (query,) = features.diffuse(Ragged.from_rows([subgraph]))
    nodes = features.candidates(query)
    assert nodes.tolist() == [v for v in range(N) if v not in subgraph]
    found = features.table(query, nodes, unused=np.array(unused, np.int64))
    for node, row in zip(nodes.tolist(), found, strict=True):
        wanted = by_definition(edges, known, unused, subgraph, node)
        # p is exact to 1e-7, which log(p + 1e-7) shows where it is 0.
        np.testing.assert_allclose(row, [wanted[name] for name in NAMES], rtol=2e-4, atol=2e-4, err_msg=str(node))
        assert features.links(query.nodes)[node] == sum((min(u, node), max(u, node)) in edges for u in subgraph)


@pytest.mark.parametrize("gathered", [1, 2**22])
def test_a_large_graph_has_the_same_features_near_the_subgraph(monkeypatch, gathered):
    edges = [(i, i + 1) for i in range(N - 1)] + [(0, 5), (2, 7)]
    known, asked = [[0, 1, 2, 3], [5, 6], [9, 10]], Ragged.from_rows([[1, 2], [9]])
    features = features_of(edges, known)
    exact = [features.table(query, np.arange(3, 9)) for query in features.diffuse(asked)]
    monkeypatch.setattr(diffusion, "EXACT_NODES", 0)
    monkeypatch.setattr(diffusion, "PUSH_EDGES", 10**8)
    monkeypatch.setattr("subgnn.inference.complete._GATHERED", gathered)
    for query, wanted in zip(features.diffuse(asked), exact, strict=True):
        np.testing.assert_allclose(features.table(query, np.arange(3, 9)), wanted, rtol=1e-3, atol=1e-3)


def test_candidates_in_a_large_graph(monkeypatch):
    features = features_of([(0, 1), (1, 2), (4, 5)], [[0, 9], [8, 10]])
    monkeypatch.setattr(diffusion, "EXACT_NODES", 0)
    (query,) = features.diffuse(Ragged.from_rows([[0]]))
    assert features.candidates(query).tolist() == [1, 2, 9]  # those a walk reaches, and a known subgraph that overlaps
    assert features.near(query, unused=np.array([0])).tolist() == [0, 1, 2]
