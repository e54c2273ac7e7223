"""The samplers: where anchors come from, and that a seed gives the anchors it always gave."""

from dataclasses import replace

import networkx as nx
import pytest

from subgnn import Ragged
from subgnn.channels.channel import Work
from subgnn.channels.table import channel_of
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.kernels.induced import induced_components
from subgnn.parallel.progress import ignore
from tests.models.examples import two_triangles
from tests.models.subgnn.examples import ALL_CHANNELS, SMALL, random_graph, random_subgraphs

INTERNAL, BORDER = (ChannelSettings("structure", side, 4) for side in ("internal", "border"))
SETTINGS = PrepareSettings(patch_length=4, walks=3, walk_length=5)


def own(graph, subgraphs, channel, settings, *, layers=2, seed=0, on_progress=ignore):
    components = induced_components(*graph.csr, subgraphs)
    work = Work(graph, settings, channel, layers, seed, on_progress)
    return components, channel_of(channel).sample(work, subgraphs, components)


def sample_shared(graph, channel, settings, *, layer, seed):
    return channel_of(channel).sample(Work(graph, settings, channel, layer + 1, seed))[layer]


def test_both_sides_walk_over_the_same_patches_each_in_its_way():
    graph = two_triangles()
    whole = nx.Graph(zip(*(ends.tolist() for ends in graph.edges()[:2]), strict=True))
    whole.add_node(7)
    inside, border = (sample_shared(graph, c, SETTINGS, layer=0, seed=0) for c in (INTERNAL, BORDER))
    assert [row.tolist() for row in inside.patches] == [row.tolist() for row in border.patches]
    assert len(inside.patches) == 4
    for patch, row in enumerate(inside.patches):
        assert row.tolist() == sorted(set(row.tolist()))
        assert 1 <= len(row) <= SETTINGS.patch_length
        rim = {v for u in row.tolist() for v in whole[u]} - set(row.tolist())
        for walk in range(3):
            mine = inside.walks[3 * patch + walk].tolist()
            assert set(mine) <= set(row.tolist())
            assert len(mine) <= 5
            theirs = border.walks[3 * patch + walk].tolist()
            assert bool(theirs) == bool(rim)
            assert set(theirs) <= set(row.tolist()) | rim
    assert len(inside.walks) == len(border.walks) == 12
    later = sample_shared(graph, INTERNAL, SETTINGS, layer=1, seed=0)
    assert [row.tolist() for row in later.patches] != [row.tolist() for row in inside.patches]


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_own_anchors_come_from_where_they_should(seed, hops):
    graph, subgraphs = random_graph(seed), random_subgraphs(seed)
    whole = nx.Graph(zip(*(ends.tolist() for ends in graph.edges()[:2]), strict=True))
    whole.add_nodes_from(range(graph.num_nodes))
    settings = replace(SMALL, hops=hops)
    for channel in (ALL_CHANNELS[0], ALL_CHANNELS[2], ALL_CHANNELS[3]):
        components, by_layer = own(graph, subgraphs, channel, settings, layers=30)
        assert len(by_layer) == 30
        assert all(layer.nodes.shape == (len(components.nodes), channel.num_anchors) for layer in by_layer)
        for c, row in enumerate(components.nodes):
            if channel.kind == "position":
                source = set(subgraphs[components.subgraph[c]].tolist())
            elif channel.side == "internal":
                source = set(row.tolist())
            else:
                near = nx.multi_source_dijkstra_path_length(whole, set(row.tolist()), cutoff=hops)
                source = {v for v, d in near.items() if d > 0}
            assert {bool(layer.present[c]) for layer in by_layer} == {bool(source)}
            if source:
                drawn = {v for layer in by_layer for v in layer.nodes[c].tolist()}
                assert drawn <= source
                assert len(drawn) > len(source) / 2


def test_a_seed_gives_the_anchors_it_always_gave():
    graph, subgraphs = two_triangles(), Ragged.from_rows([[0, 1, 5], [2, 3]])
    shared = [sample_shared(graph, c, SETTINGS, layer=1, seed=3) for c in (ALL_CHANNELS[1], INTERNAL, BORDER)]
    drawn = {c.name: own(graph, subgraphs, c, SETTINGS, seed=3)[1] for c in (ALL_CHANNELS[i] for i in (0, 2, 3))}
    found = {
        "nodes": shared[0].nodes.tolist(),
        "patches": [row.tolist() for row in shared[1].patches],
        "internal": [row.tolist() for row in shared[1].walks][:3],
        "border": [row.tolist() for row in shared[2].walks][:3],
    } | {name: [layer.nodes.tolist() for layer in layers] for name, layers in drawn.items()}
    assert found == {
        "nodes": [0, 0, 0, 3],
        "patches": [[5, 6], [0, 1, 2], [0, 1, 2], [1, 2, 3, 4]],
        "internal": [[5, 6, 5, 6, 5], [5, 6, 5, 6, 5], [6, 5, 6, 5, 6]],
        "border": [[5, 3, 5, 4, 3], [5, 3, 4, 5, 3], [5, 4, 3, 5, 4]],
        "position/internal": [[[0, 5, 0], [0, 5, 0], [2, 3, 2]], [[0, 5, 5], [0, 5, 5], [2, 2, 3]]],
        "neighborhood/internal": [[[0, 1], [5, 5], [2, 2]], [[1, 1], [5, 5], [2, 2]]],
        "neighborhood/border": [[[2, 2, 2], [6, 4, 3], [0, 0, 4]], [[2, 2, 2], [3, 4, 6], [4, 5, 0]]],
    }
