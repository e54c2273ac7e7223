"""Graphs of other libraries: networkx, PyTorch Geometric, scipy.

These conversions never touch a file by pickle. The other library is imported where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames
from subgnn.errors import DataError, MissingExtra

if TYPE_CHECKING:
    import networkx as nx
    import scipy.sparse as sp
    from torch_geometric.data import Data


def from_networkx(graph: nx.Graph[Any], *, weight: str | None = None) -> Graph:
    """A networkx graph; nodes other than 0..N-1 are numbered in its order and keep their names.

    Args:
        weight: the edge attribute to keep as weight.
    """
    nodes = list(graph.nodes)
    numbered = [str(node) for node in nodes] == [str(i) for i in range(len(nodes))]
    place = {node: i for i, node in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    return Graph.from_edges(
        np.array([place[u] for u, _, _ in edges], np.int64),
        np.array([place[v] for _, v, _ in edges], np.int64),
        num_nodes=len(nodes),
        weights=None if weight is None else [_edge_weight(d, weight, u, v) for u, v, d in edges],
        names=None if numbered else NodeNames.of(str(node) for node in nodes),
        directed=graph.is_directed(),
    )


def _edge_weight(attributes: dict[str, Any], weight: str, u: Any, v: Any) -> float:
    if weight not in attributes:
        raise DataError(
            f"no attribute '{weight}'", where=f"edge {u} - {v}", hint="give every edge a weight, or pass weight=None"
        )
    return float(attributes[weight])


def to_networkx(graph: Graph) -> nx.Graph[int]:
    """A networkx graph on 0..N-1, with ``weight`` on edges and ``name`` on nodes where there are any."""
    import networkx as nx

    out: nx.Graph[int] = nx.DiGraph() if graph.directed else nx.Graph()
    out.add_nodes_from(range(graph.num_nodes))
    tails, heads, weights = graph.edges()
    if weights is None:
        out.add_edges_from(zip(tails.tolist(), heads.tolist(), strict=True))
    else:
        out.add_weighted_edges_from(zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True))
    if graph.names is not None:
        nx.set_node_attributes(out, dict(enumerate(graph.names.primary)), "name")
    return out


def from_scipy(matrix: sp.sparray | sp.spmatrix, *, directed: bool = False, weighted: bool = False) -> Graph:
    """A sparse adjacency matrix; entry (u, v) is the edge u -> v, its value the weight where ``weighted``."""
    import scipy.sparse as sp

    coo = sp.coo_array(matrix)
    if coo.ndim != 2 or coo.shape[0] != coo.shape[1]:
        raise DataError(f"a matrix of shape {coo.shape}", where="adjacency", hint="a square one is needed")
    coo.sum_duplicates()
    coo.eliminate_zeros()
    return Graph.from_edges(
        coo.coords[0],
        coo.coords[1],
        num_nodes=int(coo.shape[0]),
        weights=coo.data if weighted else None,
        directed=directed,
    )


def to_scipy(graph: Graph) -> sp.csr_array:
    """The adjacency matrix: weights where there are any, else ones."""
    import scipy.sparse as sp

    values = np.ones(len(graph.neighbors), np.float32) if graph.weights is None else graph.weights
    return sp.csr_array((values, graph.neighbors, graph.offsets), shape=(graph.num_nodes, graph.num_nodes))


def from_pyg(data: Data, *, directed: bool = False) -> Graph:
    """A PyTorch Geometric ``Data``: ``edge_index``, one-dimensional ``edge_weight`` and node features ``x``."""
    if data.edge_index is None:
        raise DataError("no edge_index", where="Data", hint="a homogeneous graph with edge_index is accepted")
    edges = data.edge_index.detach().cpu().numpy()
    weights, x = data.get("edge_weight"), data.get("x")
    return Graph.from_edges(
        edges[0],
        edges[1],
        num_nodes=data.num_nodes,
        weights=None if weights is None else weights.detach().cpu().numpy().copy(),
        features=None if x is None else x.detach().cpu().numpy().copy(),
        directed=directed,
    )


def to_pyg(graph: Graph) -> Data:
    """A PyTorch Geometric ``Data``; an undirected edge stands in both directions, as is usual there."""
    try:
        import torch
        from torch_geometric.data import Data
    except ImportError:
        raise MissingExtra("torch_geometric", extra="pyg", feature="PyG Data") from None
    tails = np.repeat(np.arange(graph.num_nodes, dtype=np.int64), np.diff(graph.offsets))
    edge_index = torch.from_numpy(np.stack([tails, graph.neighbors.astype(np.int64)]))
    data = Data(edge_index=edge_index, num_nodes=graph.num_nodes)
    if graph.weights is not None:
        data.edge_weight = torch.from_numpy(np.array(graph.weights))
    if graph.features is not None:
        data.x = torch.from_numpy(np.array(graph.features))
    return data
