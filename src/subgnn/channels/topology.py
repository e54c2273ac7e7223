"""Statistics of components and subgraphs, for ``model.topology`` and the topology baseline; beyond the paper.

The channel takes eight of each component and subgraph (:func:`node_set_statistics`): log size, density, mean internal
and border degree, cut ratio, mean core number inside, mean clustering inside; in logarithms where they are skewed. The
baseline takes these and ten more of each subgraph (:func:`subgraph_statistics`). Standardised with the mean and
deviation of the training split.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.kernels import (
    core_numbers,
    induced_clustering,
    induced_components,
    induced_core_numbers,
    inside_degrees,
    shapes,
)
from subgnn.ragged import Ragged

NODE_SET_STATISTICS, SUBGRAPH_STATISTICS = 8, 18
"""Numbers of statistics of a node set, and of a subgraph for the topology baseline."""

_LAST_CORES: dict[str, NDArray[np.int64]] = {}
_MAX_KEPT = 2**24  # nodes


def _row_means(rows: Ragged) -> NDArray[np.float64]:
    return np.bincount(rows.row_ids, rows.values, minlength=len(rows)) / rows.lengths


def _row_deviations(rows: Ragged) -> NDArray[np.float64]:
    from_mean = rows.values - _row_means(rows)[rows.row_ids]
    return np.sqrt(_row_means(Ragged(from_mean**2, rows.offsets)))


def _row_maxima(rows: Ragged) -> NDArray[np.float64]:
    return np.maximum.reduceat(rows.values, rows.offsets[:-1]).astype(np.float64)


def _graph_cores(graph: Graph) -> NDArray[np.int64]:
    """Core numbers in G; those of the last graph whose hash is known are kept, for predictions of one subgraph each."""
    found = _LAST_CORES.get(graph.known_hash)
    if found is None:
        found = core_numbers(*graph.csr)
        if graph.known_hash and graph.num_nodes <= _MAX_KEPT:
            _LAST_CORES.clear()
            _LAST_CORES[graph.known_hash] = found
    return found


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


def subgraph_statistics(graph: Graph, rows: Ragged) -> NDArray[np.float64]:
    """The eight of :func:`node_set_statistics`, and ten more.

    In order: deviation and maximum of the internal degree, and of the border degree; maximum and deviation of the core
    number inside; mean and maximum of the core number in G; number of components; share of the largest component.

    Shapes:
        rows: none empty. returns: (sets, 18) float64.
    """
    inside, border = inside_degrees(*graph.csr, rows)
    own_cores = induced_core_numbers(*graph.csr, rows)
    cores = Ragged(_graph_cores(graph)[rows.values], rows.offsets)
    components = induced_components(*graph.csr, rows)
    sizes = Ragged.from_lengths(components.nodes.lengths, components.counts)
    more = [
        _row_deviations(inside),
        _row_maxima(inside),
        np.log1p(_row_deviations(border)),
        np.log1p(_row_maxima(border)),
        _row_maxima(own_cores),
        _row_deviations(own_cores),
        _row_means(cores),
        _row_maxima(cores),
        components.counts.astype(np.float64),
        _row_maxima(sizes) / rows.lengths,
    ]
    return np.concatenate([node_set_statistics(graph, rows), np.stack(more, axis=1)], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Standard:
    """A mean and a deviation, used to standardise.

    Shapes:
        mean, deviation: (F,).
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Standard:
        """Mean and deviation of the given rows; a column that does not vary becomes 0.

        If the squares of a column's values are too small or too large for a float, its deviation is computed in units
        of the largest distance from the mean.
        """
        mean, deviation = values.mean(axis=0), values.std(axis=0)
        varies = values.max(axis=0) > values.min(axis=0)  # rounding of the mean leaves a deviation to equal values
        for column in np.flatnonzero(varies & ~(np.isfinite(deviation) & (deviation > np.sqrt(np.finfo(float).tiny)))):
            largest = np.abs(values[:, column] - mean[column]).max()
            deviation[column] = largest * ((values[:, column] - mean[column]) / largest).std()
        return cls(np.where(varies, mean, values[0]), np.where(varies & (deviation > 0), deviation, 1.0))

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Standardise."""
        return ((values - self.mean) / self.deviation).astype(np.float32)
