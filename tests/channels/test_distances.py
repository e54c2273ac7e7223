"""Distances to wanted nodes, against networkx, however the work is cut."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import Graph, Ragged
from subgnn.channels import distances
from subgnn.channels.channel import Work
from subgnn.channels.distances import landmark_hops, landmark_nodes
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.kernels.nearby_distances import UNBOUNDED
from tests.models.subgnn.examples import random_graph

EXACT = PrepareSettings()
BOUNDED = PrepareSettings(own_hops="bounded")


def own_measures(graph, components, wanted, *, settings=EXACT):
    return distances.distances_to(work_on(graph, settings), components, wanted)


def work_on(graph, settings=EXACT):
    return Work(graph, settings, ChannelSettings("position", "internal", 1), layers=1, seed=0)


def all_hops(graph):
    tails, heads, _ = graph.edges()
    whole = nx.Graph(zip(tails.tolist(), heads.tolist(), strict=True))
    whole.add_nodes_from(range(graph.num_nodes))
    return dict(nx.all_pairs_shortest_path_length(whole))


def draw_sets(data, n):
    subsets = st.lists(st.integers(0, n - 1), max_size=n, unique=True).map(sorted)
    nodes = data.draw(st.lists(subsets.filter(bool), max_size=5))
    return nodes, [data.draw(subsets) for _ in nodes]


def expected_measures(hops, nodes, wanted):
    for component, anchors in zip(nodes, wanted, strict=True):
        for a in anchors:
            found = [hops[u][a] for u in component if a in hops[u]]
            if not found:
                yield 0.0, 0.0
            else:
                yield np.float32(np.mean(found)), np.float32(len(found) / len(component))


@settings(max_examples=60, derandomize=True)
@given(
    seed=st.integers(0, 50),
    at_once=st.sampled_from([1, 7, 10**6]),
    large=st.sampled_from([0, 10**9]),
    edges=st.sampled_from([1, 3, 50]),
    how=st.sampled_from([EXACT, BOUNDED]),
    data=st.data(),
)
def test_measures(seed, at_once, large, edges, how, data):
    graph = random_graph(seed)
    nodes, wanted = draw_sets(data, graph.num_nodes)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("PAIRS_AT_ONCE", at_once),
            ("OPEN_AT_ONCE", at_once),
            ("_LARGE", large),
            ("_EDGES", edges),
            ("HOP_CUTOFF", 1000),
            ("HOP_EDGES", 10**5),
        ):
            patch.setattr(distances, name, value)
        distance, reached = own_measures(graph, Ragged.from_rows(nodes), Ragged.from_rows(wanted), settings=how)
    expected = list(expected_measures(all_hops(graph), nodes, wanted))
    assert [*zip(distance.tolist(), reached.tolist(), strict=True)] == expected


@settings(max_examples=60, derandomize=True)
@given(seed=st.integers(0, 50), cutoff=st.integers(1, 4), edges=st.sampled_from([1, 6, 10**5]), data=st.data())
def test_bounded_hops_are_exact_within_the_cut_off_and_upper_bounds_beyond(seed, cutoff, edges, data):
    graph = random_graph(seed)
    nodes, wanted = draw_sets(data, graph.num_nodes)
    single = [[u] for component in nodes for u in component]
    theirs = [anchors for component, anchors in zip(nodes, wanted, strict=True) for _ in component]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("HOP_CUTOFF", cutoff), ("HOP_EDGES", edges), ("LANDMARKS", 2)):
            patch.setattr(distances, name, value)
        distance, reached = own_measures(graph, Ragged.from_rows(single), Ragged.from_rows(theirs), settings=BOUNDED)
    hops = all_hops(graph)
    pairs = [(u, a) for (u,), anchors in zip(single, theirs, strict=True) for a in anchors]
    landmarks = landmark_nodes(graph, 2).tolist()
    for (u, a), found, there in zip(pairs, distance.tolist(), reached.tolist(), strict=True):
        detours = [hops[u][m] + hops[m][a] for m in landmarks if m in hops[u] and a in hops[m]]
        if a not in hops[u]:
            assert there == 0
        elif there == 0:
            # Only a pair that no landmark reaches, and that is too far apart to be searched for, is given up.
            assert not detours
            assert hops[u][a] > min(cutoff, 1)
        elif hops[u][a] <= (cutoff if edges > 6 else 1):
            assert found == hops[u][a]
        else:
            assert hops[u][a] <= found <= min(detours, default=found)


def test_no_piece_of_work_is_larger_than_allowed(monkeypatch):
    graph = random_graph(1)
    sizes = []
    search = distances.near_hops
    monkeypatch.setattr(distances, "PAIRS_AT_ONCE", 30)

    def noted(offsets, neighbors, nodes, anchors, **options):
        sizes.append(int((nodes.lengths * anchors.lengths).sum()))
        return search(offsets, neighbors, nodes, anchors, **options)

    monkeypatch.setattr(distances, "near_hops", noted)
    everything = Ragged.from_rows([np.arange(12), [0, 1], np.arange(12)])
    own_measures(graph, everything, everything)
    assert max(sizes) <= 30
    assert sum(sizes) == 12 * 12 + 4 + 12 * 12


@pytest.mark.parametrize("turned", [False, True])
def test_a_search_across_the_graph_goes_from_the_fewer(monkeypatch, turned):
    path = Graph.from_edges(range(19), range(1, 20))
    asked = []
    search = distances.pair_distances
    monkeypatch.setattr(
        distances,
        "pair_distances",
        lambda o, n, sources, rows, **way: asked.append(sources.tolist()) or search(o, n, sources, rows, **way),
    )
    ends = Ragged.from_rows([[0]]), Ragged.from_rows([[5, 9, 14, 19]])
    distance, _ = own_measures(path, *(ends[::-1] if turned else ends))
    assert asked == [[0]]
    assert distance.tolist() == ([47 / 4] if turned else [5.0, 9.0, 14.0, 19.0])


def test_what_is_near_is_not_searched_for_across_the_graph(monkeypatch):
    monkeypatch.setattr(distances, "pair_distances", None)
    path = Graph.from_edges(range(19), range(1, 20))
    distance, _ = own_measures(path, Ragged.from_rows([[3, 4, 5]]), Ragged.from_rows([[2, 6]]))
    assert distance.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("seed", range(8))
def test_no_bound_by_landmarks_is_below_the_distance(seed):
    graph = random_graph(seed)
    whole = nx.Graph(zip(*(ends.tolist() for ends in graph.edges()[:2]), strict=True))
    whole.add_nodes_from(range(graph.num_nodes))
    hops = dict(nx.all_pairs_shortest_path_length(whole))
    left, right = (np.array(ends, np.int32) for ends in np.divmod(np.arange(144), 12))
    landmarks = landmark_nodes(graph, 3)
    for u, a, found in zip(left, right, landmark_hops(work_on(graph), left, right, landmarks).tolist(), strict=True):
        wanted = [hops[u][m] + hops[m][a] for m in landmarks if m in hops[u] and a in hops[m]]
        assert found == min(wanted, default=UNBOUNDED)
        assert a not in hops[u] or found >= hops[u][a]


def test_landmarks_are_the_nodes_with_most_neighbours_of_equals_the_first():
    star = Graph.from_edges([3, 3, 3, 1], [0, 1, 2, 2], num_nodes=6)
    assert landmark_nodes(star, 3).tolist() == [3, 1, 2]
    assert landmark_nodes(star, 99).tolist() == [3, 1, 2, 0, 4, 5]
