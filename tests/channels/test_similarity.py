"""gamma by its definition: mean or least hops, the fraction that reaches, and warping of sorted degrees."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from subgnn import Ragged
from subgnn.channels import distances
from subgnn.channels.channel import OwnAnchors, Work
from subgnn.config.settings import PrepareSettings
from subgnn.kernels.dtw import dtw
from subgnn.prepare.measure import Plan, prepare
from tests.models.subgnn.examples import ALL_CHANNELS, SMALL, prepare_example, random_graph


def by_networkx(graph) -> nx.Graph:
    whole = nx.Graph(zip(*(ends.tolist() for ends in graph.edges()[:2]), strict=True))
    whole.add_nodes_from(range(graph.num_nodes))
    return whole


def expected_nearness(hops, component, anchor):
    found = [hops[u][anchor] for u in component.tolist() if anchor in hops[u]]
    if not found:
        return 0.0, 0.0
    return np.float32(np.mean(found)), np.float32(len(found) / len(component))


@pytest.mark.parametrize("seed", range(3))
def test_hops_are_those_of_networkx(seed):
    channels = (ALL_CHANNELS[0], ALL_CHANNELS[1], ALL_CHANNELS[3])
    graph, found = prepare_example(seed, layers=2, channels=channels)
    hops = dict(nx.all_pairs_shortest_path_length(by_networkx(graph)))
    for shared_row, layer in zip(found.frame.shared, found.inputs, strict=True):
        for shared, inputs in zip(shared_row, layer, strict=True):
            near = inputs.measured
            assert near.distance.dtype == near.reached.dtype == np.float32
            for c, component in enumerate(found.components.nodes):
                if inputs.own is not None and not inputs.own.present[c]:
                    expected = [(0.0, 0.0)] * near.distance.shape[1]
                else:
                    anchors = shared.nodes if inputs.own is None else inputs.own.nodes[c]
                    expected = [expected_nearness(hops, component, a) for a in anchors.tolist()]
                assert list(zip(near.distance[c], near.reached[c], strict=True)) == expected
            np.testing.assert_allclose(near.similarity, near.reached / (1 + near.distance), rtol=1e-6)


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
            np.testing.assert_array_equal(inputs.measured.distance, expected.astype(np.float32))
            assert (inputs.measured.reached == 1).all()
            assert inputs.measured.reached.shape == inputs.measured.distance.shape


@pytest.mark.parametrize("limit", ["count", "memory"])
def test_own_anchors_a_block_at_a_time(monkeypatch, limit):
    """In blocks of two components; the third has no anchors."""
    graph, told = random_graph(0), []
    rows = Ragged.from_rows([[0], [1, 2], [3], [4, 5], [6]])
    present = np.array([True, True, False, True, True])
    nodes = np.array([[1, 1, 2], [7, 0, 7], [9, 9, 9], [3, 8, 11], [6, 6, 0]], np.int32)
    anchors = [OwnAnchors(nodes, present), OwnAnchors(nodes[:, ::-1].copy(), present)]
    hops = dict(nx.all_pairs_shortest_path_length(by_networkx(graph)))
    if limit == "count":
        monkeypatch.setattr(distances, "OWN_AT_ONCE", 2)
    else:  # a component has three anchors in each of two layers
        monkeypatch.setattr(distances, "share", lambda part: 2 * 6 * distances._BYTES_DRAWN + 1)
    work = Work(graph, PrepareSettings(), ALL_CHANNELS[0], 2, 0, on_progress=lambda *a: told.append(a))
    found = distances.own_hops(work, rows, anchors)
    for drawn, near in zip(anchors, found, strict=True):
        for c, component in enumerate(rows):
            expected = [
                expected_nearness(hops, component, a) if present[c] else (0.0, 0.0) for a in drawn.nodes[c].tolist()
            ]
            assert list(zip(near.distance[c], near.reached[c], strict=True)) == expected
        assert near.distance.flags.c_contiguous
        assert near.distance.dtype == near.reached.dtype == np.float32
    of_near = [(done, total) for what, done, total in told if what == "hops to own anchors"]
    assert {total for _, total in of_near} == {5}
    assert sorted(done for done, _ in of_near) == [done for done, _ in of_near]
    assert {0, 2, 4, 5} <= {done for done, _ in of_near}


def test_no_subgraph_has_no_rows():
    found = prepare(random_graph(1), Ragged.from_rows([]), Plan(ALL_CHANNELS, 2, SMALL, seed=0))
    for layer in found.inputs:
        for channel, inputs in zip(ALL_CHANNELS, layer, strict=True):
            assert inputs.measured.similarity.shape == (0, channel.num_anchors)
