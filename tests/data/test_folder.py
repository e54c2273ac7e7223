import gzip
import json
from typing import ClassVar

import pytest

from subgnn import DataError, Dataset, Graph, NodeNames, SubgraphSet, read_dataset, write_folder
from subgnn.data.formats.bundle import write_bundle
from subgnn.data.subgraphs import SPLITS
from tests.cli.command import call
from tests.data.samples import FEATURES, NODES, SUBGRAPHS, assert_same, tree, whole_dataset, write_files, write_sample

SETS = [[0, 1], [1, 2], [2, 3], [3, 4], [0, 4], [0, 2]]


def nodes_of(dataset):
    return [row.tolist() for row in dataset.subgraphs.nodes]


def edges_of(dataset):
    tails, heads, _ = dataset.graph.edges()
    return list(zip(tails.tolist(), heads.tolist(), strict=True))


def test_the_two_needed_files(tmp_path):
    dataset = read_dataset(write_sample(tmp_path / "ring"))
    assert dataset.name == "ring"
    assert dataset.card == {}
    assert edges_of(dataset) == [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)]
    assert nodes_of(dataset) == SETS
    assert dataset.subgraphs.classes == ("a", "b")
    assert dataset.subgraphs.targets.tolist() == [0, 1, 0, 1, 0, 1]
    assert dataset.subgraphs.splits.tolist() == [0, 0, 1, 1, 2, 2]
    assert dataset.graph.names is dataset.graph.features is dataset.subgraphs.names is None


@pytest.mark.parametrize("directed", [False, True])
def test_round_trip_of_every_part(tmp_path, directed):
    dataset = whole_dataset(directed=directed)
    write_folder(dataset, tmp_path / "one")
    once = read_dataset(tmp_path / "one")
    assert_same(dataset, once)
    write_folder(once, tmp_path / "two")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    packed = tmp_path / "two" / "edge_list.txt"
    packed.with_suffix(".txt.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    assert_same(dataset, read_dataset(tmp_path / "two"))


@pytest.mark.parametrize(
    "options",
    [
        {"labels": [0.1, -2.5e-7, 1 / 3]},
        {"labels": [1, 2, 10], "task": "regression"},
        {"labels": ["x", "y", "x"]},
        {"labels": [3, 1, 2]},
        {"labels": ["with-dash", "b", "c"]},
        {"labels": ["-1", "1", "1"]},
        {"labels": ["a", "a", "b"], "task": "multi-label"},
        {"labels": ["all the same"] * 3},
    ],
    ids=["real", "whole real", "binary", "multi-class", "dash", "signs", "multi-label", "one class"],
)
def test_round_trip_of_labels(tmp_path, options):
    subgraphs = SubgraphSet.from_lists([[0], [1], [0, 2]], num_nodes=3, splits=["train", "val", "test"], **options)
    dataset = Dataset(name="x", graph=Graph.from_edges([0, 1], [1, 2]), subgraphs=subgraphs)
    write_folder(dataset, tmp_path / "x")
    assert_same(dataset, read_dataset(tmp_path / "x"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"labels": ["a", "b", "c"]},
        {"labels": [["a"], [], ["b", "a"]], "splits": ["train", "val", "test"]},
        {"labels": [["a-b"], ["c"], ["a-b", "c"]], "splits": ["train", "val", "test"]},
        {"labels": ["a\tb", "c", "c"], "splits": ["train", "val", "test"]},
        {"labels": ["a", "b", "a"], "splits": ["train", "val", "test"], "names": ["one", "", "three"]},
        {"labels": ["a", "b", "a"], "splits": ["train", "val", "test"], "names": ["o\tne", "t\nwo", "three"]},
    ],
    ids=["unlabelled", "no splits", "no label of several", "dash in a list", "tab", "empty name", "tab in a name"],
)
def test_what_a_folder_cannot_hold_is_refused_or_comes_back(tmp_path, options):
    subgraphs = SubgraphSet.from_lists([[0], [1], [0, 2]], num_nodes=3, **options)
    dataset = Dataset(name="x", graph=Graph.from_edges([0, 1], [1, 2]), subgraphs=subgraphs)
    try:
        write_folder(dataset, tmp_path / "x")
    except DataError:
        assert list(tmp_path.iterdir()) == []
    else:
        assert_same(dataset, read_dataset(tmp_path / "x"))


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\r"], ids=["tab", "newline", "return"])
def test_node_names_a_folder_cannot_hold_are_refused_or_come_back(tmp_path, name):
    graph = Graph.from_edges([0, 1], [1, 2], names=NodeNames.of(["x", "y", name]))
    subgraphs = SubgraphSet.from_lists([[0], [1], [2]], num_nodes=3, labels=["a", "b", "a"], splits=SPLITS)
    try:
        write_folder(Dataset(name="x", graph=graph, subgraphs=subgraphs), tmp_path / "x")
    except DataError:
        assert list(tmp_path.iterdir()) == []
    else:
        assert list(read_dataset(tmp_path / "x").graph.names.primary) == ["x", "y", name]


def test_files_as_they_are_written(tmp_path):
    write_folder(read_dataset(write_sample(tmp_path / "ring")), tmp_path / "out")
    files = tree(tmp_path / "out")
    assert set(files) == {"edge_list.txt", "subgraphs.tsv", "dataset.json"}
    assert files["edge_list.txt"] == b"0 1\n0 4\n1 2\n2 3\n3 4\n"
    assert files["subgraphs.tsv"].decode() == SUBGRAPHS
    assert json.loads(files["dataset.json"]) == {"name": "ring", "num_nodes": 5, "task": "binary"}


def test_details_of_text_that_do_not_matter(tmp_path):
    files = {
        "edge_list.txt": "# a comment\r\n\r\n% another\n 0\t1 \r\n1  2\n\n2 3\n3 4\n4 0",
        "subgraphs.tsv": "\ufeff" + SUBGRAPHS.replace("\n", "\r\n").rstrip() + "\n\n",
        "nodes.tsv": NODES.rstrip("\n"),
    }
    dataset = read_dataset(write_sample(tmp_path, files))
    assert len(edges_of(dataset)) == 5
    assert nodes_of(dataset) == SETS
    assert dataset.graph.names[4] == "MYC"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (NODES.split("\n", 1)[1], {"name": ["TP53", "HLA-A", "A1BG", "EGFR", "MYC"], "column3": ["gene"] * 5}),
        ("id\tentrez\tname\n0\t7\tx\n4\t9\ty\n", {"name": ["x", "", "", "", "y"], "entrez": ["7", "", "", "", "9"]}),
        ("4\td\n1\tb\n0\ta\n", {"name": ["a", "b", "", "", "d"]}),
        ("id\tname\tkind\n0\ta\tx\n1\tb\n4\te\n", {"name": ["a", "b", "", "", "e"], "kind": ["x", "", "", "", ""]}),
    ],
    ids=["no header", "a column called name", "any order", "short lines"],
)
def test_tables_of_nodes(tmp_path, text, names):
    found = read_dataset(write_sample(tmp_path, {"nodes.tsv": text})).graph.names
    assert {title: list(column) for title, column in found.columns.items()} == names
    assert found.primary_column == "name"


def test_names_in_place_of_ids(tmp_path):
    subgraphs = SUBGRAPHS.replace("0-1", "TP53-HLA-A").replace("1-2", "HLA-A-2").replace("3-4", "MYC-EGFR")
    named = read_dataset(write_sample(tmp_path / "named", {"nodes.tsv": NODES, "subgraphs.tsv": subgraphs}))
    assert nodes_of(named) == nodes_of(read_dataset(write_sample(tmp_path / "plain")))


def test_ids_from_1(tmp_path):
    files = {
        "edge_list.txt": "1 2\n2 3\n3 4\n4 5\n5 1\n",
        "subgraphs.tsv": "1-2\ta\ttrain\n2-3\tb\ttrain\n3-4\ta\tval\n4-5\tb\tval\n1-5\ta\ttest\n1-3\tb\ttest\n",
        "nodes.tsv": "1\tTP53\n2\tHLA-A\n3\tA1BG\n4\tEGFR\n5\tMYC\n",
    }
    by_option = read_dataset(write_files(tmp_path / "option", files), id_base=1)
    by_card = read_dataset(write_files(tmp_path / "card", {**files, "dataset.json": '{"id_base": 1}'}))
    write_folder(by_card, tmp_path / "written")
    for dataset in (by_option, by_card, read_dataset(tmp_path / "written")):
        assert edges_of(dataset) == [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)]
        assert nodes_of(dataset) == SETS
        assert dataset.graph.names[0] == "TP53"


@pytest.mark.parametrize(
    ("files", "nodes", "edges"),
    [
        ({"dataset.json": '{"num_nodes": 9}'}, 9, 5),
        ({"edge_list.txt": ""}, 5, 0),
        ({"edge_list.txt": "# none\n\n", "dataset.json": '{"num_nodes": 7}'}, 7, 0),
        ({"edge_list.txt": "", "features.npy": FEATURES}, 5, 0),
        ({"nodes.tsv": NODES + "5\tlone\tgene\n"}, 6, 5),
        ({"edge_list.txt": "0 1\n1 0\n4 2\n", "dataset.json": '{"directed": true}'}, 5, 3),
    ],
)
def test_sizes(tmp_path, files, nodes, edges):
    graph = read_dataset(write_sample(tmp_path, files)).graph
    assert (graph.num_nodes, graph.num_edges) == (nodes, edges)


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError, RuntimeError])
def test_nothing_is_left_of_a_failure(tmp_path, monkeypatch, failure):
    def fail(*_):
        raise failure

    monkeypatch.setattr("subgnn.data.formats.folder._subgraph_rows", fail)
    target = write_files(tmp_path / "x", {"mine.txt": "precious"})
    with pytest.raises(DataError if failure is OSError else failure):
        write_folder(whole_dataset(), target, overwrite=True)
    assert tree(tmp_path) == {"x/mine.txt": b"precious"}
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("third", [["g", "g", "h"], ["g", "", "h"]])
def test_groups_are_the_third_column_of_names_where_every_line_has_one(tmp_path, third):
    names = "".join(f"n{i}\ttitle\t{group}\n" for i, group in enumerate(third))
    files = {"edge_list.txt": "0 1\n1 2\n", "subgraphs.pth": "0\ta\ttrain\n1\tb\tval\n2\ta\ttest\n"}
    found = read_dataset(write_files(tmp_path, {**files, "subgraph_names.tsv": names})).subgraphs
    assert list(found.groups or []) == (third if all(third) else [])
    assert list(found.names) == ["n0", "n1", "n2"]


@pytest.mark.parametrize("names", [None, ["x", "y", "z"]])
@pytest.mark.parametrize("suffix", ["", ".subgnn"])
def test_groups_come_back_from_files_and_are_part_of_the_content(tmp_path, names, suffix):
    lists = {"labels": ["a", "b", "a"], "splits": ["train", "val", "test"], "names": names}
    nodes, groups = [[0], [1], [2]], ["g", "g", "h"]
    plain, grouped = (SubgraphSet.from_lists(nodes, num_nodes=3, groups=some, **lists) for some in (None, groups))
    assert plain.content_hash != grouped.content_hash
    data = Dataset("x", Graph.from_edges([0, 1], [1, 2]), grouped)
    path = tmp_path / f"x{suffix}"
    write_bundle(data, path) if suffix else write_folder(data, path)
    assert list(read_dataset(path).subgraphs.groups) == ["g", "g", "h"]
    assert list(grouped.take([2, 0]).groups) == ["h", "g"]


class TestLabelsOfACard:
    """Labels are split at '-' where there is no card, or where the card says multi-label."""

    LABELS: ClassVar = {"subgraphs.tsv": "0\tnon-coding\ttrain\n1\tb\tval\n2\tb\ttest\n3\tnon-coding\ttrain\n"}

    @pytest.mark.parametrize(
        ("card", "task", "classes"),
        [
            (None, "multi-label", ("b", "coding", "non")),
            ("{}", "binary", ("b", "non-coding")),
            ('{"name": "x"}', "binary", ("b", "non-coding")),
            ('{"task": "unlabelled"}', "binary", ("b", "non-coding")),
            ('{"task": "multi-label"}', "multi-label", ("b", "coding", "non")),
            ('{"label_separator": "-"}', "multi-label", ("b", "coding", "non")),
            ('{"label_separator": ";"}', "multi-label", ("b", "non-coding")),
        ],
    )
    def test_only_a_card_that_says_so_splits(self, tmp_path, card, task, classes):
        folder = write_sample(tmp_path / "x", {**self.LABELS, "dataset.json": card})
        found = read_dataset(folder).subgraphs
        assert (found.task, found.classes) == (task, classes)

    def test_a_check_asks_if_whole_labels_are_several(self, tmp_path):
        rows = SUBGRAPHS.replace("\tb\tval", "\ta-b\tval")
        folder = write_sample(tmp_path / "x", {"subgraphs.tsv": rows, "dataset.json": '{"name": "x"}'})
        assert "3 classes; if '-' separates labels, pass --task multilabel" in call("data", "check", folder).out


def test_classes_of_real_numbers_are_called_by_whole_numbers(tmp_path):
    rows = "".join(f"{i}\t{label}\t{split}\n" for i, (label, split) in enumerate(zip("132", SPLITS, strict=True)))
    text = {"subgraphs.tsv": rows, "dataset.json": '{"task": "regression"}'}
    folder, bundle = write_sample(tmp_path / "x", text), tmp_path / "x.subgnn"
    assert call("data", "convert", folder, "--out", bundle).code == 0
    for out in (tmp_path / "out", tmp_path / "out.subgnn"):
        words = ("--task", "multiclass", "--out", out)
        assert call("data", "convert", folder, *words).code == 0
        assert read_dataset(out).subgraphs.classes == ("1", "2", "3")
        refused = call("data", "convert", bundle, *words, "--force")
        assert (refused.code, refused.error.partition("; ")[0]) == (2, f"{bundle}: a bundle has its own task")
    assert call("data", "convert", bundle, "--out", tmp_path / "again").code == 0
    assert (tmp_path / "again/subgraphs.tsv").read_text().split("\t")[1] == "1.0"
    assert call("data", "convert", tmp_path / "again", "--task", "multiclass", "--out", tmp_path / "c").code == 0
    assert read_dataset(tmp_path / "c").subgraphs.classes == ("1", "2", "3")
