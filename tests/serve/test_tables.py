"""Tables sent to the server, beside what ``subgnn predict`` writes about them."""

import csv
import io

import pyarrow as pa
import pytest
from pyarrow import parquet

from subgnn.serve.limits import Limits
from tests.cli.command import call
from tests.serve.examples import client, run_folder

WIDE = "pathway,genes,score\nfirst,GENE0;gene1,1\nsecond,HLA-A;NOBODY,2\nthird,WHO,3\n"
LONG = "set\tgene\nfirst\tGENE0\nfirst\tGENE1\nsecond\tHLA-A\n"
CSV = {"content-type": "text/csv"}


def send(asking, content, *, headers=CSV, **options):
    return asking.post("/api/runs/small/table", content=content, headers=headers, params=options)


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("top", [None, 2])
def test_a_table_is_answered_as_by_predict(asking, tmp_path, form, top):
    (tmp_path / "sets.csv").write_text(WIDE)
    options = ["--unknown", "drop", *(["--top", top] if top else [])]
    out = tmp_path / f"out.{form}"
    assert call("predict", run_folder(), "--subgraphs", tmp_path / "sets.csv", "--out", out, *options).code == 0
    answer = send(asking, WIDE, unknown="drop", format=form, **({"top": top} if top else {}))
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="predictions.{form}"'
    if form == "parquet":
        assert parquet.read_table(pa.BufferReader(answer.content)) == parquet.read_table(out)
    else:
        assert answer.content == out.read_bytes()


def test_accept_names_the_format_and_json_lists_unknown_nodes(asking):
    answer = send(asking, WIDE, headers=CSV | {"accept": "text/csv"}, unknown="drop")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    header, *rows = csv.reader(io.StringIO(answer.text))
    found = send(asking, WIDE, unknown="drop").json()
    assert found["columns"] == header
    assert header[-7:] == ["nodes", "known", "new", "dropped", "note", "score", "members"]
    assert [row[:2] for row in found["rows"][:2]] == [row[:2] for row in rows[:2]]
    assert found["rows"][2][1:-7] == [None] * 6
    assert [row[0] for row in found["rows"]] == ["first", "second", "third"]
    assert found["rows"][1][-7:] == [2, 1, 1, "NOBODY", "", "2", "HLA-A-NOBODY"]
    assert (found["run"], found["task"], found["num_unknown"]) == ("small", "multi-class", 2)
    assert [(one["given"], one["subgraphs"]) for one in found["unknown"]] == [("NOBODY", 1), ("WHO", 1)]
    assert found["notes"][0] == "table: subgraph from 'pathway', node from 'genes'"


VERBS = {"predict": (), "embed": (), "search": (), "explain": (), "complete": ("--top", 2)}


@pytest.mark.parametrize("verb", VERBS)
def test_formulas_are_texts_in_tables_for_spreadsheets(asking, tmp_path, verb):
    (tmp_path / "sets.csv").write_text("set,genes\n=1+1,GENE0;GENE1\n-2.5,HLA-A;GENE2\n")
    given = (verb, run_folder(), "--subgraphs", tmp_path / "sets.csv", *VERBS[verb])
    for out in ("out.csv", "out.tsv", "-"):
        safe = call(*given, "--out", out if out == "-" else tmp_path / out, "--excel-safe")
        assert safe.code == 0, safe.err
        text = safe.out if out == "-" else (tmp_path / out).read_text()
        assert "'=1+1" in text
        assert "-2.5" in text.replace("'-2.5", "")
    if verb == "predict":
        assert send(asking, (tmp_path / "sets.csv").read_text(), format="tsv", excel_safe=True).text == text
    refused = call(*given, "--out", tmp_path / "out.jsonl", "--excel-safe")
    assert refused.error == f"--excel-safe: {tmp_path / 'out.jsonl'} is neither CSV nor TSV; leave it out"


def test_unknown_nodes_are_refused_by_default(asking):
    answer = send(asking, WIDE)
    assert answer.status_code == 422
    assert answer.json() == {
        "error": "2 nodes are not in the graph, in 2 of 3 subgraphs: 'NOBODY', 'WHO'",
        "hint": "correct them, or leave them out with unknown=drop",
        "nodes": ["NOBODY", "WHO"],
    }


def test_the_same_table_in_every_way(asking):
    wanted = send(asking, LONG).json()
    assert [row[-1] for row in wanted["rows"]] == ["GENE0-GENE1", "HLA-A"]
    named = send(asking, LONG, name="sets.tsv").json()
    gmt = send(asking, "first\t-\tGENE0\tGENE1\nsecond\t-\tHLA-A\n", name="sets.gmt").json()
    file = io.BytesIO()
    parquet.write_table(pa.table({"set": ["first", "first", "second"], "gene": ["GENE0", "GENE1", "HLA-A"]}), file)
    binary = send(asking, file.getvalue(), name="sets.parquet").json()
    lines = send(asking, "GENE0-GENE1\nHLA-A\n").json()
    places = [wanted["columns"].index(name) for name in ("label", "clique0", "clique1", "clique2", "nodes")]
    for found in (named, gmt, binary, lines):
        assert [[row[i] for i in places] for row in found["rows"]] == [
            [row[i] for i in places] for row in wanted["rows"]
        ]
    assert named["notes"][0].startswith("sets.tsv: ")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "table: the file is empty"),
        ("x,y\na,GENE0\na,GENE1\n", {}, "table: which column holds the subgraphs?"),
        ("set,gene\na,GENE0\na,\n", {}, "table: row 2: no node"),
        (WIDE, {"node_column": "other"}, "table: no column 'other'"),
        (WIDE, {"encoding": "nonsense"}, "encoding: 'nonsense' is not an encoding of text files"),
        (b"set,gene\na,\xe4\nb,\xe4\n", {"name": "../../a\nb"}, "../../a\nb: this is not text in UTF-8"),
        (b"\x1f\x8b damaged", {}, "table: "),
        (b"PAR1 damaged", {}, "table: "),
    ],
)
def test_what_is_wrong_is_said_without_paths_of_the_server(asking, content, options, message):
    answer = send(asking, content, **options)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(message)
    assert "subgnn-table" not in answer.text
    assert "--" not in answer.text


def test_limits_and_forms():
    with client(limits=Limits(table_subgraphs=2, table_nodes=4, body_bytes=1000)) as asking:
        assert send(asking, LONG).status_code == 200
        assert send(asking, WIDE, unknown="drop").json()["hint"] == "accepted: at most 2"
        assert send(asking, LONG + "second\t#1\nsecond\t#2\n").json()["error"] == "the table has 5 nodes"
        assert send(asking, LONG * 100).status_code == 413
        form = asking.post("/api/runs/small/table", files={"file": ("sets.tsv", b"a")})
        assert (form.status_code, form.json()["error"]) == (422, "the table is in a form")
        assert send(asking, LONG, unknown="keep").status_code == 422
