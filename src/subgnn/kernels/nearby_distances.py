"""Hop distances between the nodes of a component and anchors near it, without a search of the whole graph.

For an anchor a, members adjacent to it are found by looking up the shorter of two sorted rows in the longer. A path
inside the component then bounds every other member: d(u, a) <= d_c(u, v) + d(v, a). A node that is not a neighbour is
exactly 2 hops away if two rows share a node, and 3 at least if not, which settles nearly all anchors at a 1-hop border.

For the rest, two searches meet in the middle, one from the anchor, which all members share, and one from the member;
the cheaper one goes on. With all nodes within R and R' of the ends known, and no node in both, the distance is at least
R + R' + 1. A search ends when that reaches the bound or exceeds a cut-off, or when it would look at too many edges.
Sets of nodes are small hash tables: memory does not grow with N.
"""

from typing import Any

import numpy as np

from subgnn.kernels.arrays import Array, Csr, Sets, compiled, compiled_parallel, csr, frozen, sets
from subgnn.kernels.induced import contains, induced_csr, inside_row, lower_bound
from subgnn.ragged import Ragged

UNBOUNDED = np.iinfo(np.int32).max
_UNREACHED = -1
_HASH = np.uint64(2654435769)
_COUNT, _LEVEL, _RADIUS, _EDGES, _NEXT = range(5)  # fields of a ball's state: nodes, start of the last level, edges

Ball = tuple[Array, Array, Array, Array]
"""The nodes within a radius of a centre: a hash table (keys and levels), the nodes by level, and the state."""


@compiled
def slot(keys: Array, node: int) -> Any:
    """Where a node is in an open hash table, or the free place, which holds -1, where it would be."""
    mask = len(keys) - 1
    at = np.int64((np.uint64(node) * _HASH) >> np.uint64(16)) & mask
    while keys[at] != node and keys[at] != -1:
        at = (at + 1) & mask
    return at


@compiled
def _new_ball(size: int, cap: int) -> Ball:
    return np.full(size, -1, np.int32), np.empty(size, np.int32), np.empty(cap + 2, np.int32), np.zeros(5, np.int64)


@compiled
def _restart(offsets: Array, ball: Ball, centre: int) -> None:
    """Empty a ball, and put a node into its middle."""
    keys, level, nodes, state = ball
    for i in range(state[_COUNT]):
        # Free places are marked only after all are found: a search passes over those in use.
        nodes[i] = slot(keys, nodes[i])
    for i in range(state[_COUNT]):
        keys[nodes[i]] = -1
    at = slot(keys, centre)
    keys[at], level[at], nodes[0] = centre, 0, centre
    state[_COUNT], state[_LEVEL], state[_RADIUS], state[_EDGES] = 1, 0, 0, 0
    state[_NEXT] = offsets[centre + 1] - offsets[centre]


@compiled
def _grow(graph: Csr, ball: Ball, other: Ball) -> bool:
    """Add a level to a ball; returns whether it now meets the other one."""
    offsets, neighbors = graph
    keys, level, nodes, state = ball
    other_keys = other[0]
    met = False
    begin, end, radius = state[_LEVEL], state[_COUNT], state[_RADIUS] + 1
    count, following = end, 0
    for i in range(begin, end):
        for e in range(offsets[nodes[i]], offsets[nodes[i] + 1]):
            w = neighbors[e]
            at = slot(keys, w)
            if keys[at] == -1:
                keys[at], level[at], nodes[count] = w, radius, w
                count += 1
                following += offsets[w + 1] - offsets[w]
                met |= other_keys[slot(other_keys, w)] == w
    state[_EDGES] += state[_NEXT]
    state[_COUNT], state[_LEVEL], state[_RADIUS], state[_NEXT] = count, end, radius, following
    return met


@compiled
def _touches(graph: Csr, ball: Ball, node: int) -> bool:
    """Whether a node of a ball's last level is a neighbour of ``node``, a hub whose row is too long to walk over."""
    offsets, neighbors = graph
    _, _, nodes, state = ball
    for i in range(state[_LEVEL], state[_COUNT]):
        if contains(neighbors, offsets[node], offsets[node + 1], nodes[i]):
            return True
    return False


@compiled
def _meet(
    graph: Csr, anchor: int, node: int, bound: int, limits: tuple[int, int], around: Ball, other: Ball
) -> tuple[int, bool]:
    """The distance of a node to the anchor, and whether it is exact; else it is ``bound``, an upper bound.

    ``limits`` are the cut-off and the edges a search may look at; ``around`` is the ball around the anchor, which all
    nodes of a component use, and ``other`` one that may be overwritten.
    """
    offsets, _ = graph
    cutoff, cap = limits
    keys, level, _, ball = around
    other_ball = other[3]
    at = slot(keys, node)
    if keys[at] == node:
        return level[at], True
    _restart(offsets, other, node)
    hub, far_hub = other_ball[_NEXT] > cap, offsets[anchor + 1] - offsets[anchor] > cap
    if hub and not far_hub and ball[_RADIUS] > 0 and _touches(graph, around, node):
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
            met = _grow(graph, around, other)
            spent = ball[_NEXT] == 0
            touching = hub and _touches(graph, around, node)
        else:
            met = _grow(graph, other, around)
            spent = other_ball[_NEXT] == 0
            touching = far_hub and _touches(graph, other, anchor)
        if met:
            return ball[_RADIUS] + other_ball[_RADIUS], True
        if touching:
            return ball[_RADIUS] + other_ball[_RADIUS] + 1, True
        if spent:
            return _UNREACHED, True


@compiled
def _relax(local: Csr, hops: Array, queue: Array, end: Any) -> None:
    """Lower the bounds of all members by paths inside the component, from the ``end`` ones in ``queue``, all equal."""
    local_offsets, local_neighbors = local
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
def _share(graph: Csr, a: int, b: int, cap: int) -> int:
    """1 if two nodes have a neighbour in common, 0 if they have none, -1 if both have too many to look at."""
    offsets, neighbors = graph
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
    graph: Csr,
    members: Array,
    local: Csr,
    anchor: int,
    cap: int,
    out: tuple[Array, Array],
    scratch: tuple[Array, Array],
) -> int:
    """Bound the distances of all members to an anchor by rows alone; returns how many may not be exact.

    Fills ``out``, the hops and whether they are unsettled. ``local`` is the induced subgraph of the members.
    """
    hops, unsettled = out
    row, queue = scratch
    hops[:] = UNBOUNDED
    place = lower_bound(members, 0, len(members), anchor)
    if place < len(members) and members[place] == anchor:
        hops[place], queue[0] = 0, place
        _relax(local, hops, queue, np.int64(1))
    adjacent = np.int64(0)
    for k in range(inside_row(graph, members, anchor, row)):
        if hops[row[k]] > 1:
            hops[row[k]], queue[adjacent] = 1, row[k]
            adjacent += 1
    _relax(local, hops, queue, adjacent)
    found = np.int64(0)
    for i in range(len(members)):
        unsettled[i] = hops[i] > 2
        if unsettled[i]:
            shared = _share(graph, members[i], anchor, cap)
            row[i] = shared
            if shared == 1:
                queue[found] = i
                found += 1
    for k in range(found):
        hops[queue[k]] = 2
    _relax(local, hops, queue, found)
    count = 0
    for i in range(len(members)):
        # Without a neighbour in common they are 3 hops apart at least.
        unsettled[i] &= row[i] != 1 and not (row[i] == 0 and hops[i] == 3)
        count += unsettled[i]
    return count


@compiled_parallel
def _near_hops(
    begin: int,
    end: int,
    graph: Csr,
    components: Sets,
    wanted: Sets,
    starts: Array,
    limits: tuple[int, int],
    out: tuple[Array, Array],
) -> None:
    values, rows = components
    anchors, anchor_rows = wanted
    cutoff, cap = limits
    hops, unsettled = out
    size = 1
    while size < 2 * (cap + 2):
        size *= 2
    around, other = _new_ball(size, cap), _new_ball(size, cap)
    for c in range(begin, end):
        members = values[rows[c] : rows[c + 1]]
        count = len(members)
        local = induced_csr(graph, members)
        row, queue = np.empty(count, np.int32), np.empty(count + 1, np.int32)
        for k in range(anchor_rows[c + 1] - anchor_rows[c]):
            a = anchors[anchor_rows[c] + k]
            at = starts[c] + k * count
            found, open_ = hops[at : at + count], unsettled[at : at + count]
            left = _bound(graph, members, local, a, cap, (found, open_), (row, queue))
            if left > 0 and cutoff > 2:
                _restart(graph[0], around, a)
                for i in range(count):
                    if open_[i]:
                        before = found[i]
                        found[i], exact = _meet(graph, a, members[i], before, limits, around, other)
                        open_[i] = not exact
                        if 0 <= found[i] < before:
                            queue[0] = i
                            _relax(local, found, queue, np.int64(1))


def near_hops(
    offsets: Array, neighbors: Array, components: Ragged, anchors: Ragged, *, cutoff: int, cap: int
) -> tuple[Array, Array]:
    """Hops between members of components and each of their anchors, as far as their surroundings determine them.

    Distances of 1 and 2, and up to ``cutoff``, are exact, if two searches may look at ``cap`` edges each. Returns
    hops, a run over the component's nodes for each anchor, and whether they are unsettled: then they are an upper
    bound, or :data:`UNBOUNDED`. Settled hops are exact, -1 where there is no path.
    """
    starts = np.zeros(len(components) + 1, np.int64)
    np.cumsum(components.lengths * anchors.lengths, out=starts[1:])
    hops, unsettled = np.empty(int(starts[-1]), np.int32), np.empty(int(starts[-1]), np.bool_)
    if len(hops):
        graph, family, out = csr(offsets, neighbors), sets(components), (hops, unsettled)
        _near_hops(len(components), graph, family, sets(anchors), frozen(starts, np.int64), (cutoff, cap), out)
    return hops, unsettled
