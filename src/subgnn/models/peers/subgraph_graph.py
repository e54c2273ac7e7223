"""The graph whose nodes are subgraphs: edges weigh how often one subgraph's nodes meet or neighbour another's.

With M the 0/1 membership of nodes in subgraphs (n x N) and A the adjacency of G, self loops added, W = M A M^T counts
the pairs of a node of S and a node of T that are equal or joined by an edge. W is standardised by the mean and the
deviation of all its entries between training subgraphs, cut off, and brought to the unit interval:

    w = (min(z, t + d) - t) / d,  z = (W - mean) / deviation

Entries that are not above 0 are no edges. As t is not negative, subgraphs that share nothing are never joined, so W is
computed sparsely, some rows at a time, and never kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from subgnn.config.files import Bounds, Probability
from subgnn.config.settings import MethodSettings
from subgnn.data.graph import Graph
from subgnn.models.kernel_machines.views import bag_of_nodes
from subgnn.ragged import Ragged

_ROWS = 1024  # of W at a time


@dataclass(frozen=True, slots=True)
class S2NSettings(MethodSettings):
    """S2N; docs/settings.md says what each setting means, and model.layers is the number of layers between subgraphs.

    threshold and span are t and d of the weights above; alpha, theta and shared are for GCNII, in the layers
    between subgraphs and in those inside them.
    """

    section: ClassVar[str] = "s2n"
    convolution: Literal["gcn", "gcnii"] = "gcn"
    threshold: float = 2.0
    span: Annotated[float, Bounds(1e-3, 1000)] = 1.0
    sub_layers: Annotated[int, Bounds(0, 100)] = 0
    edge_dropout: Probability = 0.3
    batch_norm: bool = False
    skip: bool = False
    alpha: tuple[Probability, Probability] = (0.5, 0.5)
    theta: tuple[float, float] = (0.5, 0.5)
    shared: tuple[bool, bool] = (True, True)
    sub_normalized: bool = True
    weighted: bool = False
    constant: float = 0.0


def meetings(graph: Graph, left: Ragged, right: Ragged) -> Iterator[scipy.sparse.csr_array]:
    """M A M^T between two lists of subgraphs, some rows at a time.

    Example:
        In the path 0 - 1 - 2, {0, 1} meets itself four times: twice as a node, twice along the edge.

        >>> path, pairs = Graph.from_edges([0, 1], [1, 2]), Ragged.from_rows([[0, 1], [2]])
        >>> next(meetings(path, pairs, pairs)).toarray().tolist()
        [[4.0, 1.0], [1.0, 1.0]]
    """
    others = bag_of_nodes(right, graph.num_nodes).T.tocsr()
    every = Ragged(graph.neighbors, graph.offsets)
    for begin in range(0, len(left), _ROWS):
        bag = bag_of_nodes(left.take(np.arange(begin, min(begin + _ROWS, len(left)))), graph.num_nodes)
        # Only the rows of A of nodes that occur: one subgraph need not cost what the graph does.
        nodes, columns = np.unique(bag.indices, return_inverse=True)
        narrow = scipy.sparse.csr_array((bag.data, columns, bag.indptr), shape=(bag.shape[0], len(nodes)))
        rows = every.take(nodes)
        size = (len(nodes), graph.num_nodes)
        adjacency = scipy.sparse.csr_array((np.ones(len(rows.values)), rows.values, rows.offsets), shape=size)
        yield ((narrow @ adjacency + bag) @ others).tocsr()


def standard_of(graph: Graph, nodes: Ragged) -> NDArray[np.float64]:
    """The mean and the deviation of all entries of W between subgraphs (2,); a deviation of 0 is taken as 1."""
    total = squares = 0.0
    for block in meetings(graph, nodes, nodes):
        total, squares = total + block.sum(), squares + (block.data**2).sum()
    mean = total / max(1, len(nodes)) ** 2
    deviation = np.sqrt(max(0.0, squares / max(1, len(nodes)) ** 2 - mean**2))
    return np.array([mean, deviation if deviation > 0 else 1.0])


def edge_weights(
    counts: NDArray[np.float64], standard: NDArray[np.float64], settings: S2NSettings
) -> NDArray[np.float64]:
    """Weights w of entries of W; 0 where there is no edge."""
    z = (counts - standard[0]) / standard[1]
    weights = (np.minimum(z, settings.threshold + settings.span) - settings.threshold) / settings.span
    return np.asarray(np.maximum(weights, 0.0))


def edges_between(
    graph: Graph, left: Ragged, right: Ragged, standard: NDArray[np.float64], settings: S2NSettings
) -> scipy.sparse.csr_array:
    """Weights above 0 up to 1 of the edges (left, right) between subgraphs, including a subgraph with itself."""
    blocks = [scipy.sparse.csr_array((0, len(right)))]
    for block in meetings(graph, left, right):
        block.data = edge_weights(block.data, standard, settings)
        block.eliminate_zeros()
        blocks.append(block)
    found = scipy.sparse.vstack(blocks, format="csr")
    found.sort_indices()
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """Weighted edges by the node they lead to, and the weights ``own`` (n,) of self loops.

    Shapes:
        starts: (n,) where the edges of each node begin. targets, sources, weights: (edges,).
    """

    starts: Tensor
    targets: Tensor
    sources: Tensor
    weights: Tensor
    own: Tensor

    @classmethod
    def of(cls, edges: scipy.sparse.csr_array, own: NDArray[np.float64], device: torch.device) -> Adjacency:
        counts = np.diff(edges.indptr)
        arrays = (
            edges.indptr[:-1].astype(np.int64),
            np.repeat(np.arange(len(counts)), counts),
            edges.indices.astype(np.int64),
            edges.data.astype(np.float32),
            own.astype(np.float32),
        )
        return cls(*(torch.from_numpy(array).to(device) for array in arrays))

    def with_dropout(self, part: float) -> Adjacency:
        """Leave out edges and self loops at random, each with the same probability."""
        if not part:
            return self
        weights, own = (given * (torch.rand_like(given) >= part) for given in (self.weights, self.own))
        return replace(self, weights=weights, own=own)

    def normalised(self) -> Adjacency:
        """D^-1/2 (A + I) D^-1/2: nodes without a self loop get one of weight 1, degrees are sums of weights."""
        own = torch.where(self.own > 0, self.own, 1.0)
        root = own.index_add(0, self.targets, self.weights).rsqrt()
        weights = root[self.targets] * self.weights * root[self.sources]
        return replace(self, weights=weights, own=own * root * root)

    def __matmul__(self, x: Tensor) -> Tensor:
        summed = functional.embedding_bag(self.sources, x, self.starts, mode="sum", per_sample_weights=self.weights)
        return summed + self.own[:, None] * x


def without_loops(edges: scipy.sparse.csr_array) -> tuple[scipy.sparse.csr_array, NDArray[np.float64]]:
    """Edges among subgraphs (n, n) without self loops, and the weights of these (n,)."""
    coo = edges.tocoo()
    other = coo.row != coo.col
    plain = scipy.sparse.csr_array((coo.data[other], (coo.row[other], coo.col[other])), shape=edges.shape)
    return plain, edges.diagonal()
