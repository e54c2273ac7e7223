"""Keys of subgraphs, by which a run knows whether those it is scored on are those it was trained with."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from subgnn.data.subgraphs import SubgraphSet
from subgnn.kernels import node_set_keys
from subgnn.rng import stream_key
from subgnn.task import task_of

Keys = NDArray[np.int64]
"""(n, 3): a key of the nodes, a key of the label, and the split of each subgraph."""
_MIX = np.array([1, 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9], np.int64)  # odd numbers, by which columns are added up


def subgraph_keys(subgraphs: SubgraphSet) -> Keys:
    """Keys of subgraphs; labels enter by the name of their class, so the order of classes does not matter."""
    found = np.zeros((len(subgraphs), 3), np.int64)
    found[:, 0] = node_set_keys(stream_key(0, "subgraph keys"), subgraphs.nodes).view(np.int64)
    targets = subgraphs.targets
    if targets is not None:
        names = [hashlib.sha256(name.encode()).digest()[:8] for name in subgraphs.classes]
        of_class = np.frombuffer(b"".join(names), np.int64)
        if task_of(subgraphs.task).real:
            found[:, 1] = targets.astype(np.float64).view(np.int64)
        else:  # a sum of keys, which wraps around, for several labels
            found[:, 1] = targets.astype(np.int64) @ of_class if targets.ndim == 2 else of_class[targets]
    found[:, 2] = -1 if subgraphs.splits is None else subgraphs.splits
    return found


def changes(then: Keys, now: Keys) -> list[str]:
    """Differences between subgraphs, in words; none where only their order differs.

    Example:
        >>> given = SubgraphSet.from_lists([[0], [1]], labels=["a", "b"], splits=["train", "test"], num_nodes=3)
        >>> other = SubgraphSet.from_lists([[0], [2]], labels=["b", "b"], splits=["train", "test"], num_nodes=3)
        >>> changes(subgraph_keys(given), subgraph_keys(other))
        ['1 node set is gone', '1 node set is new', '1 label differs']
    """
    if np.array_equal(then, now):
        return []

    def gone(columns: list[int], before: Keys, after: Keys) -> int:
        keys = np.concatenate([before, after])[:, columns] @ _MIX[columns]  # one key for the row, which wraps around
        place = np.unique(keys, return_inverse=True)[1]
        old, new = (np.bincount(part, minlength=len(keys)) for part in (place[: len(before)], place[len(before) :]))
        return int(np.maximum(old - new, 0).sum())

    missing = gone([0], then, now)
    counts = {
        ("node set is gone", "node sets are gone"): missing,
        ("node set is new", "node sets are new"): gone([0], now, then),
        ("label differs", "labels differ"): gone([0, 1], then, now) - missing,
        ("split differs", "splits differ"): gone([0, 2], then, now) - missing,
    }
    return [f"{count:,} {words[count != 1]}" for words, count in counts.items() if count]
