"""The structure channel: the shape of a component, compared with patches of the graph (paper, section 4.2).

Patches are the nodes of triangular walks over the graph, the same for all subgraphs and for both sides of a layer.
Walks over a patch, inside it or between it and its border, go through an LSTM to become its vector. The similarity is
by time warping: gamma = 1 / (1 + DTW) of the sorted degree sequences of component and patch.

With ``prepare.weighted_walks`` and ``prepare.directed_walks`` all walks take steps by the weights of edges and along
their direction, where the graph has these (:mod:`subgnn.kernels.walks`); the border of a patch is that of the
undirected graph. *Differs from the paper*, where steps are uniform.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import Channel, Distances, PatchAnchors, SharedAnchors, Similarity, Work
from subgnn.channels.diffusion import magnitudes
from subgnn.kernels.draws import node_set_keys
from subgnn.kernels.dtw import dtw
from subgnn.kernels.induced import inside_degrees
from subgnn.kernels.walks import Steps, around_patches, border_walks, graph_walks, inside_walks, triangular_walks
from subgnn.ragged import Ragged


def sample_inside(work: Work) -> list[SharedAnchors]:
    """Patches, and walks inside each."""
    return _sample(work, inside_walks, lambda patches: (patches, patches))


def sample_border(work: Work) -> list[SharedAnchors]:
    """Patches, and walks between each and its border."""
    hops = work.settings.hops
    return _sample(work, partial(border_walks, hops=hops), partial(around_patches, *work.graph.csr, hops=hops))


def _sample(
    work: Work, walk: Callable[..., Ragged], places: Callable[[Ragged], tuple[Ragged, Ragged]]
) -> list[SharedAnchors]:
    """Patches and walks over them: uniform ones by ``walk``, others from and over the nodes that ``places`` gives."""
    graph, settings, steps = work.graph, work.settings, _steps(work)
    found: list[SharedAnchors] = []
    for layer in range(work.layers):
        over: dict[str, Any] = {"walks": work.channel.num_anchors, "length": settings.patch_length}
        over |= {"beta": settings.beta, "key": work.key(f"anchors/{work.channel.kind}/{layer}")}
        rows = graph_walks(*graph.csr, **over) if steps is None else triangular_walks(steps, **over)
        patches = Ragged.from_rows([np.unique(row) for row in rows])
        keys = node_set_keys(work.key(f"walks/{work.channel.name}/{layer}"), patches)
        own: dict[str, Any] = {"walks": settings.walks, "length": settings.walk_length}
        own |= {"beta": settings.beta, "key": keys}
        if steps is None:
            walks = walk(*graph.csr, patches, **own)
        else:
            starts, allowed = places(patches)
            walks = triangular_walks(steps, starts=starts, allowed=allowed, **own)
        found.append(PatchAnchors(patches, walks))
    return found


def _steps(work: Work) -> Steps | None:
    """The edges that walks follow by weight or direction; None where all steps are uniform over all edges."""
    graph, settings = work.graph, work.settings
    directed = settings.directed_walks and graph.oriented is not None
    weighted = settings.weighted_walks and graph.weights is not None
    if not (directed or weighted):
        return None
    there = graph if not directed or graph.oriented is None else graph.oriented
    return Steps.of(*there.csr, magnitudes(there) if weighted else None)


def warping(work: Work, components: Ragged, anchors: list[PatchAnchors]) -> list[Distances]:
    """DTW of sorted degree sequences, inside or at the border by the channel's side; equal sequences once."""
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


def distinct_rows(rows: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of each group of equal rows, and for each row the number of its group."""
    content, ends = rows.values.tobytes(), (rows.offsets * rows.values.itemsize).tolist()
    first: dict[bytes, int] = {}
    place = np.array([first.setdefault(content[b:e], len(first)) for b, e in pairwise(ends)], np.int64)
    representative = np.zeros(len(first), np.int64)
    representative[place[::-1]] = np.arange(len(rows))[::-1]
    return representative, place


def sorted_rows(rows: Ragged) -> Ragged:
    """Every row in rising order."""
    return Ragged(rows.values[np.lexsort((rows.values, rows.row_ids))], rows.offsets)


SIDES = {
    "internal": Channel(similarity="warping", sample_shared=sample_inside, patches=True),
    "border": Channel(similarity="warping", sample_shared=sample_border, patches=True),
}
WARPING = Similarity(measure={PatchAnchors: warping})
