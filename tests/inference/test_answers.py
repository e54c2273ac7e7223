"""Answers about tables of every form and task, in every format, beside the predictor itself."""

import csv
import io
import json
from functools import cache

import numpy as np
import pytest
from pyarrow import parquet

from subgnn import Ragged
from subgnn.inference.open import open_run
from tests.cli.command import call
from tests.inference.explained import named_run

TASKS = ("multi-class", "binary", "multi-label", "regression")
LONG = "set,gene,note\nfirst,G0,x\nsecond,G3,y\nfirst,G1,x\nsecond,NOBODY,y\nthird,WHO,z\n"
WIDE = 'pathway,score,genes\nfirst,007,G0;G1\nsecond,,G3;NOBODY\n"third, last",2.50,WHO\n'
NODES = [[0, 1], [3], []]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of a run for each task."""
    return cache(lambda task="multi-class": named_run(tmp_path_factory.mktemp(task), task=task, prefix="G"))


def answers(text: str, delimiter: str = "\t") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


@pytest.mark.parametrize("task", TASKS)
def test_answers_join_the_rows_of_a_table(runs, tmp_path, task):
    (tmp_path / "sets.csv").write_text(WIDE)
    out = tmp_path / "out.csv"
    options = ("--unknown", "drop", "--min-known", 0.6 if task == "binary" else 0.5)
    done = call("predict", runs(task), "--subgraphs", tmp_path / "sets.csv", *options, "--out", out)
    assert done.code == 0
    assert "2 nodes are not in the graph, in 2 of 3 subgraphs: 'NOBODY', 'WHO'" in done.err
    predictor = open_run(runs(task)).predictor
    scores = predictor.probabilities(Ragged.from_rows(NODES[:2]))
    classes = ["value"] if task == "regression" else list(predictor.spec.classes)
    rows = answers(out.read_text(), ",")
    sure = [] if task == "regression" else ["probability"]
    end = ["novelty", "nodes", "known", "new", "dropped", "note", "score", "members"]
    assert list(rows[0]) == ["name", "label", *sure, *classes, *end]
    assert [row["members"] for row in rows] == ["G0-G1", "G3-NOBODY", "WHO"]
    assert [(row["nodes"], row["known"], row["new"]) for row in rows] == [
        ("2", "2", "0"),
        ("2", "1", "1"),
        ("1", "0", "1"),
    ]
    assert [row["name"] for row in rows] == ["first", "second", "third, last"]
    assert [row["dropped"] for row in rows] == ["", "NOBODY", "WHO"]
    assert [row["score"] for row in rows] == ["007", "", "2.50"]
    answered = 1 if task == "binary" else 2  # of the second, half the nodes are known
    notes = ["", "only 1 of 2 nodes are in the graph, fewer than 60%", "none of its nodes is in the graph"]
    assert [row["note"] for row in rows] == [*[""] * answered, *notes[answered:]]
    assert [row["label"] for row in rows[:answered]] == [predictor.label_text(row) for row in scores[:answered]]
    found = [[row[name] for name in classes] for row in rows]
    np.testing.assert_allclose(np.array(found[:answered], float), scores[:answered], rtol=1e-5)
    assert {row[name] for row in rows[answered:] for name in ("label", *sure, *classes, "novelty")} == {""}


def test_every_format_has_the_same_answers(runs, tmp_path):
    (tmp_path / "sets.csv").write_text(LONG)
    asked = ("--subgraphs", tmp_path / "sets.csv", "--subgraph-column", "set", "--node-column", "GENE")
    options = (*asked, "--unknown", "drop")
    for verb in ("predict", "embed", "explain", "search", "complete"):
        for name in ("a.tsv", "a.csv", "a.parquet", "a.jsonl"):
            assert call(verb, runs(), *options, "--out", tmp_path / verb / name).code == 0
        texts = [answers((tmp_path / verb / f"a.{kind}").read_text(), by) for kind, by in (("tsv", "\t"), ("csv", ","))]
        assert texts[0] == texts[1]
        printed = call(verb, runs(), *options, "--out", "-").out
        assert printed == (tmp_path / verb / "a.tsv").read_text()
        table = parquet.read_table(tmp_path / verb / "a.parquet").to_pylist()
        lines = [json.loads(line) for line in (tmp_path / verb / "a.jsonl").read_text().splitlines()]
        assert [row["name"] for row in table] == [row["name"] for row in texts[0]]
        assert list(dict.fromkeys(line["name"] for line in lines)) == ["first", "second", "third"]
        if verb == "predict":
            for line, row, text in zip(lines, table, texts[0], strict=True):
                assert list(line) == list(row) == list(text)
                assert line["label"] == row["label"] == (text["label"] or None)
                for name in ("clique0", "clique1", "clique2"):
                    assert line[name] == (None if row[name] is None else pytest.approx(row[name], rel=1e-5))
    assert call("embed", runs(), *options, "--out", tmp_path / "v.npy").code == 0
    vectors = np.load(tmp_path / "v.npy")
    wanted = open_run(runs()).predictor.embeddings(Ragged.from_rows(NODES[:2]))
    np.testing.assert_array_equal(vectors[:2], wanted)
    assert np.isnan(vectors[2]).all()
    stored = parquet.read_table(tmp_path / "embed" / "a.parquet")["vector"].to_pylist()
    np.testing.assert_array_equal(np.array(stored, np.float32), vectors)
    explained = json.loads((tmp_path / "explain" / "a.jsonl").read_text().splitlines()[1])
    assert (explained["nodes"], explained["dropped"]) == ([3], ["NOBODY"])


def test_the_likeliest_classes(runs, tmp_path):
    (tmp_path / "new.tsv").write_text("G0-G1\nG9\n")
    scores = open_run(runs()).predictor.probabilities(Ragged.from_rows([[0, 1], [9]]))
    for top, shown in ((2, 2), (9, 3)):
        done = call("predict", runs(), "--subgraphs", tmp_path / "new.tsv", "--top", top, "--out", "-")
        rows = answers(done.out)
        titles = [f"{what}_{k + 1}" for k in range(shown) for what in ("class", "probability")]
        end = ["novelty", "nodes", "known", "new", "members"]
        assert list(rows[0]) == ["name", "label", "probability", *titles, *end]
        assert [row["name"] for row in rows] == ["0", "1"]
        for row, all_scores in zip(rows, scores, strict=True):
            order = np.argsort(-all_scores)[:shown]
            assert [row[f"class_{k + 1}"] for k in range(shown)] == [f"clique{c}" for c in order]
            found = [float(row[f"probability_{k + 1}"]) for k in range(shown)]
            np.testing.assert_allclose(found, all_scores[order], rtol=1e-5)
            assert (row["label"], row["probability"]) == (row["class_1"], row["probability_1"])
    done = call("predict", runs("regression"), "--subgraphs", tmp_path / "new.tsv", "--top", 2, "--out", "-")
    assert (done.code, done.out) == (2, "")
    assert done.error == "--top: the labels are values, not classes; leave it out"


def test_titles_that_are_taken(runs, tmp_path):
    (tmp_path / "sets.csv").write_text("id,genes,label,clique1,known\n5,G0;G1,a,b,c\n6,G2;G4,d,e,f\n")
    done = call("predict", runs(), "--subgraphs", tmp_path / "sets.csv", "--subgraph-column", "id", "--out", "-")
    first, second = answers(done.out)
    own = ["name", "label", "probability", "clique0", "clique1", "clique2", "novelty", "nodes", "known", "new"]
    assert list(first) == [*own, "given_label", "given_clique1", "given_known", "members"]
    assert (first["name"], first["given_label"], second["given_clique1"]) == ("5", "a", "e")
    assert (second["given_known"], second["members"]) == ("f", "G2-G4")


def test_nothing_is_lost_where_something_is_wrong(runs, tmp_path):
    (tmp_path / "sets.csv").write_text(WIDE)
    out = tmp_path / "out.csv"
    out.write_text("mine\n")
    for options, message in (
        (("--force",), "2 nodes are not in the graph"),
        (("--unknown", "drop"), "exists already"),
        (("--unknown", "drop", "--node-column", "gene", "--force"), "no column 'gene'"),
    ):
        done = call("predict", runs(), "--subgraphs", tmp_path / "sets.csv", "--out", out, *options)
        assert done.code == 2
        assert message in done.error
        assert out.read_text() == "mine\n"
    (tmp_path / "other.csv").write_text("set,gene\nfirst,ENSG1\nfirst,ENSG2\n")
    for verb in ("predict", "embed", "explain"):
        options = ("--subgraphs", tmp_path / "other.csv", "--unknown", "drop", "--force")
        done = call(verb, runs(), *options, "--out", out)
        assert (done.code, out.read_text()) == (2, "mine\n")
        where = f"{tmp_path / 'other.csv'}: no subgraph has a node in the graph; are nodes written as in the graph"
        assert done.err.splitlines()[-1].startswith(where)
    done = call("predict", runs(), "--subgraphs", tmp_path / "sets.csv", "--out", "-", "--json")
    assert (done.code, done.out) == (2, "")
    assert done.error.startswith("--out: the table and the JSON object would both go to the standard output")


def test_subgraphs_from_the_standard_input(runs, tmp_path, monkeypatch):
    (tmp_path / "new.tsv").write_text("G0-G1\nG9\n")
    for verb in ("predict", "search"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"G0-G1\nG9\n")))
        found = call(verb, runs(), "--subgraphs", "-", "--out", "-")
        assert found.code == 0
        assert found.out == call(verb, runs(), "--subgraphs", tmp_path / "new.tsv", "--out", "-").out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"G0-NOBODY\n")))
    refused = call("predict", runs(), "--subgraphs", "-", "--out", "-")
    assert (refused.code, refused.out) == (2, "")
    assert refused.error.startswith("standard input: node 'NOBODY' is not in the graph")
