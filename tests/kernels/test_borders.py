"""k-hop borders against networkx, and draws from them against the uniform distribution."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.kernels import border_sets, node_set_keys, sample_borders
from subgnn.kernels.draws import open_stream, uniform_below
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
def test_borders_are_the_oracle_s(case: tuple[SmallGraph, list[list[int]]], hops: int) -> None:
    graph, sets = case
    found = border_sets(*graph.csr, ragged(sets), hops=hops)
    assert found.values.dtype == np.int32
    assert lists(found) == [border(graph, nodes, hops) for nodes in sets]


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
@pytest.mark.parametrize("degree", [1.5, 3.0, 40.0])
def test_small_and_large_borders_of_a_larger_graph(degree: float, hops: int) -> None:
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
@given(case=graphs_with_sets(), hops=st.integers(1, 4), key=st.integers(0, 2**64 - 1))
def test_draws_come_from_the_border(case: tuple[SmallGraph, list[list[int]]], hops: int, key: int) -> None:
    graph, sets = case
    drawn, sizes = sample_borders(*graph.csr, ragged(sets), hops=hops, draws=7, key=key)
    wanted = [border(graph, nodes, hops) for nodes in sets]
    assert sizes.tolist() == [len(nodes) for nodes in wanted]
    assert drawn.lengths.tolist() == [7 if nodes else 0 for nodes in wanted]
    assert all(set(row) <= set(nodes) for row, nodes in zip(lists(drawn), wanted, strict=True))


@many
@given(case=graphs_with_sets(), hops=st.integers(1, 2), data=st.data())
def test_draws_are_a_function_of_the_key_and_the_component_alone(
    case: tuple[SmallGraph, list[list[int]]], hops: int, data: st.DataObject
) -> None:
    graph, sets = case
    together, _ = sample_borders(*graph.csr, ragged(sets), hops=hops, draws=20, key=node_set_keys(11, ragged(sets)))
    chosen = data.draw(st.permutations(range(len(sets))))[: len(sets) // 2]
    apart = ragged([sets[i] for i in chosen])
    alone, _ = sample_borders(*graph.csr, apart, hops=hops, draws=20, key=node_set_keys(11, apart))
    assert lists(alone) == [together[i].tolist() for i in chosen]


def test_more_draws_begin_with_the_fewer() -> None:
    graph = make_graph("dense", 30, seed=1)
    components = ragged([[0, 1], [5], [7, 8, 20]])
    few, _ = sample_borders(*graph.csr, components, hops=1, draws=5, key=3)
    more, _ = sample_borders(*graph.csr, components, hops=1, draws=50, key=3)
    assert [row[:5] for row in lists(more)] == lists(few)


@pytest.mark.parametrize("family", ["path", "sparse", "dense", "hub", "complete"])
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_draws_are_uniform(family: str, hops: int) -> None:
    graph = make_graph(family, 45, seed=8)
    sets = make_sets(graph, seed=4)
    drawn, _ = sample_borders(*graph.csr, ragged(sets), hops=hops, draws=20_000, key=2024)
    counted = [
        (Counter(row), uniform(border(graph, nodes, hops)))
        for row, nodes in zip(lists(drawn), sets, strict=True)
        if row
    ]
    assert len(counted) > 2
    assert p_value(counted) > LEAST_P


@pytest.mark.parametrize("draw", [0, 1, 2])
def test_draws_under_different_keys_are_uniform(draw: int) -> None:
    graph = make_graph("hub", 45, seed=8)
    component = [int(np.argmax(np.diff(graph.csr[0])))]
    drawn, _ = sample_borders(*graph.csr, ragged([component] * 30_000), hops=1, draws=3, key=5)
    counts = Counter(drawn.values.reshape(-1, 3)[:, draw].tolist())
    assert p_value([(counts, uniform(border(graph, component, 1)))]) > LEAST_P


def test_another_key_gives_other_draws() -> None:
    graph = make_graph("complete", 40, seed=0)
    rows = [lists(sample_borders(*graph.csr, ragged([[0]]), hops=1, draws=30, key=key)[0])[0] for key in range(50)]
    assert len({tuple(row) for row in rows}) == 50
