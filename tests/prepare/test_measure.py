"""Preparation: progress is told, pieces do not change a number, and files give it back bit for bit."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import Graph
from subgnn.channels import distances
from subgnn.channels.table import channel_of
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.errors import DataError
from subgnn.parallel import progress as pacing
from subgnn.prepare import measure as prepare
from subgnn.prepare.measure import Plan, encode, read_prepared
from subgnn.storage.arrays import write_parts
from tests.models.subgnn.examples import ALL_CHANNELS, SMALL, prepare_example, random_subgraphs
from tests.prepared_equal import assert_same


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_results_do_not_depend_on_the_pieces(monkeypatch, seconds):
    _, whole = prepare_example(4)
    monkeypatch.setattr(pacing, "SECONDS", seconds)
    monkeypatch.setattr(distances, "PAIRS_AT_ONCE", 5)
    monkeypatch.setattr(distances, "TABLE_AT_ONCE", 5)
    monkeypatch.setattr(distances, "WORD", 1)
    _, cut = prepare_example(4)
    assert_same(whole, cut)


def directed_oracle(graph, components, anchors):
    """Mean hops along edges from the nodes of each component to its anchors, and the fraction that reach."""
    whole = nx.DiGraph()
    whole.add_nodes_from(range(graph.num_nodes))
    whole.add_edges_from(zip(*(ends.tolist() for ends in graph.edges()[:2]), strict=True))
    hops = dict(nx.all_pairs_shortest_path_length(whole))
    for component, row in zip(components, anchors, strict=True):
        for a in row:
            found = [hops[u][a] for u in component if a in hops[u]]
            yield (np.float32(np.mean(found)), np.float32(len(found) / len(component))) if found else (0, 0)


@pytest.mark.parametrize("seed", range(6))
def test_hops_along_edges(seed):
    rng = np.random.default_rng(seed)
    pairs = {(int(u), int(v)) for u, v in rng.integers(0, 12, (26, 2)) if u != v}
    graph = Graph.from_edges(*zip(*sorted(pairs), strict=True), num_nodes=12, directed=True)
    settings = replace(SMALL, directed=True)
    plan = Plan(ALL_CHANNELS[:4], 1, settings, seed)
    found = prepare.prepare(graph.undirected(), random_subgraphs(seed), plan)
    components = found.components.nodes
    for i, channel in enumerate(ALL_CHANNELS[:4]):
        near, own, shared = found.inputs[0][i].measured, found.inputs[0][i].own, found.frame.shared[0][i]
        if channel.name == "neighborhood/internal":
            continue
        anchors = [shared.nodes] * len(components) if own is None else own.nodes
        wanted = np.array(list(directed_oracle(graph, components, anchors)), np.float32).reshape(
            *near.distance.shape, 2
        )
        rows = slice(None) if own is None else own.present
        assert np.array_equal(near.distance[rows], wanted[rows][..., 0])
        assert np.array_equal(near.reached[rows], wanted[rows][..., 1])


def test_the_orientation_of_edges_tells_directed_content_apart():
    one, other = (Graph.from_edges(*ends, directed=True).undirected() for ends in (([0, 1], [1, 2]), ([1, 1], [0, 2])))
    assert prepare.seen_hash(one, SMALL) == prepare.seen_hash(other, SMALL)
    directed = replace(SMALL, directed=True)
    assert prepare.seen_hash(one, directed) != prepare.seen_hash(other, directed)


@pytest.mark.parametrize("some", [None, [0], [3, 1]])
def test_touched_nodes_are_those_of_components_anchors_and_walks(some):
    _, found = prepare_example(1)
    chosen = np.arange(len(found.components.nodes))
    if some is not None:
        chosen = np.flatnonzero(np.isin(found.components.subgraph, some))
    nodes = {v for c in chosen for v in found.components.nodes[c].tolist()}
    for shared_row, inputs_row in zip(found.frame.shared, found.inputs, strict=True):
        for channel, shared, inputs in zip(ALL_CHANNELS, shared_row, inputs_row, strict=True):
            if channel.kind == "structure":
                nodes |= set(shared.walks.values.tolist())
            elif channel_of(channel).shared:
                nodes |= set(shared.nodes.tolist())
            else:
                nodes |= {v for c in chosen if inputs.own.present[c] for v in inputs.own.nodes[c].tolist()}
    touched = found.touched(None if some is None else np.array(some))
    assert touched.tolist() == sorted(nodes)
    assert touched.dtype == np.int32


def read(path, prepared, key="key"):
    frame = prepared.frame
    plan = Plan(frame.channels, frame.layers, frame.settings, frame.seed)
    return read_prepared(path, plan, key=key, graph_hash=prepared.graph_hash)


@settings(max_examples=60, derandomize=True)
@given(
    seed=st.integers(0, 100),
    layers=st.integers(1, 3),
    picked=st.lists(st.sampled_from(ALL_CHANNELS), max_size=6, unique=True),
    hops=st.integers(1, 2),
    frozen=st.booleans(),
)
def test_round_trip(tmp_path_factory, seed, layers, picked, hops, frozen):
    small = PrepareSettings(hops=hops, patch_length=5, walks=2, walk_length=4)
    _, prepared = prepare_example(seed, layers=layers, channels=tuple(picked), settings=small)
    if frozen:
        prepared.components.nodes.values.flags.writeable = False
    path = tmp_path_factory.getbasetemp() / "round-trip.prepared"
    write_parts(path, encode(prepared, "key"), overwrite=True)
    assert_same(read(path, prepared), prepared)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    channels = (ChannelSettings("neighborhood", "border", 1), ChannelSettings("structure", "internal", 1))
    _, prepared = prepare_example(0, layers=1, channels=channels)
    path = tmp_path_factory.mktemp("damage") / "x.prepared"
    write_parts(path, encode(prepared, "key"), overwrite=True)
    return path, path.read_bytes(), prepared


def test_another_key_is_noticed(written):
    path, whole, prepared = written
    path.write_bytes(whole)
    read(path, prepared)
    with pytest.raises(DataError, match="prepared from different content"):
        read(path, prepared, key="other")
