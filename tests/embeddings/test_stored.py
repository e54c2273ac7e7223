"""Files of embeddings: what was written comes back, and what does not fit is refused with the reason."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from subgnn import Graph
from subgnn.data.strings import NodeNames
from subgnn.embeddings.sources import read_stored, read_vectors, write_vectors
from subgnn.errors import DataError

GRAPH = Graph.from_edges([0, 1], [1, 2], names=NodeNames.of(["TP53", "HLA-A", "my gene"]))
VECTORS = np.array([[1, 2], [3, 4], [5, 6.5]], np.float32)


def write(path, **changes):
    write_vectors(path, VECTORS, {"method": "gin"}, graph_hash=changes.get("graph_hash", GRAPH.content_hash))
    return path


def test_our_own_files_come_back(tmp_path):
    path = write(tmp_path / "e.safetensors")
    assert np.array_equal(read_vectors(path, GRAPH), VECTORS)
    assert read_stored(path)[1]["about"] == '{"method": "gin"}'


def test_another_graph_is_refused(tmp_path):
    path = write(tmp_path / "e.safetensors", graph_hash="0" * 64)
    with pytest.raises(DataError, match="embeddings of another graph \\(000000000000, not"):
        read_vectors(path, GRAPH)


@pytest.mark.parametrize("harm", [lambda b: b[:-1], lambda b: b[:4], lambda b: b[:-2] + b"\x01\x02", lambda _: b""])
def test_a_damaged_file_is_refused(tmp_path, harm):
    path = write(tmp_path / "e.safetensors")
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(DataError, match=r"e\.safetensors: .* file of embeddings|does not match its checksum"):
        read_vectors(path, GRAPH)


def test_vectors_of_too_many_numbers(tmp_path):
    (tmp_path / "e.txt").write_text("TP53" + " 1" * 70_000 + "\n")
    with pytest.raises(DataError, match=r"e\.txt:1: 70,000 numbers; at most 65,536 a node"):
        read_vectors(tmp_path / "e.txt", GRAPH)


def test_npy(tmp_path):
    np.save(tmp_path / "e.npy", VECTORS.astype(np.float64))
    assert np.array_equal(read_vectors(tmp_path / "e.npy", GRAPH), VECTORS)
    np.save(tmp_path / "short.npy", VECTORS[:2])
    with pytest.raises(DataError, match="2 rows, but the graph has 3 nodes"):
        read_vectors(tmp_path / "short.npy", GRAPH)
    np.save(tmp_path / "nan.npy", np.where(VECTORS == 4, np.nan, VECTORS))
    with pytest.raises(DataError, match="the vector of node 1 is not finite"):
        read_vectors(tmp_path / "nan.npy", GRAPH)
    np.save(tmp_path / "flat.npy", VECTORS[0])
    with pytest.raises(DataError, match=r"an array of shape \(2,\)"):
        read_vectors(tmp_path / "flat.npy", GRAPH)
    (tmp_path / "no.npy").write_text("no array")
    with pytest.raises(DataError, match=r"not an \.npy array of numbers"):
        read_vectors(tmp_path / "no.npy", GRAPH)


@pytest.mark.parametrize("header", ["", "4 2\n"])
@pytest.mark.parametrize("names", [("TP53", "HLA-A", "my gene"), ("#0", "#1", "#2")])
@pytest.mark.parametrize("packed", [False, True])
def test_word2vec_text_by_name_or_row(tmp_path, header, names, packed):
    text = header + f"{names[1]} 3 4\n</s> 9 9\n{names[0]} 1 2.0\n{names[2]} 5 6.5e0 \n"
    path = tmp_path / ("e.vec.gz" if packed else "e.vec")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert np.array_equal(read_vectors(path, GRAPH), VECTORS)


def test_word2vec_text_of_nodes_that_are_called_by_numbers(tmp_path):
    graph = Graph.from_edges([0, 1], [1, 2], names=NodeNames.of(["2", "0", "1"]))
    (tmp_path / "e.vec").write_text("0 3 4\n2 1 2\n1 5 6.5\n")
    assert np.array_equal(read_vectors(tmp_path / "e.vec", graph), VECTORS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HLA-A 3 4\n", "2 of 3 nodes have no vector: TP53, my gene; every node needs a line"),
        ("", "3 of 3 nodes have no vector: TP53, HLA-A, my gene"),
        ("TP53 1 2\nHLA-A 3 x\n", r"e\.txt:2: .* a node and 2 numbers are needed"),
        ("TP53 1 2\n#0 3 4\n", r"e\.txt:2: node #0 again"),
        ("0 1 2\n1 3 4\n2 5 6\n", "3 of 3 nodes have no vector"),
    ],
)
def test_text_that_lacks_something_says_what(tmp_path, text, message):
    (tmp_path / "e.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        read_vectors(tmp_path / "e.txt", GRAPH)


def test_many_missing_nodes_are_counted_and_the_first_named(tmp_path):
    (tmp_path / "e.txt").write_text("0 1 2\n")
    with pytest.raises(DataError, match=r"9 of 10 nodes have no vector: 1, 2, 3, \.\.\.;"):
        read_vectors(tmp_path / "e.txt", Graph.from_edges([0], [9]))


def test_an_unknown_kind_lists_what_is_accepted(tmp_path):
    with pytest.raises(DataError, match=r"unknown kind of embeddings .* random, gin, graphsaint, \.safetensors"):
        read_vectors(tmp_path / "gni", GRAPH)
