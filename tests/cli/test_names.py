"""Nodes that are called by numbers, and labels with hyphens, from a table to every answer."""

import json
from pathlib import Path

import pytest

from subgnn import SubgraphSet, read_dataset
from tests.cli.command import call

IDS = [7, 11, 3, 5, 2, 13, 4, 17, 0, 19, 23, 29]  # most are rows of other nodes, too
LABELS = ("non-coding", "protein-coding")
SETS = [[7, 3], [5, 2, 13], [4, 17], [0, 19], [11, 7, 5], [3, 29]]


def tables(folder: Path) -> tuple[Path, Path]:
    """Edges and memberships with ids such as gene ids."""
    ring = [f"{a},{b}" for a, b in zip(IDS, IDS[1:] + IDS[:1], strict=True)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *ring]) + "\n")
    rows = ["subgraph,node,label,split"]
    for i in range(24):
        split = ("train", "train", "val", "test")[i // 2 % 4]
        rows += [f"s{i},{IDS[(i % 2 * 6 + i // 2 + k) % 12]},{LABELS[i % 2]},{split}" for k in range(3)]
    (folder / "members.csv").write_text("\n".join(rows) + "\n")
    return folder / "edges.csv", folder / "members.csv"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A dataset from tables, and a run on it."""
    folder = tmp_path_factory.mktemp("names")
    edges, members = tables(folder)
    converted = call("data", "convert", edges, "--subgraphs", members, "--out", folder / "data")
    assert converted.code == 0
    trained = call("train", folder / "data", "--recipe", "bag", "--out", folder / "run")
    assert trained.code == 0
    return folder, converted, trained


def rows_of(data: Path, names: list[int]) -> list[int]:
    place = {name: row for row, name in enumerate(read_dataset(data).graph.names.primary)}
    return [place[str(name)] for name in names]


def answers(folder: Path, lines: list[str], name: str) -> list[list[str]]:
    (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    called = call(
        "predict", folder / "run", "--subgraphs", folder / f"{name}.tsv", "--out", folder / f"{name}.answers.tsv"
    )
    assert called.code == 0, called.err
    return [line.split("\t") for line in (folder / f"{name}.answers.tsv").read_text().splitlines()]


def test_predict_reads_ids_as_names_and_marked_numbers_as_rows(made):
    folder, _, _ = made
    by_name = answers(folder, ["-".join(map(str, nodes)) for nodes in SETS], "by_name")
    rows = [rows_of(folder / "data", nodes) for nodes in SETS]
    by_row = answers(folder, ["-".join(f"#{row}" for row in nodes) for nodes in rows], "by_row")
    assert [line[:-1] for line in by_name] == [line[:-1] for line in by_row]  # all but the members
    assert by_name[0] == ["name", "label", "probability", *LABELS, "novelty", "nodes", "known", "new", "members"]
    assert {line[1] for line in by_name[1:]} <= set(LABELS)
    data = read_dataset(folder / "data")
    by_name = answers(folder, ["-".join(data.graph.names[v] for v in row) for row in data.subgraphs.nodes], "all")
    own = answers(folder, (folder / "data/subgraphs.tsv").read_text().splitlines(), "data/subgraphs")
    assert [line[:-1] for line in own] == [line[:-1] for line in by_name]  # the dataset's own file holds ids


def test_ids_of_a_dataset_whose_nodes_are_named_otherwise_are_refused(made, tmp_path):
    folder, _, _ = made
    other = tmp_path / "other"
    other.mkdir()
    for name in ("edge_list.txt", "subgraphs.tsv", "dataset.json"):
        (other / name).write_text((folder / "data" / name).read_text())
    table = (folder / "data/nodes.tsv").read_text().splitlines()
    (other / "nodes.tsv").write_text("\n".join([table[0], *(f"{line}0" for line in table[1:])]) + "\n")
    called = call("predict", folder / "run", "--subgraphs", other / "subgraphs.tsv", "--out", tmp_path / "out")
    assert (called.code, (tmp_path / "out").exists()) == (2, False)
    assert "have different names" in called.error


@pytest.mark.parametrize(
    ("line", "start", "end"),
    [
        ("7-1", "node '1' is not in the graph; correct it, or pass ", "--unknown drop to leave it out"),
        ("7-#12", "node '#12' is not in the graph; correct it, or pass ", "--unknown drop to leave it out"),
        ("7-x", "node 'x' is not in the graph; correct it, or pass ", "--unknown drop to leave it out"),
    ],
)
def test_an_unknown_name_is_refused(made, tmp_path, line, start, end):
    (tmp_path / "new.tsv").write_text(line + "\n")
    called = call("predict", made[0] / "run", "--subgraphs", tmp_path / "new.tsv", "--out", tmp_path / "out")
    assert (called.code, (tmp_path / "out").exists()) == (2, False)
    assert called.error.startswith(f"{tmp_path / 'new.tsv'}: {start}")
    assert called.error.endswith(end)


def test_labels_stay_whole_from_the_table_to_the_answer(made):
    folder, converted, trained = made
    said = "task: binary, 2 classes: non-coding 12, protein-coding 12"
    assert said in converted.out.splitlines()
    assert trained.out.splitlines()[0] == said
    card = json.loads((folder / "data/dataset.json").read_text())
    assert card["task"] == "binary"
    assert said in call("data", "describe", folder / "data").out.splitlines()
    assert "separates labels" not in converted.out
    assert call("data", "check", folder / "data", "--json").json["notes"] == []
    first = read_dataset(folder / "data").subgraphs
    assert first.classes == LABELS
    assert call("data", "convert", folder / "data", "--out", folder / "x.subgnn", "--force").code == 0
    assert read_dataset(folder / "x.subgnn").card["task"] == "binary"
    assert call("data", "convert", folder / "x.subgnn", "--out", folder / "back", "--force").code == 0
    assert read_dataset(folder / "back").subgraphs.content_hash == first.content_hash


def with_labels(folder: Path, labels: list[str]) -> tuple[Path, Path]:
    edges, members = tables(folder)
    lines = members.read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    told = [f"{s},{node},{labels[int(s[1:]) % len(labels)]},{split}" for s, node, _, split in rows]
    members.write_text("\n".join([lines[0], *told]) + "\n")
    return edges, members


def convert(folder: Path, labels: list[str], *options: str) -> SubgraphSet:
    edges, members = with_labels(folder, labels)
    called = call("data", "convert", edges, "--subgraphs", members, "--out", folder / "data", *options, "--json")
    assert called.code == 0, called.err
    dataset = read_dataset(folder / "data")
    assert called.json["task"] == dataset.subgraphs.task
    assert call("data", "convert", folder / "data", "--out", folder / "x.subgnn").code == 0
    again = call("data", "convert", folder / "x.subgnn", "--out", folder / "back")
    assert again.code == 0, again.err
    assert read_dataset(folder / "back").subgraphs.content_hash == dataset.subgraphs.content_hash
    return dataset.subgraphs


@pytest.mark.parametrize(
    ("labels", "options", "task", "classes"),
    [
        (["a-b", "c", "d"], (), "multi-class", ("a-b", "c", "d")),
        (["a-b", "b"], ("--task", "multilabel"), "multi-label", ("a", "b")),
        (["non-coding;long", "long"], ("--label-separator", ";"), "multi-label", ("long", "non-coding")),
        (["+", "-"], (), "binary", ("+", "-")),
        (["2020-01-01", "2021-01-01"], (), "binary", ("2020-01-01", "2021-01-01")),
        (["1", "2", "3"], ("--task", "regression"), "regression", ()),
        (["-1", "2", "3"], ("--task", "multi-class"), "multi-class", ("-1", "2", "3")),
        (["x", "y"], ("--task", "multiclass"), "binary", ("x", "y")),
    ],
)
def test_the_task_of_a_table(tmp_path, labels, options, task, classes):
    found = convert(tmp_path, labels, *options)
    assert (found.task, found.classes) == (task, classes)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (["a", "b", "c"], ("--task", "binary"), "3 classes; they look multi-class"),
        (["a", "b"], ("--task", "regression"), "label 'a' is not a number"),
        (["a", "b"], ("--task", "clustering"), "--task: unknown task 'clustering'; accepted: multi-class, binary, mul"),
        (["a", "b"], ("--task", "binary", "--label-separator", ";"), "labels of task binary are not separated"),
    ],
)
def test_a_task_that_does_not_fit_is_refused(tmp_path, labels, options, message):
    edges, members = with_labels(tmp_path, labels)
    called = call("data", "convert", edges, "--subgraphs", members, "--out", tmp_path / "data", *options)
    assert (called.code, (tmp_path / "data").exists()) == (2, False)
    assert message in called.error
