"""Small graphs to be planted on or stapled to a base graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from subgnn.data.synthetic.settings import check_range
from subgnn.kernels.arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Small graphs, their nodes numbered end to end: piece i is the nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.

    Shapes:
        offsets: (pieces + 1,) int64. tails, heads: (edges,) int64, both ends of an edge in one piece.

    Example:
        >>> p = Pieces.of([(3, [0, 1], [1, 2]), (2, [0], [1])])
        >>> p.offsets.tolist(), p.tails.tolist(), p.heads.tolist()
        ([0, 3, 5], [0, 1, 3], [1, 2, 4])
    """

    offsets: Array
    tails: Array
    heads: Array

    @classmethod
    def of(cls, graphs: Iterable[tuple[int, Array | list[int], Array | list[int]]]) -> Pieces:
        """Lay graphs, each given as its number of nodes, tails and heads, end to end."""
        offsets, tails, heads = [0], [], []
        for size, piece_tails, piece_heads in graphs:
            tails.append(np.asarray(piece_tails, np.int64) + offsets[-1])
            heads.append(np.asarray(piece_heads, np.int64) + offsets[-1])
            offsets.append(offsets[-1] + size)
        none = [np.empty(0, np.int64)]
        return cls(np.array(offsets, np.int64), np.concatenate(tails or none), np.concatenate(heads or none))

    @property
    def num_nodes(self) -> int:
        """Nodes of all pieces."""
        return int(self.offsets[-1])

    def __len__(self) -> int:
        return len(self.offsets) - 1


def complete_pieces(
    count: int, size: int, rng: np.random.Generator, *, min_density: float = 1.0, max_density: float = 1.0
) -> Pieces:
    """Complete graphs, thinned at random to densities spread evenly over a range.

    The path 0 - 1 - ... - (size - 1) is never thinned, so the pieces are connected.

    Raises:
        DataError: for densities that no connected graph of this size has.
    """
    if min_density < max_density or min_density != 1.0:
        check_range(min_density, max_density, where="density of the planted graphs", least=2 / size, most=1.0)
    left, right = np.triu_indices(size, 1)
    optional = np.flatnonzero(right - left > 1)
    path = np.flatnonzero(right - left == 1)
    edges = np.rint(rng.uniform(min_density, max_density, count) * len(left)).astype(np.int64)
    graphs = []
    for wanted in edges.tolist():
        kept = np.concatenate([path, rng.choice(optional, max(0, wanted - len(path)), replace=False)])
        graphs.append((size, left[kept], right[kept]))
    return Pieces.of(graphs)
