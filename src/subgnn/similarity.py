"""gamma: how near a component is to an anchor (paper, section 4.2).

Position and neighborhood: with d the hop distance in G, gamma = 1 / (1 + mean of d(u, a) over u in c). A node that
cannot reach the anchor contributes nothing: the mean is over those that do, and gamma is multiplied by their fraction;
0 where none does. ``reduce="min"`` takes the nearest node instead.

Structure: gamma = 1 / (1 + DTW) of the sorted degree sequences of component and patch.

What is kept is the distance and the reached fraction, from which either this closed form or a learned one is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.anchors import NodeAnchors, OwnAnchors, PatchAnchors
from subgnn.config import ChannelSettings, PrepareSettings
from subgnn.data.graph import Graph
from subgnn.kernels import dtw, hop_distances, inside_degrees, pair_distances
from subgnn.kernels.bfs import WORD
from subgnn.kernels.reduce import reduce_pairs, reduce_table
from subgnn.ragged import Ragged

_PAIRS_AT_ONCE = 16_000_000


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


def shared_hops(graph: Graph, components: Ragged, anchors: NodeAnchors, settings: PrepareSettings) -> Nearness:
    """Nearness of every component to shared anchor nodes: searches from the anchors, read off at component nodes."""
    nodes, slots = np.unique(components.values, return_inverse=True)
    parts = []
    step = WORD * int(numba.get_num_threads())
    for begin in range(0, len(anchors.nodes), step):
        hops = hop_distances(*graph.csr, anchors.nodes[begin : begin + step], nodes)
        parts.append(reduce_table(hops.T, slots, components.offsets, nearest=settings.reduce == "min"))
    distance, reached = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return Nearness(distance, reached)


def own_hops(graph: Graph, components: Ragged, anchors: list[OwnAnchors], settings: PrepareSettings) -> list[Nearness]:
    """Nearness of every component to anchors of its own, for every layer: searches from the component's nodes.

    An anchor drawn twice is searched for once.
    """
    drawn = np.stack([a.nodes for a in anchors], axis=1).reshape(len(components), -1)  # (C, L * n_A)
    present = anchors[0].present
    keys = np.arange(len(components), dtype=np.int64)[:, None] * graph.num_nodes + drawn
    unique, inverse = np.unique(keys[present], return_inverse=True)
    owner = unique // graph.num_nodes
    wanted = Ragged.from_lengths(unique % graph.num_nodes, np.bincount(owner, minlength=len(components)))
    distance, reached = _own_measures(graph, components, wanted, nearest=settings.reduce == "min")
    found = []
    shape = (len(components), len(anchors), anchors[0].nodes.shape[1])
    full = [np.zeros(drawn.shape, np.float32) for _ in range(2)]
    for out, values in zip(full, (distance, reached), strict=True):
        out[present] = values[inverse.reshape(-1, drawn.shape[1])]
    for layer in range(len(anchors)):
        parts = [np.ascontiguousarray(out.reshape(shape)[:, layer]) for out in full]
        found.append(Nearness(*parts))
    return found


def _own_measures(
    graph: Graph, components: Ragged, wanted: Ragged, *, nearest: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Distances of each component to its wanted nodes, in chunks of components that bound the memory."""
    pairs = components.lengths * wanted.lengths
    chunk = np.cumsum(pairs) // _PAIRS_AT_ONCE
    parts = []
    for part in np.unique(chunk):
        rows = np.flatnonzero(chunk == part)
        some, targets = components.take(rows), wanted.take(rows)
        per_node = targets.take(np.repeat(np.arange(len(rows)), some.lengths))
        hops = pair_distances(*graph.csr, some.values, per_node)
        parts.append(reduce_pairs(hops.values, hops.offsets[:-1], some.offsets, targets.offsets, nearest=nearest))
    if not parts:
        return np.zeros(0, np.float32), np.zeros(0, np.float32)
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def structure(
    graph: Graph, components: Ragged, anchors: PatchAnchors, channel: ChannelSettings, settings: PrepareSettings
) -> Nearness:
    """Nearness in structure: DTW of sorted degree sequences, internal or border degrees by the side of the channel.

    Components with equal sequences are compared once.
    """
    side = 0 if channel.side == "internal" else 1
    ours = sorted_rows(inside_degrees(*graph.csr, components)[side])
    theirs = sorted_rows(inside_degrees(*graph.csr, anchors.patches)[side])
    first: dict[bytes, int] = {}
    place = np.array([first.setdefault(row.tobytes(), len(first)) for row in ours], np.int64)
    representative = np.zeros(len(first), np.int64)
    representative[place[::-1]] = np.arange(len(ours))[::-1]
    warped = dtw(ours.take(representative), theirs, cost=settings.dtw_cost, normalize=settings.dtw_normalize)
    distance = warped[place].astype(np.float32)
    return Nearness(distance, np.ones_like(distance))


def sorted_rows(rows: Ragged) -> Ragged:
    """Every row in rising order."""
    return Ragged(rows.values[np.lexsort((rows.values, rows.row_ids))], rows.offsets)
