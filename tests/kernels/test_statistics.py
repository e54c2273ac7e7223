"""Degrees inside and outside sets, and what follows from them, against counts of edges."""

from __future__ import annotations

import pytest
from hypothesis import given

from subgnn.kernels import inside_degrees, shapes
from tests.kernels.graphs import SmallGraph, graphs_with_sets, lists, many, ragged


@many
@given(case=graphs_with_sets())
def test_degrees_inside_and_across_the_border(case: tuple[SmallGraph, list[list[int]]]) -> None:
    graph, sets = case
    inside, border = inside_degrees(*graph.csr, ragged(sets))
    near = graph.networkx.adj
    assert lists(inside) == [[sum(u in nodes for u in near[v]) for v in nodes] for nodes in sets]
    assert lists(border) == [[sum(u not in nodes for u in near[v]) for v in nodes] for nodes in sets]


@many
@given(case=graphs_with_sets())
def test_shapes_count_edges(case: tuple[SmallGraph, list[list[int]]]) -> None:
    graph, sets = case
    found = shapes(*graph.csr, ragged(sets))
    for s, nodes in enumerate(sets):
        size, others = len(nodes), graph.num_nodes - len(nodes)
        ends = [(u in nodes) + (v in nodes) for u, v in graph.edges]
        within, leaving = ends.count(2), ends.count(1)
        assert (found.nodes[s], found.edges[s], found.cut_edges[s]) == (size, within, leaving)
        assert found.density[s] == (2 * within / (size * (size - 1)) if size > 1 else 0.0)
        assert found.cut_ratio[s] == (leaving / (size * others) if size and others else 0.0)


def test_shapes_known_by_hand() -> None:
    square = SmallGraph(5, ((0, 1), (1, 2), (2, 3), (0, 3), (0, 2)))
    found = shapes(*square.csr, ragged([[0], [4], [0, 1, 2], [0, 1, 2, 3, 4], [1, 3]]))
    assert found.density.tolist() == pytest.approx([0.0, 0.0, 1.0, 0.5, 0.0])
    assert found.cut_ratio.tolist() == pytest.approx([3 / 4, 0.0, 2 / 6, 0.0, 4 / 6])
