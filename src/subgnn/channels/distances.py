"""Distances of components to nodes of their own, in bounded memory.

Most own anchors are near: :func:`~subgnn.kernels.nearby_distances.near_hops` settles them by looking at the
surroundings alone. For the pairs it leaves open, a search across the graph goes from the nodes of components or from
the anchors, whichever are fewer, many sources at once; or, where the settings say ``own_hops = "bounded"``, the least
of the bound that is known and the detour by a landmark is taken (:mod:`subgnn.channels.landmarks`).

Work is cut into units of one component and some of its wanted nodes, and units are gathered until they make a few
million pairs, so memory follows neither N times anything nor the number of components. Sums of hops are whole numbers,
so what is left open can be added later without changing a bit of the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numba
import numpy as np
from numpy.typing import NDArray

from subgnn.channels.landmarks import landmark_hops, landmark_nodes
from subgnn.config.settings import PrepareSettings
from subgnn.data.graph import Graph
from subgnn.errors import UserError
from subgnn.kernels import pair_distances
from subgnn.kernels.distances import BYTES_A_NODE, WORD, Tally
from subgnn.kernels.nearby_distances import UNBOUNDED, near_hops
from subgnn.parallel.memory import limit, share, workers
from subgnn.parallel.progress import OnProgress, pieces
from subgnn.ragged import Ragged

Way = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]

PAIRS_AT_ONCE = 2_000_000
OPEN_AT_ONCE = 8_000_000
_WHAT = "hops to own anchors"
_BYTES_OPEN = 640  # of an open pair: its ends, its slot, and the hops of both ends to 64 landmarks
_LARGE = 2_000_000  # entries; in a smaller graph a search across it costs less than many small ones
_EDGES = 1024


@dataclass(slots=True)
class _Open:
    """Pairs whose distance is not settled: a place in the tally, a node, an anchor, and an upper bound."""

    slots: list[NDArray[np.int64]] = field(default_factory=list)
    nodes: list[NDArray[np.int32]] = field(default_factory=list)
    anchors: list[NDArray[np.int32]] = field(default_factory=list)
    bounds: list[NDArray[np.int32]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self.slots))


def own_measures(
    graph: Graph,
    components: Ragged,
    wanted: Ragged,
    *,
    nearest: bool,
    settings: PrepareSettings | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Distance of each component to its wanted nodes, and the fraction of its nodes that reach them.

    Args:
        wanted: a row for each component, sorted.
        nearest: take the smallest distance over the component, else the mean.
        settings: how far distances are exact; all are, unless they say otherwise.

    Shapes:
        returns: both (wanted nodes in all,) float32.
    """
    settings = PrepareSettings() if settings is None else settings
    bounded = settings.own_hops == "bounded"
    cutoff, cap = (settings.hop_cutoff, settings.hop_edges) if bounded else (UNBOUNDED, _EDGES)
    if not bounded and len(graph.neighbors) < _LARGE:
        cutoff = 2
    tally, left = Tally.zeros(len(wanted.values)), _Open()
    at_once = min(OPEN_AT_ONCE, max(1, share(0.15) // _BYTES_OPEN))
    owner, bounds = _units(components.lengths, wanted)
    pairs = np.cumsum(components.lengths[owner] * np.diff(bounds))
    begin, done = 0, 0
    while begin < len(owner):
        if on_progress is not None:
            on_progress(_WHAT, begin, len(owner))
        # At least one unit, and as many as fit.
        end = max(begin + 1, int(np.searchsorted(pairs, done + PAIRS_AT_ONCE, side="right")))
        nodes = components.take(owner[begin:end])
        anchors = Ragged(wanted.values[bounds[begin] : bounds[end]], bounds[begin : end + 1] - bounds[begin])
        if settings.directed and graph.oriented is not None:
            # What is near without orientations may be far with them.
            hops = np.full(int((nodes.lengths * anchors.lengths).sum()), UNBOUNDED, np.int32)
            unsettled = np.ones(len(hops), np.bool_)
        else:
            hops, unsettled = near_hops(*graph.csr, nodes, anchors, cutoff=cutoff, cap=cap)
        first = int(bounds[begin])
        tally.add_runs(hops, unsettled, nodes.lengths, anchors.lengths, first=first)
        _put_aside(left, hops, unsettled, nodes, anchors, first)
        if len(left) >= at_once:
            _settle(graph, left, tally, settings, on_progress)
            left = _Open()
        begin, done = end, int(pairs[end - 1])
    if on_progress is not None:
        on_progress(_WHAT, len(owner), len(owner))
    if len(left):
        _settle(graph, left, tally, settings, on_progress)
    sizes = np.repeat(components.lengths, wanted.lengths)
    return tally.measures(sizes, nearest=nearest)


def _units(sizes: NDArray[np.int64], wanted: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut the wanted nodes of very large components: the component of each unit, and the bounds of its wanted nodes."""
    fit = np.maximum(1, PAIRS_AT_ONCE // np.maximum(sizes, 1))
    count = -(-wanted.lengths // fit)
    owner = np.repeat(np.arange(len(wanted), dtype=np.int64), count)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    bounds = np.append(wanted.offsets[owner] + within * fit[owner], len(wanted.values))
    return owner, bounds


def _put_aside(
    left: _Open, hops: NDArray[np.int32], unsettled: NDArray[np.bool_], nodes: Ragged, anchors: Ragged, first: int
) -> None:
    """Keep the pairs that are not settled; a pair's place is in the run of its anchor over the component's nodes."""
    places = np.flatnonzero(unsettled)
    if not len(places):
        return
    sizes = np.repeat(nodes.lengths, anchors.lengths)  # of the run of each anchor
    starts = np.cumsum(sizes) - sizes
    run = np.searchsorted(starts, places, side="right") - 1
    owner = anchors.row_ids[run]
    left.slots.append(run + first)
    left.nodes.append(nodes.values[nodes.offsets[owner] + places - starts[run]].astype(np.int32))
    left.anchors.append(anchors.values[run].astype(np.int32))
    left.bounds.append(hops[places])


def _settle(graph: Graph, left: _Open, tally: Tally, settings: PrepareSettings, on_progress: OnProgress | None) -> None:
    nodes, anchors = np.concatenate(left.nodes), np.concatenate(left.anchors)
    if settings.own_hops == "bounded":
        detour = landmark_hops(graph, nodes, anchors, landmark_nodes(graph, settings.landmarks))
        hops = np.minimum(np.concatenate(left.bounds), detour)
        hops[hops == UNBOUNDED] = -1
    else:
        hops = _search(graph, nodes, anchors, settings, on_progress)
    tally.add_pairs(hops, np.concatenate(left.slots))


def _search(
    graph: Graph,
    nodes: NDArray[np.int32],
    anchors: NDArray[np.int32],
    settings: PrepareSettings,
    on_progress: OnProgress | None,
) -> NDArray[np.int32]:
    """Hops of pairs by searches across the graph, from the fewer of both ends; a source shared by many is one."""
    way, back = both_ways(graph, settings)
    near, far = nodes, anchors
    if len(np.unique(anchors)) < len(np.unique(nodes)):
        near, far, way = anchors, nodes, back
    order = np.argsort(near, kind="stable")
    sources, first = np.unique(near[order], return_index=True)
    rows = np.append(first, len(order)).astype(np.int64)
    hops = np.empty(len(order), np.int32)
    at_once = searches_at_once(graph)
    step = WORD * at_once
    most = None if at_once == numba.get_num_threads() else step
    for part in pieces(len(sources), step=step, most=most, what="hops to far own anchors", on_progress=on_progress):
        here = slice(int(rows[part.start]), int(rows[part.stop]))
        targets = Ragged(far[order[here]], rows[part.start : part.stop + 1] - here.start)
        hops[order[here]] = pair_distances(*way[:2], sources[part], targets, reverse=way[2:]).values
    return hops


def searches_at_once(graph: Graph) -> int:
    """How many words of sources are searched from at once: one a thread, as far as there is memory for their marks.

    Raises:
        UserError: where there is not even memory for one.
    """
    marks = BYTES_A_NODE * graph.num_nodes
    needed = marks + graph.offsets.nbytes + graph.neighbors.nbytes
    if needed > limit():
        what = f"the rows of the graph and the marks of one search are {needed / 1e9:.1f} of {limit() / 1e9:.1f} GB"
        raise UserError(
            what, where="--memory", hint="give more, fewer --processes, or no position and neighborhood channels"
        )
    return workers(marks, int(numba.get_num_threads()))


def both_ways(graph: Graph, settings: PrepareSettings) -> tuple[Way, Way]:
    """The edges to follow from a component to an anchor, and from an anchor back to a component.

    Each is out-edges and in-edges; all are the same unless hops follow orientations.
    """
    if not settings.directed or graph.oriented is None:
        return (*graph.csr, *graph.csr), (*graph.csr, *graph.csr)
    along, against = graph.oriented.csr, graph.oriented.reverse().csr
    return (*along, *against), (*against, *along)
