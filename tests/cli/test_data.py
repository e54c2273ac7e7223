import gzip

import pytest

from subgnn import read_dataset, write_bundle, write_folder
from subgnn.lab.datasets.catalog import CATALOG
from tests.cli.command import call
from tests.data.samples import WHOLE, assert_same, tree, whole_dataset, write_files, write_sample


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


def test_list_json():
    called = call("data", "list", "--json")
    assert (called.code, called.err) == (0, "")
    entries = called.json["datasets"]
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


def test_describe_json(folder):
    called = call("data", "describe", folder, "--json")
    assert (called.code, called.err) == (0, "")
    found = called.json
    assert (found["name"], found["num_nodes"], found["num_edges"], found["density"]) == ("five", 5, 5, 0.5)
    assert (found["num_subgraphs"], found["num_labels"], found["task"]) == (6, 2, "binary")
    assert found["label_counts"] == {"a": 3, "b": 3}
    assert found["splits"] == {"train": 2, "val": 2, "test": 2}
    assert set(found["subgraphs"]) == {"nodes", "density", "cut_ratio", "components"}
    assert found["subgraphs"]["nodes"] == {"mean": 2.0, "std": 0.0}
    assert all(set(spread) == {"mean", "std"} for spread in found["subgraphs"].values())
    assert (found["num_features"], found["weighted"], found["directed"]) == (2, False, False)


def test_describe_notes(tmp_path):
    folder = write_sample(
        tmp_path / "x", {"edge_list.txt": "", "subgraphs.tsv": "0\ta\ttrain\n1\ta\tval\n2\tb\ttest\n3\tb\ttest\n"}
    )
    notes = [line for line in call("data", "describe", folder).out.splitlines() if line.startswith("note: ")]
    assert len(notes) == 2
    assert "val is smaller than test" in notes[0]
    assert "no edges" in notes[1]
    assert len(call("data", "describe", folder, "--json").json["notes"]) == 2


def test_describe_says_the_same_of_folder_and_bundle(tmp_path):
    write_folder(whole_dataset(), tmp_path / "x")
    write_bundle(whole_dataset(), tmp_path / "x.subgnn")
    found = call("data", "describe", tmp_path / "x", "--json")
    assert found.json == call("data", "describe", tmp_path / "x.subgnn", "--json").json
    assert found.json["weighted"]


def test_describe_a_file_of_subgraphs(folder):
    found = call("data", "describe", folder / "subgraphs.tsv", "--json").json
    assert (found["num_nodes"], found["num_edges"], found["num_subgraphs"]) == (5, 0, 6)


def test_words_of_other_alphabets(tmp_path):
    folder = write_sample(
        tmp_path / "x",
        {
            "subgraphs.tsv": "0\tдa\ttrain\n1\t日本\tval\n2\tдa\ttest\n",
            "dataset.json": '{"name": "Größe [bold]x[/bold]"}',
        },
    )
    assert "Größe [bold]x[/bold]" in call("data", "describe", folder).out
    found = call("data", "describe", folder, "--json")
    assert found.json["label_counts"] == {"日本": 1, "дa": 2}
    assert "日本" in found.out


@pytest.mark.parametrize("verb", ["describe", "check"])
def test_id_base(tmp_path, verb):
    folder = write_files(
        tmp_path / "x",
        {"edge_list.txt": "1 2\n2 3\n", "subgraphs.tsv": "1\ta\ttrain\n2\tb\tval\n3\ta\ttest\n1-2\tb\ttest\n"},
    )
    assert call("data", verb, folder, "--id-base", "1").code == 0
    described = call("data", "describe", folder, "--id-base", "1", "--json").json
    assert (described["num_nodes"], described["isolated_nodes"]) == (3, 0)
    described = call("data", "describe", folder, "--json").json
    assert (described["num_nodes"], described["isolated_nodes"]) == (4, 1)


class TestConvert:
    def test_folder_to_bundle_to_folder(self, tmp_path, folder):
        called = call("data", "convert", folder, "--out", tmp_path / "five.subgnn")
        assert (called.code, called.err) == (0, "")
        assert called.out == (
            f"{tmp_path}/five.subgnn: a bundle of 5 nodes, 5 edges, 6 subgraphs\n"
            "task: binary, 2 classes: a 3, b 3\n"
            f"next: subgnn data check {tmp_path}/five.subgnn\n"
        )
        called = call("data", "convert", tmp_path / "five.subgnn", "--out", tmp_path / "again")
        assert called.code == 0
        assert called.out.startswith(f"{tmp_path}/again: a folder of 5 nodes")
        assert_same(read_dataset(folder), read_dataset(tmp_path / "again"))
        assert sorted(p.name for p in tmp_path.iterdir()) == ["again", "five", "five.subgnn"]

    def test_json(self, tmp_path, folder):
        called = call("data", "convert", folder, "--out", tmp_path / "out", "--json")
        assert (called.code, called.err) == (0, "")
        assert called.json == {
            "out": str(tmp_path / "out"),
            "layout": "bundle",
            "num_nodes": 5,
            "num_edges": 5,
            "num_subgraphs": 6,
            "dropped": {"self_loops": 0, "duplicates": 0},
            "graph_hash": read_dataset(folder).graph.content_hash,
            "task": "binary",
            "label_counts": {"a": 3, "b": 3},
            "notes": [],
        }

    @pytest.mark.parametrize(
        ("name", "options", "layout"),
        [
            ("out", (), "bundle"),
            ("out.subgnn", (), "bundle"),
            ("out", ("--to", "folder"), "folder"),
            ("out.subgnn", ("--to", "folder"), "folder"),
            ("out", ("--to", "bundle"), "bundle"),
        ],
    )
    def test_layouts(self, tmp_path, folder, name, options, layout):
        called = call("data", "convert", folder, "--out", tmp_path / name, *options, "--json")
        assert called.json["layout"] == layout
        assert (tmp_path / name).is_dir() == (layout == "folder")
        assert_same(read_dataset(folder), read_dataset(tmp_path / name))

    def test_gzip(self, tmp_path, folder):
        assert call("data", "convert", folder, "--to", "folder", "--gzip", "--out", tmp_path / "out").code == 0
        files = tree(tmp_path / "out")
        assert "edge_list.txt" not in files
        assert gzip.decompress(files["edge_list.txt.gz"]) == b"0 1\n0 4\n1 2\n2 3\n3 4\n"

    def test_twice_gives_the_same_bytes(self, tmp_path, folder):
        for name in ("a", "b"):
            assert call("data", "convert", folder, "--to", "folder", "--gzip", "--out", tmp_path / name).code == 0
            assert call("data", "convert", folder, "--out", tmp_path / f"{name}.subgnn").code == 0
        assert tree(tmp_path / "a") == tree(tmp_path / "b")
        assert (tmp_path / "a.subgnn").read_bytes() == (tmp_path / "b.subgnn").read_bytes()

    def test_id_base(self, tmp_path):
        source = write_files(
            tmp_path / "x",
            {"edge_list.txt": "1 2\n2 3\n", "subgraphs.tsv": "1\ta\ttrain\n2\tb\tval\n3\ta\ttest\n"},
        )
        assert call("data", "convert", source, "--id-base", "1", "--to", "folder", "--out", tmp_path / "out").code == 0
        assert tree(tmp_path / "out")["subgraphs.tsv"] == b"0\ta\ttrain\n1\tb\tval\n2\ta\ttest\n"

    @pytest.mark.parametrize("layout", ["folder", "bundle"])
    def test_what_is_there_stays_without_force(self, tmp_path, folder, layout):
        target = write_files(tmp_path / "out", {"mine.txt": "precious"})
        called = call("data", "convert", folder, "--to", layout, "--out", target)
        assert (called.code, called.out) == (2, "")
        assert called.error == f"{target}: exists already; choose another place, or pass --force to replace it"
        assert tree(target) == {"mine.txt": b"precious"}
        assert call("data", "convert", folder, "--to", layout, "--out", target, "--force").code == 0
        assert_same(read_dataset(folder), read_dataset(target))
        assert sorted(p.name for p in tmp_path.iterdir()) == ["five", "out"]

    def test_in_place(self, tmp_path, folder):
        before = read_dataset(folder)
        assert call("data", "convert", folder, "--to", "folder", "--force", "--out", folder).code == 0
        assert_same(before, read_dataset(folder))

    def test_warnings_go_to_stderr(self, tmp_path):
        source = write_sample(tmp_path / "x", {"edge_list.txt": "0 1\n1 1\n3 4\n"})
        called = call("data", "convert", source, "--out", tmp_path / "out", "--json")
        assert called.json["dropped"] == {"self_loops": 1, "duplicates": 0}
        assert called.error == f"warning: {source}/edge_list.txt: dropped 1 self loops and 0 repeated edges"
