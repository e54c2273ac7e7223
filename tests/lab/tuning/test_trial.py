"""A dataset without its test subgraphs knows nothing of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subgnn import Dataset, Graph, SubgraphSet
from subgnn.errors import DataError
from subgnn.lab.tuning.trial import split_at_random, without_test
from tests.training.examples import dataset

GRAPH = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])


def made(labels, splits) -> Dataset:
    nodes = [[i % 6, (i + 1) % 6] for i in range(len(labels))]
    return Dataset("made", GRAPH, SubgraphSet.from_lists(nodes, num_nodes=6, labels=labels, splits=splits))


def test_rows_in_their_order():
    seen = without_test(made(["a", "b", "c", "b", "a"], ["train", "test", "train", "val", "val"])).subgraphs
    assert [seen.label_text(row) for row in range(len(seen))] == ["a", "c", "b", "a"]
    assert seen.splits.tolist() == [0, 0, 1, 1]
    assert seen.nodes[1].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("labels", "garbage"),
    [
        (["a", "b", "c", "a", "b"], "never seen"),
        (["a", "b", "b", "a", "b"], "third"),
        ([["a"], ["a", "b"], ["b"], ["b"], ["a"]], ["never", "seen"]),
        ([0.5, 1.5, 2.5, 3.5, 4.5], 1e9),
    ],
)
def test_whatever_the_test_labels_are(labels, garbage):
    splits = ["train", "train", "train", "val", "val"]
    want = made(labels, splits).subgraphs
    seen = without_test(made([*labels, garbage], [*splits, "test"])).subgraphs
    assert seen.content_hash == want.content_hash
    assert (seen.task, seen.classes) == (want.task, want.classes)


def test_refused():
    data = made(["a", "b", "a"], ["train", "val", "test"])
    bare = replace(data, subgraphs=replace(data.subgraphs, targets=None, task="unlabelled", classes=()))
    with pytest.raises(DataError, match="have no labels"):
        without_test(bare)
    with pytest.raises(DataError, match="no splits; draw one with subgnn data split"):
        without_test(replace(data, subgraphs=replace(data.subgraphs, splits=None)))
    with pytest.raises(DataError, match="no subgraph in split 'val'"):
        without_test(made(["a", "b"], ["train", "test"]))


def test_divided_anew():
    seen = without_test(dataset())
    drawn = [split_at_random(seen, seed).subgraphs for seed in (0, 0, 1)]
    assert all(len(s.indices("val")) == 5 and len(s.indices("test")) == 0 for s in drawn)
    assert np.array_equal(drawn[0].splits, drawn[1].splits)
    assert not np.array_equal(drawn[0].splits, drawn[2].splits)
    assert not np.array_equal(drawn[0].splits, seen.subgraphs.splits)


def test_equal_nodes_stay_together():
    seen = without_test(made(["a", "b"] * 9, ["train"] * 12 + ["val"] * 6))  # six node sets, three times each
    for seed in range(5):
        splits = split_at_random(seen, seed).subgraphs.splits
        assert all(len(set(splits[i::6].tolist())) == 1 for i in range(6))
        assert (splits == 1).sum() == 6


def test_there_is_always_something_to_train_on():
    nodes = [[0], [0], [1]]
    subgraphs = SubgraphSet.from_lists(nodes, num_nodes=6, labels=["a", "b", "a"], splits=["val", "val", "train"])
    for seed in range(5):
        divided = split_at_random(Dataset("few", GRAPH, subgraphs), seed).subgraphs
        assert len(divided.indices("train"))
        assert len(divided.indices("val"))
    same = subgraphs.take([0, 1])
    with pytest.raises(DataError, match="all subgraphs have the same nodes"):
        split_at_random(Dataset("one", GRAPH, same), 0)
