"""Requests that are made to stop the server: what is parsed is bounded, and never in the event loop."""

import gzip
import io
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from subgnn.data import formats
from subgnn.data.formats import members
from subgnn.serve import routes, tables
from tests.serve.examples import SOME

TABLE = "/api/runs/small/table"


@pytest.mark.parametrize("name", ["content-type", "accept", "authorization", "origin", "cookie", "if-none-match", "x"])
@pytest.mark.parametrize("path", ["/", "/health", TABLE, "/api/runs/small/predict", "/static/main.js"])
def test_long_headers_reach_no_route(asking, monkeypatch, name, path):
    monkeypatch.setattr(routes, "state_of", lambda _: pytest.fail("a route saw the headers"))
    answer = asking.request("POST" if "small" in path else "GET", path, content="a", headers={name: "(" * 60_000})
    assert (answer.status_code, answer.headers["connection"]) == (431, "close")
    assert answer.json()["error"] == "the headers exceed 16,384 bytes"


def test_many_headers_and_long_paths_are_refused(asking):
    assert asking.get("/health", headers={f"x-{i}": "a" for i in range(3_000)}).status_code == 431
    for path in ("/" + "a" * 9_000, "/api/runs/" + "%2e" * 4_000, "/api/runs/small/nodes?q=a&" + "q=a&" * 3_000):
        assert asking.get(path).status_code == 414
    assert asking.get("/api/runs/small/nodes?q=" + "a" * 201).status_code == 422
    assert asking.get("/api/runs/small/nodes?q=a&limit=" + "1" * 5_000).status_code == 422


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "(" * 9_000])
def test_bodies_that_are_not_declared_as_json_are_not_parsed(asking, monkeypatch, content_type):
    monkeypatch.setattr(routes, "parse_body", lambda *_: pytest.fail("parsed"))
    content = b'{"subgraphs": [["GENE0"]]}'
    headers = {} if content_type is None else {"content-type": content_type}
    answer = asking.post("/api/runs/small/predict", content=content, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (422, "the body is not declared as JSON")


@pytest.mark.parametrize(
    "encoding", ["idna", "punycode", "undefined", "unicode_escape", "hex", "nonsense", "\0", "\ud7ff"]
)
@pytest.mark.parametrize("name", ["sets.csv", "sets.gmt", "sets.txt"])
def test_encodings_that_are_none_of_text_files(asking, encoding, name):
    content = "first\t-\tGENE0\tGENE1\nsecond\t-\tHLA-A\n"
    answer = asking.post(TABLE, content=content, params={"encoding": encoding, "name": name})
    assert answer.status_code == 422
    assert answer.json()["error"].endswith("is not an encoding of text files")


def parquet_of(rows: int) -> bytes:
    cells = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), ["GENE0"])
    file = io.BytesIO()
    parquet.write_table(pa.table({"set": cells, "gene": cells}), file)
    return file.getvalue()


def workbook_of(unpacked: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/workbook.xml", bytes(unpacked))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"--y\r\n" * 150_000, "the table has 150,000 rows"),
        (b"\r" * 200_000, "the table has 200,000 rows"),
        (gzip.compress(b"a,GENE0\n" * 200_000), "the table has 200,000 rows"),
        (gzip.compress(bytes(10_000_001)), "the table unpacks to more than 10,000,000 bytes"),
        (workbook_of(10_000_001), "the table unpacks to more than 10,000,000 bytes"),
        (parquet_of(200_000), "the table has 200,000 rows"),
    ],
    # Packed files hold the time, which must not be part of a test's name.
    ids=["lines", "returns", "gzip", "gzip of zeros", "workbook", "parquet"],
)
def test_large_tables_are_refused_before_they_are_read(asking, monkeypatch, content, error):
    monkeypatch.setattr(tables, "_read", lambda *_: pytest.fail("read"))
    answer = asking.post(TABLE, content=content)
    assert (answer.status_code, answer.json()["error"]) == (422, error)


def test_columns_are_looked_at_up_to_a_number(asking, monkeypatch):
    looked = []
    share = members.node_share
    monkeypatch.setattr(members, "node_share", lambda *given: looked.append(1) or share(*given))
    titles = ",".join(f"c{i}" for i in range(3_000))
    answer = asking.post(TABLE, content=f"{titles}\n" + f"{titles}\n" * 2)
    assert answer.status_code == 422
    assert 0 < len(looked) < 3 * members._MAX_GUESSED  # of 3,000 columns


def test_columns_with_the_same_title_are_refused(asking):
    answer = asking.post(TABLE, content="set,genes,c,c\nx,GENE0;GENE1,1,2\ny,GENE1;GENE2,1,2\n")
    assert (answer.status_code, answer.json()["error"]) == (422, "table: two columns are called 'c'")


def test_one_cell_far_away_does_not_make_a_sheet_of_all_cells(asking, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    monkeypatch.setattr(formats.tables, "_MAX_EXCEL", 100_000)
    book = openpyxl.Workbook()
    for row in (["set", "genes"], ["a", "GENE0;GENE1"], ["b", "GENE1;GENE2"]):
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    assert asking.post(TABLE, content=file.getvalue(), params={"name": "a.xlsx"}).status_code == 200
    book.active["XFD1048576"] = "x"
    file = io.BytesIO()
    book.save(file)
    answer = asking.post(TABLE, content=file.getvalue(), params={"name": "a.xlsx"})
    assert (answer.status_code, answer.json()["error"]) == (422, "a.xlsx: the sheet has more than 100,000 cells")


def test_nothing_was_broken(asking):
    answer = asking.post("/api/runs/small/predict", json={"subgraphs": [SOME]})
    assert answer.status_code == 200
