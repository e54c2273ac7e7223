"""Bundles: what is written comes back, and one that was cut, changed or made by somebody else is refused."""

import json
import os
import tempfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from subgnn import DataError, Dataset, Graph, SubgraphSet, read_dataset, write_bundle
from subgnn.data.formats import bundle as bundle_module
from subgnn.data.formats.bundle import read_bundle
from subgnn.data.subgraphs import label_card
from subgnn.ragged import Ragged
from subgnn.storage.arrays import ArrayFile
from tests.cli.command import call
from tests.data.samples import assert_same, whole_dataset, write_sample


def as_bytes(dataset):
    """A dataset as the bytes of a bundle."""
    with tempfile.TemporaryDirectory() as place:
        write_bundle(dataset, Path(place) / "x.subgnn")
        return (Path(place) / "x.subgnn").read_bytes()


def header_of(content):
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), 8 + length


def with_header(content, change):
    """The same arrays behind a changed header."""
    header, begin = header_of(content)
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + content[begin:]


def with_content(content, **changes):
    """The same arrays behind changed metadata of ours."""

    def change(header):
        inner = json.loads(header["__metadata__"]["content"])
        inner.update(changes)
        header["__metadata__"]["content"] = json.dumps({k: v for k, v in inner.items() if v is not ...})

    return with_header(content, change)


def arrays_of(content):
    """Writable views of the arrays in the bytes of a bundle."""
    header, begin = header_of(content)
    del header["__metadata__"]
    types = {"I64": "<i8", "F64": "<f8", "I32": "<i4", "F32": "<f4", "I8": "i1", "U8": "u1"}
    spans = {name: [begin + place for place in entry["data_offsets"]] for name, entry in header.items()}
    return {
        name: np.frombuffer(memoryview(content)[slice(*spans[name])], types[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


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
    read_bundle(tmp_path / "x.subgnn", check="always")


def test_round_trip_without_subgraphs_or_edges(tmp_path):
    dataset = Dataset("x", Graph.from_edges([], [], num_nodes=2), SubgraphSet.from_lists([], num_nodes=2))
    write_bundle(dataset, tmp_path / "x.subgnn")
    assert_same(dataset, read_dataset(tmp_path / "x.subgnn"))
    read_bundle(tmp_path / "x.subgnn", check="always")


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


def test_a_type_that_a_bundle_cannot_hold(tmp_path):
    graph = Graph.from_edges([0], [1], features=np.zeros((2, 1), np.longdouble))
    dataset = Dataset(name="x", graph=graph, subgraphs=SubgraphSet.from_lists([], num_nodes=2))
    with pytest.raises(DataError, match=r"bundle: graph\.features has type float128; accepted: I64, F64"):
        write_bundle(dataset, tmp_path / "x.subgnn")
    assert list(tmp_path.iterdir()) == []


def test_truncated_anywhere(bundle):
    content = bundle.read_bytes()
    cut = bundle.with_name("cut.subgnn")
    lengths = [*range(80), *range(80, len(content), 13), len(content) - 1]
    for length in lengths:
        cut.write_bytes(content[:length])
        with pytest.raises(DataError) as caught:
            read_dataset(cut)
        assert str(caught.value).startswith(f"{cut}: "), length


FOREIGN = {
    "empty": b"",
    "one byte": b"x",
    "text": b"0-1\ta\ttrain\n" * 5,
    "zeros": bytes(4096),
    "no JSON": (64).to_bytes(8, "little") + b"x" * 64,
    "a list": (2).to_bytes(8, "little") + b"[]",
    "another safetensors file": (2).to_bytes(8, "little") + b"{}",
    "another format": (36).to_bytes(8, "little") + b'{"__metadata__":{"format":"pt"}}    ',
    "metadata of text": (25).to_bytes(8, "little") + b'{"__metadata__":"pt    "}',
    "deep": (10**5).to_bytes(8, "little") + b"[" * 10**5,
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_foreign_files(tmp_path, content):
    path = tmp_path / "x.subgnn"
    path.write_bytes(content)
    for verb in ("describe", "check"):
        called = call("data", verb, path)
        assert called.code == 2
        assert called.error.startswith(f"{path}: ")
    assert "bundle" in call("data", "describe", path).error
    called = call("data", "convert", path, "--out", tmp_path / "out")
    assert called.code == 2
    assert [p.name for p in tmp_path.iterdir()] == ["x.subgnn"]


def _entry(name, **changes):
    return lambda header: header[name].update(changes)


MISDESCRIBED = {
    "no array": lambda h: h.pop("graph.offsets"),
    "no names": lambda h: h.pop("names.0.bytes"),
    "unknown type": _entry("graph.offsets", dtype="Q7"),
    "other type": _entry("graph.neighbors", dtype="F32"),
    "negative extent": _entry("graph.features", shape=[-6, -2]),
    "wrong shape": _entry("graph.features", shape=[6, 3]),
    "flat features": _entry("graph.features", shape=[12]),
    "no shape": _entry("graph.offsets", shape=None),
    "infinite shape": _entry("graph.offsets", shape=[float("inf")]),
    "huge shape": _entry("graph.offsets", shape=[2**62, 2**62]),
    "beyond the end": _entry("graph.offsets", data_offsets=[10**6, 10**6 + 56]),
    "before the beginning": _entry("graph.offsets", data_offsets=[-56, 0]),
    "backwards": _entry("graph.offsets", data_offsets=[56, 0]),
    "entry of text": lambda h: h.update({"graph.offsets": "x"}),
    "no content": lambda h: h["__metadata__"].pop("content"),
    "content no JSON": lambda h: h["__metadata__"].update(content="{"),
    "content a list": lambda h: h["__metadata__"].update(content="[]"),
    "targets too few": lambda h: h["subgraphs.targets"].update(shape=[1, 3], data_offsets=[0, 3]),
}


@pytest.mark.parametrize("change", MISDESCRIBED.values(), ids=MISDESCRIBED)
def test_a_header_that_misdescribes(bundle, change):
    bundle.write_bytes(with_header(bundle.read_bytes(), change))
    with pytest.raises(DataError) as caught:
        read_dataset(bundle)
    assert str(caught.value).startswith(f"{bundle}: the ")
    assert "convert the dataset again" in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": 5},
        {"columns": ["only one"]},
        {"primary": "nobody"},
        {"card": 5},
        {"classes": None},
        {"classes": ["too", "few"]},
        {"dropped": ["a", "b"]},
        {"dropped": ...},
        {"task": ...},
        {"task": "nonsense"},
        {"task": "binary"},
        {"graph_hash": ...},
    ],
    ids=str,
)
def test_metadata_of_a_wrong_kind(bundle, changes):
    bundle.write_bytes(with_content(bundle.read_bytes(), **changes))
    called = call("data", "check", bundle)
    assert called.code == 2
    assert called.out.startswith(f"error: {bundle}: the ")


@pytest.mark.parametrize("checksum", [None, "0" * 64])
def test_a_checksum_that_is_missing_or_another(bundle, checksum):
    def change(header):
        header["__metadata__"].pop("checksum")
        if checksum is not None:
            header["__metadata__"]["checksum"] = checksum

    bundle.write_bytes(with_header(bundle.read_bytes(), change))
    assert "the content does not match its checksum" in call("data", "check", bundle).out


@pytest.mark.parametrize("extra", [b"\0", b"x" * 64, bytes(4096)])
def test_bytes_behind_the_last_array(bundle, extra):
    bundle.write_bytes(bundle.read_bytes() + extra)
    with pytest.raises(DataError, match=r"do not fill the .* bytes after its header; the file is damaged"):
        read_dataset(bundle)


def test_the_hash_of_another_graph_under_a_right_checksum(bundle):
    content = with_content(bundle.read_bytes(), graph_hash="0" * 64)
    place = content.index(b'"checksum":"') + 12
    checksum = sha256(content[:place] + b"0" * 64 + content[place + 64 :]).hexdigest()
    bundle.write_bytes(with_header(content, lambda h: h["__metadata__"].update(checksum=checksum)))
    for verb in ("describe", "check"):
        called = call("data", verb, bundle)
        assert called.code == 2
        assert "the graph does not match its hash in the header" in called.out + called.err


IMPOSSIBLE_GRAPHS = {
    "a node that is not there": [[1], [0, 3], [1]],
    "a negative node": [[1], [-1, 0], []],
    "unsorted": [[1, 2], [2, 0], [0, 1]],
    "repeated": [[1, 1], [0, 0], []],
    "a self loop": [[0, 1], [0], []],
    "one direction": [[1], [], []],
    "another direction": [[1], [2], [0]],
}


@pytest.mark.parametrize("rows", IMPOSSIBLE_GRAPHS.values(), ids=IMPOSSIBLE_GRAPHS)
def test_neighbors_that_no_graph_can_have(tmp_path, rows):
    ragged = Ragged.from_rows(rows)
    graph = Graph(offsets=ragged.offsets, neighbors=ragged.values)
    write_bundle(Dataset("x", graph, SubgraphSet.from_lists([[0]], num_nodes=3)), tmp_path / "x.subgnn")
    for verb in ("describe", "check"):
        called = call("data", verb, tmp_path / "x.subgnn")
        assert called.code == 2
        said = called.out + called.err
        assert "the neighbours of node" in said or "an undirected edge is missing" in said


IMPOSSIBLE_SUBGRAPHS = {
    "a negative node": {"nodes": Ragged.from_rows([[0], [-1, 1]])},
    "unsorted": {"nodes": Ragged.from_rows([[1, 0], [0]])},
    "repeated": {"nodes": Ragged.from_rows([[1, 1], [0]])},
    "empty": {"nodes": Ragged.from_rows([[1], []])},
    "a class without a name": {"targets": np.array([0, 2], np.int32)},
    "a negative class": {"targets": np.array([0, -1], np.int32)},
    "a class twice": {"classes": ("a", "a")},
    "a split": {"splits": np.array([0, 3], np.int8)},
    "a value": {"task": "regression", "classes": (), "targets": np.array([0, np.nan])},
    "several labels": {"task": "multi-label", "targets": np.array([[0, 1], [2, 0]], np.uint8)},
}


@pytest.mark.parametrize("parts", IMPOSSIBLE_SUBGRAPHS.values(), ids=IMPOSSIBLE_SUBGRAPHS)
def test_subgraphs_that_no_dataset_can_have(tmp_path, parts):
    good = {"nodes": Ragged.from_rows([[0], [1]]), "targets": np.array([0, 1], np.int32)}
    good |= {"task": "binary", "classes": ("a", "b")}
    dataset = Dataset("x", Graph.from_edges([0, 1], [1, 2]), SubgraphSet(**{**good, **parts}))
    write_bundle(dataset, tmp_path / "x.subgnn")
    with pytest.raises(DataError, match="the file is damaged; convert the dataset again"):
        read_dataset(tmp_path / "x.subgnn")


@pytest.mark.parametrize("values", [{"weights": np.array([np.inf, np.inf], np.float32)}, {"features": [[np.nan]] * 2}])
def test_numbers_that_are_not_finite(tmp_path, values):
    rows = Ragged.from_rows([[1], [0]])
    parts = {name: np.asarray(value, np.float32) for name, value in values.items()}
    graph = Graph(offsets=rows.offsets, neighbors=rows.values, **parts)
    write_bundle(Dataset("x", graph, SubgraphSet.from_lists([[0]], num_nodes=2)), tmp_path / "x.subgnn")
    with pytest.raises(DataError, match="finite"):
        read_dataset(tmp_path / "x.subgnn")


class TestVerdict:
    """What is remembered of large bundles."""

    @pytest.fixture(autouse=True)
    def _large(self, monkeypatch, tmp_path):
        monkeypatch.setattr(bundle_module, "_LARGE", 0)
        monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))

    @pytest.fixture
    def times_read(self, monkeypatch):
        """How often a bundle was read whole."""
        times, real = [], ArrayFile.verify
        monkeypatch.setattr(ArrayFile, "verify", lambda file: times.append(1) or real(file))
        return times

    def test_a_bundle_is_read_whole_once(self, bundle, times_read, tmp_path):
        first, second = read_dataset(bundle), read_dataset(bundle)
        assert len(times_read) == 1
        assert_same(first, second)
        (verdict,) = (tmp_path / "cache" / "verified").iterdir()
        assert verdict.stat().st_size < 256

    def test_a_change_is_noticed(self, bundle, times_read):
        read_dataset(bundle)
        status = bundle.stat()
        content = bytearray(bundle.read_bytes())
        content[-1] ^= 1
        bundle.write_bytes(content)
        os.utime(bundle, ns=(status.st_atime_ns, status.st_mtime_ns))  # as a copy that keeps times would
        with pytest.raises(DataError, match="does not match its checksum"):
            read_dataset(bundle)

    @pytest.mark.parametrize("content", [b"", b"{}", b"[" * 10**5, b"\xff" * 10, b'{"size": 1}', b"1" * 10**6])
    def test_a_verdict_that_is_damaged_counts_for_nothing(self, bundle, times_read, tmp_path, content):
        read_dataset(bundle)
        (verdict,) = (tmp_path / "cache" / "verified").iterdir()
        good = verdict.read_bytes()
        verdict.write_bytes(content)
        read_dataset(bundle)
        assert len(times_read) == 2
        assert verdict.read_bytes() == good

    def test_check_reads_all_of_it_every_time(self, bundle, times_read):
        for _ in range(2):
            assert call("data", "check", bundle).code == 0
        read_dataset(bundle)
        assert len(times_read) == 3


def test_converting_does_not_read_the_bundle_again(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle_module, "_verified", lambda *_: pytest.fail("all of the file was read"))
    assert call("data", "convert", write_sample(tmp_path / "f"), "--out", tmp_path / "x.subgnn").code == 0


@pytest.mark.parametrize("piece", [1, 2, 3, 100])
def test_rows_that_overlap_are_found_across_pieces(monkeypatch, piece):
    monkeypatch.setattr(bundle_module, "_PIECE", piece)
    rising = np.array([0, 0, 2, 2, 5, 7, 7, 9])
    assert all((piece[1:] >= piece[:-1]).all() for piece in bundle_module._pieces(rising))
    for place in range(1, len(rising)):
        falling = rising.copy()
        falling[place] = falling[place - 1] - 1
        assert not all((piece[1:] >= piece[:-1]).all() for piece in bundle_module._pieces(falling))
