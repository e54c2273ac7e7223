"""Degrees of the nodes of a set, and the statistics that follow from them (paper, appendix B).

Internal degree counts neighbours inside the set, border degree those outside, all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import prange

from subgnn.kernels.arrays import Array, csr, sets
from subgnn.kernels.compile import compiled_parallel
from subgnn.kernels.induced import inside_row
from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What the degrees of a node set S say about it.

    Shapes:
        nodes, edges, cut_edges: (sets,) int64. density, cut_ratio: (sets,) float64.

    density is 2 |E_S| / (|S| (|S| - 1)), 0 for a single node; cut_ratio is |B_S| / (|S| |V - S|) with B_S the edges
    that leave S, 0 where S is all of V.
    """

    nodes: Array
    edges: Array
    cut_edges: Array
    density: Array
    cut_ratio: Array


@compiled_parallel
def _inside_degrees(offsets: Array, neighbors: Array, values: Array, rows: Array, out: Array) -> None:
    for s in prange(len(rows) - 1):
        members = values[rows[s] : rows[s + 1]]
        scratch = np.empty(len(members), np.int32)
        for i in range(len(members)):
            out[rows[s] + i] = inside_row(offsets, neighbors, members, members[i], scratch)


def inside_degrees(offsets: Array, neighbors: Array, rows: Ragged) -> tuple[Ragged, Ragged]:
    """Internal and border degree of every node of every set.

    Returns:
        Two families laid out as ``rows``, int64; their sum is the degree in the graph.

    Example:
        In the path 0 - 1 - 2 - 3, seen from {0, 1}.

        >>> path = np.array([0, 1, 3, 5, 6]), np.array([1, 0, 2, 1, 3, 2])
        >>> inside, border = inside_degrees(*path, Ragged.from_rows([[0, 1]]))
        >>> inside[0].tolist(), border[0].tolist()
        ([1, 1], [0, 1])
    """
    values, row_offsets = sets(rows)
    inside = np.zeros(len(values), np.int64)
    _inside_degrees(*csr(offsets, neighbors), values, row_offsets, inside)
    total = np.asarray(offsets)[values.astype(np.int64) + 1] - np.asarray(offsets)[values]
    return Ragged(inside, rows.offsets), Ragged(total - inside, rows.offsets)


def shapes(offsets: Array, neighbors: Array, rows: Ragged) -> Shape:
    """Size, edges inside and leaving, density and cut ratio of every set of an undirected graph."""
    inside, border = inside_degrees(offsets, neighbors, rows)
    size = rows.lengths
    owner = rows.row_ids
    edges = np.bincount(owner, inside.values, minlength=len(rows)).astype(np.int64) // 2
    cut = np.bincount(owner, border.values, minlength=len(rows)).astype(np.int64)
    pairs = size * (size - 1)
    crossing = size * (len(offsets) - 1 - size)
    return Shape(
        nodes=size,
        edges=edges,
        cut_edges=cut,
        density=2 * edges / np.maximum(pairs, 1),
        cut_ratio=cut / np.maximum(crossing, 1),
    )
