"""Text files: read whole, in pieces and by lines, in every encoding that is accepted."""

import gzip

import pytest

from subgnn import DataError, Graph, NodeNames
from subgnn.data.formats import text as text_module
from subgnn.data.formats.format import ReadOptions
from subgnn.data.formats.members import read_members
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
    chunks = list(read_chunks(path, size))
    pieces, places = [piece for piece, _ in chunks], [place for _, place in chunks]
    assert b"".join(pieces) == text
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    longest = max((len(line) for line in text.split(b"\n")), default=0)
    assert all(len(piece) <= size + 4 * (longest + 1) for piece in pieces)
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
    "pieces": lambda path: [data for data, _ in read_chunks(path, 2**20)],
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


OTHERS = ["hex_codec", "idna", "mbcs", "punycode", "raw_unicode_escape", "rot_13", "undefined", "unicode_escape"]
NONSENSE = ["", " ", "latin-x", "aliases", "../utf_8", "utf_8.py", "\ud800", "Ä", "x" * 10_000, "utf-8,latin-1"]
WIDE = "subgraph,nodes\nfirst,a;b\nsecond,b;c\n"
GRAPH = Graph.from_edges([0, 1], [1, 2], num_nodes=3, names=NodeNames.of(["a", "b", "c"]))
GMT = "first\t-\ta\tb\nsecond\t-\tb\tc\n"


@pytest.mark.parametrize("name", [*OTHERS, *NONSENSE])
def test_what_is_no_encoding_of_text_files_is_refused_with_one_line(name):
    with pytest.raises(DataError) as error:
        ReadOptions(encoding=name)
    assert str(error.value).startswith("encoding: '")
    assert "is not an encoding of text files; accepted: utf-8, utf-8-sig, utf-16" in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("name", [*text_module._ENCODINGS, "Latin-1", "windows-1252", "utf8"])
def test_every_encoding_of_text_is_read_by_every_reader(tmp_path, name):
    options = ReadOptions(encoding=name)
    for file, text in (("sets.csv", WIDE), ("sets.gmt", GMT)):
        (tmp_path / file).write_bytes(text.encode(name))
        found = read_members(tmp_path / file, GRAPH, options)
        sets = {found.names[i]: found.nodes_of(i) for i in range(len(found))}
        assert sets == {"first": ["a", "b"], "second": ["b", "c"]}
    lines = [f"line {i}" for i in range(3000)]
    (tmp_path / "lines.txt").write_bytes("".join(f"{line}\r\n" for line in lines).encode(name))
    assert [line for _, line in read_lines(tmp_path / "lines.txt", encoding=options.encoding)] == lines


@pytest.mark.parametrize("name", ["utf-16", "shift_jis", "cp1252"])
@pytest.mark.parametrize("file", ["x.csv", "x.gmt"])
def test_a_file_in_another_encoding_is_refused_with_one_line(tmp_path, name, file):
    (tmp_path / file).write_bytes(b"subgraph\tnodes\na\t\x81\xff\xfe\x1b$\xd8\xd8\xd8+!\n")
    with pytest.raises(DataError, match=r"this is not (text in )?\w+") as error:
        read_members(tmp_path / file, GRAPH, ReadOptions(encoding=name))
    assert len(str(error.value).splitlines()) == 1
