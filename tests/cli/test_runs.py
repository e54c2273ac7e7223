"""``explain``, ``draw``, ``export``, ``report`` and ``serve``: files in, files out, and what is refused."""

import json
import shutil
import socket
import sys
from dataclasses import replace

import pytest

import subgnn
from subgnn import NodeNames, write_folder
from tests.cli.command import call
from tests.reports.reading import read
from tests.serve.examples import run_folder
from tests.training.examples import dataset

SETTINGS = ("prepare.patch_length=5", "prepare.walks=2", "embeddings.dim=8", "training.epochs=2")
SMALL = [word for setting in SETTINGS for word in ("--set", setting)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run, its dataset with names, and a file of new subgraphs."""
    here = tmp_path_factory.mktemp("runs")
    data = dataset()
    named = replace(data, graph=replace(data.graph, names=NodeNames.of(f"g-{i}" for i in range(24))))
    write_folder(named, here / "data")
    options = ("--recipe", "subgnn", *SMALL, "--device", "cpu", "--no-cache", "--out", here / "run")
    called = call("train", here / "data", *options)
    assert f"the page of the run: {here / 'run' / 'report.html'}" in called.out
    (here / "new.tsv").write_text("g-0-g-1-#10\tignored\n\n#5-#4\n")
    return here


def test_explain_as_json(folder, tmp_path):
    done = call("explain", folder / "run", "--subgraphs", folder / "new.tsv", "--out", tmp_path / "why.json", "--json")
    wanted = {"run": str(folder / "run"), "out": str(tmp_path / "why.json"), "num_subgraphs": 2, "notes": []}
    assert done.json == wanted
    found = json.loads((tmp_path / "why.json").read_text())
    assert (found["format"], found["version"]) == ("subgnn-explanations", 1)
    first, second = found["explanations"]
    assert (first["subgraph"], first["nodes"], first["names"]) == ("g-0-g-1-#10", [0, 1, 10], ["g-0", "g-1", "g-10"])
    assert (second["subgraph"], second["by_component"]) == ("#5-#4", [])
    assert first["reference"] == "training mean"
    call("predict", folder / "run", "--subgraphs", folder / "new.tsv", "--out", tmp_path / "labels.tsv")
    rows = [line.split("\t") for line in (tmp_path / "labels.tsv").read_text().splitlines()]
    assert [row[1] for row in rows[1:]] == [first["label"], second["label"]]
    shown = dict(zip(rows[0], rows[1], strict=True))
    for name, probability in first["probabilities"].items():
        assert probability == pytest.approx(float(shown[name]), abs=2e-6)


def test_explain_as_a_table(folder, tmp_path):
    out = tmp_path / "why.tsv"
    arguments = ("explain", folder / "run", "--subgraphs", folder / "new.tsv", "--out", out, "--max-anchors", 3)
    assert call(*arguments).out == f"{out}: explanations of 2 predictions\n"
    header, *rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert header == ["subgraph", "label", "by", "kind", "item", "clique0", "clique1", "clique2"]
    assert all(len(row) == len(header) for row in rows)
    first = [row[2:5] for row in rows if row[0] == "g-0-g-1-#10"]
    assert [row[:2] for row in first[:2]] == [["prediction", "sentence"], ["prediction", "logits"]]
    assert first[0][2].startswith("Predicted clique")
    assert sorted(row[2] for row in first if row[:2] == ["leaving out", "node"]) == ["g-0", "g-1", "g-10"]
    assert [row[2] for row in first if row[:2] == ["leaving out", "component"]] == ["g-0-g-1", "g-10"]
    assert ["training mean instead", "subchannel", "structure/border"] in first
    assert len([row for row in first if row[:2] == ["silencing", "anchor"]]) == 3
    assert "exists already" in call(*arguments).error
    assert call(*arguments, "--force").code == 0


def test_draw_and_explain_write_the_pictures_of_run_and_graph(folder, tmp_path):
    new, one = folder / "new.tsv", tmp_path / "one.tsv"
    one.write_text("#5-#4\n")
    run = subgnn.load(folder / "run")
    done = call("draw", folder / "run", "--subgraphs", new, "--out", tmp_path / "a.svg", "--neighbors", 5)
    assert done.out.splitlines()[-1] == f"{tmp_path / 'a-1.svg'}: a picture, and 1 more"
    assert (tmp_path / "a-2.svg").read_text() == run.draw(["#5", "#4"], neighbors=5).svg + "\n"
    again = call("draw", folder / "run", "--subgraphs", new, "--out", tmp_path / "a.svg")
    assert "a-1.svg: exists already" in again.error

    assert call("draw", folder / "data", "--subgraphs", one, "--out", tmp_path / "b.png", "--json").json["pictures"]
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    call("draw", folder / "data", "--subgraphs", one, "--out", tmp_path / "b.svg")
    assert (tmp_path / "b.svg").read_text() == subgnn.draw(folder / "data", ["g-4", "g-5"]).svg + "\n"

    why = ("explain", folder / "run", "--subgraphs", one, "--out", tmp_path / "why.json")
    assert f"drawn: {tmp_path / 'c.svg'}" in call(*why, "--draw", tmp_path / "c.svg").out
    assert (tmp_path / "c.svg").read_text() == run.draw(["#5", "#4"], explain=True).svg + "\n"
    one.write_text("#5\n" * 101)
    assert "it has 101 subgraphs; accepted: up to 100" in call(*why, "--draw", tmp_path / "d.svg", "--force").error
    assert "accepted: .svg, .png, .pdf" in call(*why, "--draw", tmp_path / "d.jpg", "--force").error


def test_report(folder, tmp_path):
    page, out = folder / "run" / "report.html", tmp_path / "else.html"
    page.write_text("old")
    assert call("report", folder / "run", "--json").json == {"run": str(folder / "run"), "out": str(page)}
    assert read(page.read_text()).one("h1").text == "subgnn on cliques, seed 0"
    assert call("report", folder / "run", "--out", out).code == 0
    assert out.read_text().startswith("<!doctype html>")
    assert "exists already" in call("report", folder / "run", "--out", out).error
    shutil.copytree(folder / "run", tmp_path / "run")
    text = (folder / "run" / "run.json").read_text()
    (tmp_path / "run" / "run.json").write_text(text.replace(str(folder / "data"), "/no/where"))
    moved = "/no/where: the run's dataset is not there; say where it is with --data"
    assert call("report", tmp_path / "run").error == moved
    assert call("report", tmp_path / "run", "--data", folder / "data").code == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("explain RUN --subgraphs WRONG --out OUT.json", "wrong.tsv:2: "),
        ("explain RUN --subgraphs NEW --out OUT.txt", "kind of file '.txt'; accepted: .json, .csv, .tsv, .parquet, "),
        (
            "predict RUN --subgraphs NEW --out OUT.xlsx",
            "kind of file '.xlsx'; accepted: .csv, .tsv, .parquet, .jsonl, ",
        ),
        ("explain RUN --subgraphs NEW --out OUT.json --memory 3KB", "--memory: 0 MB is too little; accepted: a number"),
        ("export NONE --out OUT", "no finished run"),
        ("report NONE", "no finished run"),
        ("evaluate NONE", "no finished run"),
        ("serve NONE --port 0", "no finished run"),
        ("serve SERVED SERVED --port 0", "two runs are called 'multi-class'"),
        ("serve SERVED --data NONE --port 0", "--data"),
        ("serve SERVED --host 0.0.0.0 --port 0", "--host: 0.0.0.0 can be reached from other machines, but there is no"),
        ("serve SERVED --host 0.0.0.0 --token-file SHORT", "at least 16"),
    ],
)
def test_refusals_leave_nothing(folder, tmp_path, monkeypatch, command, message):
    monkeypatch.delenv("SUBGNN_TOKEN", raising=False)
    given = tmp_path / "given"
    given.mkdir()
    (given / "wrong.tsv").write_text("g-0\ng-99\n")
    (given / "short").write_text("short")
    paths = {"RUN": folder / "run", "NEW": folder / "new.tsv", "WRONG": given / "wrong.tsv", "SHORT": given / "short"}
    paths |= {"NONE": given / "none", "SERVED": run_folder()}
    words = [paths.get(word, word.replace("OUT", str(tmp_path / "out"))) for word in command.split()]
    called = call(*words)
    assert called.code == 2
    assert message in called.error
    assert list(tmp_path.iterdir()) == [given]


def test_serve_refuses_a_port_that_is_taken_and_says_which_extra_is_missing(monkeypatch):
    monkeypatch.delenv("SUBGNN_TOKEN", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert call("serve", run_folder(), "--port", port).error.startswith(f"127.0.0.1:{port}: address already in use")
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'subgnn[serve]'" in call("serve", run_folder(), "--port", 0).error
