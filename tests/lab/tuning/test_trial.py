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
    equal = without_test(made(["a", "b"] * 9, ["train"] * 12 + ["val"] * 6))  # six node sets, three times each
    for seed in range(5):
        splits = split_at_random(equal, seed).subgraphs.splits
        assert all(len(set(splits[i::6].tolist())) == 1 for i in range(6))
        assert (splits == 1).sum() == 6
