"""What the labels of a split allow to learn."""

from __future__ import annotations

import warnings

import numpy as np

from subgnn.data.describe import label_notes
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataWarning, excerpt

_NAMED = 5


def warn_of_labels(subgraphs: SubgraphSet) -> None:
    """Warn of a task that may be another one than was meant, and of labels that cannot be learned."""
    for note in label_notes(subgraphs):
        warnings.warn(note, DataWarning, stacklevel=4)
    warn_of_unseen(subgraphs)


def warn_of_unseen(subgraphs: SubgraphSet) -> None:
    """Warn of classes that subgraphs of val or test carry and no training subgraph does: they cannot be learned."""
    if subgraphs.targets is None or subgraphs.task == "regression":
        return
    if subgraphs.task == "multi-label":
        carried = subgraphs.targets.astype(np.bool_)
    else:
        carried = subgraphs.targets[:, None] == np.arange(subgraphs.num_classes)
    held_out = carried[np.concatenate([subgraphs.indices("val"), subgraphs.indices("test")])]
    unseen = ~carried[subgraphs.indices("train")].any(axis=0) & held_out.any(axis=0)
    if not unseen.any():
        return
    places = np.flatnonzero(unseen)
    named = ", ".join(f"{excerpt(subgraphs.classes[c])} ({int(held_out[:, c].sum())})" for c in places[:_NAMED])
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    count = int(held_out[:, unseen].any(axis=1).sum())
    subject = "1 subgraph of val or test carries" if count == 1 else f"{count:,} subgraphs of val and test carry"
    what = f"{subject} a label that no training subgraph has: {named}{more}; it cannot be learned"
    warnings.warn(what, DataWarning, stacklevel=5)
