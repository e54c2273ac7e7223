"""The structure channel: the shape of a component, compared with patches of the graph (paper, section 4.2).

Patches are the nodes of triangular walks over the graph, the same for all subgraphs and for both sides of a layer.
Walks over a patch, inside it or between it and its border, go through an LSTM to become its vector. The similarity is
by time warping: gamma = 1 / (1 + DTW) of the sorted degree sequences of component and patch.
"""

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.channel import Channel, PatchAnchors, SharedAnchors, Similarity, Work
from subgnn.kernels.draws import node_set_keys
from subgnn.kernels.dtw import dtw
from subgnn.kernels.induced import inside_degrees
from subgnn.kernels.walks import border_walks, graph_walks, inside_walks
from subgnn.ragged import Ragged


def sample(work: Work) -> list[SharedAnchors]:
    """Patches, and walks inside each, or between each and its border, by the channel's side."""
    csr, settings, beta = work.graph.csr, work.settings, work.settings.beta
    walk = inside_walks if work.channel.side == "internal" else partial(border_walks, hops=settings.hops)
    found: list[SharedAnchors] = []
    for layer in range(work.layers):
        key, count = work.key(f"anchors/{work.channel.kind}/{layer}"), work.channel.num_anchors
        rows = graph_walks(*csr, walks=count, length=settings.patch_length, beta=beta, key=key)
        patches = Ragged.from_rows([np.unique(row) for row in rows])
        keys = node_set_keys(work.key(f"walks/{work.channel.name}/{layer}"), patches)
        walks = walk(*csr, patches, walks=settings.walks, length=settings.walk_length, beta=beta, key=keys)
        found.append(PatchAnchors(patches, walks))
    return found


def warping(work: Work, components: Ragged, anchors: list[PatchAnchors]) -> list[NDArray[np.float32]]:
    """By DTW of sorted degree sequences, inside or at the border by the channel's side; equal sequences once."""
    csr, side = work.graph.csr, 0 if work.channel.side == "internal" else 1
    ours = sorted_rows(inside_degrees(*csr, components)[side])
    representative, place = distinct_rows(ours)
    some = ours.take(representative)
    found = []
    for layer, patches in enumerate(a.patches for a in anchors):
        theirs = sorted_rows(inside_degrees(*csr, patches)[side])
        warped = np.empty((len(some), len(theirs)), np.float32)
        for part in work.pieces(len(some), step=256, what=f"{work.channel.name}, layer {layer + 1}: time warping"):
            warped[part] = dtw(some.take(np.arange(part.start, part.stop)), theirs, cost="ratio")
        found.append(np.asarray(1 / (1 + warped), np.float32)[place])
    return found


def distinct_rows(rows: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of each group of equal rows, and for each row the number of its group."""
    content, ends = rows.values.tobytes(), (rows.offsets * rows.values.itemsize).tolist()
    first: dict[bytes, int] = {}
    place = np.array([first.setdefault(content[b:e], len(first)) for b, e in pairwise(ends)], np.int64)
    return np.unique(place, return_index=True)[1], place


def sorted_rows(rows: Ragged) -> Ragged:
    """Every row in rising order."""
    return Ragged(rows.values[np.lexsort((rows.values, rows.row_ids))], rows.offsets)


SIDES = {side: Channel(similarity="warping", anchors=PatchAnchors, sample=sample) for side in ("internal", "border")}
WARPING = Similarity(measure={PatchAnchors: warping})
