"""``data list``, ``data describe`` and ``data convert``; tests/data has ``data check``."""

import pytest

from subgnn import read_dataset, write_bundle, write_folder
from subgnn.lab.datasets.catalog import CATALOG
from tests.cli.command import call
from tests.data.samples import WHOLE, assert_same, tree, whole_dataset, write_files


@pytest.fixture
def folder(tmp_path):
    return write_files(tmp_path / "five", WHOLE)


def test_list():
    called = call("data", "list")
    assert (called.code, called.err) == (0, "")
    for entry in CATALOG.values():
        assert entry.name in called.out
        assert f"{entry.num_nodes:,}" in called.out
    assert called.out.endswith("next: subgnn data generate density --out density\n")
    entries = call("data", "list", "--json").json["datasets"]
    assert [entry["name"] for entry in entries] == list(CATALOG)
    assert entries[4]["num_edges"] == 316_951
    assert all(entry["how"] for entry in entries)


def test_describe(folder):
    called = call("data", "describe", folder)
    assert (called.code, called.err) == (0, "")
    assert "Base graph of five" in called.out
    assert "0.5000" in called.out
    assert "task: binary, 2 classes: a 3, b 3\n" in called.out
    assert "splits: train 2, val 2, test 2\n" in called.out
    assert called.out.endswith(f"next: subgnn train {folder} --out run\n")
    found = call("data", "describe", folder, "--json").json
    assert (found["name"], found["num_nodes"], found["num_edges"], found["density"]) == ("five", 5, 5, 0.5)
    assert (found["num_subgraphs"], found["num_labels"], found["task"]) == (6, 2, "binary")
    assert (found["label_counts"], found["splits"]) == ({"a": 3, "b": 3}, {"train": 2, "val": 2, "test": 2})
    assert set(found["subgraphs"]) == {"nodes", "density", "cut_ratio", "components"}
    assert found["subgraphs"]["nodes"] == {"mean": 2.0, "std": 0.0}
    assert all(set(spread) == {"mean", "std"} for spread in found["subgraphs"].values())
    assert (found["num_features"], found["weighted"], found["directed"]) == (2, False, False)


def test_describe_a_folder_and_a_bundle(tmp_path, folder):
    write_folder(whole_dataset(), tmp_path / "x")
    write_bundle(whole_dataset(), tmp_path / "x.subgnn")
    found = call("data", "describe", tmp_path / "x", "--json").json
    assert found == call("data", "describe", tmp_path / "x.subgnn", "--json").json
    assert found["weighted"]
    refused = call("data", "describe", folder / "subgraphs.tsv")
    assert refused.code == 2
    assert "this is not a dataset; a dataset folder or a bundle is accepted" in refused.err


def test_convert_a_folder_to_a_bundle_and_back(tmp_path, folder):
    called = call("data", "convert", folder, "--out", tmp_path / "five.subgnn")
    assert (called.code, called.err) == (0, "")
    assert called.out == (
        f"{tmp_path}/five.subgnn: a bundle of 5 nodes, 5 edges, 6 subgraphs\n"
        "task: binary, 2 classes: a 3, b 3\n"
        f"next: subgnn data check {tmp_path}/five.subgnn\n"
    )
    called = call("data", "convert", tmp_path / "five.subgnn", "--out", tmp_path / "again")
    assert called.out.startswith(f"{tmp_path}/again: a folder of 5 nodes")
    assert_same(read_dataset(folder), read_dataset(tmp_path / "again"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again", "five", "five.subgnn"]


@pytest.mark.parametrize("name", ["out", "out.subgnn"])
def test_an_existing_output_stays_without_force(tmp_path, folder, name):
    target = write_files(tmp_path / name, {"mine.txt": "precious"})
    called = call("data", "convert", folder, "--out", target)
    assert (called.code, called.out) == (2, "")
    assert called.error == f"{target}: exists already; choose another place, or pass --force to replace it"
    assert tree(target) == {"mine.txt": b"precious"}
    assert call("data", "convert", folder, "--out", target, "--force").code == 0
    assert_same(read_dataset(folder), read_dataset(target))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["five", name]
