"""Hops between the nodes of a component and anchors near it, found without looking at the rest of the graph.

For an anchor a, members adjacent to it are found by looking up the shorter of two sorted rows in the longer. A path
inside the component then bounds every other member: d(u, a) <= d_c(u, v) + d(v, a). What is no neighbour is at least 2
hops away, and 2 exactly where two rows share a node; so bounds of 2, and bounds of 3 where rows share none, are exact.
This settles nearly all anchors at a 1-hop border.

For the rest, two searches meet in the middle, one from the anchor, which all members share, and one from the member;
the one that is cheaper to go on with goes on. With all nodes within R of one end and within R' of the other known, and
no node in both, the distance is at least R + R' + 1. A search ends when that reaches the bound, when it exceeds a
cut-off, or when a search would look at more edges than it may: hubs cost no more than other nodes. Sets of nodes are
small hash tables: memory does not grow with N.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, csr, frozen, num_chunks, sets
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.kernels.induced import contains, induced_csr, inside_row, lower_bound
from subgnn.ragged import Ragged

UNBOUNDED = np.iinfo(np.int32).max
_UNREACHED = -1
_HASH = np.uint64(2654435769)
_COUNT, _LEVEL, _RADIUS, _EDGES, _NEXT = range(5)  # of a ball: nodes, where the last level begins, and edges


@compiled
def _slot(keys: Array, node: int) -> Any:
    """Where a node is in a hash table, or the free place where it would be."""
    mask = len(keys) - 1
    at = np.int64((np.uint64(node) * _HASH) >> np.uint64(16)) & mask
    while keys[at] != node and keys[at] != -1:
        at = (at + 1) & mask
    return at


@compiled
def _restart(offsets: Array, keys: Array, level: Array, nodes: Array, ball: Array, centre: int) -> None:
    """Empty a ball, and put a node into its middle."""
    for i in range(ball[_COUNT]):
        # Free places are marked only after all are found: a search passes over those in use.
        nodes[i] = _slot(keys, nodes[i])
    for i in range(ball[_COUNT]):
        keys[nodes[i]] = -1
    at = _slot(keys, centre)
    keys[at], level[at], nodes[0] = centre, 0, centre
    ball[_COUNT], ball[_LEVEL], ball[_RADIUS], ball[_EDGES] = 1, 0, 0, 0
    ball[_NEXT] = offsets[centre + 1] - offsets[centre]


@compiled
def _grow(
    offsets: Array, neighbors: Array, keys: Array, level: Array, nodes: Array, ball: Array, other_keys: Array
) -> bool:
    """Add a level to a ball; returns whether it now meets the other one."""
    met = False
    begin, end, radius = ball[_LEVEL], ball[_COUNT], ball[_RADIUS] + 1
    count, following = end, 0
    for i in range(begin, end):
        for e in range(offsets[nodes[i]], offsets[nodes[i] + 1]):
            w = neighbors[e]
            at = _slot(keys, w)
            if keys[at] == -1:
                keys[at], level[at], nodes[count] = w, radius, w
                count += 1
                following += offsets[w + 1] - offsets[w]
                met |= other_keys[_slot(other_keys, w)] == w
    ball[_EDGES] += ball[_NEXT]
    ball[_COUNT], ball[_LEVEL], ball[_RADIUS], ball[_NEXT] = count, end, radius, following
    return met


@compiled
def _touches(offsets: Array, neighbors: Array, nodes: Array, ball: Array, node: int) -> bool:
    """Whether a node of a ball's last level is a neighbour of ``node``, a hub whose row is too long to walk over."""
    for i in range(ball[_LEVEL], ball[_COUNT]):
        if contains(neighbors, offsets[node], offsets[node + 1], nodes[i]):
            return True
    return False


@compiled
def _meet(
    offsets: Array,
    neighbors: Array,
    anchor: int,
    node: int,
    bound: int,
    cutoff: int,
    cap: int,
    keys: Array,
    level: Array,
    nodes: Array,
    ball: Array,
    other_keys: Array,
    other_level: Array,
    other_nodes: Array,
    other_ball: Array,
) -> tuple[int, bool]:
    """The distance of a node to the anchor, whose ball is kept from node to node, and whether it is exact."""
    at = _slot(keys, node)
    if keys[at] == node:
        return level[at], True
    _restart(offsets, other_keys, other_level, other_nodes, other_ball, node)
    hub, far_hub = other_ball[_NEXT] > cap, offsets[anchor + 1] - offsets[anchor] > cap
    if hub and not far_hub and ball[_RADIUS] > 0 and _touches(offsets, neighbors, nodes, ball, node):
        return ball[_RADIUS] + 1, True
    while True:
        # At the row of a hub one more hop is looked up.
        least = ball[_RADIUS] + other_ball[_RADIUS] + 1 + (hub or far_hub)
        if least >= bound:
            return bound, True
        ours = ball[_EDGES] + ball[_NEXT] <= cap
        theirs = other_ball[_EDGES] + other_ball[_NEXT] <= cap
        if least > cutoff or not (ours or theirs):
            return bound, False
        if ours and (ball[_NEXT] <= other_ball[_NEXT] or not theirs):
            met = _grow(offsets, neighbors, keys, level, nodes, ball, other_keys)
            spent = ball[_NEXT] == 0
            touching = hub and _touches(offsets, neighbors, nodes, ball, node)
        else:
            met = _grow(offsets, neighbors, other_keys, other_level, other_nodes, other_ball, keys)
            spent = other_ball[_NEXT] == 0
            touching = far_hub and _touches(offsets, neighbors, other_nodes, other_ball, anchor)
        if met:
            return ball[_RADIUS] + other_ball[_RADIUS], True
        if touching:
            return ball[_RADIUS] + other_ball[_RADIUS] + 1, True
        if spent:
            return _UNREACHED, True


@compiled
def _relax(local_offsets: Array, local_neighbors: Array, hops: Array, queue: Array, end: int) -> None:
    """Lower the bounds of all members by paths inside the component, from the ``end`` ones in ``queue``, all equal."""
    begin = 0
    while begin < end:
        v = queue[begin]
        begin += 1
        for e in range(local_offsets[v], local_offsets[v + 1]):
            if hops[local_neighbors[e]] > hops[v] + 1:
                hops[local_neighbors[e]] = hops[v] + 1
                queue[end] = local_neighbors[e]
                end += 1


@compiled
def _share(offsets: Array, neighbors: Array, a: int, b: int, cap: int) -> int:
    """1 where two nodes have a neighbour in common, 0 where they have none, -1 where both have too many to tell."""
    if offsets[a + 1] - offsets[a] > offsets[b + 1] - offsets[b]:
        a, b = b, a
    begin, end = offsets[a], min(offsets[a + 1], offsets[a] + cap)
    place, last = offsets[b], offsets[b + 1]
    for e in range(begin, end):
        place = lower_bound(neighbors, place, last, neighbors[e])
        if place == last:
            return 0
        if neighbors[place] == neighbors[e]:
            return 1
    return 0 if end == offsets[a + 1] else -1


@compiled
def _bound(
    offsets: Array,
    neighbors: Array,
    members: Array,
    local_offsets: Array,
    local_neighbors: Array,
    anchor: int,
    cap: int,
    hops: Array,
    unsettled: Array,
    row: Array,
    queue: Array,
) -> int:
    """Bounds of the distances of all members to an anchor by rows alone; returns how many may not be exact."""
    hops[:] = UNBOUNDED
    place = lower_bound(members, 0, len(members), anchor)
    if place < len(members) and members[place] == anchor:
        hops[place], queue[0] = 0, place
        _relax(local_offsets, local_neighbors, hops, queue, 1)
    adjacent = 0
    for k in range(inside_row(offsets, neighbors, members, anchor, row)):
        if hops[row[k]] > 1:
            hops[row[k]], queue[adjacent] = 1, row[k]
            adjacent += 1
    _relax(local_offsets, local_neighbors, hops, queue, adjacent)
    found = 0
    for i in range(len(members)):
        unsettled[i] = hops[i] > 2
        if unsettled[i]:
            shared = _share(offsets, neighbors, members[i], anchor, cap)
            row[i] = shared
            if shared == 1:
                queue[found] = i
                found += 1
    for k in range(found):
        hops[queue[k]] = 2
    _relax(local_offsets, local_neighbors, hops, queue, found)
    count = 0
    for i in range(len(members)):
        # Without a neighbour in common they are 3 hops apart at least.
        unsettled[i] &= row[i] != 1 and not (row[i] == 0 and hops[i] == 3)
        count += unsettled[i]
    return count


@compiled_parallel
def _near_hops(
    offsets: Array,
    neighbors: Array,
    values: Array,
    rows: Array,
    anchors: Array,
    anchor_rows: Array,
    starts: Array,
    cutoff: int,
    cap: int,
    bounds: Array,
    hops: Array,
    unsettled: Array,
) -> None:
    size = 1
    while size < 2 * (cap + 2):
        size *= 2
    for chunk in prange(len(bounds) - 1):
        keys, other_keys = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
        level, other_level = np.empty(size, np.int32), np.empty(size, np.int32)
        nodes, other_nodes = np.empty(cap + 2, np.int32), np.empty(cap + 2, np.int32)
        ball, other_ball = np.zeros(5, np.int64), np.zeros(5, np.int64)
        for c in range(bounds[chunk], bounds[chunk + 1]):
            members = values[rows[c] : rows[c + 1]]
            count = len(members)
            local_offsets, local_neighbors = induced_csr(offsets, neighbors, members)
            row, queue = np.empty(count, np.int32), np.empty(count + 1, np.int32)
            for k in range(anchor_rows[c + 1] - anchor_rows[c]):
                a = anchors[anchor_rows[c] + k]
                at = starts[c] + k * count
                found, open_ = hops[at : at + count], unsettled[at : at + count]
                left = _bound(
                    offsets, neighbors, members, local_offsets, local_neighbors, a, cap, found, open_, row, queue
                )
                if left > 0 and cutoff > 2:
                    _restart(offsets, keys, level, nodes, ball, a)
                    for i in range(count):
                        if open_[i]:
                            before = found[i]
                            found[i], exact = _meet(
                                offsets,
                                neighbors,
                                a,
                                members[i],
                                before,
                                cutoff,
                                cap,
                                keys,
                                level,
                                nodes,
                                ball,
                                other_keys,
                                other_level,
                                other_nodes,
                                other_ball,
                            )
                            open_[i] = not exact
                            if 0 <= found[i] < before:
                                queue[0] = i
                                _relax(local_offsets, local_neighbors, found, queue, 1)


def near_hops(
    offsets: Array, neighbors: Array, components: Ragged, anchors: Ragged, *, cutoff: int, cap: int
) -> tuple[Array, Array]:
    """Hops between every member of a component and each of its anchors, where a look at their surroundings tells them.

    Args:
        components: node sets, sorted; they need not be connected.
        anchors: a row of nodes for each component, in any order.
        cutoff: distances up to this are found exactly, those of 1, 2 and what bounds settle in any case.
        cap: how many edges each of two searches may look at.

    Shapes:
        returns: hops and unsettled, for each component and anchor a run over the component's nodes; int32 and bool.
        Settled hops are exact, -1 where there is no path. Unsettled ones are an upper bound, or :data:`UNBOUNDED`.

    Example:
        On the path 0 - 1 - 2 - 3, from {0, 1} to 3.

        >>> path = np.array([0, 1, 3, 5, 6]), np.array([1, 0, 2, 1, 3, 2])
        >>> hops, unsettled = near_hops(*path, Ragged.from_rows([[0, 1]]), Ragged.from_rows([[3]]), cutoff=3, cap=9)
        >>> hops.tolist(), unsettled.tolist()
        ([3, 2], [False, False])
    """
    values, rows = sets(components)
    wanted, wanted_rows = sets(anchors)
    starts = np.zeros(len(components) + 1, np.int64)
    np.cumsum(components.lengths * anchors.lengths, out=starts[1:])
    hops, unsettled = np.empty(int(starts[-1]), np.int32), np.empty(int(starts[-1]), np.bool_)
    bounds = frozen(np.linspace(0, len(components), num_chunks(len(components)) + 1).round(), np.int64)
    if len(hops):
        _near_hops(
            *csr(offsets, neighbors),
            values,
            rows,
            wanted,
            wanted_rows,
            frozen(starts, np.int64),
            cutoff,
            cap,
            bounds,
            hops,
            unsettled,
        )
    return hops, unsettled
