"""Diffusions from a table of walks against dense linear algebra, and where tables are used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subgnn import Graph, Ragged
from subgnn.channels import walk_table as module
from subgnn.channels.diffusion import Walks, diffuse
from subgnn.channels.walk_table import WalkTable, core_nodes, walk_table
from tests.channels.test_diffusion import cases, dense_ratios


@settings(max_examples=60)
@given(cases(), st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_a_diffusion_from_the_table_equals_dense_linear_algebra(case, damping):
    graph, sets = case
    core = core_nodes(*graph.csr)
    outside = np.setdiff1d(np.arange(graph.num_nodes), core)
    assert not any(np.isin(graph.neighbors[graph.offsets[v] : graph.offsets[v + 1]], outside).any() for v in outside)
    table = WalkTable(Walks.of(graph), damping, core)
    while not table.advance():
        pass
    np.testing.assert_allclose(np.log1p(table(sets)), np.log1p(dense_ratios(graph, sets, damping)), atol=1e-4)


def test_a_table_is_computed_after_as_many_walks_as_it_takes_and_read_again(monkeypatch):
    monkeypatch.setattr(module, "LEAST_EDGES", 1)
    monkeypatch.setattr(module, "_WORTH_READING", 2)
    rng = np.random.default_rng(0)
    ends = np.unique(np.sort(rng.integers(0, 60, (90, 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] < ends[:, 1]]
    graph = Graph.from_edges(ends[:, 0], ends[:, 1], num_nodes=60)
    walked: list[int] = []
    monkeypatch.setattr(module, "diffuse", lambda *a: walked.append(len(a[1])) or diffuse(*a))
    sets = Ragged.from_rows([np.sort(rng.choice(60, 5, replace=False)) for _ in range(20)])
    expected = diffuse(Walks.of(graph), sets, 0.6)
    core = len(core_nodes(*graph.csr))
    table = walk_table(Walks.of(graph), 0.6)
    for _ in range(core // 20):
        np.testing.assert_array_equal(table(sets), expected)
    np.testing.assert_allclose(table(sets), expected, rtol=1e-4)
    assert walked == [20] * (core // 20) + [core]
    again = walk_table(Walks.of(graph), 0.6)
    assert again is not table
    np.testing.assert_array_equal(again(sets), table(sets))
    assert len(walked) == core // 20 + 1
    many = Ragged.from_rows([np.arange(60)] * 2)
    monkeypatch.setattr(module, "_MOST_MEMBERS", 50)
    np.testing.assert_array_equal(table(many), diffuse(Walks.of(graph), many, 0.6))


@pytest.mark.parametrize("changed", ["LEAST_EDGES", "_MOST_NUMBERS"])
def test_small_and_large_graphs_have_no_table(monkeypatch, changed):
    monkeypatch.setattr(module, "LEAST_EDGES", 1)
    walks = Walks.of(Graph.from_edges([0, 1, 2], [1, 2, 3]))
    assert walk_table(walks, 0.5) is not None
    monkeypatch.setattr(module, changed, {"LEAST_EDGES": 10, "_MOST_NUMBERS": 3}[changed])
    assert walk_table(walks, 0.25) is None
