"""Hop distances against networkx, and their reductions against plain means and minima."""

from itertools import accumulate

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.distances import hop_distances, pair_distances, reduce_table
from tests.kernels.graphs import SmallGraph, graphs, lists, make_graph, many, ragged


def distances(graph: SmallGraph, sources: list[int]) -> list[list[int]]:
    """Row ``s`` is the distance from source ``s`` to every node."""
    nodes = range(graph.num_nodes)
    found = {s: nx.single_source_shortest_path_length(graph.networkx, s) for s in set(sources)}
    return [[found[s].get(v, -1) for v in nodes] for s in sources]


@many
@given(graph=graphs(), data=st.data())
def test_chosen_sources_and_targets_with_repeats(graph, data):
    node = st.integers(0, graph.num_nodes - 1)
    sources = data.draw(st.lists(node, max_size=150))
    targets = data.draw(st.lists(node, max_size=12))
    found = hop_distances(*graph.csr, np.array(sources, int), np.array(targets, int))
    wanted = [[row[t] for t in targets] for row in distances(graph, sources)]
    assert found.shape == (len(sources), len(targets))
    assert found.tolist() == wanted


@many
@given(graph=graphs(), data=st.data())
def test_pairs_with_targets_of_their_own(graph, data):
    node = st.integers(0, graph.num_nodes - 1)
    wanted = data.draw(st.lists(st.tuples(node, st.lists(node, max_size=5)), max_size=80))
    sources, targets = [source for source, _ in wanted], ragged([targets for _, targets in wanted])
    found = pair_distances(*graph.csr, np.array(sources, int), targets)
    rows = distances(graph, sources)
    assert found.values.dtype == np.int32
    assert lists(found) == [[row[t] for t in targets] for row, (_, targets) in zip(rows, wanted, strict=True)]


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 129, 260])
def test_any_number_of_sources_fits_its_words(count):
    graph = make_graph("sparse", 40, seed=5)
    sources = np.random.default_rng(count).integers(0, 40, count)
    wanted = distances(graph, sources.tolist())
    assert hop_distances(*graph.csr, sources).tolist() == wanted
    everything = pair_distances(*graph.csr, sources, ragged([range(40)] * count))
    assert lists(everything) == wanted


@pytest.mark.parametrize("degree", [1.5, 4.0, 30.0])
def test_levels_that_are_pushed_and_levels_that_are_pulled(degree):
    n = 600
    graph = SmallGraph(n, tuple(nx.gnp_random_graph(n, degree / n, seed=2).edges))
    sources = np.random.default_rng(0).integers(0, n, 70)
    found = hop_distances(*graph.csr, sources)
    assert found.tolist() == distances(graph, sources.tolist())


hops = st.integers(-1, 40)


def reduced(distances: list[int]) -> tuple[float, float]:
    """Distance and fraction for the hops of a component's nodes to one anchor."""
    reaching = [d for d in distances if d >= 0]
    if not reaching:
        return 0.0, 0.0
    return float(np.float32(sum(reaching) / len(reaching))), float(np.float32(len(reaching) / len(distances)))


def offsets(lengths: list[int]) -> np.ndarray:
    return np.array([0, *accumulate(lengths)], np.int64)


@many
@given(data=st.data())
def test_shared_anchors(data):
    nodes, anchors = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 5))
    row = st.lists(hops, min_size=anchors, max_size=anchors)
    table = np.array(data.draw(st.lists(row, min_size=nodes, max_size=nodes)), np.int32).reshape(nodes, anchors)
    components = data.draw(st.lists(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=8), max_size=6))
    slots = np.array([slot for component in components for slot in component], np.int64)
    distance, fraction = reduce_table(table, slots, offsets([len(c) for c in components]))
    wanted = [[reduced(table[component, a].tolist()) for a in range(anchors)] for component in components]
    assert distance.tolist() == [[d for d, _ in row] for row in wanted]
    assert fraction.tolist() == [[f for _, f in row] for row in wanted]
