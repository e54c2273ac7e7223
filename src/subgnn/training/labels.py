"""Check that the labels of a split can be learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.topology import Standard
from subgnn.data.subgraphs import LARGEST_LABEL, SubgraphSet
from subgnn.errors import DataError, excerpt
from subgnn.task import task_of

_WHERE = "train"
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
    task = task_of(subgraphs.task)
    if task.one_class and subgraphs.num_classes == 1:
        what = f"all subgraphs have the label {excerpt(subgraphs.classes[0])}"
        raise DataError(what, where=_WHERE, hint="at least two classes are needed")
    if task.real:
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
