"""How unlike the training subgraphs a subgraph is, without labels: the share of them that are less unusual.

The row of a subgraph has a 1 for each of its nodes, and 1/d for each neighbour of a node with d neighbours; rows are
scaled to length one, and the mean of the training subgraphs is subtracted. The distance of a subgraph is one less the
largest cosine with a training subgraph. The distances of the training subgraphs, each from all others, are kept, and
the novelty of a subgraph is the share of them that are smaller than its own. Of subgraphs like those of training it is
uniform between 0 and 1. At most 1,024 training subgraphs are compared with, fewer if their rows would be large.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.kernels.products import sparse_products
from subgnn.models.kernel_machines.views import bag_of_nodes, scaled_rows, times_adjacency
from subgnn.ragged import Ragged
from subgnn.rng import stream

_REFERENCES = 1024
_ENTRIES = 2**23  # of the rows of all references: 100 MB
_MOST_NEIGHBOURS = 1000  # nodes with more do not spread: the squares of their parts sum to less than a thousandth
_BLOCK = 256
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Novelty:
    """Training subgraphs, and how far each is from the others.

    Shapes:
        references: m rows of nodes. distances: (m,) float64, rising.
    """

    references: Ragged
    distances: NDArray[np.float64]

    @classmethod
    def of(cls, graph: Graph, subgraphs: Ragged, seed: int) -> Self:
        """Choose training subgraphs to compare with; ``graph`` is undirected."""
        order = stream(seed, "novelty/references").permutation(len(subgraphs))[:_REFERENCES]
        sizes = np.bincount(subgraphs.row_ids, _entries(graph, subgraphs), minlength=len(subgraphs))[order]
        kept = max(1, int(np.searchsorted(np.cumsum(sizes), _ENTRIES, side="right")))
        return cls.measured(graph, subgraphs.take(np.sort(order[:kept])))

    @classmethod
    def measured(cls, graph: Graph, references: Ragged) -> Self:
        references = Ragged(references.values, references.offsets)  # without times and absent nodes
        return cls(references, np.sort(Comparison(graph, references).distances(references, to_others=True)))

    def moved(self, match: NodeMatch) -> Self | None:
        """The same training subgraphs on another graph, at their distances there; None if no node of them is left."""
        nodes = match.node_sets(self.references)
        references = nodes.take(np.flatnonzero(nodes.lengths > 0))
        return self.measured(match.graph, references) if len(references) else None

    def problems(self, num_nodes: int) -> Iterator[str]:
        rows, distances = self.references, self.distances
        kinds = [f"{array.dtype}/{array.ndim}" for array in (rows.values, rows.offsets, distances)]
        if kinds != ["int32/1", "int64/1", "float64/1"]:
            yield "the subgraphs that novelty is measured by have the wrong type"
        elif not rows.is_valid or not rows.lengths.all() or not 0 < len(rows) == len(distances) <= _REFERENCES:
            yield "the subgraphs that novelty is measured by do not fit their distances"
        elif not 0 <= rows.values.min() <= rows.values.max() < num_nodes:
            yield "the subgraphs that novelty is measured by hold a node that is not in the graph"
        elif not ((distances >= -_ROUNDING) & (distances <= 2 + _ROUNDING)).all() or (np.diff(distances) < 0).any():
            yield "the distances that novelty is measured by are not from 0 to 2, or do not rise"


class Comparison:
    """Distances of subgraphs from references, whose rows are computed once."""

    def __init__(self, graph: Graph, references: Ragged) -> None:
        self._graph = graph
        rows = _unit_rows(graph, references)
        columns, places = np.unique(rows.indices, return_inverse=True)
        self._places = np.full(graph.num_nodes, -1)  # of each node among the columns
        self._places[columns] = np.arange(len(columns))
        narrow = scipy.sparse.csr_array((rows.data, places, rows.indptr), shape=(len(references), len(columns)))
        self._mean = np.asarray(narrow.mean(axis=0)).ravel()
        self._with_mean, self._of_mean = narrow @ self._mean, float(self._mean @ self._mean)
        self._inverse = self._inverse_lengths(self._with_mean)
        self._references = narrow.T.tocsr()

    def novelty(self, subgraphs: Ragged, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the references' distances that are smaller (n,)."""
        return np.searchsorted(distances, self.distances(subgraphs) - _ROUNDING) / len(distances)

    def distances(self, subgraphs: Ragged, *, to_others: bool = False) -> NDArray[np.float64]:
        """The distance of each from the nearest reference (n,); ``to_others``: of each reference from the others."""
        found, every = np.ones(len(subgraphs)), np.arange(len(subgraphs))
        for begin in range(0, len(every), _BLOCK):
            some = every[begin : begin + _BLOCK]
            cosines = self.cosines(subgraphs.take(some))
            if to_others:
                cosines[some - begin, some] = -1.0 if len(subgraphs) > 1 else 0.0
            found[some] = 1 - cosines.max(axis=1)
        return found.clip(0, 2)

    def cosines(self, subgraphs: Ragged) -> NDArray[np.float64]:
        """Cosines with the references (n, m), all less the references' mean; 0 where a row is the mean."""
        rows = _unit_rows(self._graph, subgraphs)
        places = self._places[rows.indices]
        shared = places >= 0
        kept = np.append(0, np.cumsum(shared))[rows.indptr]
        shape = (len(subgraphs), len(self._mean))
        narrow = scipy.sparse.csr_array((rows.data[shared], places[shared], kept), shape=shape)
        own = narrow @ self._mean
        products = sparse_products(narrow, self._references) - own[:, None] - self._with_mean + self._of_mean
        return np.asarray(products * self._inverse_lengths(own)[:, None] * self._inverse)

    def _inverse_lengths(self, with_mean: NDArray[Any]) -> NDArray[np.float64]:
        """1 / |v - m| of rows of length one, from v . m; 0 for what is rounding."""
        squared = np.asarray(1 - 2 * with_mean + self._of_mean)
        return np.where(squared > _ROUNDING, 1 / np.sqrt(squared.clip(_ROUNDING)), 0.0)


def spread_entries(graph: Graph, subgraphs: Ragged) -> int:
    """The most numbers other than 0 that the rows of subgraphs have together."""
    return int(_entries(graph, subgraphs).sum())


def _entries(graph: Graph, subgraphs: Ragged) -> NDArray[np.int64]:
    """How many numbers of a row each member accounts for."""
    degrees = graph.offsets[subgraphs.values + 1] - graph.offsets[subgraphs.values]
    return np.asarray(1 + np.where(degrees <= _MOST_NEIGHBOURS, degrees, 0))


def _unit_rows(graph: Graph, subgraphs: Ragged) -> scipy.sparse.csr_array:
    """The bags of subgraphs, spread one hop, of length one (n, N)."""
    bag, spread = bag_of_nodes(subgraphs, graph.num_nodes), _entries(graph, subgraphs) - 1
    spreads = spread > 0
    ends = np.append(0, np.cumsum(spreads))[subgraphs.offsets]
    shares = scipy.sparse.csr_array((1 / spread[spreads], bag.indices[spreads], ends), shape=bag.shape)
    return scaled_rows(bag + times_adjacency(shares, graph))
