"""The induced subgraphs of node sets, side by side."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.kernels.induced import induced_graph
from subgnn.ragged import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class InducedGraphs:
    """All induced subgraphs as one graph, whose node ``i`` is ``nodes.values[i]`` as a member of its subgraph.

    Shapes:
        offsets: (total + 1,) int64. neighbors: (entries,) int64, numbers below total.
    """

    nodes: Ragged
    offsets: NDArray[np.int64]
    neighbors: NDArray[np.int64]

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Internal degree of each member (total,)."""
        return np.diff(self.offsets)


def induced_graphs(graph: Graph, nodes: Ragged) -> InducedGraphs:
    """The edges of the graph among the nodes of each set.

    Example:
        In the path 0 - 1 - 2 - 3, {0, 1, 3} has one edge.

        >>> found = induced_graphs(Graph.from_edges([0, 1, 2], [1, 2, 3]), Ragged.from_rows([[0, 1, 3]]))
        >>> found.degrees.tolist(), found.neighbors.tolist()
        ([1, 1, 0], [1, 0])
    """
    offsets, neighbors = induced_graph(*graph.csr, nodes)
    return InducedGraphs(nodes, offsets, neighbors.astype(np.int64))
