"""Distances of components to nodes of their own, in bounded memory.

A search can go from the nodes of a component to its wanted nodes or the other way round, since hops count the same both
ways: it goes from the fewer. Sources that several components share are searched from once. Work is cut into units of
one component and some of its wanted nodes, and units are gathered until they make a few million pairs; a unit has at
most that many pairs, or one for each node of its component, so memory follows neither N times anything nor the number
of components.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.kernels import pair_distances
from subgnn.kernels.bfs import WORD
from subgnn.kernels.reduce import reduce_pairs
from subgnn.pacing import OnProgress, pieces
from subgnn.ragged import Ragged

PAIRS_AT_ONCE = 4_000_000


def own_measures(
    graph: Graph, components: Ragged, wanted: Ragged, *, nearest: bool, on_progress: OnProgress | None = None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Distance of each component to its wanted nodes, and the fraction of its nodes that reach them.

    Args:
        wanted: a row for each component, sorted.
        nearest: take the smallest distance over the component, else the mean.

    Shapes:
        returns: both (wanted nodes in all,) float32.
    """
    distance, reached = (np.zeros(len(wanted.values), np.float32) for _ in range(2))
    owner, bounds = _units(components.lengths, wanted)
    pairs = np.cumsum(components.lengths[owner] * np.diff(bounds))
    begin, done = 0, 0
    while begin < len(owner):
        # At least one unit, and as many as fit.
        end = max(begin + 1, int(np.searchsorted(pairs, done + PAIRS_AT_ONCE, side="right")))
        nodes = components.take(owner[begin:end])
        anchors = Ragged(wanted.values[bounds[begin] : bounds[end]], bounds[begin : end + 1] - bounds[begin])
        told = on_progress if on_progress is None else _within(on_progress, begin, end, len(owner))
        here = slice(int(bounds[begin]), int(bounds[end]))
        distance[here], reached[here] = _measure(graph, nodes, anchors, nearest=nearest, on_progress=told)
        begin, done = end, int(pairs[end - 1])
    return distance, reached


def _units(sizes: NDArray[np.int64], wanted: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut the wanted nodes of very large components: the component of each unit, and the bounds of its wanted nodes."""
    fit = np.maximum(1, PAIRS_AT_ONCE // np.maximum(sizes, 1))
    count = -(-wanted.lengths // fit)
    owner = np.repeat(np.arange(len(wanted), dtype=np.int64), count)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    bounds = np.append(wanted.offsets[owner] + within * fit[owner], len(wanted.values))
    return owner, bounds


def _within(on_progress: OnProgress, begin: int, end: int, total: int) -> OnProgress:
    """Report a share of the units ``begin`` to ``end`` as units of all."""
    return lambda what, done, count: on_progress(what, begin + (end - begin) * done // max(1, count), total)


def _measure(
    graph: Graph, nodes: Ragged, anchors: Ragged, *, nearest: bool, on_progress: OnProgress | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    turned = nodes.lengths > anchors.lengths
    count = len(nodes)
    both = Ragged.from_lengths(
        np.concatenate([nodes.values, anchors.values]), np.concatenate([nodes.lengths, anchors.lengths])
    )
    near = both.take(np.arange(count) + count * turned)
    order = np.argsort(near.values, kind="stable")
    far = both.take(near.row_ids[order] + count * ~turned[near.row_ids[order]])
    sources, first = np.unique(near.values[order], return_index=True)
    rows = far.offsets[np.append(first, len(order))]
    hops = np.empty(len(far.values), np.int32)
    step = WORD * int(numba.get_num_threads())
    for part in pieces(len(sources), step=step, what="hops to own anchors", on_progress=on_progress):
        here = slice(int(rows[part.start]), int(rows[part.stop]))
        targets = Ragged(far.values[here], rows[part.start : part.stop + 1] - here.start)
        hops[here] = pair_distances(*graph.csr, sources[part], targets).values
    starts = np.empty(len(order), np.int64)
    starts[order] = far.offsets[:-1]
    return reduce_pairs(
        hops, Ragged(starts, near.offsets), sizes=nodes.lengths, anchors=anchors.offsets, turned=turned, nearest=nearest
    )
