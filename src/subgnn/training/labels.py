"""Check that the labels of a split can be learned, and warn of those that cannot."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.topology import Standard
from subgnn.data.describe import label_notes
from subgnn.data.subgraphs import LARGEST_LABEL, SubgraphSet
from subgnn.errors import DataError, DataWarning, excerpt

_WHERE = "train"
_NAMED = 5
_FARTHEST = 1e15  # squared errors are added up in 32 bits, which end at 3e38


def check_labels(subgraphs: SubgraphSet) -> None:
    """Refuse labels that allow no training or no selection.

    Raises:
        DataError: without labels, without subgraphs in train or val, for a single class, and for real values that are
            not finite, too large, too close together, or too far from those of the training split for a squared error
            in 32 bits.
    """
    targets = subgraphs.require_labels(_WHERE)
    for split in ("train", "val"):
        if not len(subgraphs.indices(split)):
            hint = "draw another split with subgnn data split; learning and selection need both"
            raise DataError(f"no subgraph in split '{split}'", where=_WHERE, hint=hint)
    if subgraphs.task == "multi-class" and subgraphs.num_classes == 1:
        what = f"all subgraphs have the label {excerpt(subgraphs.classes[0])}"
        raise DataError(what, where=_WHERE, hint="at least two classes are needed")
    if subgraphs.task == "regression":
        _check_values(targets, targets[subgraphs.indices("train")])


def _check_values(targets: NDArray[Any], training: NDArray[Any]) -> None:
    # A bundle may have such labels: they are not read one by one.
    outside = np.flatnonzero(~(np.abs(targets) <= LARGEST_LABEL))
    if len(outside):
        hint = f"accepted: finite numbers from -{LARGEST_LABEL:g} to {LARGEST_LABEL:g}"
        raise DataError(f"the label of subgraph {outside[0]} is {targets[outside[0]]}", where=_WHERE, hint=hint)
    standard = Standard.of(training[:, None])
    if standard.deviation[0] < 1 / LARGEST_LABEL:
        what = f"the training labels have a standard deviation of {standard.deviation[0]:g}"
        hint = f"accepted: from {1 / LARGEST_LABEL:g}; give the labels in a smaller unit"
        raise DataError(what, where=_WHERE, hint=hint)
    distance = np.abs(targets - standard.mean[0]) / standard.deviation[0]
    farthest = int(distance.argmax())
    if distance[farthest] > _FARTHEST:
        what = f"the label {targets[farthest]:g} of subgraph {farthest} is {distance[farthest]:.3g} standard deviations"
        hint = f"accepted: up to {_FARTHEST:g}; correct it, leave it out, or give its logarithm"
        raise DataError(f"{what} from the mean of the training labels", where=_WHERE, hint=hint)


def warn_of_labels(subgraphs: SubgraphSet) -> None:
    """Warn of labels that may be meant for another task, and of labels that cannot be learned."""
    for note in label_notes(subgraphs):
        warnings.warn(note, DataWarning, stacklevel=4)
    warn_of_unseen(subgraphs)


def warn_of_unseen(subgraphs: SubgraphSet) -> None:
    """Warn of classes that subgraphs of val or test have and no training subgraph has: they cannot be learned."""
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
