"""Induced subgraphs: the edges among the nodes of a set, connected components, degrees, clustering and core numbers.

Both a row of the graph and a set are sorted, so the shorter is looked up in the longer: a hub with a million neighbours
costs a set of twenty nodes twenty look-ups. For a directed graph pass its undirected form.

*Internal degree* counts neighbours inside a set, *border degree* those outside (paper, appendix B). *Local clustering*
is the fraction of a node's pairs of neighbours that are joined, 0 if it has fewer than two. The *core number* is the
largest k such that a node belongs to a subgraph whose nodes all have k neighbours inside it.
"""

from dataclasses import dataclass

import numpy as np

from subgnn.kernels.arrays import Array, Csr, Sets, compiled, compiled_parallel, csr, frozen, read_only, sets
from subgnn.ragged import Ragged


@compiled
def lower_bound(row: Array, lo: int, hi: int, wanted: int) -> int:
    """First place in ``row[lo:hi]`` whose value is at least ``wanted``."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if row[middle] < wanted:
            lo = middle + 1
        else:
            hi = middle
    return lo


@compiled
def contains(row: Array, lo: int, hi: int, wanted: int) -> bool:
    """Whether ``wanted`` is in the sorted ``row[lo:hi]``."""
    place = lower_bound(row, lo, hi, wanted)
    return place < hi and row[place] == wanted


@compiled
def inside_row(graph: Csr, members: Array, node: int, out: Array) -> int:
    """Write the places in ``members`` of the neighbours of ``node`` to ``out``; returns how many there are."""
    offsets, neighbors = graph
    lo, hi = offsets[node], offsets[node + 1]
    found = 0
    if hi - lo <= len(members):
        start = 0
        for e in range(lo, hi):
            start = lower_bound(members, start, len(members), neighbors[e])
            if start == len(members):
                break
            if members[start] == neighbors[e]:
                out[found] = start
                found += 1
    else:
        for j in range(len(members)):
            lo = lower_bound(neighbors, lo, hi, members[j])
            if lo == hi:
                break
            if neighbors[lo] == members[j]:
                out[found] = j
                found += 1
    return found


@compiled
def induced_csr(graph: Csr, members: Array) -> Csr:
    """The induced subgraph in CSR form, its nodes numbered by their place in ``members``."""
    size = len(members)
    local_offsets = np.zeros(size + 1, np.int64)
    row = np.empty(size, np.int32)
    local_neighbors = np.empty(max(4 * size, 16), np.int32)
    total = 0
    for i in range(size):
        found = inside_row(graph, members, members[i], row)
        if total + found > len(local_neighbors):
            grown = np.empty(2 * (total + found), np.int32)
            for k in range(total):
                grown[k] = local_neighbors[k]
            local_neighbors = grown
        for k in range(found):
            local_neighbors[total + k] = row[k]
        total += found
        local_offsets[i + 1] = total
    return read_only(local_offsets), read_only(local_neighbors[:total])


@compiled_parallel
def _inside_degrees(begin: int, end: int, graph: Csr, family: Sets, out: Array) -> None:
    values, rows = family
    for s in range(begin, end):
        members = values[rows[s] : rows[s + 1]]
        scratch = np.empty(len(members), np.int32)
        for i in range(len(members)):
            out[rows[s] + i] = inside_row(graph, members, members[i], scratch)


def inside_degrees(offsets: Array, neighbors: Array, rows: Ragged) -> tuple[Ragged, Ragged]:
    """Internal and border degree of every node of every set, laid out as ``rows``."""
    values = sets(rows)[0]
    inside = np.zeros(len(values), np.int64)
    _inside_degrees(len(rows), csr(offsets, neighbors), sets(rows), inside)
    total = np.asarray(offsets)[values.astype(np.int64) + 1] - np.asarray(offsets)[values]
    return Ragged(inside, rows.offsets), Ragged(total - inside, rows.offsets)


@compiled_parallel
def _induce(begin: int, end: int, graph: Csr, family: Sets, starts: Array, out: Array) -> None:
    values, rows = family
    for s in range(begin, end):
        members = values[rows[s] : rows[s + 1]]
        for i in range(rows[s], rows[s + 1]):
            row = out[starts[i] : starts[i + 1]]
            inside_row(graph, members, values[i], row)
            for k in range(len(row)):
                row[k] += rows[s]


def induced_graph(offsets: Array, neighbors: Array, rows: Ragged) -> Csr:
    """All induced subgraphs as one graph, whose node ``i`` is ``rows.values[i]`` as a member of its set."""
    starts = frozen(np.append(0, np.cumsum(inside_degrees(offsets, neighbors, rows)[0].values)), np.int64)
    out = np.empty(int(starts[-1]), np.int32)
    _induce(len(rows), csr(offsets, neighbors), sets(rows), starts, out)
    return csr(starts, out)


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """The components of every subgraph (C rows, sorted), their subgraphs (C,), and their number in each subgraph."""

    nodes: Ragged
    subgraph: Array
    counts: Array


@compiled
def _label(graph: Csr, labels: Array) -> None:
    """Number the components from 0, in the order of their first nodes; labels are -1 before."""
    offsets, neighbors = graph
    queue, count = np.empty(len(labels), np.int32), 0
    for start in range(len(labels)):
        if labels[start] < 0:
            labels[start], queue[0], found, at = count, start, 1, 0
            while at < found:
                v = queue[at]
                at += 1
                for e in range(offsets[v], offsets[v + 1]):
                    if labels[neighbors[e]] < 0:
                        labels[neighbors[e]], queue[found] = count, neighbors[e]
                        found += 1
            count += 1


def induced_components(offsets: Array, neighbors: Array, subgraphs: Ragged) -> Components:
    """Split every subgraph into its connected components."""
    return components_of(induced_graph(offsets, neighbors, subgraphs), subgraphs)


def components_of(induced: Csr, subgraphs: Ragged) -> Components:
    """The same by the :func:`induced_graph` of the subgraphs."""
    labels = np.full(len(subgraphs.values), -1, np.int64)
    _label(induced, labels)
    # A stable sort keeps the nodes of a component in the rising order they have in the subgraph.
    order, lengths = np.argsort(labels, kind="stable"), np.bincount(labels)
    nodes = Ragged.from_lengths(sets(subgraphs)[0][order], lengths)
    subgraph = subgraphs.row_ids[order[nodes.offsets[:-1]]]
    return Components(nodes, subgraph, np.bincount(subgraph, minlength=len(subgraphs)))


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Sizes and densities of node sets S, (sets,) each.

    density is 2 |E_S| / (|S| (|S| - 1)), 0 for a single node; cut_ratio is |B_S| / (|S| |V - S|) with B_S the edges
    that leave S, 0 where S is all of V.
    """

    nodes: Array
    cut_edges: Array
    density: Array
    cut_ratio: Array


def shapes(offsets: Array, neighbors: Array, rows: Ragged) -> Shape:
    """Size, edges that leave, density and cut ratio of every set of an undirected graph."""
    degrees, size = inside_degrees(offsets, neighbors, rows), rows.lengths
    inside, cut = (np.bincount(rows.row_ids, one.values, minlength=len(rows)).astype(np.int64) for one in degrees)
    crossing = size * (len(offsets) - 1 - size)
    return Shape(size, cut, inside / np.maximum(size * (size - 1), 1), cut / np.maximum(crossing, 1))


@compiled
def _count_triangles(graph: Csr, triangles: Array) -> None:
    """Each edge is taken once, from the end of lower degree, ties by id: no row is then longer than sqrt(2 |E|).

    Each triangle is then found once, from its node of lowest degree, so a hub is never compared with a hub.
    """
    offsets, neighbors = graph
    n = len(offsets) - 1
    starts, heads = np.zeros(n + 1, np.int64), np.empty(len(neighbors) // 2, np.int32)
    count = 0
    for v in range(n):
        degree = offsets[v + 1] - offsets[v]
        for e in range(offsets[v], offsets[v + 1]):
            u = neighbors[e]
            other = offsets[u + 1] - offsets[u]
            if degree < other or (degree == other and v < u):
                heads[count] = u
                count += 1
        starts[v + 1] = count
    mark = np.full(n, -1, np.int32)
    for v in range(n):
        for e in range(starts[v], starts[v + 1]):
            mark[heads[e]] = v
        for e in range(starts[v], starts[v + 1]):
            u = heads[e]
            for f in range(starts[u], starts[u + 1]):
                if mark[heads[f]] == v:
                    triangles[v] += 1
                    triangles[u] += 1
                    triangles[heads[f]] += 1


def clustering(offsets: Array, neighbors: Array) -> Array:
    """Local clustering of every node (N,), float64."""
    degrees, triangles = np.diff(offsets), np.zeros(len(offsets) - 1, np.int64)
    _count_triangles(csr(offsets, neighbors), triangles)
    return np.asarray(2 * triangles / np.maximum(degrees * (degrees - 1), 1))


@compiled
def peel(graph: Csr, core: Array) -> None:
    """Remove nodes by rising degree, in time linear in the edges (Batagelj and Zaversnik, 2003)."""
    offsets, neighbors = graph
    n = len(offsets) - 1
    highest = 0
    for v in range(n):
        core[v] = offsets[v + 1] - offsets[v]
        highest = max(highest, core[v])
    first = np.zeros(highest + 2, np.int64)  # first[d]: where nodes of degree d begin in `order`
    for v in range(n):
        first[core[v] + 1] += 1
    for d in range(highest + 1):
        first[d + 1] += first[d]
    order, place = np.empty(n, np.int32), np.empty(n, np.int64)
    fill = first.copy()
    for v in range(n):
        place[v] = fill[core[v]]
        order[place[v]] = v
        fill[core[v]] += 1
    for i in range(n):
        v = order[i]
        for e in range(offsets[v], offsets[v + 1]):
            u = neighbors[e]
            if core[u] > core[v]:
                # Swap u with the first node of its degree, then shrink that degree's block by one.
                d = core[u]
                w = order[first[d]]
                if u != w:
                    order[place[u]], order[first[d]] = w, u
                    place[w], place[u] = place[u], first[d]
                first[d] += 1
                core[u] -= 1


def core_numbers(offsets: Array, neighbors: Array) -> Array:
    """Core number of every node (N,)."""
    core = np.zeros(len(offsets) - 1, np.int64)
    peel(csr(offsets, neighbors), core)
    return core
