"""Searches that are kept in the cache folder give the hops of a search, bit by bit."""

import warnings

import numpy as np
import pytest

from subgnn import Graph
from subgnn.channels import distances
from subgnn.channels.channel import Work
from subgnn.channels.distances import hops_from
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.errors import DataWarning
from subgnn.kernels.distances import hop_distances
from subgnn.parallel.memory import memory_limit
from tests.models.subgnn.examples import random_graph


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path))
    monkeypatch.setattr(distances, "LARGE", 0)
    monkeypatch.setattr(distances, "WORD", 3)
    monkeypatch.setattr(distances, "BLOCK", 4)
    return tmp_path / "hops"


def ask(graph, sources, nodes, *, cache=True):
    work = Work(graph, PrepareSettings(), ChannelSettings("position", "border", 1), 1, 0, cache=cache)
    return hops_from(work, np.array(sources, np.int32), np.array(nodes, np.int32))


@pytest.mark.parametrize("seed", range(4))
def test_hops_are_those_of_a_search_and_are_searched_for_once(folder, monkeypatch, seed):
    graph = random_graph(seed)
    sources, nodes = [5, 0, 7, 7, 11], [0, 2, 3, 9, 11]
    wanted = ask(graph, sources, nodes, cache=False)
    assert not folder.exists()
    found = ask(graph, sources, nodes)
    assert len(list(folder.iterdir())) == 2  # a file for each word of sources
    monkeypatch.setattr(distances, "hops_to_all", None)
    monkeypatch.setattr(distances, "hop_distances", None)
    again, others = ask(graph, sources, nodes), ask(graph, sources, range(12))
    for hops in (found, again, others[nodes]):
        assert hops.dtype == wanted.dtype
        np.testing.assert_array_equal(hops, wanted)


def test_other_edges_or_sources_have_other_files(folder):
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3])
    for sources in ([0], [3], [0, 1], [1, 0]):
        ask(graph, sources, [0, 3])
    ask(Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3]), [0], [0, 3])
    assert len(list(folder.iterdir())) == 5


def test_a_damaged_file_is_replaced_where_it_is_read(folder):
    graph = random_graph(0)
    wanted = ask(graph, [0], [0, 11])
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(ask(graph, [0], [0]), wanted[:1])  # of another block
    with pytest.warns(DataWarning, match="does not match its checksum"):
        np.testing.assert_array_equal(ask(graph, [0], [0, 11]), wanted)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("length", [253, 254, 600])
def test_paths_that_are_too_long_for_a_byte_are_searched_for(folder, monkeypatch, length):
    path = Graph.from_edges(range(length), range(1, length + 1), num_nodes=length + 2)
    nodes = [0, 1, length, length + 1]
    for _ in range(2):
        assert ask(path, [0], nodes).tolist() == [[0], [1], [length], [-1]]
        monkeypatch.setattr(distances, "hops_to_all", None)  # not even tried again
    (kept,) = folder.iterdir()
    assert (kept.stat().st_size > 400) == (length == 253)


def test_nothing_is_kept_without_room_for_it(folder, monkeypatch):
    graph = random_graph(1)
    wanted = hop_distances(*graph.csr, [0, 3], [1, 2]).T
    monkeypatch.setenv("SUBGNN_CACHE_LIMIT", "0")
    np.testing.assert_array_equal(ask(graph, [0, 3], [1, 2]), wanted)
    monkeypatch.delenv("SUBGNN_CACHE_LIMIT")
    monkeypatch.setattr(distances, "BYTES_A_NODE", 10**9)
    with memory_limit("1GB"):
        np.testing.assert_array_equal(ask(graph, [0, 3], [1, 2]), wanted)
    monkeypatch.setattr(distances, "LARGE", 10**9)
    np.testing.assert_array_equal(ask(graph, [0, 3], [1, 2]), wanted)
    assert not folder.exists()
