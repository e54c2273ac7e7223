"""Encodings of text files: all that Python has are read by every reader, or refused with one line."""

from __future__ import annotations

import encodings
import pkgutil
from encodings.aliases import aliases

import pytest

from subgnn import Graph, NodeNames
from subgnn.data.formats.format import ReadOptions
from subgnn.data.formats.members import read_members
from subgnn.data.formats.text import read_lines
from subgnn.errors import DataError

OTHERS = [
    *("base64_codec", "bz2_codec", "hex_codec", "idna", "mbcs", "oem", "punycode", "quopri_codec"),
    *("raw_unicode_escape", "rot_13", "undefined", "unicode_escape", "uu_codec", "zlib_codec"),
]
MODULES = sorted(module.name for module in pkgutil.iter_modules(encodings.__path__) if module.name != "aliases")
NONSENSE = ["", " ", "latin-x", "aliases", "../utf_8", "utf_8.py", "\ud800", "Ä", "x" * 10_000, "utf-8,latin-1"]
WIDE = "subgraph,nodes\nfirst,a;b\nsecond,b;c\n"
GRAPH = Graph.from_edges([0, 1], [1, 2], num_nodes=3, names=NodeNames.of(["a", "b", "c"]))
GMT = "first\t-\ta\tb\nsecond\t-\tb\tc\n"


@pytest.mark.parametrize("name", [*OTHERS, *NONSENSE, *(key for key in aliases if aliases[key] in OTHERS)])
def test_what_is_no_encoding_of_text_files_is_refused_with_one_line(name):
    with pytest.raises(DataError) as error:
        ReadOptions(encoding=name)
    assert str(error.value).startswith("--encoding: '")
    assert "is not an encoding of text files; accepted: utf-8, latin-1, cp1252, utf-16" in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("name", [name for name in MODULES if name not in OTHERS])
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


@pytest.mark.parametrize("name", ["ascii", "utf-16", "utf-32", "shift_jis", "cp1252", "utf-7", "iso2022_jp"])
@pytest.mark.parametrize("file", ["x.csv", "x.gmt"])
def test_a_file_in_another_encoding_is_refused_with_one_line(tmp_path, name, file):
    (tmp_path / file).write_bytes(b"subgraph\tnodes\na\t\x81\xff\xfe\x1b$\xd8\xd8\xd8+!\n")
    with pytest.raises(DataError, match=r"this is not (text in )?\w+") as error:
        read_members(tmp_path / file, GRAPH, ReadOptions(encoding=name))
    assert len(str(error.value).splitlines()) == 1
