"""Croissant metadata: the checksums are those of the files, and its regular expressions read them back."""

import hashlib
import json
import re

from subgnn import read_dataset
from tests.cli.command import call

ROWS = [(i, "ab"[i % 2], split) for i, split in enumerate(("train", "train", "val", "test"))]
ROWS = [f"{i},{node},{label},{split}\n" for i, label, split in ROWS for node in "xyz"[i % 2 :]]
MEMBERS = "subgraph,node,label,split\n" + "".join(ROWS)


def test_the_description_fits_the_files(tmp_path):
    (tmp_path / "e.csv").write_text("source,target,weight\nx,y,0.5\ny,z,2\n")
    (tmp_path / "m.csv").write_text(MEMBERS)
    out = tmp_path / "my data"
    words = ("data", "convert", tmp_path / "e.csv", "--subgraphs", tmp_path / "m.csv", "--weight", "weight")
    assert call(*words, "--out", out, "--croissant").code == 0
    found, dataset = json.loads((out / "croissant.json").read_text()), read_dataset(out)
    assert (found["name"], found["conformsTo"]) == ("my_data", "http://mlcommons.org/croissant/1.0")
    assert {one["@id"] for one in found["distribution"]} == {p.name for p in out.iterdir()} - {"croissant.json"}
    for one in found["distribution"]:
        assert hashlib.sha256((out / one["contentUrl"]).read_bytes()).hexdigest() == one["sha256"]
    fields = {one["@id"]: one["source"] for records in found["recordSet"] for one in records["field"]}

    def column(name):
        source = fields[name]
        lines = (out / source["fileObject"]["@id"]).read_text().splitlines()
        return [re.match(source["transform"][0]["regex"], line)[1] for line in lines]

    edges = zip(column("edges/source"), column("edges/target"), column("edges/weight"), strict=True)
    assert [(int(a), int(b), float(w)) for a, b, w in edges] == [(0, 1, 0.5), (1, 2, 2.0)]
    rows = [[int(node) for node in nodes.split("-")] for nodes in column("subgraphs/nodes")]
    assert rows == [list(row) for row in dataset.subgraphs.nodes]
    assert column("subgraphs/label") == ["a", "b", "a", "b"]
    assert column("subgraphs/split") == ["train", "train", "val", "test"]
    header = (out / "nodes.tsv").read_text().splitlines()[0].split("\t")
    assert [fields[f"nodes/{name}"]["extract"]["column"] for name in header] == header


def test_a_bundle_is_one_file_without_a_description(tmp_path):
    call("data", "generate", "component", "--num-nodes", 300, "--num-subgraphs", 24, "--out", tmp_path / "d")
    called = call("data", "convert", tmp_path / "d", "--out", tmp_path / "x.subgnn", "--croissant")
    assert (called.code, called.error) == (2, "--croissant: only the files of a folder are described; write a folder")
    assert call("data", "convert", tmp_path / "d", "--out", tmp_path / "again", "--croissant").code == 0
    assert (tmp_path / "again" / "croissant.json").is_file()
