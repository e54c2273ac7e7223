"""Borders against networkx, draws from them against the uniform distribution, and their heaviest nodes."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels.borders import border_sets, heaviest_borders, sample_borders
from subgnn.kernels.draws import node_set_keys, open_stream, uniform_below
from tests.kernels.chance import LEAST_P, p_value, uniform
from tests.kernels.graphs import SmallGraph, graphs_with_sets, lists, make_graph, make_sets, many, ragged


def border(graph: SmallGraph, nodes: list[int], hops: int) -> list[int]:
    """Nodes within ``hops`` of a set, the set itself excluded."""
    if not nodes:
        return []
    near = nx.multi_source_dijkstra_path_length(graph.networkx, nodes, cutoff=hops)
    return sorted(set(near) - set(nodes))


@many
@given(case=graphs_with_sets(), hops=st.integers(1, 4))
def test_borders_are_the_oracle_s(case, hops):
    graph, sets = case
    found = border_sets(*graph.csr, ragged(sets), hops=hops)
    assert found.values.dtype == np.int32
    assert lists(found) == [border(graph, nodes, hops) for nodes in sets]


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
@pytest.mark.parametrize("degree", [1.5, 3.0, 40.0])
def test_small_and_large_borders_of_a_larger_graph(degree, hops):
    n, rng = 1200, np.random.default_rng(int(degree))
    graph = SmallGraph(n, tuple(nx.gnp_random_graph(n, degree / n, seed=6).edges))
    sizes = [1, 2, 3, 5, 8, 300, 900, 1180, 1198]
    sets = [sorted(rng.choice(n, size, replace=False).tolist()) for size in sizes]
    wanted = [border(graph, nodes, hops) for nodes in sets]
    assert lists(border_sets(*graph.csr, ragged(sets), hops=hops)) == wanted
    keys = np.arange(len(sets), dtype=np.uint64)
    drawn, _ = sample_borders(*graph.csr, ragged(sets), hops=hops, draws=30, key=keys)
    for row, nodes, key in zip(lists(drawn), wanted, keys, strict=True):
        # A draw is a rank in the sorted border, whichever way it was explored.
        state = open_stream(key, 0)
        assert row == [nodes[uniform_below(state, len(nodes))] for _ in range(30 if nodes else 0)]


@many
@given(case=graphs_with_sets(), hops=st.integers(1, 2), data=st.data())
def test_draws_are_a_function_of_the_key_and_the_component_alone(case, hops, data):
    graph, sets = case
    together, _ = sample_borders(*graph.csr, ragged(sets), hops=hops, draws=20, key=node_set_keys(11, ragged(sets)))
    chosen = data.draw(st.permutations(range(len(sets))))[: len(sets) // 2]
    apart = ragged([sets[i] for i in chosen])
    alone, _ = sample_borders(*graph.csr, apart, hops=hops, draws=20, key=node_set_keys(11, apart))
    assert lists(alone) == [together[i].tolist() for i in chosen]


@pytest.mark.parametrize("family", ["path", "sparse", "dense", "hub", "complete"])
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_draws_are_uniform(family, hops):
    graph = make_graph(family, 45, seed=8)
    sets = make_sets(graph, seed=4)
    drawn, _ = sample_borders(*graph.csr, ragged(sets), hops=hops, draws=20_000, key=2024)
    drawn_from = [(row, nodes) for row, nodes in zip(lists(drawn), sets, strict=True) if row]
    counted = [(Counter(row), uniform(border(graph, nodes, hops))) for row, nodes in drawn_from]
    assert len(counted) > 2
    assert p_value(counted) > LEAST_P


powers = st.sampled_from([0.0, 0.25, 0.5, 1.0, 4.0])


def weights_of(graph: SmallGraph, members: list[int], giving: float, taking: float) -> dict[int, float]:
    """The weight of every node of a border."""
    whole = graph.networkx
    border = {u for v in members for u in whole[v]} - set(members)
    return {
        u: whole.degree[u] ** -taking * sum(whole.degree[v] ** -giving for v in set(members) & set(whole[u]))
        for u in border
    }


@many
@given(case=graphs_with_sets(), most=st.integers(1, 12), giving=powers, taking=powers)
def test_they_are_the_oracle_s(case, most, giving, taking):
    graph, sets = case
    nodes, weights = heaviest_borders(*graph.csr, ragged(sets), most=most, powers=(giving, taking))
    assert (nodes.dtype, weights.dtype) == (np.int32, np.float32)
    assert nodes.shape == weights.shape == (len(sets), most)
    for row, shares, members in zip(nodes.tolist(), weights.tolist(), sets, strict=True):
        known = weights_of(graph, members, giving, taking)
        kept = min(most, len(known))
        # Equal to six digits is a tie, which goes to the lower number.
        wanted = sorted(known, key=lambda u: (-float(f"{known[u]:.6e}"), u))[:kept]
        assert row[:kept] == wanted
        length = np.sqrt(sum(known[u] ** 2 for u in wanted))
        np.testing.assert_allclose(shares[:kept], [known[u] / length for u in wanted], rtol=1e-5, atol=1e-30)
        assert row[kept:] == [wanted[-1] if wanted else 0] * (most - kept)
        assert shares[kept:] == [0.0] * (most - kept)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_a_sum_breaks_no_tie(seed):
    rng = np.random.default_rng(seed)
    degrees = [3, 5, 7, 11, 13, 17]
    members = [*degrees, *rng.permutation(degrees).tolist()]
    # Members 2..13, six of them joined to node 0 and six to node 1, with leaves up to their degree.
    edges, leaf = [], 14
    for place, degree in enumerate(members):
        edges.append((place + 2, int(place < 6)))
        for _ in range(degree - 1):
            edges.append((place + 2, leaf))
            leaf += 1
    graph = SmallGraph(leaf, tuple(edges))
    nodes, weights = heaviest_borders(*graph.csr, ragged([list(range(2, 14))]), most=2, powers=(1, 0.25))
    assert nodes.tolist() == [[0, 1]]
    assert weights[0, 0] == weights[0, 1]


def test_without_a_border():
    graph = SmallGraph(5, ((1, 2), (2, 3)))
    nodes, weights = heaviest_borders(*graph.csr, ragged([[1, 2, 3], [0], [], [1]]), most=2, powers=(1, 1))
    assert nodes.tolist() == [[0, 0], [0, 0], [0, 0], [2, 2]]
    assert weights.tolist() == [[0, 0], [0, 0], [0, 0], [1, 0]]
    bare = heaviest_borders(*SmallGraph(3, ()).csr, ragged([[0], [0, 1, 2]]), most=2, powers=(4, 0))
    assert not any(array.any() for array in bare)
    assert [len(array) for array in heaviest_borders(*graph.csr, ragged([]), most=2, powers=(1, 1))] == [0, 0]
