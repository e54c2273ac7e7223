"""Landmarks: bounds from above, exact where a shortest path passes one."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from subgnn import Graph
from subgnn.channels.landmarks import landmark_hops, landmark_nodes
from subgnn.kernels.nearby_distances import UNBOUNDED
from tests.models.subgnn.examples import random_graph


def test_on_a_path():
    path = Graph.from_edges(range(4), range(1, 5))
    left, right = np.array([0, 0, 3], np.int32), np.array([4, 1, 4], np.int32)
    assert landmark_hops(path, left, right, np.array([2], np.int32)).tolist() == [4, 3, 3]


@pytest.mark.parametrize("seed", range(8))
def test_no_bound_is_below_the_distance(seed):
    graph = random_graph(seed)
    whole = nx.Graph(zip(*(ends.tolist() for ends in graph.edges()[:2]), strict=True))
    whole.add_nodes_from(range(graph.num_nodes))
    hops = dict(nx.all_pairs_shortest_path_length(whole))
    left, right = (np.array(ends, np.int32) for ends in np.divmod(np.arange(144), 12))
    landmarks = landmark_nodes(graph, 3)
    for u, a, found in zip(left, right, landmark_hops(graph, left, right, landmarks).tolist(), strict=True):
        wanted = [hops[u][m] + hops[m][a] for m in landmarks if m in hops[u] and a in hops[m]]
        assert found == min(wanted, default=UNBOUNDED)
        assert a not in hops[u] or found >= hops[u][a]


def test_the_nodes_with_most_neighbours_of_equals_the_first():
    star = Graph.from_edges([3, 3, 3, 1], [0, 1, 2, 2], num_nodes=6)
    assert landmark_nodes(star, 3).tolist() == [3, 1, 2]
    assert landmark_nodes(star, 99).tolist() == [3, 1, 2, 0, 4, 5]
