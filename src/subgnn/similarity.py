"""gamma: how near a component is to an anchor (paper, section 4.2).

Position and neighborhood: with d the hop distance in G, gamma = 1 / (1 + mean of d(u, a) over u in c). A node that
cannot reach the anchor contributes nothing: the mean is over those that do, and gamma is multiplied by their fraction;
0 where none does. ``reduce="min"`` takes the nearest node instead.

Structure: gamma = 1 / (1 + DTW) of the sorted degree sequences of component and patch.

What is kept is the distance and the reached fraction, from which either this closed form or a learned one is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.anchors import NodeAnchors, OwnAnchors, PatchAnchors
from subgnn.config import ChannelSettings, PrepareSettings
from subgnn.data.graph import Graph
from subgnn.kernels import dtw, hop_distances, inside_degrees
from subgnn.kernels.bfs import WORD
from subgnn.kernels.reduce import reduce_table
from subgnn.own_hops import own_measures
from subgnn.pacing import OnProgress, pieces
from subgnn.ragged import Ragged

_PAIRS_AT_ONCE = 64_000_000  # of which each is an int32


@dataclass(frozen=True, slots=True, eq=False)
class Nearness:
    """Distances of components to anchors; gamma = reached / (1 + distance).

    Shapes:
        distance, reached: (C, n_A) float32; both 0 where no node of the component reaches the anchor.
    """

    distance: NDArray[np.float32]
    reached: NDArray[np.float32]

    @property
    def similarity(self) -> NDArray[np.float32]:
        """gamma, in [0, 1]."""
        return self.reached / (1 + self.distance)


def shared_hops(
    graph: Graph,
    components: Ragged,
    anchors: list[NodeAnchors],
    settings: PrepareSettings,
    *,
    on_progress: OnProgress | None = None,
) -> list[Nearness]:
    """Nearness of every component to shared anchor nodes, for every layer.

    Searches go from the anchors and are read off at the nodes of components, a few words of sources at a time.
    """
    nodes, slots = np.unique(components.values, return_inverse=True)
    sources = np.concatenate([a.nodes for a in anchors])
    distance, reached = (np.empty((len(components), len(sources)), np.float32) for _ in range(2))
    most = min(WORD * int(numba.get_num_threads()), _PAIRS_AT_ONCE // max(1, len(nodes)))
    for part in pieces(len(sources), step=WORD, most=most, what="hops to shared anchors", on_progress=on_progress):
        hops = hop_distances(*graph.csr, sources[part], nodes)
        distance[:, part], reached[:, part] = reduce_table(
            hops.T, slots, components.offsets, nearest=settings.reduce == "min"
        )
    cuts = np.cumsum([len(a.nodes) for a in anchors])[:-1]
    parts = (np.split(whole, cuts, axis=1) for whole in (distance, reached))
    return [Nearness(np.ascontiguousarray(d), np.ascontiguousarray(r)) for d, r in zip(*parts, strict=True)]


def own_hops(
    graph: Graph,
    components: Ragged,
    anchors: list[OwnAnchors],
    settings: PrepareSettings,
    *,
    on_progress: OnProgress | None = None,
) -> list[Nearness]:
    """Nearness of every component to anchors of its own, for every layer.

    An anchor drawn twice is searched for once.
    """
    drawn = np.stack([a.nodes for a in anchors], axis=1).reshape(len(components), -1)  # (C, L * n_A)
    present = anchors[0].present
    keys = np.arange(len(components), dtype=np.int64)[:, None] * graph.num_nodes + drawn
    unique, inverse = np.unique(keys[present], return_inverse=True)
    owner = unique // graph.num_nodes
    wanted = Ragged.from_lengths(
        (unique % graph.num_nodes).astype(np.int32), np.bincount(owner, minlength=len(components))
    )
    nearest = settings.reduce == "min"
    distance, reached = own_measures(graph, components, wanted, nearest=nearest, on_progress=on_progress)
    found = []
    shape = (len(components), len(anchors), anchors[0].nodes.shape[1])
    full = [np.zeros(drawn.shape, np.float32) for _ in range(2)]
    for out, values in zip(full, (distance, reached), strict=True):
        out[present] = values[inverse.reshape(-1, drawn.shape[1])]
    for layer in range(len(anchors)):
        parts = [np.ascontiguousarray(out.reshape(shape)[:, layer]) for out in full]
        found.append(Nearness(*parts))
    return found


def structure(
    graph: Graph,
    components: Ragged,
    anchors: list[PatchAnchors],
    channel: ChannelSettings,
    settings: PrepareSettings,
    *,
    on_progress: OnProgress | None = None,
) -> list[Nearness]:
    """Nearness in structure, for every layer: DTW of sorted degree sequences, internal or border by the channel's side.

    Components with equal sequences are compared once.
    """
    side = 0 if channel.side == "internal" else 1
    ours = sorted_rows(inside_degrees(*graph.csr, components)[side])
    representative, place = distinct_rows(ours)
    some = ours.take(representative)
    found = []
    for layer, patches in enumerate(a.patches for a in anchors):
        theirs = sorted_rows(inside_degrees(*graph.csr, patches)[side])
        warped = np.empty((len(some), len(theirs)), np.float32)
        what = f"{channel.name}, layer {layer + 1}: time warping"
        for part in pieces(len(some), step=256, what=what, on_progress=on_progress):
            rows = some.take(np.arange(part.start, part.stop))
            warped[part] = dtw(rows, theirs, cost=settings.dtw_cost, normalize=settings.dtw_normalize)
        found.append(Nearness(warped[place], np.ones((len(ours), len(theirs)), np.float32)))
    return found


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
