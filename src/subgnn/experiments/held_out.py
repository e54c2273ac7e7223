"""A dataset without its test subgraphs: what a search may see, and nothing of it can come from test."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from subgnn.data.dataset import Dataset
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError
from subgnn.rng import stream


def without_test(dataset: Dataset) -> Dataset:
    """The training and validation subgraphs, in their order, and the classes that these have.

    A class that only test subgraphs have is unknown to whoever has not seen them, so it is left out as well.

    Raises:
        DataError: where there are no labels, no splits, or no subgraphs for training or validation.
    """
    subgraphs = dataset.subgraphs
    if subgraphs.targets is None:
        raise DataError("the subgraphs have no labels", where=dataset.name, hint="give each one a label")
    if subgraphs.splits is None:
        hint = "draw one with subgnn data split"
        raise DataError("the subgraphs have no splits", where=dataset.name, hint=hint)
    for name in ("train", "val"):
        if not len(subgraphs.indices(name)):
            hint = "draw another split with subgnn data split"
            raise DataError(f"no subgraph in split '{name}'", where=dataset.name, hint=hint)
    seen = subgraphs.take(np.flatnonzero(subgraphs.splits != SPLITS.index("test")))
    return replace(dataset, subgraphs=_only_its_classes(seen))


def _only_its_classes(subgraphs: SubgraphSet) -> SubgraphSet:
    targets, task = subgraphs.targets, subgraphs.task
    if targets is None or task not in ("multi-class", "binary", "multi-label"):
        return subgraphs
    if task == "multi-label":
        kept = np.flatnonzero(targets.any(axis=0))
        changed = targets[:, kept]
    else:
        kept, places = np.unique(targets, return_inverse=True)
        changed, task = places.astype(targets.dtype), "binary" if len(kept) == 2 else "multi-class"
    classes = tuple(subgraphs.classes[c] for c in kept)
    return replace(subgraphs, targets=np.ascontiguousarray(changed), classes=classes, task=task)


def divide_anew(dataset: Dataset, seed: int) -> Dataset:
    """The same subgraphs, divided between training and validation at random, in the same numbers.

    Subgraphs of equal nodes stay together: with several of them, the numbers may be a few off.
    """
    subgraphs = dataset.subgraphs
    wanted = len(subgraphs.indices("val"))
    rows: dict[bytes, list[int]] = {}
    for row, nodes in enumerate(subgraphs.nodes):
        rows.setdefault(nodes.tobytes(), []).append(row)
    units = list(rows.values())
    if len(units) < 2:
        hint = "training and validation need at least one each"
        raise DataError("all subgraphs have the same nodes", where=dataset.name, hint=hint)
    splits = np.full(len(subgraphs), SPLITS.index("train"), np.int8)
    taken = 0
    for unit in stream(seed, "tune/split").permutation(len(units))[1:]:  # one at least is left for training
        if taken >= wanted:
            break
        splits[units[unit]] = SPLITS.index("val")
        taken += len(units[unit])
    return replace(dataset, subgraphs=replace(subgraphs, splits=splits))
