"""Text files read whole, in pieces and by lines."""

from __future__ import annotations

import gzip

import pytest

from subgnn import DataError
from subgnn.data.formats import text as text_module
from subgnn.data.formats.text import read_bytes, read_chunks, read_lines
from tests.cli.command import call
from tests.data.samples import EDGES, write_sample

TEXTS = {
    "lines": b"".join(b"%d %d\n" % (i, i * i) for i in range(300)),
    "no end": b"a\nbb\n\nccc",
    "a long line": b"a\n" + b"x" * 500 + b"\nb\n" + b"y" * 300,
    "empty": b"",
    "blank": b"\n\n\n",
}


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10**5])
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_pieces_end_where_lines_do(tmp_path, text, suffix, size):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith(".gz") else text)
    pieces, places = [], []
    for data, place in read_chunks(path, size):
        pieces.append(data.tobytes())
        places.append(place)
    assert b"".join(pieces) == text
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    longest = max((len(line) for line in text.split(b"\n")), default=0)
    assert all(len(piece) <= max(size, 4 * (longest + 1)) for piece in pieces)
    assert places == sorted(places)
    assert not places or places[-1] == path.stat().st_size


@pytest.mark.parametrize("size", [16, 10**6])
@pytest.mark.parametrize("cut", [0, 1, 5, 9, 30, -9, -1])
def test_same_words_for_a_damaged_file(tmp_path, cut, size):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(TEXTS["lines"])[:cut])
    with pytest.raises(DataError) as whole:
        read_bytes(path)
    with pytest.raises(DataError) as pieces:
        list(read_chunks(path, size))
    assert str(pieces.value) == str(whole.value)


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="nowhere: no such file"):
        list(read_chunks(tmp_path / "nowhere", 10))
    with pytest.raises(DataError, match="this is a folder, not a file"):
        list(read_chunks(tmp_path, 10))


READERS = {
    "whole": read_bytes,
    "pieces": lambda path: [data.tobytes() for data, _ in read_chunks(path, 2**20)],
    "lines": lambda path: list(read_lines(path)),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_file_that_unpacks_to_a_thousand_times_its_size(tmp_path, read, monkeypatch):
    monkeypatch.setattr(text_module, "_FREE", 2**20)
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"0 1\n" * 2**19))
    limit = 2**20 + 100 * path.stat().st_size
    what = f"it unpacks to more than {limit:,} bytes, 1 MiB and 100 times its size; unpack it by hand if you trust it"
    with pytest.raises(DataError, match=what):
        read(path)
    path.write_bytes(gzip.compress(b"0 1\n" * 2**17))
    assert read(path)


@pytest.mark.parametrize("name", ["edge_list.txt", "subgraphs.tsv", "nodes.tsv", "subgraph_names.tsv"])
def test_every_compressed_file_of_a_folder_is_bounded(tmp_path, name, monkeypatch):
    monkeypatch.setattr(text_module, "_FREE", 0)
    bomb = gzip.compress(EDGES.encode() + b"\n" * 10**6)
    folder = write_sample(tmp_path / "d", {name: None, f"{name}.gz": bomb})
    for verb in (("describe",), ("convert", "--out", tmp_path / "x.subgnn")):
        called = call("data", verb[0], folder, *verb[1:])
        assert called.code == 2
        assert f"{name}.gz: it unpacks to more than" in called.error
    assert not (tmp_path / "x.subgnn").exists()
