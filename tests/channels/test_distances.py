"""Distances to wanted nodes, against networkx, however the work is cut."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import Graph, Ragged
from subgnn.channels import distances
from subgnn.channels.channel import NodeAnchors, OwnAnchors, Work
from subgnn.channels.distances import landmark_nodes
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.kernels.dtw import dtw
from tests.models.subgnn.examples import ALL_CHANNELS, prepare_example, random_graph

EXACT = PrepareSettings()
BOUNDED = PrepareSettings(own_hops="bounded")


def own_measures(graph, components, wanted, *, settings=EXACT):
    return distances.distances_to(work_on(graph, settings), components, wanted)


def work_on(graph, settings=EXACT):
    return Work(graph, settings, ChannelSettings("position", "internal", 1), layers=1, seed=0)


def by_networkx(graph) -> nx.Graph:
    whole = nx.Graph(zip(*(ends.tolist() for ends in graph.edges()[:2]), strict=True))
    whole.add_nodes_from(range(graph.num_nodes))
    return whole


def all_hops(graph):
    return dict(nx.all_pairs_shortest_path_length(by_networkx(graph)))


def draw_sets(data, n):
    subsets = st.lists(st.integers(0, n - 1), max_size=n, unique=True).map(sorted)
    nodes = data.draw(st.lists(subsets.filter(bool), max_size=5))
    return nodes, [data.draw(subsets) for _ in nodes]


def expected_measures(hops, nodes, wanted):
    return [expected_hops(hops, row, a) for row, anchors in zip(nodes, wanted, strict=True) for a in anchors]


def expected_hops(hops, component, anchor):
    """The mean hops of the nodes that reach an anchor, and their fraction."""
    found = [hops[u][anchor] for u in np.asarray(component).tolist() if anchor in hops[u]]
    return (np.float32(np.mean(found)), np.float32(len(found) / len(component))) if found else (0.0, 0.0)


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
            ("_SMALL", large),
            ("_EDGES", edges),
            ("HOP_CUTOFF", 1000),
            ("HOP_EDGES", 10**5),
        ):
            patch.setattr(distances, name, value)
        distance, reached = own_measures(graph, Ragged.from_rows(nodes), Ragged.from_rows(wanted), settings=how)
    expected = expected_measures(all_hops(graph), nodes, wanted)
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


def expected_nearness(hops, component, anchor):
    distance, reached = expected_hops(hops, component, anchor)
    return float(reached / (1 + distance))


@pytest.mark.parametrize("seed", range(3))
def test_hops_are_those_of_networkx(seed):
    channels = (ALL_CHANNELS[0], ALL_CHANNELS[1], ALL_CHANNELS[3])
    graph, found = prepare_example(seed, layers=2, channels=channels)
    hops = all_hops(graph)
    for shared_row, layer in zip(found.frame.shared, found.inputs, strict=True):
        for shared, inputs in zip(shared_row, layer, strict=True):
            assert inputs.similarity.dtype == np.float32
            for c, component in enumerate(found.components.nodes):
                if inputs.own is not None and not inputs.own.present[c]:
                    expected = [0.0] * inputs.similarity.shape[1]
                else:
                    anchors = shared.nodes if inputs.own is None else inputs.own.nodes[c]
                    expected = [expected_nearness(hops, component, a) for a in anchors.tolist()]
                assert inputs.similarity[c].tolist() == expected


@pytest.mark.slow
def test_hops_of_a_long_component_add_up_beyond_32_bits():
    n = 70_000
    path, whole = Graph.from_edges(np.arange(n - 1), np.arange(1, n)), Ragged.from_rows([np.arange(n)])
    (found,) = distances.shared_hops(work_on(path), whole, [NodeAnchors(np.array([0], np.int32))])
    np.testing.assert_allclose(found, 1 / (1 + (n - 1) / 2))


def test_structure_is_the_warping_of_sorted_degrees():
    graph, found = prepare_example(2, channels=ALL_CHANNELS[4:])
    whole = by_networkx(graph)

    def degrees(nodes, side):
        part = whole.subgraph(nodes.tolist())
        return sorted(part.degree[v] if side == "internal" else whole.degree[v] - part.degree[v] for v in part)

    for shared_row, layer in zip(found.frame.shared, found.inputs, strict=True):
        for channel, shared, inputs in zip(ALL_CHANNELS[4:], shared_row, layer, strict=True):
            ours, theirs = (
                Ragged.from_rows([degrees(row, channel.side) for row in rows])
                for rows in (found.components.nodes, shared.patches)
            )
            expected = dtw(ours, theirs, cost="ratio")
            np.testing.assert_array_equal(inputs.similarity, 1 / (1 + expected.astype(np.float32)))


@pytest.mark.parametrize("limit", ["count", "memory"])
def test_own_anchors_a_block_at_a_time(monkeypatch, limit):
    graph, told = random_graph(0), []
    rows = Ragged.from_rows([[0], [1, 2], [3], [4, 5], [6]])
    present = np.array([True, True, False, True, True])
    nodes = np.array([[1, 1, 2], [7, 0, 7], [9, 9, 9], [3, 8, 11], [6, 6, 0]], np.int32)
    anchors = [OwnAnchors(nodes, present), OwnAnchors(nodes[:, ::-1].copy(), present)]
    hops = all_hops(graph)
    if limit == "count":
        monkeypatch.setattr(distances, "OWN_AT_ONCE", 2)
    else:  # a component has three anchors in each of two layers
        monkeypatch.setattr(distances, "share", lambda part: 2 * 6 * distances._BYTES_DRAWN + 1)
    work = Work(graph, PrepareSettings(), ALL_CHANNELS[0], 2, 0, on_progress=lambda *a: told.append(a))
    found = distances.own_hops(work, rows, anchors)
    for drawn, near in zip(anchors, found, strict=True):
        for c, component in enumerate(rows):
            expected = [expected_nearness(hops, component, a) if present[c] else 0.0 for a in drawn.nodes[c].tolist()]
            assert near[c].tolist() == expected
        assert near.flags.c_contiguous
        assert near.dtype == np.float32
    of_near = [(done, total) for what, done, total in told if what == "hops to own anchors"]
    assert {total for _, total in of_near} == {5}
    assert sorted(done for done, _ in of_near) == [done for done, _ in of_near]
    assert {0, 2, 4, 5} <= {done for done, _ in of_near}
