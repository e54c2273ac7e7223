"""Hop distances against networkx."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.distances import hop_distances, pair_distances
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
