"""The split of published results: val and test exchanged where val is the smaller."""

from __future__ import annotations

import pytest

from subgnn import SubgraphSet
from subgnn.data.splits import named_split
from subgnn.errors import DataError


def subgraphs(*splits: str) -> SubgraphSet:
    return SubgraphSet.from_lists([[i] for i in range(len(splits))], num_nodes=len(splits), splits=splits)


def test_val_and_test_are_exchanged_where_val_is_the_smaller():
    given = subgraphs("train", "val", "test", "test")
    found = named_split(given, "published")
    assert [found.indices(split).tolist() for split in ("train", "val", "test")] == [[0], [2, 3], [1]]
    assert named_split(found, "published") is found
    assert named_split(given, "stored") is given


def test_equally_many_stay():
    given = subgraphs("train", "val", "test")
    assert named_split(given, "published") is given


def test_what_cannot_be_is_refused():
    with pytest.raises(
        DataError, match=r"^--split: the split is 'publishd'; accepted: stored, published; did you mean"
    ):
        named_split(subgraphs("train"), "publishd")
    without = SubgraphSet.from_lists([[0]], num_nodes=1)
    assert named_split(without, "stored") is without
    with pytest.raises(DataError, match="the subgraphs have no splits"):
        named_split(without, "published")
