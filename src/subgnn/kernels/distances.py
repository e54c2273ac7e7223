"""Hop distances by breadth-first search from many sources at once, 64 sources per machine word.

Bit ``s`` of ``seen[v]`` says that source ``s`` has reached node ``v``; bit ``s`` of ``front[v]`` that it did so at the
last level. One pass over the edges then advances 64 searches. A level is pushed along the edges of the few active
nodes, or pulled by the nodes that some source has still to reach, whichever touches fewer edges.

Memory is 32 bytes a node and thread, and one int32 for each wanted pair: never N x N.

Distances between the nodes of a component and anchors near it need no search of the whole graph (:func:`near_hops`).
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

from subgnn.kernels.arrays import Array, Csr, Pair, Sets, compiled, compiled_parallel, csr, even_bounds, frozen, sets
from subgnn.kernels.induced import contains, induced_csr, inside_row, lower_bound
from subgnn.ragged import Ragged

WORD = 64
BYTES_A_NODE = 32
UNREACHED = -1
DEEPEST, NO_PATH = 253, 255
"""The most hops that :func:`hops_to_all` counts, and its mark of a pair without a path."""
_ROWS = 2**16
UNBOUNDED = np.iinfo(np.int32).max
_PUSH_ADVANTAGE = 4  # a pulled edge is cheaper than a pushed one: sequential writes, and rows are left early
Search = tuple[Array, Array, Array]
"""The words ``seen``, ``front`` and ``reached`` (newly, at this level) of every node."""
Hops = tuple[Array, Array]
"""Distances, and whether they are unsettled: upper bounds alone."""


@compiled
def _start(n: int, sources: Array) -> tuple[Search, Array, np.uint64, int]:
    """A search with source ``s`` at its node, its queue, the word of all sources, and the number of active nodes."""
    seen, front, queue = np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.empty(2 * n, np.int32)
    count = 0
    for s in range(len(sources)):
        v = sources[s]
        if front[v] == 0:
            queue[count] = v
            count += 1
        front[v] |= np.uint64(1) << np.uint64(s)
        seen[v] = front[v]
    return (seen, front, np.zeros(n, np.uint64)), queue, ~np.uint64(0) >> np.uint64(WORD - len(sources)), count


@compiled
def _advance(graph: Csr, full: np.uint64, search: Search, queue: Array, count: int) -> int:
    """Advance by one level: fill ``front`` and ``queue`` with the newly reached nodes, and return their number."""
    offsets, neighbors = graph
    seen, front, reached = search
    n = len(seen)
    push_cost = 0
    for i in range(count):
        push_cost += offsets[queue[i] + 1] - offsets[queue[i]]
    pull_cost = n
    if push_cost * _PUSH_ADVANTAGE > n:
        for v in range(n):
            if seen[v] != full:
                pull_cost += offsets[v + 1] - offsets[v]
    found = 0
    if push_cost * _PUSH_ADVANTAGE <= pull_cost:
        # Newly reached nodes go behind the active ones in the same queue: there is room for both.
        for i in range(count):
            v = queue[i]
            bits = front[v]
            for e in range(offsets[v], offsets[v + 1]):
                u = neighbors[e]
                new = bits & ~seen[u]
                if new != 0:
                    if reached[u] == 0:
                        queue[n + found] = u
                        found += 1
                    reached[u] |= new
    else:
        for u in range(n):
            missing = full & ~seen[u]
            if missing != 0:
                new = np.uint64(0)
                for e in range(offsets[u], offsets[u + 1]):
                    new |= front[neighbors[e]]
                    if new & missing == missing:
                        break
                new &= missing
                if new != 0:
                    reached[u] = new
                    queue[n + found] = u
                    found += 1
    for i in range(count):
        front[queue[i]] = 0
    for i in range(found):
        u = queue[n + i]
        queue[i] = u
        front[u] = reached[u]
        seen[u] |= reached[u]
        reached[u] = 0
    return found


@compiled_parallel
def _hop_distances(begin: int, end: int, graph: Csr, sources: Array, targets: Array, deepest: int, out: Array) -> None:
    search, queue, full, count = _start(len(graph[0]) - 1, sources[begin:end])
    front = search[1]
    open_pairs = (end - begin) * len(targets)
    depth = 0
    while True:
        for t in range(len(targets)):
            bits = front[targets[t]]
            if bits != 0:
                for s in range(end - begin):
                    if (bits >> np.uint64(s)) & np.uint64(1):
                        out[t, begin + s] = depth
                        open_pairs -= 1
        if open_pairs == 0 or count == 0 or depth >= deepest:
            break
        depth += 1
        count = _advance(graph, full, search, queue, count)


@compiled_parallel
def _pair_distances(begin: int, end: int, graph: Csr, sources: Array, targets: Sets, out: Array) -> None:
    values, rows = targets
    search, queue, full, count = _start(len(graph[0]) - 1, sources[begin:end])
    front = search[1]
    pending = rows[end] - rows[begin]
    place, bit = np.empty(pending, np.int64), np.empty(pending, np.uint64)
    for s in range(begin, end):
        for i in range(rows[s], rows[s + 1]):
            place[i - rows[begin]] = i
            bit[i - rows[begin]] = np.uint64(1) << np.uint64(s - begin)
    depth = 0
    while True:
        kept = 0
        for p in range(pending):
            if front[values[place[p]]] & bit[p]:
                out[place[p]] = depth
            else:
                place[kept], bit[kept] = place[p], bit[p]
                kept += 1
        pending = kept
        if pending == 0 or count == 0:
            break
        depth += 1
        count = _advance(graph, full, search, queue, count)


def _word_bounds(num_sources: int) -> Array:
    """Cut the sources into as few words as hold them, evenly."""
    return even_bounds(num_sources, -(-num_sources // WORD)) if num_sources else frozen([0], np.int64)


def hop_distances(offsets: Array, neighbors: Array, sources: Array, targets: Array | None = None) -> Array:
    """Hops (S, T) from every source to every target, by default all nodes; -1 where there is no path."""
    sources, graph = frozen(sources, np.int32), csr(offsets, neighbors)
    wanted = frozen(np.arange(len(offsets) - 1) if targets is None else targets, np.int32)
    out = np.full((len(wanted), len(sources)), UNREACHED, np.int32)
    if out.size:
        _hop_distances(_word_bounds(len(sources)), graph, sources, wanted, UNBOUNDED, out)
    return out.T


def hops_to_all(offsets: Array, neighbors: Array, sources: Array) -> Array | None:
    """Hop distance (N, S) from every source to every node, one byte each; None if one exceeds :data:`DEEPEST`."""
    sources, graph = frozen(sources, np.int32), csr(offsets, neighbors)
    every = frozen(np.arange(len(offsets) - 1, dtype=np.int32), np.int32)
    out = np.full((len(every), len(sources)), NO_PATH, np.uint8)
    # A node further away has one at this distance on its path.
    _hop_distances(_word_bounds(len(sources)), graph, sources, every, DEEPEST + 1, out)
    deeper = ((out[begin : begin + _ROWS] == DEEPEST + 1).any() for begin in range(0, len(out), _ROWS))
    return None if any(deeper) else out


def pair_distances(offsets: Array, neighbors: Array, sources: Array, targets: Ragged) -> Ragged:
    """Hops from each source to its own row of targets, laid out as they are; -1 where there is no path."""
    sources, graph = frozen(sources, np.int32), csr(offsets, neighbors)
    out = np.full(len(targets.values), UNREACHED, np.int32)
    if out.size:
        _pair_distances(_word_bounds(len(sources)), graph, sources, sets(targets), out)
    return Ragged(out, targets.offsets)


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
            return UNREACHED, True


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
def _bound(graph: Csr, members: Array, local: Csr, anchor: int, cap: int, out: Hops, scratch: Pair) -> int:
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
    begin: int, end: int, graph: Csr, components: Sets, wanted: Sets, starts: Array, limits: tuple[int, int], out: Hops
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
            if _bound(graph, members, local, a, cap, (found, open_), (row, queue)) > 0 and cutoff > 2:
                _restart(graph[0], around, a)
                for i in range(count):
                    if open_[i]:
                        before = found[i]
                        found[i], exact = _meet(graph, a, members[i], before, limits, around, other)
                        open_[i] = not exact
                        if 0 <= found[i] < before:
                            queue[0] = i
                            _relax(local, found, queue, np.int64(1))


def near_hops(offsets: Array, neighbors: Array, components: Ragged, anchors: Ragged, *, cutoff: int, cap: int) -> Hops:
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
