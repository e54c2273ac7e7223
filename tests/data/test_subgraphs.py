import numpy as np
import pytest

from subgnn import DataError, Dataset, Graph, SubgraphSet
from subgnn.data.subgraphs import encode_labels, label_notes

NODES = [[0, 1], [2], [1, 3]]


def subgraph_set(**options):
    return SubgraphSet.from_lists(NODES, num_nodes=4, **options)


def test_nodes_are_sorted_and_count_once():
    subgraphs = SubgraphSet.from_lists([[3, 1, 3], np.array([2, 0])], num_nodes=4)
    assert [row.tolist() for row in subgraphs.nodes] == [[1, 3], [0, 2]]
    assert subgraphs.nodes.values.dtype == np.int32
    assert len(subgraphs) == 2


def test_binary():
    subgraphs = subgraph_set(labels=["yes", "no", "yes"])
    assert (subgraphs.task, subgraphs.classes, subgraphs.num_classes) == ("binary", ("no", "yes"), 2)
    assert subgraphs.targets.tolist() == [1, 0, 1]
    assert subgraphs.targets.dtype == np.int32
    assert subgraphs.label_counts() == {"no": 1, "yes": 2}
    assert subgraphs.label_text(0) == "yes"


def test_multi_label():
    subgraphs = subgraph_set(labels=[["x", "y"], ("y",), {"z"}])
    assert (subgraphs.task, subgraphs.classes) == ("multi-label", ("x", "y", "z"))
    assert subgraphs.targets.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert subgraphs.targets.dtype == np.uint8
    assert subgraphs.label_counts() == {"x": 1, "y": 2, "z": 1}
    assert [subgraphs.label_text(i) for i in range(3)] == ["x-y", "y", "z"]


def test_regression():
    subgraphs = subgraph_set(labels=[0.1, -2, 3.0])
    assert (subgraphs.task, subgraphs.classes, subgraphs.label_counts()) == ("regression", (), {})
    assert subgraphs.targets.dtype == np.float64
    assert subgraphs.targets.tolist() == [0.1, -2.0, 3.0]
    assert subgraphs.label_text(0) == "0.1"


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([10, 9, 2], ("2", "9", "10")),
        (["10", "9", "x"], ("10", "9", "x")),
        (["B", "a", "Ä"], ("B", "a", "Ä")),
        ([["10", "9"], ["2"], ["9"]], ("2", "9", "10")),
        (["9" * 30, "5", "8" * 30], ("5", "8" * 30, "9" * 30)),
        ([-1, 10, 2], ("-1", "2", "10")),
        (["1", "1.0", "10.0"], ("1", "10")),
        (["1", "1.0", "x"], ("1", "x")),
        (["007", "7", "8"], ("007", "7", "8")),
        ([["1", "2.0"], ["1.0"], ["2"]], ("1", "2")),
    ],
    ids=["numbers", "words", "text order", "lists", "huge", "negative", "1.0", "1.0 as text", "007", "1.0 in lists"],
)
def test_class_order(labels, classes):
    assert subgraph_set(labels=labels).classes == classes


def test_take_keeps_classes_and_order():
    subgraphs = subgraph_set(labels=["b", "c", "a"], splits=["train", "val", "test"], names=["x", "y", "z"])
    taken = subgraphs.take([2, 0, 2])
    assert [row.tolist() for row in taken.nodes] == [[1, 3], [0, 1], [1, 3]]
    assert taken.targets.tolist() == [0, 1, 0]
    assert taken.classes == ("a", "b", "c")
    assert list(taken.names) == ["z", "x", "z"]
    assert taken.indices("test").tolist() == [0, 2]
    assert taken.label_counts() == {"a": 2, "b": 1, "c": 0}
    assert len(subgraphs.take([])) == 0


def test_content_hash_sees_nodes_labels_and_splits():
    options = {"labels": ["a", "b", "a"], "splits": ["train", "val", "test"]}
    sets = [
        subgraph_set(**options),
        subgraph_set(**options | {"labels": ["a", "a", "b"]}),
        subgraph_set(**options | {"labels": ["a", "c", "a"]}),
        subgraph_set(**options | {"splits": ["train", "test", "val"]}),
        subgraph_set(labels=options["labels"]),
        SubgraphSet.from_lists([[0, 1], [2], [1, 2]], num_nodes=4, **options),
        subgraph_set(**options).take([1, 0, 2]),
    ]
    assert len({s.content_hash for s in sets}) == len(sets)
    assert subgraph_set(**options, names=["x", "y", "z"]).content_hash == sets[0].content_hash


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([[0], []], "subgraph 1: empty subgraph; at least one node is needed"),
        ([[0], [0.5]], "subgraph 1: the node ids have type float64; integers are accepted"),
        ([["a"]], "subgraph 0: the node ids have type <U1; integers are accepted"),
        ([[0, 4]], "subgraph 0: node 4 is not in the graph; ids run 0..3"),
        ([[-1, 2]], "subgraph 0: node -1 is not in the graph; ids run 0..3"),
    ],
)
def test_bad_nodes(nodes, message):
    with pytest.raises(DataError) as caught:
        SubgraphSet.from_lists(nodes, num_nodes=4)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["a"]}, "labels: 1 labels for 3 subgraphs"),
        ({"splits": ["train"]}, "splits: 1 splits for 3 subgraphs"),
        ({"names": ["a"] * 4}, "names: 4 names for 3 subgraphs"),
        (
            {"splits": ["train", "tset", "val"]},
            "subgraph 1: unknown split 'tset'; accepted: train, val, test; did you mean 'test'?",
        ),
        (
            {"labels": ["a", "b", "c"], "task": "binary"},
            "labels: the task is 'binary', but the labels have 3 classes; they look multi-class",
        ),
        (
            {"labels": ["1", "x", "2"], "task": "regression"},
            "subgraph 1: label 'x' is not a number; regression needs real values",
        ),
        (
            {"labels": [0.5, 1, float("nan")]},
            "subgraph 2: the label is missing; give every subgraph one, or none at all",
        ),
        ({"labels": [0.5, float("inf"), 1]}, "subgraph 1: label 'inf'; a finite number is needed"),
    ],
)
def test_bad_columns(options, message):
    with pytest.raises(DataError) as caught:
        subgraph_set(**options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("texts", "task", "expected"),
    [
        (["a", "b"], None, ["a", "b"]),
        (["a-b", "c"], None, [("a", "b"), ("c",)]),
        (["1-2", "3"], None, [("1", "2"), ("3",)]),
        (["-1", "1"], None, ["-1", "1"]),
        (["-1.5", "2e-3"], None, ["-1.5", "2e-3"]),
        (["a", "b"], "multi-label", [("a",), ("b",)]),
        (["a-b", "c"], "multi-class", ["a-b", "c"]),
        (["1_0", "2"], None, ["1_0", "2"]),
    ],
)
def test_joined_labels_are_split(texts, task, expected):
    task, targets, classes = encode_labels(texts, task, separator="-")
    wanted = encode_labels(expected, task)
    assert (task, targets.tolist(), classes) == (wanted[0], wanted[1].tolist(), wanted[2])


@pytest.mark.parametrize(
    ("labels", "separator"),
    [
        (["La", "Lb", "La;Lb", "Lb"], ";"),
        (["a|b", "b", "a"], "|"),
        (["a", "a-b", "b"], "-"),
        (["non-coding", "coding", "non-coding-x"], ""),
        (["Paris, France", "Lyon, France", "x"], ""),
    ],
)
def test_several_labels_in_one_are_noticed(labels, separator):
    notes = label_notes(SubgraphSet.from_lists([[0]] * len(labels), num_nodes=1, labels=labels))
    hint = f"3 classes; if '{separator}' separates labels, pass --task multilabel --label-separator '{separator}'"
    assert notes == ([hint] if separator else [])


def test_a_dataset_refuses_nodes_that_are_not_in_its_graph():
    with pytest.raises(DataError, match=r"subgraphs: node 3 is not in the graph; ids run 0\.\.1"):
        Dataset(name="x", graph=Graph.from_edges([0], [1]), subgraphs=subgraph_set())
