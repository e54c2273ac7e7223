"""Neighbourhoods and the edges between their parts, against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from subgnn import Ragged
from subgnn.models.peers.glass import Neighborhoods
from tests.models.subgnn.examples import random_graph, random_subgraphs


@pytest.mark.parametrize("radius", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_neighborhoods_are_those_of_networkx(seed, radius):
    graph, rows = random_graph(seed), random_subgraphs(seed)
    whole = nx.Graph(list(zip(*graph.edges()[:2], strict=True)))
    whole.add_nodes_from(range(graph.num_nodes))
    found = Neighborhoods.of(graph, rows, radius)
    expected = []
    for i, nodes in enumerate(rows):
        far = nx.multi_source_dijkstra_path_length(whole, set(nodes.tolist()))
        expected += [(i, node, hops) for node, hops in sorted(far.items()) if hops <= radius]
    assert list(zip(found.keys // 12, found.nodes, found.hops, strict=True)) == expected


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2)])
def test_edges_between_parts(rows, columns):
    graph, found = random_graph(1), Neighborhoods.of(random_graph(1), random_subgraphs(1), 2)
    above, below = found.within(rows), found.within(columns)
    offsets, places, entries = found.edges(above, below)
    tails = found.nodes[above.entries][np.repeat(np.arange(len(above.entries)), np.diff(offsets))]
    np.testing.assert_array_equal(graph.neighbors[entries], found.nodes[below.entries][places])
    assert ((graph.offsets[tails] <= entries) & (entries < graph.offsets[tails + 1])).all()
    seen = set()
    for i, entry in enumerate(above.entries):
        for place in places[offsets[i] : offsets[i + 1]]:
            seen.add((int(found.keys[entry]), int(found.keys[below.entries[place]])))
    expected = {
        (int(a), int(b))
        for a in found.keys[found.hops <= rows]
        for b in found.keys[found.hops <= columns]
        if a // 12 == b // 12 and b % 12 in graph.neighbors_of(int(a % 12))
    }
    assert seen == expected
    assert len(places) == len(expected)


def test_places_are_the_inverse_of_entries():
    part = Neighborhoods.of(random_graph(0), random_subgraphs(0), 2).within(1)
    np.testing.assert_array_equal(part.places[part.entries], np.arange(len(part.entries)))
    assert (part.places >= 0).sum() == len(part.entries)


def test_no_subgraph_has_no_neighborhood():
    found = Neighborhoods.of(random_graph(0), Ragged.from_rows([]), 2)
    assert len(found.keys) == 0
    assert found.edges(found.within(0), found.within(1))[0].tolist() == [0]
