"""Core numbers of large graphs are kept in the cache folder."""

import numpy as np
import pytest

from subgnn.channels import topology
from subgnn.data.graph import Graph
from subgnn.errors import DataWarning
from subgnn.kernels.induced import core_numbers
from subgnn.storage.cache import cache_entries


def test_core_numbers_of_a_large_graph_are_stored_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path))
    monkeypatch.setattr(topology, "LARGE", 1)
    graph = Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 3])

    def cores():
        topology.graph_cores.cache_clear()
        found = topology.graph_cores(graph).tolist()
        topology.graph_cores.cache_clear()
        return found

    assert cores() == core_numbers(*graph.csr).tolist() == [2, 2, 2, 1]
    [entry] = cache_entries()
    monkeypatch.setattr(topology.induced, "core_numbers", lambda *_: np.full(4, 7))
    assert cores() == [2, 2, 2, 1]
    entry.path.write_bytes(b"damaged")
    with pytest.warns(DataWarning):
        assert cores() == [7, 7, 7, 7]
