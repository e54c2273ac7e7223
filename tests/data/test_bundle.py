"""Bundles: what is written comes back, and the layout of the file."""

import numpy as np
import pytest

from subgnn import DataError, Dataset, Graph, SubgraphSet, read_dataset, write_bundle
from subgnn.data.formats import bundle as bundle_module
from subgnn.data.formats.bundle import is_bundle, verify_bundle
from subgnn.data.subgraphs import label_card
from tests.data.bundles import header_of
from tests.data.samples import assert_same, whole_dataset, write_sample

ITEM_SIZES = {"I64": 8, "F64": 8, "I32": 4, "F32": 4, "F16": 2, "I8": 1, "U8": 1}


@pytest.fixture
def bundle(tmp_path):
    path = tmp_path / "whole.subgnn"
    write_bundle(whole_dataset(), path)
    return path


@pytest.mark.parametrize("directed", [False, True])
def test_round_trip_of_every_part(tmp_path, directed):
    dataset = whole_dataset(directed=directed)
    write_bundle(dataset, tmp_path / "x.subgnn")
    once = read_dataset(tmp_path / "x.subgnn")
    assert_same(dataset, once)
    assert once.card == dataset.card | label_card(dataset.subgraphs)
    verify_bundle(tmp_path / "x.subgnn")


def test_round_trip_without_subgraphs_or_edges(tmp_path):
    dataset = Dataset(
        name="x", graph=Graph.from_edges([], [], num_nodes=2), subgraphs=SubgraphSet.from_lists([], num_nodes=2)
    )
    write_bundle(dataset, tmp_path / "x.subgnn")
    assert_same(dataset, read_dataset(tmp_path / "x.subgnn"))
    verify_bundle(tmp_path / "x.subgnn")


def test_dropped_edges_are_remembered(tmp_path):
    dataset = read_dataset(write_sample(tmp_path / "f"))
    with pytest.warns(UserWarning, match="1 self loops"):
        graph = Graph.from_edges([0, 1, 1, 1, 1], [1, 1, 2, 2, 4])
    write_bundle(Dataset(name="x", graph=graph, subgraphs=dataset.subgraphs), tmp_path / "x.subgnn")
    assert read_dataset(tmp_path / "x.subgnn").graph.dropped == graph.dropped


def test_layout_is_that_of_safetensors(bundle):
    content = bundle.read_bytes()
    header, begin = header_of(content)
    assert content[8:9] == b"{"
    assert begin % 64 == 0
    metadata = header.pop("__metadata__")
    assert all(isinstance(k, str) and isinstance(v, str) for k, v in metadata.items())
    end = 0
    for name, entry in header.items():
        assert set(entry) == {"dtype", "shape", "data_offsets"}
        size = ITEM_SIZES[entry["dtype"]]
        first, last = entry["data_offsets"]
        assert first == end, name  # no gap and no overlap
        assert last - first == size * int(np.prod(entry["shape"])), name
        assert (begin + first) % size == 0, name
        end = last
    assert begin + end == len(content)
    assert "graph.weights" in header
    assert "subgraphs.names.bytes" in header


def test_arrays_are_views_of_a_memory_map(bundle):
    dataset = read_dataset(bundle)
    graph, subgraphs = dataset.graph, dataset.subgraphs
    arrays = [graph.offsets, graph.neighbors, graph.weights, graph.features, subgraphs.targets, subgraphs.splits]
    arrays += [subgraphs.nodes.values, subgraphs.nodes.offsets, subgraphs.names.rows.values]
    arrays += [column.rows.values for column in graph.names.columns.values()]
    for array in arrays:
        assert not array.flags.owndata
        assert not array.flags.writeable
        assert array.flags.aligned
        chain = [array]
        while getattr(chain[-1], "base", None) is not None:
            chain.append(chain[-1].base)
        assert any(isinstance(link, np.memmap) for link in chain)


@pytest.mark.parametrize("piece", [1, 2, 3, 100])
def test_rows_that_overlap_are_found_across_pieces(monkeypatch, piece):
    monkeypatch.setattr(bundle_module, "_PIECE", piece)
    rising = np.array([0, 0, 2, 2, 5, 7, 7, 9])
    assert bundle_module._rises(rising)
    for place in range(1, len(rising)):
        falling = rising.copy()
        falling[place] = falling[place - 1] - 1
        assert not bundle_module._rises(falling)


def test_is_bundle(tmp_path, bundle):
    other = bundle.rename(tmp_path / "no_suffix")
    assert is_bundle(other)
    assert_same(whole_dataset(), read_dataset(other))
    assert not is_bundle(tmp_path / "missing.subgnn")
    (tmp_path / "text").write_text("0-1\ta\ttrain\n")
    assert not is_bundle(tmp_path / "text")


def test_a_type_that_a_bundle_cannot_hold(tmp_path):
    graph = Graph.from_edges([0], [1], features=np.zeros((2, 1), np.longdouble))
    dataset = Dataset(name="x", graph=graph, subgraphs=SubgraphSet.from_lists([], num_nodes=2))
    with pytest.raises(DataError, match=r"bundle: graph\.features has type float128; accepted: I64, F64"):
        write_bundle(dataset, tmp_path / "x.subgnn")
    assert list(tmp_path.iterdir()) == []
