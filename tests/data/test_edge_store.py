"""A graph built on disk against the one built in memory."""

from __future__ import annotations

import numpy as np
import pytest

from subgnn import DataError, Graph
from subgnn.data.edge_store import EdgeStore


def assert_same_graph(found, expected):
    for name in ("offsets", "neighbors", "weights"):
        a, b = getattr(found, name), getattr(expected, name)
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    assert found.dropped == expected.dropped
    assert found.content_hash == expected.content_hash


@pytest.mark.filterwarnings("ignore::subgnn.errors.DataWarning")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("memory", [1, 10**4, 10**6, 10**9])
def test_same_as_in_memory(tmp_path, directed, weighted, memory):
    rng = np.random.default_rng(memory)
    tails, heads = rng.integers(0, 40, 400) ** 2, rng.integers(0, 40, 400) ** 2
    tails[:150] = 256  # a hub, in the first row of a cell
    weights = rng.normal(size=400) if weighted else None
    store = EdgeStore(tmp_path, memory=memory)
    for begin in range(0, 400, 90):
        part = slice(begin, begin + 90)
        store.append(tails[part], heads[part], None if weights is None else weights[part])
    assert store.num_edges == 400
    assert store.num_nodes == 1 + max(tails.max(), heads.max())
    expected = Graph.from_edges(tails, heads, num_nodes=1700, weights=weights, directed=directed)
    assert expected.dropped.self_loops
    assert expected.dropped.duplicates
    assert_same_graph(store.build(1700, directed=directed), expected)
    assert {path.name for path in tmp_path.iterdir()} == {"offsets", "neighbors", "weights"}


@pytest.mark.parametrize("num_nodes", [0, 1, 5, 600])
def test_without_edges(tmp_path, num_nodes):
    graph = EdgeStore(tmp_path, memory=100).build(num_nodes)
    assert_same_graph(graph, Graph.from_edges([], [], num_nodes=num_nodes))


def test_a_weight_that_is_too_large(tmp_path):
    store = EdgeStore(tmp_path)
    store.append(np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0]))
    with pytest.raises(DataError, match="weights: weight -inf of edge 3; weights must be finite"):
        store.append(np.array([0, 1]), np.array([1, 3]), np.array([1.0, -1e39]))


def test_ids_that_no_graph_can_have_are_counted_alone(tmp_path):
    store = EdgeStore(tmp_path)
    store.append(np.array([0, 1]), np.array([1, 2**40]))
    assert store.num_nodes == 2**40 + 1
    assert (tmp_path / "edges").stat().st_size == 0
