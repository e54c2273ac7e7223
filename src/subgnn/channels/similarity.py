"""Similarities that do not search the graph: time warping of degree sequences, weights of border nodes, a constant.

Time warping: gamma = 1 / (1 + DTW) of the sorted degree sequences of component and patch (paper, section 4.2).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import (
    Distances,
    NodeAnchors,
    OwnAnchors,
    PatchAnchors,
    Similarities,
    Similarity,
    Work,
)
from subgnn.errors import UserError
from subgnn.kernels import dtw, inside_degrees
from subgnn.ragged import Ragged


def warping(work: Work, components: Ragged, anchors: list[PatchAnchors]) -> list[Distances]:
    """DTW of sorted degree sequences, of degrees inside or at the border by the channel's side.

    Components with equal sequences are compared once.
    """
    csr, side = work.graph.csr, 0 if work.channel.side == "internal" else 1
    ours = sorted_rows(inside_degrees(*csr, components)[side])
    representative, place = distinct_rows(ours)
    some = ours.take(representative)
    found = []
    for layer, patches in enumerate(a.patches for a in anchors):
        theirs = sorted_rows(inside_degrees(*csr, patches)[side])
        warped = np.empty((len(some), len(theirs)), np.float32)
        what = f"{work.channel.name}, layer {layer + 1}: time warping"
        for part in work.pieces(len(some), step=256, what=what):
            rows = some.take(np.arange(part.start, part.stop))
            warped[part] = dtw(rows, theirs, cost="ratio")
        found.append(Distances(warped[place], np.ones((len(ours), len(theirs)), np.float32)))
    return found


def weight(work: Work, components: Ragged, anchors: list[OwnAnchors]) -> list[Similarities]:
    """The weights that anchors were sampled with."""
    if any(own.weights is None for own in anchors):
        hint = 'set prepare.border_anchors to "heaviest" or "lift", or another similarity'
        raise UserError(f"the anchors of {work.channel.name} have no weights", where="channels.similarity", hint=hint)
    return [Similarities(own.weights) for own in anchors]


def constant(work: Work, components: Ragged, anchors: list[Any]) -> list[Similarities]:
    """1, as for nodes of the component itself (paper, section 4.2)."""
    return [Similarities(np.ones((len(components), work.channel.num_anchors), np.float32))] * len(anchors)


WARPING = Similarity(measure={PatchAnchors: warping})
WEIGHT = Similarity(measure={OwnAnchors: weight})
CONSTANT = Similarity(measure={NodeAnchors: constant, PatchAnchors: constant, OwnAnchors: constant})


def distinct_rows(rows: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first row of each content, and for each row the place of its content among those.

    Example:
        >>> [a.tolist() for a in distinct_rows(Ragged.from_rows([[1, 2], [3], [1, 2]]))]
        [[0, 1], [0, 1, 0]]
    """
    content, ends = rows.values.tobytes(), (rows.offsets * rows.values.itemsize).tolist()
    first: dict[bytes, int] = {}
    place = np.array([first.setdefault(content[b:e], len(first)) for b, e in pairwise(ends)], np.int64)
    representative = np.zeros(len(first), np.int64)
    representative[place[::-1]] = np.arange(len(rows))[::-1]
    return representative, place


def sorted_rows(rows: Ragged) -> Ragged:
    """Every row in rising order."""
    return Ragged(rows.values[np.lexsort((rows.values, rows.row_ids))], rows.offsets)
