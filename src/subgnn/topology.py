"""Statistics of components and subgraphs, for the topology channel; beyond the paper.

Of each node set: log size, density, mean internal and border degree, cut ratio, mean core number inside, mean
clustering inside; in logarithms where they are skewed. Standardised with the mean and deviation of the training split.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.kernels import induced_clustering, induced_core_numbers, inside_degrees, shapes
from subgnn.ragged import Ragged


def _row_means(rows: Ragged) -> NDArray[np.float64]:
    return np.bincount(rows.row_ids, rows.values, minlength=len(rows)) / rows.lengths


def node_set_statistics(graph: Graph, rows: Ragged) -> NDArray[np.float64]:
    """Statistics of every node set.

    Shapes:
        returns: (sets, 8) float64.
    """
    inside, border = inside_degrees(*graph.csr, rows)
    shape = shapes(*graph.csr, rows)
    return np.stack(
        [
            np.log(shape.nodes),
            shape.density,
            _row_means(inside),
            np.log1p(_row_means(inside)),
            np.log1p(_row_means(border)),
            np.log1p(1e4 * shape.cut_ratio),
            _row_means(induced_core_numbers(*graph.csr, rows)),
            _row_means(induced_clustering(*graph.csr, rows)),
        ],
        axis=1,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Standard:
    """A mean and deviation to measure against.

    Shapes:
        mean, deviation: (F,).
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Standard:
        """That of the given rows; a column that does not vary is left at 0."""
        deviation = values.std(axis=0)
        return cls(values.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Standardise."""
        return ((values - self.mean) / self.deviation).astype(np.float32)
