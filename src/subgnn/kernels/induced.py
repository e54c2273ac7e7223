"""Induced subgraphs: the edges among the nodes of a set, and connected components.

Edges are found without marking all N nodes: both a row of the graph and the set are sorted, so the shorter is looked up
in the longer, and a hub with a million neighbours costs a set of twenty nodes twenty look-ups.

Components S^(c) of a subgraph are the unit that receives messages (paper, section 3). For a directed graph pass its
undirected form: components are weak components.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgnn.kernels.arrays import Array, Csr, Sets, compiled, compiled_parallel, csr, read_only, sets
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


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """The components of every subgraph, those of one subgraph together, ordered by their smallest node.

    Shapes:
        nodes: C rows, each sorted. subgraph: (C,) int64, the subgraph of each component.
        counts: (subgraphs,) int64, the number of components of each subgraph.
    """

    nodes: Ragged
    subgraph: Array
    counts: Array


@compiled
def _root(parent: Array, i: Any) -> Any:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled_parallel
def _label(begin: int, end: int, graph: Csr, subgraphs: Sets, labels: Array, counts: Array) -> None:
    """labels: for each value of ``subgraphs``, the component of its node within the subgraph, numbered from 0."""
    values, rows = subgraphs
    for s in range(begin, end):
        members = values[rows[s] : rows[s + 1]]
        size = len(members)
        parent, row = np.empty(size, np.int64), np.empty(size, np.int32)
        for i in range(size):
            parent[i] = i
        for i in range(size):
            for k in range(inside_row(graph, members, members[i], row)):
                a, b = _root(parent, i), _root(parent, np.int64(row[k]))
                # The smaller place becomes the root, so roots are met in rising order below.
                if a < b:
                    parent[b] = a
                else:
                    parent[a] = b
        count = 0
        for i in range(size):
            root = _root(parent, i)
            if root == i:
                labels[rows[s] + i] = count
                count += 1
            else:
                labels[rows[s] + i] = labels[rows[s] + root]
        counts[s] = count


def induced_components(offsets: Array, neighbors: Array, subgraphs: Ragged) -> Components:
    """Split every subgraph into its connected components."""
    labels, counts = np.empty(len(subgraphs.values), np.int64), np.zeros(len(subgraphs), np.int64)
    _label(len(subgraphs), csr(offsets, neighbors), sets(subgraphs), labels, counts)
    first = np.cumsum(counts) - counts
    component = labels + np.repeat(first, subgraphs.lengths)
    # A stable sort keeps the nodes of a component in the rising order they have in the subgraph.
    order = np.argsort(component, kind="stable")
    lengths = np.bincount(component, minlength=int(counts.sum()))
    return Components(
        nodes=Ragged.from_lengths(sets(subgraphs)[0][order], lengths),
        subgraph=np.repeat(np.arange(len(subgraphs), dtype=np.int64), counts),
        counts=counts,
    )
