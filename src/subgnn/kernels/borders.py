"""k-hop borders: B_k(c), the nodes within k hops of a node set, the set itself excluded (paper, section 3.2).

A 2-hop border of a dense graph is nearly all of V, so it can be sampled without being stored: each thread explores one
set at a time in a buffer. For a directed graph pass its undirected form.

Draws from 1-hop borders need no mark for each of N nodes, and never walk over the longest row. The border of c is
(H - c) and E: H is the longest row among those of c's nodes, E the nodes that other rows add to it. Both are sorted, so
the node of a given rank is found by binary search.

Border nodes can also be ranked by weight. A node u of the 1-hop border of c has the weight

    w_cu = d_u^-b  sum over v in c with v ~ u of d_v^-a

d the degrees in G: with a = 1, b = 0 it is the amount that arrives at u when every node of c hands out one unit, in
equal shares, to its neighbours. Weights are ranked in single precision, relative to the heaviest: sums that are equal
but for the order of their terms are ties, whatever that order was.
"""

import numpy as np

from subgnn.kernels.arrays import Array, Csr, Pair, Sets, Triple, compiled, compiled_parallel, csr, frozen, sets
from subgnn.kernels.draws import Key, item_keys, open_stream, uniform_below
from subgnn.kernels.induced import contains, lower_bound
from subgnn.ragged import Ragged


@compiled
def explore(graph: Csr, members: Array, hops: int, mark: Array, stamp: int, queue: Array) -> int:
    """Put ``members`` and their ``hops``-hop border into ``queue``, marked with ``stamp``; returns how many.

    Late levels are pulled: every node not yet met looks for one neighbour that is.
    """
    offsets, neighbors = graph
    n = len(offsets) - 1
    for i in range(len(members)):
        queue[i] = members[i]
        mark[members[i]] = stamp
    begin, end = 0, len(members)
    for _ in range(hops):
        push_cost = 0
        for i in range(begin, end):
            push_cost += offsets[queue[i] + 1] - offsets[queue[i]]
        level_end = end
        if push_cost > 8 * (n - end):
            # New nodes are marked after the sweep, so that they are not taken for the level before them.
            for v in range(n):
                if mark[v] != stamp:
                    for e in range(offsets[v], offsets[v + 1]):
                        if mark[neighbors[e]] == stamp:
                            queue[level_end] = v
                            level_end += 1
                            break
            for i in range(end, level_end):
                mark[queue[i]] = stamp
        else:
            for i in range(begin, end):
                for e in range(offsets[queue[i]], offsets[queue[i] + 1]):
                    v = neighbors[e]
                    if mark[v] != stamp:
                        mark[v] = stamp
                        queue[level_end] = v
                        level_end += 1
        begin, end = end, level_end
        if begin == end or end == n:
            break
    return end


@compiled_parallel
def _borders(
    begin: int, end: int, graph: Csr, components: Sets, hops: int, keys: Array, starts: Array, out: Triple
) -> None:
    """Fill the sizes of borders, the borders themselves unless there is no room for them, and draws from them."""
    sizes, borders, drawn = out
    n = len(graph[0]) - 1
    values, rows = components
    mark, queue = np.zeros(n, np.int32), np.empty(n, np.int32)
    for c in range(begin, end):
        members = values[rows[c] : rows[c + 1]]
        last = explore(graph, members, hops, mark, c + 1, queue)
        sizes[c] = last - len(members)
        if sizes[c] == 0 or (len(borders) == 0 and drawn.shape[1] == 0):
            continue
        # The border in rising order: a few nodes are sorted, many swept up from the marks.
        border = np.empty(sizes[c], np.int32)
        if sizes[c] * 48 < n:
            border = np.sort(queue[len(members) : last])
        else:
            found, member = 0, 0
            for v in range(n):
                if member < len(members) and members[member] == v:
                    member += 1
                elif mark[v] == c + 1:
                    border[found] = v
                    found += 1
        for i in range(len(border) if len(borders) > 0 else 0):
            borders[starts[c] + i] = border[i]
        # Draws are ranks in the sorted border, so they do not depend on how it was explored.
        state = open_stream(keys[c], 0)
        for i in range(drawn.shape[1]):
            drawn[c, i] = border[uniform_below(state, len(border))]


def border_sets(offsets: Array, neighbors: Array, components: Ragged, *, hops: int = 1) -> Ragged:
    """The border of every component, sorted."""
    graph, family, count = csr(offsets, neighbors), sets(components), len(components)
    sizes, keys, drawn = np.zeros(count, np.int64), item_keys(0, count), np.empty((count, 0), np.int32)
    _borders(count, graph, family, hops, keys, frozen(sizes, np.int64), (sizes, np.empty(0, np.int32), drawn))
    borders = Ragged.from_lengths(np.empty(int(sizes.sum()), np.int32), sizes)
    _borders(count, graph, family, hops, keys, frozen(borders.offsets, np.int64), (sizes, borders.values, drawn))
    return borders


def sample_borders(
    offsets: Array, neighbors: Array, components: Ragged, *, hops: int, draws: int, key: Key
) -> tuple[Ragged, Array]:
    """Uniform draws, with replacement, from the border of each component (no row if it has none), and its size."""
    count = len(components)
    sizes, out = np.zeros(count, np.int64), np.empty((count, draws), np.int32)
    graph, family, keys = csr(offsets, neighbors), sets(components), item_keys(key, count)
    if hops == 1:
        _sample_row_borders(count, graph, family, keys, sizes, out)
    else:
        _borders(count, graph, family, hops, keys, frozen(sizes, np.int64), (sizes, np.empty(0, np.int32), out))
    drawn = sizes > 0
    return Ragged.from_lengths(out[drawn].reshape(-1), np.where(drawn, draws, 0)), sizes


@compiled
def _added(graph: Csr, members: Array, hub: int) -> Array:
    """E: the neighbours of other members that are neither members nor neighbours of the hub, sorted, each once."""
    offsets, neighbors = graph
    room = 0
    for v in members:
        if v != hub:
            room += offsets[v + 1] - offsets[v]
    found = np.empty(room, np.int32)
    count = 0
    for v in members:
        if v != hub:
            for e in range(offsets[v], offsets[v + 1]):
                w = neighbors[e]
                inside = contains(members, 0, len(members), w)
                if not inside and not contains(neighbors, offsets[hub], offsets[hub + 1], w):
                    found[count] = w
                    count += 1
    found = found[:count]
    found.sort()
    distinct = 0
    for i in range(count):
        if i == 0 or found[i] != found[i - 1]:
            found[distinct] = found[i]
            distinct += 1
    return found[:distinct]


@compiled_parallel
def _sample_row_borders(begin: int, end: int, graph: Csr, family: Sets, keys: Array, sizes: Array, out: Array) -> None:
    """Fill ``sizes`` with those of the 1-hop borders, and ``out`` with draws: ranks in the sorted border."""
    offsets, neighbors = graph
    values, rows = family
    for c in range(begin, end):
        members = values[rows[c] : rows[c + 1]]
        if len(members) == 0:
            continue
        hub = members[0]
        for v in members:
            if offsets[v + 1] - offsets[v] > offsets[hub + 1] - offsets[hub]:
                hub = v
        lo, hi = offsets[hub], offsets[hub + 1]
        inner = np.empty(len(members), np.int64)  # where members stand in H
        moved = np.empty(len(members), np.int64)  # the same, less the number of members before
        count = 0
        for v in members:
            place = lower_bound(neighbors, lo, hi, v)
            if place < hi and neighbors[place] == v:
                inner[count], moved[count] = place - lo, place - lo - count
                count += 1
        added = _added(graph, members, hub)
        ranks = np.empty(len(added), np.int64)
        for k in range(len(added)):
            place = lower_bound(neighbors, lo, hi, added[k]) - lo
            ranks[k] = k + place - lower_bound(inner, 0, count, place)
        size = hi - lo - count + len(added)
        sizes[c] = size
        if size == 0:
            continue
        state = open_stream(keys[c], 0)
        for i in range(out.shape[1]):
            rank = uniform_below(state, size)
            k = lower_bound(ranks, 0, len(ranks), rank)
            if k < len(ranks) and ranks[k] == rank:
                out[c, i] = added[k]
            else:
                # The rank among H - c, moved on by the members that stand before it in H.
                place = rank - k
                out[c, i] = neighbors[lo + place + lower_bound(moved, 0, count, place + 1)]


BYTES_AN_EDGE = 48
"""The most memory that a thread needs for each edge of the nodes of one set."""


def heaviest_borders(offsets: Array, neighbors: Array, rows: Ragged, *, most: int, powers: tuple[float, float]) -> Pair:
    """The heaviest nodes of every set's 1-hop border, heaviest first; ties are broken by the lower node.

    Returns (C, most) nodes, and their weights, each row of norm 1; if there are fewer, the last node is repeated
    with weight 0, and if none, nodes are 0. The powers are a and b, from 0 to 4.
    """
    nodes, weights = np.zeros((len(rows), most), np.int32), np.zeros((len(rows), most), np.float32)
    _heaviest(len(rows), csr(offsets, neighbors), sets(rows), (float(powers[0]), float(powers[1])), nodes, weights)
    return nodes, weights


@compiled_parallel
def _heaviest(
    begin: int, end: int, graph: Csr, family: Sets, powers: tuple[float, float], out_nodes: Array, out_weights: Array
) -> None:
    offsets, neighbors = graph
    values, rows = family
    of_member, of_border = powers
    for c in range(begin, end):
        members = values[rows[c] : rows[c + 1]]
        edges = 0
        for v in members:
            edges += offsets[v + 1] - offsets[v]
        found, shares = np.empty(edges, np.int32), np.empty(edges, np.float64)
        count = 0
        for v in members:
            share = float(offsets[v + 1] - offsets[v]) ** -of_member
            for e in range(offsets[v], offsets[v + 1]):
                if not contains(members, 0, len(members), neighbors[e]):
                    found[count], shares[count] = neighbors[e], share
                    count += 1
        nodes, weights = np.empty(count, np.int32), np.empty(count, np.float64)
        distinct = 0
        for i in np.argsort(found[:count], kind="mergesort"):
            if distinct == 0 or nodes[distinct - 1] != found[i]:
                nodes[distinct], weights[distinct] = found[i], 0.0
                distinct += 1
            weights[distinct - 1] += shares[i]
        for i in range(distinct):
            weights[i] *= float(offsets[nodes[i] + 1] - offsets[nodes[i]]) ** -of_border
        if distinct > 0:
            relative = (weights[:distinct] / weights[:distinct].max()).astype(np.float32).astype(np.float64)
            order = np.argsort(-relative, kind="mergesort")[: out_nodes.shape[1]]
            length = np.sqrt(np.sum(relative[order] ** 2))
            out_nodes[c] = nodes[order[-1]]
            for k in range(len(order)):
                out_nodes[c, k], out_weights[c, k] = nodes[order[k]], relative[order[k]] / length
