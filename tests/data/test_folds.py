"""Folds: equal shares of classes; equal nodes and groups stay together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from subgnn import SubgraphSet
from subgnn.data.splits import draw_folds
from subgnn.data.strings import Strings


def labelled(labels, nodes=None) -> SubgraphSet:
    nodes = [[i] for i in range(len(labels))] if nodes is None else nodes
    return SubgraphSet.from_lists(nodes, num_nodes=100, labels=labels, splits=["train"] * len(labels))


def test_folds_share_out_each_class():
    subgraphs = labelled(["a"] * 50 + ["b"] * 10 + ["c"] * 3)
    folds = draw_folds(subgraphs, 0, "f", folds=5)
    assert np.bincount(folds[:50]).tolist() == [10] * 5
    assert np.bincount(folds[50:60]).tolist() == [2] * 5
    assert len(set(folds[60:])) == 3
    assert (
        draw_folds(subgraphs, 0, "f", folds=5).tolist()
        == folds.tolist()
        != draw_folds(subgraphs, 1, "f", folds=5).tolist()
    )


def test_folds_follow_the_nodes_alone():
    subgraphs = labelled(["a", "b"] * 20)
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(
        draw_folds(subgraphs.take(order), 3, "f", folds=5), draw_folds(subgraphs, 3, "f", folds=5)[order]
    )


def test_equal_subgraphs_are_in_one_fold():
    folds = draw_folds(labelled(["a", "b"] * 12, [[i // 3, 50] for i in range(24)]), 0, "f", folds=5)
    assert (folds.reshape(8, 3) == folds[::3, None]).all()
    assert len(set(folds)) == 5


def grouped(count: int = 40) -> SubgraphSet:
    """Groups of four subgraphs, and one of twelve; a label a group, but for one subgraph in four."""
    groups = [f"g{max(0, i // 4 - 2)}" for i in range(count)]
    labels = ["abc"[(int(g[1:]) + (i % 4 == 3)) % 3] for i, g in enumerate(groups)]
    return replace(labelled(labels), groups=Strings.of(groups))


def test_groups_are_in_one_fold_and_folds_are_of_like_size():
    subgraphs = grouped()
    folds = draw_folds(subgraphs, 0, "f", folds=5)
    assert all(len(set(folds[i : i + 4])) == 1 for i in range(0, 40, 4))
    assert len(set(folds[:12])) == 1
    assert np.sort(np.bincount(folds))[-2:].tolist() == [8, 12]
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(draw_folds(subgraphs.take(order), 0, "f", folds=5), folds[order])
    alone = replace(subgraphs, groups=Strings.of(["all"] * 40))
    assert set(draw_folds(alone, 0, "f", folds=5)) == {0}


def test_few_subgraphs_have_fewer_folds_and_one_has_none():
    assert sorted(draw_folds(labelled(["a", "b", "b"]), 0, "f", folds=5)) == [0, 1, 2]
    assert sorted(draw_folds(labelled(["a", "b"]), 0, "f", folds=5)) == [0, 1]
    assert draw_folds(labelled(["a", "a"], [[1, 2], [2, 1]]), 0, "f", folds=5).tolist() == [0, 0]


def test_folds_of_other_names_and_numbers():
    subgraphs = labelled(["a", "b"] * 20)
    found = [draw_folds(subgraphs, 0, name, folds=k).tolist() for name in ("f", "g") for k in (2, 40)]
    assert len(set(map(tuple, found))) == 4
    assert sorted(found[1]) == list(range(40))


def test_folds_are_what_they_were():
    """Cross-fitted scores of corrections, and so their checkpoints, follow from these folds."""
    given = labelled(list("aabbcabcaabb"), [[i, i + 1] for i in range(12)])
    assert draw_folds(given, 7, "baselines/folds", folds=5).tolist() == [4, 3, 1, 2, 1, 1, 4, 0, 0, 2, 3, 0]
