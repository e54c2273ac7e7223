"""Distances to wanted nodes, against networkx, however the work is cut."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import Ragged, own_hops
from subgnn.own_hops import own_measures
from tests.nn.examples import random_graph


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 50), nearest=st.booleans(), at_once=st.sampled_from([1, 7, 10**6]), data=st.data())
def test_measures(seed, nearest, at_once, data):
    graph = random_graph(seed)
    n = graph.num_nodes
    subsets = st.lists(st.integers(0, n - 1), max_size=n, unique=True).map(sorted)
    nodes = data.draw(st.lists(subsets.filter(bool), max_size=5))
    wanted = [data.draw(subsets) for _ in nodes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_hops, "PAIRS_AT_ONCE", at_once)
        distance, reached = own_measures(graph, Ragged.from_rows(nodes), Ragged.from_rows(wanted), nearest=nearest)
    tails, heads, _ = graph.edges()
    whole = nx.Graph(zip(tails.tolist(), heads.tolist(), strict=True))
    whole.add_nodes_from(range(n))
    hops = dict(nx.all_pairs_shortest_path_length(whole))
    expected = []
    for component, anchors in zip(nodes, wanted, strict=True):
        for a in anchors:
            found = [hops[u][a] for u in component if a in hops[u]]
            if not found:
                expected.append((0.0, 0.0))
            elif nearest:
                expected.append((float(min(found)), 1.0))
            else:
                expected.append((np.float32(np.mean(found)), np.float32(len(found) / len(component))))
    assert [*zip(distance.tolist(), reached.tolist(), strict=True)] == expected


def test_no_piece_of_work_is_larger_than_allowed(monkeypatch):
    graph = random_graph(1)
    sizes = []
    search = own_hops._measure
    monkeypatch.setattr(own_hops, "PAIRS_AT_ONCE", 30)

    def noted(graph, nodes, anchors, **options):
        sizes.append(int((nodes.lengths * anchors.lengths).sum()))
        return search(graph, nodes, anchors, **options)

    monkeypatch.setattr(own_hops, "_measure", noted)
    everything = Ragged.from_rows([np.arange(12), [0, 1], np.arange(12)])
    own_measures(graph, everything, everything, nearest=False)
    assert max(sizes) <= 30
    assert sum(sizes) == 12 * 12 + 4 + 12 * 12


def test_the_search_goes_from_the_fewer(monkeypatch):
    graph = random_graph(2)
    asked = []
    search = own_hops.pair_distances
    monkeypatch.setattr(
        own_hops,
        "pair_distances",
        lambda o, n, sources, rows: asked.append(len(sources)) or search(o, n, sources, rows),
    )
    own_measures(graph, Ragged.from_rows([np.arange(12), [3]]), Ragged.from_rows([[3], np.arange(12)]), nearest=False)
    # Node 3 alone: as the anchor of the first component and as the node of the second.
    assert asked == [1]
