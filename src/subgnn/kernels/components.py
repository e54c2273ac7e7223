"""Connected components of induced subgraphs: S^(c), the unit that receives messages (paper, section 3).

For a directed graph pass its undirected form: components are weak components.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, csr, sets
from subgnn.kernels.compile import compiled, compiled_parallel
from subgnn.kernels.induced import inside_row
from subgnn.ragged import Ragged


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
def _root(parent: Array, i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled_parallel
def _label(offsets: Array, neighbors: Array, values: Array, rows: Array, labels: Array, counts: Array) -> None:
    """labels: for each place of ``values``, the component of its node within the subgraph, numbered from 0."""
    for s in prange(len(rows) - 1):
        members = values[rows[s] : rows[s + 1]]
        size = len(members)
        parent = np.arange(size)
        row = np.empty(size, np.int32)
        for i in range(size):
            for k in range(inside_row(offsets, neighbors, members, members[i], row)):
                a, b = _root(parent, i), _root(parent, row[k])
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
    """Split every subgraph into its connected components.

    Example:
        On the path 0 - 1 - 2 - 3, the set {0, 1, 3} has two components.

        >>> path = np.array([0, 1, 3, 5, 6]), np.array([1, 0, 2, 1, 3, 2])
        >>> c = induced_components(*path, Ragged.from_rows([[0, 1, 3]]))
        >>> [row.tolist() for row in c.nodes], c.counts.tolist()
        ([[0, 1], [3]], [2])
    """
    values, rows = sets(subgraphs)
    labels, counts = np.empty(len(values), np.int64), np.zeros(len(subgraphs), np.int64)
    _label(*csr(offsets, neighbors), values, rows, labels, counts)
    first = np.cumsum(counts) - counts
    component = labels + np.repeat(first, subgraphs.lengths)
    # A stable sort keeps the nodes of a component in the rising order they have in the subgraph.
    order = np.argsort(component, kind="stable")
    lengths = np.bincount(component, minlength=int(counts.sum()))
    return Components(
        nodes=Ragged.from_lengths(values[order], lengths),
        subgraph=np.repeat(np.arange(len(subgraphs), dtype=np.int64), counts),
        counts=counts,
    )
