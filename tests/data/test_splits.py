"""Splits: a partition of the right sizes, fair to classes, that never tears a group or a repeated node set apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from subgnn.data.splits import (
    METHODS,
    _Capacity,
    _round_table,
    count_leaks,
    draw_units,
    fill_units,
    split_sizes,
    split_subgraphs,
    split_units,
    stratified_split,
    whole_groups,
)
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError
from subgnn.rng import stream

DRAWN = tuple(method for method in METHODS if method != "time")
FRACTIONS = st.sampled_from(
    [(0.5, 0.25, 0.25), (0.8, 0.1, 0.1), (0.6, 0.2, 0.2), (1 / 3, 1 / 3, 1 / 3), (0.1, 0.2, 0.7)]
)
SEEDS = st.integers(0, 2**32)
many = settings(max_examples=100, derandomize=True, print_blob=False)


def _rng(seed: int = 0) -> np.random.Generator:
    return stream(seed, "test")


def _counts(splits: np.ndarray) -> list[int]:
    return np.bincount(splits, minlength=3).tolist()


def _random_split(n: int, fractions: Sequence[float], rng: np.random.Generator) -> np.ndarray:
    return draw_units(np.ones(n, np.int64), fractions, rng)


def _group_split(groups: Sequence[Hashable], fractions: Sequence[float], rng: np.random.Generator) -> np.ndarray:
    unit = np.unique(list(groups), return_inverse=True)[1]
    return fill_units(np.bincount(unit), fractions, rng)[unit]


def _subgraphs(keys: Sequence[int], labels: Sequence[object] | None = None, **options: object) -> SubgraphSet:
    """Subgraph i has the one node ``keys[i]``: equal keys, equal nodes."""
    return SubgraphSet.from_lists([[k] for k in keys], labels=labels, num_nodes=max(keys) + 1, **options)  # type: ignore[arg-type]


@many
@given(st.integers(3, 500), FRACTIONS)
def test_sizes_sum_up_and_are_within_one_of_the_share(n: int, fractions: tuple[float, ...]) -> None:
    sizes = split_sizes(n, fractions)
    assert sizes.sum() == n
    assert (sizes >= 1).all()
    if n * min(fractions) >= 1:
        assert (np.abs(sizes - n * np.array(fractions)) < 1).all()


@pytest.mark.parametrize(
    "fractions", [(0.5, 0.5), (0.5, 0.5, 0.0), (0.5, 0.3, 0.1), (2, -0.5, -0.5), (np.nan, 0.5, 0.5)]
)
def test_fractions_that_are_none_are_refused(fractions: tuple[float, ...]) -> None:
    with pytest.raises(DataError, match="three numbers above 0"):
        _random_split(10, fractions, _rng())


@many
@given(st.integers(3, 200), FRACTIONS, SEEDS)
def test_random_is_a_partition_of_the_right_sizes_and_repeatable(
    n: int, fractions: tuple[float, ...], seed: int
) -> None:
    splits = _random_split(n, fractions, _rng(seed))
    assert splits.shape == (n,)
    assert_array_equal(_counts(splits), split_sizes(n, fractions))
    assert_array_equal(splits, _random_split(n, fractions, _rng(seed)))


def test_random_gives_everyone_the_same_chance() -> None:
    drawn = np.array([_random_split(8, (0.5, 0.25, 0.25), _rng(seed)) for seed in range(2000)])
    assert np.abs((drawn == 0).mean(axis=0) - 0.5).max() < 0.05
    assert np.abs((drawn == 1).mean(axis=0) - 0.25).max() < 0.05


@many
@given(st.lists(st.integers(0, 6), min_size=3, max_size=150), FRACTIONS, SEEDS)
def test_stratified_gives_every_class_its_share_within_one(
    labels: list[int], fractions: tuple[float, ...], seed: int
) -> None:
    targets = np.array(labels)
    splits = stratified_split(targets, fractions, _rng(seed))
    assert_array_equal(_counts(splits), split_sizes(len(labels), fractions))
    if len(labels) * min(fractions) >= 1:
        for label in set(labels):
            mine = splits[targets == label]
            assert np.abs(np.bincount(mine, minlength=3) - len(mine) * np.array(fractions)).max() < 1
    assert_array_equal(splits, stratified_split(targets, fractions, _rng(seed)))


@pytest.mark.parametrize("sizes", [[7, 7], [11, 3, 8, 8], [6, 9]])
def test_shares_are_within_one_where_a_small_split_takes_from_a_large_one(sizes: list[int]) -> None:
    # Test must have one subgraph, which train gives: the classes' whole shares of train are one too many.
    fractions = (0.5, 0.496, 0.004)
    targets = np.repeat(np.arange(len(sizes)), sizes)
    splits = stratified_split(targets, fractions, _rng())
    assert_array_equal(_counts(splits), split_sizes(len(targets), fractions))
    for label, size in enumerate(sizes):
        counts = np.bincount(splits[targets == label], minlength=3)
        assert np.abs(counts - size * np.array(fractions)).max() < 1 + 1e-9


@pytest.mark.slow
@many
@given(st.integers(3, 80), st.integers(1, 6), FRACTIONS, SEEDS)
def test_multi_label_is_exact_in_all_and_near_for_each_label(
    n: int, classes: int, fractions: tuple[float, ...], seed: int
) -> None:
    targets = (np.random.default_rng(seed).random((n, classes)) < 0.3).astype(np.uint8)
    splits = stratified_split(targets, fractions, _rng(seed))
    assert_array_equal(_counts(splits), split_sizes(n, fractions))


def test_multi_label_is_fairer_than_chance() -> None:
    rng = np.random.default_rng(0)
    targets = (rng.random((400, 8)) < np.linspace(0.02, 0.5, 8)).astype(np.uint8)
    share = np.array([0.5, 0.25, 0.25])

    def unfairness(splits: np.ndarray) -> float:
        found = np.array([targets[splits == s].sum(axis=0) for s in range(3)])
        return float(np.abs(found - np.outer(share, targets.sum(axis=0))).mean())

    fair = unfairness(stratified_split(targets, (0.5, 0.25, 0.25), _rng()))
    assert fair < 1.5
    assert fair < min(unfairness(_random_split(400, (0.5, 0.25, 0.25), _rng(seed))) for seed in range(10))


def test_real_targets_are_stratified_by_size() -> None:
    targets = np.linspace(-1, 1, 200)
    splits = stratified_split(targets, (0.5, 0.25, 0.25), _rng())
    for low in range(0, 200, 20):
        assert_array_equal(np.abs(np.array(_counts(splits[low : low + 20])) - [10, 5, 5]) <= 1, True)


@many
@given(st.lists(st.integers(0, 20), min_size=3, max_size=120), FRACTIONS, SEEDS)
def test_groups_are_never_torn_apart(groups: list[int], fractions: tuple[float, ...], seed: int) -> None:
    if len(set(groups)) < 3:
        with pytest.raises(DataError, match="cannot be split in three"):
            _group_split(groups, fractions, _rng(seed))
        return
    splits = _group_split(groups, fractions, _rng(seed))
    found = defaultdict(set)
    for group, split in zip(groups, splits.tolist(), strict=True):
        found[group].add(split)
    assert all(len(splits) == 1 for splits in found.values())
    assert min(_counts(splits)) >= 1
    # A split gets a group only while it lacks most of all, so it ends at most one group above its share; a group
    # that was sent to fill an empty split is the smallest there is.
    largest = max(np.bincount(groups))
    assert (np.array(_counts(splits)) - split_sizes(len(groups), fractions) <= largest).all()
    assert_array_equal(splits, _group_split(groups, fractions, _rng(seed)))


def test_groups_by_hand() -> None:
    groups = ["a"] * 10 + ["b"] * 5 + ["c"] * 5
    splits = _group_split(groups, (0.5, 0.25, 0.25), _rng())
    assert _counts(splits) == [10, 5, 5]
    assert set(splits[:10].tolist()) == {0}
    assert {tuple(_group_split(groups, (0.5, 0.25, 0.25), _rng(s))) for s in range(20)} != {tuple(splits)}


def test_a_split_is_not_left_empty_where_groups_are_few() -> None:
    assert _counts(_group_split(["a"] * 10 + ["b"] * 10 + ["c"] * 2 + ["d"], (0.9, 0.05, 0.05), _rng())) == [20, 2, 1]


@many
@given(st.lists(st.integers(0, 15), min_size=3, max_size=60), st.sampled_from(DRAWN), FRACTIONS, SEEDS)
def test_no_node_set_is_in_two_splits(keys: list[int], method: str, fractions: tuple[float, ...], seed: int) -> None:
    given_labels = [k % 3 for k in keys]
    options = {"groups": [k // 4 for k in keys]} if method == "group" else {}
    units = len({k // 4 for k in keys} if method == "group" else set(keys))
    if units < 3:
        return
    subgraphs = _subgraphs(keys, given_labels)
    split = split_subgraphs(subgraphs, method=method, fractions=fractions, seed=seed, **options)  # type: ignore[arg-type]
    assert count_leaks(split) == 0
    assert split.splits is not None
    assert min(_counts(split.splits)) >= 1
    assert_array_equal(split.nodes.values, subgraphs.nodes.values)
    assert split.targets is subgraphs.targets


@many
@given(st.lists(st.integers(0, 30), min_size=3, max_size=60), st.sampled_from(DRAWN), SEEDS, st.randoms())
def test_the_order_of_subgraphs_does_not_matter(keys: list[int], method: str, seed: int, shuffler: object) -> None:
    if len({k // 4 for k in keys}) < 3:
        return
    order = list(range(len(keys)))
    shuffler.shuffle(order)  # type: ignore[attr-defined]

    def split(places: list[int]) -> np.ndarray:
        mine = [keys[i] for i in places]
        options = {"groups": [f"g{k // 4}" for k in mine]} if method == "group" else {}
        subgraphs = _subgraphs(mine, [k % 2 for k in mine])
        found = split_subgraphs(subgraphs, method=method, seed=seed, **options).splits  # type: ignore[arg-type]
        assert found is not None
        return found

    assert_array_equal(split(order), split(list(range(len(keys))))[order])


def test_with_some_repeats_sizes_are_still_exact_where_single_ones_can_fill_up() -> None:
    keys = [0] * 7 + [1] * 4 + list(range(2, 60))
    for method in ("random", "stratified"):
        for seed in range(20):
            split = split_subgraphs(_subgraphs(keys, [k % 2 for k in keys]), method=method, seed=seed)  # type: ignore[arg-type]
            assert split.splits is not None
            assert_array_equal(_counts(split.splits), split_sizes(len(keys)))


def test_repeats_are_not_always_sent_to_train() -> None:
    keys = [0, 0, *range(1, 20)]
    drawn = [split_subgraphs(_subgraphs(keys), method="random", seed=s).splits[0] for s in range(60)]  # type: ignore[index]
    assert set(drawn) == {0, 1, 2}


def test_groups_that_share_a_node_set_become_one() -> None:
    subgraphs = _subgraphs([0, 1, 1, 2, 3, 4])
    split = split_subgraphs(subgraphs, method="group", seed=0, groups=["a", "a", "b", "b", "c", "d"])
    assert split.splits is not None
    assert len(set(split.splits[:4].tolist())) == 1


def test_multi_label_and_real_subgraphs_can_be_stratified() -> None:
    multi = _subgraphs(range(40), [["a", "b"] if i % 3 else ["b"] for i in range(40)])
    real = _subgraphs(range(40), [i + 0.5 for i in range(40)])
    assert (multi.task, real.task) == ("multi-label", "regression")
    for subgraphs in (multi, real):
        splits = split_subgraphs(subgraphs, method="stratified", seed=0).splits
        assert splits is not None
        assert _counts(splits) == [20, 10, 10]


def test_different_seeds_and_methods_draw_differently() -> None:
    subgraphs = _subgraphs(range(50), [0, 1] * 25)
    found = {
        (method, seed): split_subgraphs(subgraphs, method=method, seed=seed, groups=groups).splits.tobytes()  # type: ignore[arg-type, union-attr]
        for method, groups in (("random", None), ("stratified", None), ("group", range(50)))
        for seed in range(3)
    }
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "radnom"}, "did you mean 'random'"),
        ({"method": "group"}, "no groups are given"),
        (
            {"method": "random", "groups": [0, 1, 2, 3]},
            "groups are given, but the method is 'random'; .*others take none",
        ),
        ({"method": "group", "groups": [0, 1]}, "2 groups for 4 subgraphs"),
        ({"method": "stratified"}, "have no labels"),
        ({"method": "group", "groups": [0, 0, 1, 1]}, "2 cannot be split in three"),
    ],
)
def test_what_cannot_be_done_is_said(options: dict[str, object], match: str) -> None:
    with pytest.raises(DataError, match=match):
        split_subgraphs(_subgraphs([0, 1, 2, 3]), seed=0, **options)  # type: ignore[arg-type]


def test_leaks_by_hand() -> None:
    splits = ["train", "train", "val", "train", "test", "val"]
    assert count_leaks(_subgraphs([5, 5, 5, 6, 6, 7], splits=splits)) == 2
    assert count_leaks(_subgraphs([5, 5, 5])) == 0
    assert count_leaks(_subgraphs([5, 5, 5], splits=["train", "val", "train"])) == 1


def test_sizes_at_their_edges() -> None:
    assert split_sizes(3).tolist() == [1, 1, 1]
    assert split_sizes(10, (0.7, 0.2, 0.1)).tolist() == [7, 2, 1]  # 10 * .7 is not quite 7
    assert split_sizes(5, (0.2, 0.2, 0.6)).tolist() == [1, 1, 3]
    assert split_sizes(7, (0.3, 0.3, 0.4)).tolist() == [2, 2, 3]
    assert split_sizes(200, (0.001, 0.001, 0.998)).tolist() == [1, 1, 198]
    assert split_sizes(10, (0.5 + 4e-7, 0.25, 0.25)).tolist() == [5, 3, 2]
    with pytest.raises(DataError, match="three numbers above 0"):
        split_sizes(10, (0.5 + 4e-6, 0.25, 0.25))


@pytest.mark.parametrize("seed", range(40))
def test_tables_are_rounded_within_one_to_their_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fractions = [(0.5, 0.25, 0.25), (0.8, 0.1, 0.1), (1 / 3, 1 / 3, 1 / 3), (0.1, 0.2, 0.7)][seed % 4]
    rows = rng.integers(3, 12, rng.integers(4, 7))
    columns, exact = split_sizes(int(rows.sum()), fractions), np.outer(rows, fractions)
    table = _round_table(exact, rows, columns)
    assert_array_equal(table.sum(axis=0), columns)
    assert_array_equal(table.sum(axis=1), rows)
    assert np.abs(table - exact).max() < 1


def test_units_are_joined_by_nodes_and_by_groups() -> None:
    subgraphs = _subgraphs([5, 3, 5, 9, 1, 0])
    assert split_units(subgraphs).tolist() == [3, 2, 3, 4, 1, 0]
    # 3 and 5 share a group, 5 and 9 share another: one unit, numbered by the least of its node sets.
    assert split_units(subgraphs, ["a", "a", "b", "b", "c", "d"]).tolist() == [2, 2, 2, 2, 1, 0]
    assert split_units(SubgraphSet.from_lists([], num_nodes=1), []).tolist() == []


def test_groups_are_whole_where_train_and_val_share_none() -> None:
    def groups(*splits: str) -> list[str] | None:
        found = whole_groups(_subgraphs([0, 1, 2], splits=splits, groups=["a", "a", "b"]))
        return None if found is None else list(found)

    assert groups("train", "train", "val") == ["a", "a", "b"]
    assert groups("train", "test", "val") == ["a", "a", "b"]
    assert groups("train", "val", "val") is None
    assert whole_groups(_subgraphs([0, 1], splits=["train", "val"])) is None
    assert whole_groups(_subgraphs([0, 1], groups=["a", "b"])) is None


def test_repeats_go_where_their_labels_are_missed() -> None:
    """Units of several subgraphs, and more than fit: sizes are exact, and each label is near its share."""
    keys = [0] * 3 + [1] * 3 + [2] * 2 + list(range(3, 35))
    labels = [k % 2 for k in keys]
    for seed in range(10):
        splits = split_subgraphs(_subgraphs(keys, labels), method="stratified", seed=seed).splits
        assert splits is not None
        assert _counts(splits) == [20, 10, 10]
        for label in (0, 1):
            mine = splits[np.array(labels) == label]
            assert np.abs(np.bincount(mine, minlength=3) - len(mine) * np.array([0.5, 0.25, 0.25])).max() <= 1.5


def test_a_unit_that_fits_nowhere_goes_to_the_roomiest() -> None:
    capacity = _Capacity(np.array([6, 1, 1, 1, 1]), (0.5, 0.3, 0.2))
    assert capacity.left.tolist() == [5, 3, 2]
    assert capacity.open(3).tolist() == [True, True, False]
    assert capacity.open(6).tolist() == [True, False, False]


KEYS = [0, 0, 0, 1, 1, *range(2, 17)]
ALWAYS = {
    "random": "00000012100212102210",
    "stratified": "00000122000012021211",
    "group": "00000022211111100022",
    "multi-label": "00000112100220110022",
    "real": "00022102022001101010",
}


@pytest.mark.parametrize("way", ["random", "stratified", "group", "multi-label", "real"])
def test_a_seed_gives_the_split_it_always_gave(way: str) -> None:
    """Results that name a seed can be had again only as long as it names the same split."""
    labels = {
        "multi-label": [["a", "b"] if k % 3 == 0 else ["c"] if k % 5 == 0 else ["b"] for k in KEYS],
        "real": [k * 0.5 + 0.25 for k in KEYS],
    }.get(way, [k % 3 for k in KEYS])
    method = way if way in METHODS else "stratified"
    groups = [k // 3 for k in KEYS] if way == "group" else None
    found = split_subgraphs(_subgraphs(KEYS, labels), method=method, seed=5, groups=groups).splits  # type: ignore[arg-type]
    assert found is not None
    assert "".join(map(str, found)) == ALWAYS[way]
