"""Files of embeddings, and runs that start from pretrained or given ones: cached, shared by seeds, kept with runs."""

import gzip
import shutil
from dataclasses import replace

import numpy as np
import pytest

from subgnn import Graph
from subgnn.api.train_recipe import train
from subgnn.config.settings import EmbeddingSettings
from subgnn.data.strings import NodeNames
from subgnn.embeddings import pretrain as module
from subgnn.embeddings import sources
from subgnn.embeddings.sources import (
    feature_rows,
    feature_standard,
    node_vectors,
    read_stored,
    read_vectors,
    source_vectors,
    write_vectors,
)
from subgnn.errors import DataError, UserError
from subgnn.inference.predictor import Predictor
from subgnn.ragged import Ragged
from subgnn.rng import stream
from subgnn.training.options import Callbacks
from subgnn.training.run_dir import CHECKPOINT
from tests.embeddings.examples import quick
from tests.models.subgnn.examples import random_graph
from tests.training.examples import dataset, recipe

SETTINGS = quick(epochs=1, steps=1)
NEW = Ragged.from_rows([[0, 1, 2], [23]])


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "embeddings"


@pytest.fixture
def count(monkeypatch):
    """How often pretraining ran."""
    calls = []
    real = module.pretrain
    monkeypatch.setattr(module, "pretrain", lambda *a, **k: calls.append(1) or real(*a, **k))
    return calls


def pretrained(source="gin", **settings):
    embeddings = EmbeddingSettings(source=str(source), dim=8, scale=0.25)
    return replace(recipe(1), embeddings=embeddings, pretrain=replace(SETTINGS, **settings))


def test_an_untrained_gin_is_two_sums_over_neighbours():
    graph, hidden, dim, seed = random_graph(2, nodes=30, edges=60), 40, 5, 3
    draws, a = stream(seed, "embeddings/untrained_gin"), np.eye(30)
    for u in range(30):
        a[u, graph.neighbors[graph.offsets[u] : graph.offsets[u + 1]]] = 1
    expected = np.zeros((30, dim))
    for width in (32, 8):  # hidden units, as many as are drawn at a time
        w1, b1 = (draws.uniform(-(30**-0.5), 30**-0.5, size) for size in ((30, width), width))
        expected += a @ np.maximum(a @ w1 + b1, 0) @ draws.uniform(-(hidden**-0.5), hidden**-0.5, (width, dim))
    expected += draws.uniform(-(hidden**-0.5), hidden**-0.5, dim)
    found = sources.untrained_gin(graph, dim=dim, hidden=hidden, seed=seed)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.quick(1)
@pytest.mark.parametrize("method", ["gin", "graphsaint"])
def test_a_run_pretrains_once_for_all_seeds(tmp_path, count, cache, method):
    data, seen = dataset(), []
    results = train(data, pretrained(method), tmp_path / "a", seed=0, callbacks=Callbacks(on_pretrain=seen.append))
    train(data, pretrained(method), tmp_path / "b", seed=1)
    assert len(count) == len(seen) == 1
    assert {path.suffix for path in cache.iterdir()} == {".safetensors"}
    assert results.seconds.pretrain > 0
    train(data, pretrained(method, seed=5), tmp_path / "c", seed=0)
    assert len(count) == 2


def test_pretrained_vectors_are_brought_to_the_scale():
    table = source_vectors(pretrained(), dataset().graph)
    assert table.shape == (24, 8)
    assert np.sqrt(np.mean(table**2)) == pytest.approx(0.25, rel=1e-4)


def test_a_run_keeps_its_table(tmp_path, cache):
    data = dataset()
    train(data, pretrained(), tmp_path / "run")
    whole = Predictor(tmp_path / "run" / CHECKPOINT, data.graph).probabilities(NEW)
    shutil.rmtree(cache)
    assert np.array_equal(Predictor(tmp_path / "run" / CHECKPOINT, data.graph).probabilities(NEW), whole)
    (tmp_path / "run" / sources.RUN_FILE).unlink()
    with pytest.raises(DataError, match="the run's folder does not have its node embeddings; copy embeddings"):
        Predictor(tmp_path / "run" / CHECKPOINT, data.graph)


def test_given_vectors_are_taken_as_they_are(tmp_path):
    given = np.arange(24 * 8, dtype=np.float32).reshape(24, 8)
    np.save(tmp_path / "given.npy", given)
    table = source_vectors(pretrained(tmp_path / "given.npy"), dataset().graph)
    rows = node_vectors(EmbeddingSettings(source="x"), np.array([3, 1], np.int32), num_nodes=24, seed=0, table=table)
    assert np.array_equal(rows, given[[3, 1]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "gone.npy"}, "gone.npy: no such file; embeddings.source is random, gin"),
        ({"source": "gone.vec.gz"}, "gone.vec.gz: no such file"),
        ({"source": "."}, "embeddings.source: unknown kind of embeddings"),
        ({"source": "gin", "fraction": 0.0}, "pretrain: pretrain.fraction is 0.0"),
    ],
)
def test_what_cannot_be_is_noticed_before_the_folder_is_made(tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        train(dataset(), pretrained(**changes), tmp_path / "run")
    assert str(caught.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("features", [None, np.zeros((3, 0))])
def test_a_graph_without_features_is_said(features):
    graph = Graph.from_edges([0, 1], [1, 2], features=features)
    with pytest.raises(DataError) as caught:
        feature_rows(graph, np.array([0], np.int32))
    assert str(caught.value).startswith("embeddings.features: the graph has no node features; add features.npy")


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
    with pytest.raises(DataError, match="embeddings of a different graph \\(000000000000, not"):
        read_vectors(path, GRAPH)


@pytest.mark.parametrize("harm", [lambda b: b[:-1], lambda b: b[:4], lambda b: b[:-2] + b"\x01\x02", lambda _: b""])
def test_a_damaged_file_is_refused(tmp_path, harm):
    path = write(tmp_path / "e.safetensors")
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(DataError, match=r"e\.safetensors: .* file of embeddings|does not match its checksum"):
        read_vectors(path, GRAPH)


def test_vectors_of_too_many_numbers(tmp_path):
    (tmp_path / "e.txt").write_text("TP53" + " 1" * 70_000 + "\n")
    with pytest.raises(DataError, match=r"e\.txt:1: it has 70,000 numbers; accepted: at most 65,536"):
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
    with pytest.raises(DataError, match=r"it has the shape \(2,\)"):
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HLA-A 3 4\n", "2 of 3 nodes have no vector: TP53, my gene; every node needs a line"),
        ("", "3 of 3 nodes have no vector: TP53, HLA-A, my gene"),
        ("TP53 1 2\nHLA-A 3 x\n", r"e\.txt:2: .* a node and 2 numbers are needed"),
        ("TP53 1 2\n#0 3 4\n", r"e\.txt:2: node #0 is repeated"),
        ("0 1 2\n1 3 4\n2 5 6\n", "3 of 3 nodes have no vector"),
    ],
)
def test_text_that_lacks_something_says_what(tmp_path, text, message):
    (tmp_path / "e.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        read_vectors(tmp_path / "e.txt", GRAPH)


def test_constants_are_those_of_all_nodes_however_many_are_read_at_a_time(monkeypatch):
    features = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32) * [1, 0, 1e6] + [1e4, 5, 0]
    graph = Graph.from_edges([0, 1], [1, 2], num_nodes=7, features=features)
    for at_a_time in (1, 6, 2**20):
        monkeypatch.setattr("subgnn.embeddings.sources._NUMBERS_AT_A_TIME", at_a_time)
        found = feature_standard(graph)
        np.testing.assert_allclose(found.mean, features.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found.deviation, [features[:, 0].std(), 1, features[:, 2].std()], rtol=1e-9)
