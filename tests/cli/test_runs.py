"""``explain`` and ``export``: files in, files out."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from subgnn import NodeNames, write_folder
from subgnn.api.train_recipe import train
from tests.cli.command import call
from tests.training.examples import dataset, recipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run, its dataset with names, and a file of new subgraphs."""
    here = tmp_path_factory.mktemp("explain")
    data = dataset()
    named = replace(data, graph=replace(data.graph, names=NodeNames.of(f"g-{i}" for i in range(24))))
    write_folder(named, here / "data")
    train(named, recipe(2), here / "run", device="cpu", source=str(here / "data"), cache=False, report=False)
    (here / "new.tsv").write_text("g-0-g-1-#10\tignored\n\n#5-#4\n")
    return here


def test_json(folder, tmp_path):
    done = call("explain", folder / "run", "--subgraphs", folder / "new.tsv", "--out", tmp_path / "why.json", "--json")
    wanted = {"run": str(folder / "run"), "out": str(tmp_path / "why.json"), "num_subgraphs": 2, "notes": []}
    assert done.json == wanted
    found = json.loads((tmp_path / "why.json").read_text())
    assert (found["format"], found["version"]) == ("subgnn-explanations", 1)
    first, second = found["explanations"]
    assert (first["subgraph"], first["nodes"], first["names"]) == ("g-0-g-1-#10", [0, 1, 10], ["g-0", "g-1", "g-10"])
    assert second["subgraph"] == "#5-#4"
    assert second["by_component"] == []
    assert first["reference"] == "training mean"
    assert first["attributions"] is None
    call("predict", folder / "run", "--subgraphs", folder / "new.tsv", "--out", tmp_path / "labels.tsv")
    rows = [line.split("\t") for line in (tmp_path / "labels.tsv").read_text().splitlines()]
    assert [row[1] for row in rows[1:]] == [first["label"], second["label"]]
    for name, shown in zip(rows[0][2:], rows[1][2:], strict=True):
        assert first["probabilities"][name] == pytest.approx(float(shown), abs=2e-6)


def test_table(folder, tmp_path):
    out = tmp_path / "why.tsv"
    arguments = ("explain", folder / "run", "--subgraphs", folder / "new.tsv", "--out", out, "--max-anchors", 3)
    done = call(*arguments, "--attributions")
    assert done.out == f"{out}: explanations of 2 predictions\n"
    header, *rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert header == ["subgraph", "label", "by", "kind", "item", "clique0", "clique1", "clique2"]
    assert all(len(row) == len(header) for row in rows)
    first = [row[2:5] for row in rows if row[0] == "g-0-g-1-#10"]
    assert first[0] == ["prediction", "logits", ""]
    assert [row[2] for row in first if row[:2] == ["leaving out", "node"]] == ["g-0", "g-1", "g-10"]
    assert [row[2] for row in first if row[:2] == ["leaving out", "component"]] == ["g-0-g-1", "g-10"]
    assert ["training mean instead", "subchannel", "structure/border"] in first
    assert len([row for row in first if row[:2] == ["silencing", "anchor"]]) == 3
    assert ["integrated gradients", "residual", ""] in first
    assert "exists already" in call(*arguments).error
    assert call(*arguments, "--force").code == 0


def test_mistakes(folder, tmp_path):
    (tmp_path / "wrong.tsv").write_text("g-0\ng-99\n")
    done = call("explain", folder / "run", "--subgraphs", tmp_path / "wrong.tsv", "--out", tmp_path / "why.json")
    assert done.code == 2
    assert done.error.startswith(f"{tmp_path / 'wrong.tsv'}:2: ")
    assert not (tmp_path / "why.json").exists()
    done = call("explain", folder / "run", "--subgraphs", folder / "new.tsv", "--out", tmp_path / "why.txt")
    assert done.error.endswith(
        "unknown kind of file '.txt'; accepted: .json, .csv, .tsv, .parquet, .jsonl, or - for the standard output"
    )


def test_an_exported_run_in_place_of_the_folder(folder, tmp_path):
    file = tmp_path / "it.safetensors"
    done = call("export", folder / "run", "--out", file, "--with-graph", "--json")
    assert done.json["bytes"] == file.stat().st_size
    assert done.json["with_graph"]
    for verb, out in (("predict", "a.tsv"), ("embed", "a.npy"), ("explain", "a.json")):
        written = []
        for run in (folder / "run", file):
            target = tmp_path / run.stem / out
            assert call(verb, run, "--subgraphs", folder / "new.tsv", "--out", target).code == 0
            written.append(target.read_bytes())
        assert written[0] == written[1]
    scored = [call("evaluate", run, "--data", folder / "data", "--json").json for run in (folder / "run", file)]
    assert scored[0]["test"] == scored[1]["test"]
    assert "holds no subgraphs to score" in call("evaluate", file).error
    assert call("evaluate", file, "--data", folder / "data").out.startswith(str(file)[:10])


def test_a_memory_that_is_too_small_is_refused(folder, tmp_path):
    done = call(
        "explain", folder / "run", "--subgraphs", folder / "new.tsv", "--out", tmp_path / "a.json", "--memory", "3KB"
    )
    assert done.error.startswith("--memory: 0 MB; accepted: a number with MB, GB or TB")
    assert not (tmp_path / "a.json").exists()


def test_a_pt2_is_a_program(folder, tmp_path):
    done = call("export", folder / "run", "--out", tmp_path / "it.pt2", "--json")
    assert done.code == 0
    assert done.json["format"] == "torch-export"
    assert "inputs" in done.json
    done = call("export", folder / "run", "--out", tmp_path / "run.pt2", "--format", "portable", "--json")
    assert done.json["format"] == "portable"
    files = ["--data", folder / "data", "--subgraphs", folder / "new.tsv", "--out", tmp_path / "a.tsv"]
    assert call("predict", tmp_path / "run.pt2", *files).code == 0


def test_export_mistakes(folder, tmp_path):
    done = call("export", folder / "run", "--out", tmp_path / "it.onnx", "--format", "torch-export")
    assert done.error == f"{tmp_path / 'it.onnx'}: unknown kind of file '.onnx'; accepted: .pt2"
    done = call("export", folder / "run", "--out", tmp_path / "it.pt2", "--with-graph")  # by its name, a program
    assert done.error == "--with-graph: a program cannot contain the graph; leave it out"
    done = call("export", tmp_path / "nowhere", "--out", tmp_path / "it")
    assert "no finished run" in done.error
