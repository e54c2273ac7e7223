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

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.anchors import NodeAnchors, OwnAnchors, PatchAnchors
from subgnn.channels.distances import both_ways, own_measures, searches_at_once
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.data.graph import Graph
from subgnn.kernels import dtw, hop_distances, inside_degrees
from subgnn.kernels.distances import WORD, reduce_table
from subgnn.parallel.memory import share
from subgnn.parallel.progress import OnProgress, pieces
from subgnn.ragged import Ragged

_PAIRS_AT_ONCE = 64_000_000  # of which each is an int32
OWN_AT_ONCE = 1_000_000  # components
_BYTES_DRAWN = 48  # of a drawn anchor while equal ones are found


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
    table = min(_PAIRS_AT_ONCE, share(0.05) // 4)
    most = min(WORD * searches_at_once(graph), table // max(1, len(nodes)))
    _, backward = both_ways(graph, settings)
    for part in pieces(len(sources), step=WORD, most=most, what="hops to shared anchors", on_progress=on_progress):
        hops = hop_distances(*backward[:2], sources[part], nodes, reverse=backward[2:])
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

    An anchor drawn twice is searched for once. Components are taken a block at a time, each as large as memory allows.
    """
    nearest = settings.reduce == "min"
    shape = (len(components), len(anchors), anchors[0].nodes.shape[1])
    full = [np.zeros(shape, np.float32) for _ in range(2)]
    at_once = min(OWN_AT_ONCE, max(1, share(0.1) // (_BYTES_DRAWN * max(1, shape[1] * shape[2]))))
    for begin in range(0, len(components), at_once):
        rows = slice(begin, min(begin + at_once, len(components)))
        some = components.take(np.arange(rows.start, rows.stop))
        wanted, inverse = _wanted([a.nodes[rows] for a in anchors], anchors[0].present[rows], graph.num_nodes)
        told = None if on_progress is None else _within(on_progress, rows, len(components))
        measured = own_measures(graph, some, wanted, nearest=nearest, settings=settings, on_progress=told)
        for out, values in zip(full, measured, strict=True):
            out[rows][anchors[0].present[rows]] = values[inverse].reshape(-1, *shape[1:])
    parts = ([np.ascontiguousarray(out[:, layer]) for out in full] for layer in range(shape[1]))
    return [Nearness(*part) for part in parts]


def _wanted(
    drawn: list[NDArray[np.int32]], present: NDArray[np.bool_], num_nodes: int
) -> tuple[Ragged, NDArray[np.int64]]:
    """The distinct anchors of each component, and the place among them of each draw of those that have any."""
    keys = np.stack(drawn, axis=1).reshape(len(present), -1).astype(np.int64)
    keys += np.arange(len(present), dtype=np.int64)[:, None] * num_nodes
    unique, inverse = np.unique(keys[present], return_inverse=True)
    owner, nodes = np.divmod(unique, num_nodes)
    return Ragged.from_lengths(nodes.astype(np.int32), np.bincount(owner, minlength=len(present))), inverse.reshape(-1)


def _within(on_progress: OnProgress, rows: slice, total: int) -> OnProgress:
    """Report a share of some of the components as components of all."""
    size = rows.stop - rows.start
    return lambda what, done, count: on_progress(what, rows.start + size * done // max(1, count), total)


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
