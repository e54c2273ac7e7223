"""Splits and folds: of the right sizes, fair to classes, and groups and repeated node sets stay whole."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from subgnn.data.splits import (
    METHODS,
    assign_units,
    draw_folds,
    one_hot,
    split_sizes,
    split_subgraphs,
    split_units,
    split_warnings,
    stratify_units,
)
from subgnn.data.strings import Strings
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError
from subgnn.rng import stream

DRAWN = tuple(method for method in METHODS if method != "time")
HALF = (0.5, 0.25, 0.25)
ALL = [HALF, (0.8, 0.1, 0.1), (0.6, 0.2, 0.2), (1 / 3, 1 / 3, 1 / 3), (0.1, 0.2, 0.7)]
FRACTIONS = st.sampled_from(ALL)
SEEDS = st.integers(0, 2**32)
many = settings(max_examples=100, derandomize=True, print_blob=False)


def stratified_split(targets: np.ndarray, fractions: Sequence[float], rng: np.random.Generator) -> np.ndarray:
    labels = one_hot(targets)
    return stratify_units(labels, np.ones(len(labels), np.int64), fractions, rng)


def rng(seed: int = 0) -> np.random.Generator:
    return stream(seed, "test")


def sizes_of(splits) -> list[int]:
    return np.bincount(splits, minlength=3).tolist()


def random_split(n, fractions, draws) -> np.ndarray:
    return assign_units(np.ones(n, np.int64), fractions, draws)


def group_split(groups, fractions, draws) -> np.ndarray:
    unit = np.unique(list(groups), return_inverse=True)[1]
    return assign_units(np.bincount(unit), fractions, draws, even=True)[unit]


def subgraphs_of(keys, labels=None, **options) -> SubgraphSet:
    """Subgraph i has the one node ``keys[i]``: equal keys, equal nodes."""
    return SubgraphSet.from_lists([[k] for k in keys], labels=labels, num_nodes=max(keys) + 1, **options)


@many
@given(st.integers(3, 500), FRACTIONS)
def test_sizes_sum_up_and_are_within_one_of_the_share(n, fractions):
    sizes = split_sizes(n, fractions)
    assert sizes.sum() == n
    assert (sizes >= 1).all()
    if n * min(fractions) >= 1:
        assert (np.abs(sizes - n * np.array(fractions)) < 1).all()


@pytest.mark.parametrize(
    "fractions",
    [(0.5, 0.5), (0.5, 0.5, 0.0), (0.5, 0.3, 0.1), (2, -0.5, -0.5), (np.nan, 0.5, 0.5), (0.5 + 4e-6, 0.25, 0.25)],
)
def test_fractions_that_are_none_are_refused(fractions):
    with pytest.raises(DataError, match="three numbers above 0"):
        random_split(10, fractions, rng())


@many
@given(st.lists(st.integers(0, 6), min_size=3, max_size=150), FRACTIONS, SEEDS)
def test_stratified_gives_every_class_its_share_within_one(labels, fractions, seed):
    targets = np.array(labels)
    splits = stratified_split(targets, fractions, rng(seed))
    assert_array_equal(sizes_of(splits), split_sizes(len(labels), fractions))
    if len(labels) * min(fractions) >= 1:
        for label in set(labels):
            mine = splits[targets == label]
            assert np.abs(np.bincount(mine, minlength=3) - len(mine) * np.array(fractions)).max() < 1
    assert_array_equal(splits, stratified_split(targets, fractions, rng(seed)))


@pytest.mark.slow
@many
@given(st.integers(3, 80), st.integers(1, 6), FRACTIONS, SEEDS)
def test_multi_label_is_exact_in_all(n, classes, fractions, seed):
    targets = (np.random.default_rng(seed).random((n, classes)) < 0.3).astype(np.uint8)
    assert_array_equal(sizes_of(stratified_split(targets, fractions, rng(seed))), split_sizes(n, fractions))


@many
@given(st.lists(st.integers(0, 20), min_size=3, max_size=120), FRACTIONS, SEEDS)
def test_groups_are_never_torn_apart(groups, fractions, seed):
    if len(set(groups)) < 3:
        with pytest.raises(DataError, match="cannot be split into three"):
            group_split(groups, fractions, rng(seed))
        return
    splits = group_split(groups, fractions, rng(seed))
    found = defaultdict(set)
    for group, split in zip(groups, splits.tolist(), strict=True):
        found[group].add(split)
    assert all(len(splits) == 1 for splits in found.values())
    assert min(sizes_of(splits)) >= 1
    # A split gets a group only while it lacks most of all, so it ends at most one group above its share; a group
    # that was sent to fill an empty split is the smallest there is.
    assert (np.array(sizes_of(splits)) - split_sizes(len(groups), fractions) <= max(np.bincount(groups))).all()


@many
@given(st.lists(st.integers(0, 30), min_size=3, max_size=60), st.sampled_from(DRAWN), FRACTIONS, SEEDS, st.randoms())
def test_equal_nodes_share_a_split_whatever_the_order(keys, method, fractions, seed, shuffler):
    if len({k // 4 for k in keys}) < 3:
        return
    order = list(range(len(keys)))
    shuffler.shuffle(order)

    def split(places: list[int]) -> np.ndarray:
        mine = [keys[i] for i in places]
        groups = [f"g{k // 4}" for k in mine] if method == "group" else None
        given_set = subgraphs_of(mine, [k % 2 for k in mine])
        found = split_subgraphs(given_set, method=method, seed=seed, fractions=fractions, groups=groups)
        assert not any("same nodes" in what for what, _ in split_warnings(found))
        assert min(sizes_of(found.splits)) >= 1
        assert found.targets is given_set.targets
        return found.splits

    assert_array_equal(split(order), split(list(range(len(keys))))[order])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "radnom"}, "did you mean 'random'"),
        ({"method": "group"}, "no groups are given"),
        (
            {"method": "random", "groups": range(4)},
            "groups are given, but the method is 'random'; only the method 'group' uses groups",
        ),
        ({"method": "group", "groups": [0, 1]}, "2 groups for 4 subgraphs"),
        ({"method": "stratified"}, "have no labels"),
        ({"method": "group", "groups": [0, 0, 1, 1]}, "2 cannot be split into three"),
    ],
)
def test_what_cannot_be_done_is_said(options, match):
    with pytest.raises(DataError, match=match):
        split_subgraphs(subgraphs_of([0, 1, 2, 3]), seed=0, **options)


def test_leaks_by_hand():
    def leaks(keys, splits=None) -> str:
        return split_warnings(subgraphs_of(keys, splits=splits))[0][0]

    same = "the same nodes as one in another split (first: subgraph"
    splits = ["train", "train", "val", "train", "test", "val"]
    assert leaks([5, 5, 5, 6, 6, 7], splits) == f"2 subgraphs have {same} 2 of val and 0 of train)"
    assert leaks([5, 5, 5], ["train", "val", "train"]) == f"1 subgraph has {same} 1 of val and 0 of train)"
    assert split_warnings(subgraphs_of([5, 5, 5])) == []


def test_units_are_joined_by_nodes_and_by_groups():
    given_set = subgraphs_of([5, 3, 5, 9, 1, 0])
    assert split_units(given_set).tolist() == [3, 2, 3, 4, 1, 0]
    # 3 and 5 share a group, 5 and 9 share another: one unit, numbered by the least of its node sets.
    assert split_units(given_set, ["a", "a", "b", "b", "c", "d"]).tolist() == [2, 2, 2, 2, 1, 0]
    assert split_units(SubgraphSet.from_lists([], num_nodes=1), []).tolist() == []


KEYS = [0, 0, 0, 1, 1, *range(2, 17)]
ALWAYS = {
    "random": "00000012100212102210",
    "stratified": "00000122000012021211",
    "group": "00000022211111100022",
    "multi-label": "00000112100220110022",
    "real": "00022102022001101010",
}


@pytest.mark.parametrize("way", ALWAYS)
def test_a_seed_gives_the_split_it_always_gave(way):
    """Results that name a seed can be had again only as long as it names the same split."""
    labels = {
        "multi-label": [["a", "b"] if k % 3 == 0 else ["c"] if k % 5 == 0 else ["b"] for k in KEYS],
        "real": [k * 0.5 + 0.25 for k in KEYS],
    }.get(way, [k % 3 for k in KEYS])
    method = way if way in METHODS else "stratified"
    groups = [k // 3 for k in KEYS] if way == "group" else None
    found = split_subgraphs(subgraphs_of(KEYS, labels), method=method, seed=5, groups=groups).splits
    assert "".join(map(str, found)) == ALWAYS[way]


def folds_of(labels, nodes=None, *, seed=0, name="f", folds=5) -> np.ndarray:
    nodes = [[i] for i in range(len(labels))] if nodes is None else nodes
    return draw_folds(SubgraphSet.from_lists(nodes, num_nodes=100, labels=labels), seed, name, folds=folds)


def test_folds_share_out_each_class():
    labels = ["a"] * 50 + ["b"] * 10 + ["c"] * 3
    folds = folds_of(labels)
    assert np.bincount(folds[:50]).tolist() == [10] * 5
    assert np.bincount(folds[50:60]).tolist() == [2] * 5
    assert len(set(folds[60:])) == 3
    others = [folds_of(labels, seed=1), folds_of(labels, name="g"), folds_of(labels, folds=2)]
    assert len({folds.tobytes(), *(other.tobytes() for other in others)}) == 4
    assert sorted(folds_of(["a", "b", "b"])) == [0, 1, 2]


def test_equal_subgraphs_are_in_one_fold():
    folds = folds_of(["a", "b"] * 12, [[i // 3, 50] for i in range(24)])
    assert (folds.reshape(8, 3) == folds[::3, None]).all()
    assert len(set(folds)) == 5
    assert folds_of(["a", "a"], [[1, 2], [2, 1]]).tolist() == [0, 0]


def test_groups_are_in_one_fold_whatever_the_order_and_folds_are_of_like_size():
    groups = [f"g{max(0, i // 4 - 2)}" for i in range(40)]  # of four subgraphs, and one of twelve
    labels = ["abc"[(int(g[1:]) + (i % 4 == 3)) % 3] for i, g in enumerate(groups)]
    grouped = subgraphs_of(range(40), labels, groups=groups)
    folds = draw_folds(grouped, 0, "f", folds=5)
    assert all(len(set(folds[i : i + 4])) == 1 for i in range(0, 40, 4))
    assert len(set(folds[:12])) == 1
    assert np.sort(np.bincount(folds))[-2:].tolist() == [8, 12]
    order = np.random.default_rng(0).permutation(40)
    assert_array_equal(draw_folds(grouped.take(order), 0, "f", folds=5), folds[order])
    assert set(draw_folds(replace(grouped, groups=Strings.of(["all"] * 40)), 0, "f", folds=5)) == {0}
