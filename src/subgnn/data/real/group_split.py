"""A split that keeps groups whole and gives every label its share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from subgnn.data.splits import split_sizes
from subgnn.data.subgraphs import SPLITS


def labelled_group_split(
    groups: Sequence[Hashable],
    labels: Sequence[Sequence[str]],
    fractions: Sequence[float],
    rng: np.random.Generator,
) -> list[str]:
    """Whole groups to splits, the largest first, each to where its labels are missed most.

    What a split misses of a label is 1 - (what it has) / (its share); a group goes where the sum of this over its
    items' labels is largest, so that of groups of any size every split gets about its share of every label. The items
    themselves count as one more label.

    Args:
        groups: the group of each item.
        labels: the label or labels of each item.

    Example:
        >>> given = labelled_group_split("aabbccdd", [["x"]] * 8, (0.5, 0.25, 0.25), np.random.default_rng(0))
        >>> sorted(given[::2]), given[::2] == given[1::2]
        (['test', 'train', 'train', 'val'], True)
    """
    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    place = {label: i for i, label in enumerate(sorted({label for given in labels for label in given}))}
    split_sizes(len(number), fractions)  # three shares, and as many groups as splits
    counts = np.zeros((len(number), len(place) + 1))
    for group, given in zip(groups, labels, strict=True):
        counts[number[group], -1] += 1
        for label in given:
            counts[number[group], place[label]] += 1
    chosen = _deal(counts, np.asarray(fractions, np.float64), rng)
    return [SPLITS[chosen[number[group]]] for group in groups]


def _deal(counts: NDArray[np.float64], fractions: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The split of each group.

    Shapes:
        counts: (groups, labels), how many items of a group carry a label. fractions: (splits,).
    """
    share = np.outer(fractions, counts.sum(axis=0))  # (splits, labels)
    have = np.zeros_like(share)
    chosen = np.empty(len(counts), np.int64)
    empty = np.ones(len(fractions), bool)
    shuffled = rng.permutation(len(counts))
    order = shuffled[np.argsort(-counts[shuffled].sum(axis=1), kind="stable")]
    for place, group in enumerate(order):
        missed = (1 - (have + counts[group] / 2) / share) @ counts[group]
        if len(order) - place <= empty.sum():  # the last groups go to splits that have none
            missed[~empty] = -np.inf
        best = int(np.argmax(missed))
        chosen[group] = best
        have[best] += counts[group]
        empty[best] = False
    return chosen
