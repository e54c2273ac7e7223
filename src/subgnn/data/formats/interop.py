"""Graphs of other libraries, as objects and as files: networkx, PyTorch Geometric, scipy.

Nothing is unpickled. The other library is imported where it is used.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from subgnn.data.formats.format import FileFormat, ReadOptions
from subgnn.data.formats.text import too_much_unpacked, unpacked_limit
from subgnn.data.graph import Graph, plausible_nodes
from subgnn.data.strings import NodeNames
from subgnn.errors import DataError, MissingExtra
from subgnn.storage.parsing import parse_json

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
    """A PyTorch Geometric ``Data``; an undirected edge is there in both directions, as is usual in PyG."""
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


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise MissingExtra("networkx", extra="networkx", feature="this file format") from None
    return networkx


def _from_networkx(graph: Any, options: ReadOptions) -> Graph:
    # A networkx graph states itself whether it is directed.
    if options.directed and not graph.is_directed():
        raise DataError("the graph in the file is undirected", hint="leave --directed out")
    return from_networkx(graph, weight=options.weight)


def _graphml(path: Path, options: ReadOptions) -> Graph:
    return _from_networkx(_networkx().read_graphml(path), options)


def _gml(path: Path, options: ReadOptions) -> Graph:
    return _from_networkx(_networkx().read_gml(path), options)


def _node_link(path: Path, options: ReadOptions) -> Graph:
    hint, what = "networkx.node_link_data writes such a file", "this cannot be read as .json"
    content = parse_json(path.read_bytes(), str(path), hint, what=what)
    if not isinstance(content, dict):
        raise DataError(f"a JSON {type(content).__name__}", hint="an object with nodes and edges is accepted")
    edges = "links" if "links" in content else "edges"
    return _from_networkx(_networkx().node_link_graph(content, edges=edges), options)


def _check_zip(path: Path) -> None:
    """Refuse a zip, as .npz and .pt are, whose parts unpack to more than a file of its size may."""
    if not zipfile.is_zipfile(path):
        return
    limit = unpacked_limit(path.stat().st_size)
    with zipfile.ZipFile(path) as packed:
        if sum(info.file_size for info in packed.infolist()) > limit:
            raise too_much_unpacked(limit, str(path))


def _pyg(path: Path, options: ReadOptions) -> Graph:
    import torch

    try:
        from torch_geometric.data import Data
        from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import GlobalStorage
    except ImportError:
        raise MissingExtra("torch_geometric", extra="pyg", feature="a PyG file") from None
    _check_zip(path)
    with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):
        data = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(data, Data):
        what = f"this holds a {type(data).__name__}"
        raise DataError(what, where=str(path), hint="one torch_geometric Data is accepted")
    return from_pyg(data, directed=options.directed)


def _from_scipy(matrix: Any, options: ReadOptions) -> Graph:
    most = plausible_nodes(matrix.nnz if hasattr(matrix, "nnz") else matrix.size)
    if max(matrix.shape) > most:
        what = f"a matrix of shape {matrix.shape} with few entries"
        raise DataError(what, hint=f"at most {most:,} rows for so many; number the nodes without large gaps")
    return from_scipy(matrix, directed=options.directed, weighted=options.weight is not None)


def _npz(path: Path, options: ReadOptions) -> Graph:
    from scipy import sparse

    _check_zip(path)
    matrix = sparse.load_npz(path)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)  # compiled code trusts the rows of a file
    return _from_scipy(matrix, options)


def _mtx(path: Path, options: ReadOptions) -> Graph:
    from scipy import io

    # The reader runs past the end of a text that lacks a last line end or holds a NUL, and takes 0.5x for 0.5.
    text = path.read_bytes() + b"\n"
    numbers = b"".join(line for line in text.split(b"\n") if not line.startswith(b"%"))
    if numbers.translate(None, b"0123456789+-.eE \t\r"):
        raise ValueError("something that is not a number")
    return _from_scipy(io.mmread(BytesIO(text)), options)


def _checked(read: Callable[[Path, ReadOptions], Graph]) -> Callable[[Path, ReadOptions], Graph]:
    """A reader whose errors, whatever they are, name the file; pickled objects are refused."""

    def read_checked(path: Path, options: ReadOptions) -> Graph:
        if not path.is_file():
            raise DataError("no such file", where=str(path), hint="check the path")
        try:
            return read(path, options)
        except MissingExtra:
            raise
        except DataError as error:
            raise DataError(error.what, where=error.where or str(path), hint=error.hint) from None
        except Exception as error:
            # The libraries' own messages are long, and some advise to trust the file.
            what = f"this cannot be read as {path.suffix} ({type(error).__name__})"
            raise DataError(what, where=str(path), hint="write it again with the library it comes from") from error

    return read_checked


GRAPH_FILES = (
    FileFormat("GraphML", (".graphml",), read_graph=_checked(_graphml)),
    FileFormat("GML", (".gml",), read_graph=_checked(_gml)),
    FileFormat("node-link JSON of networkx", (".json",), read_graph=_checked(_node_link)),
    FileFormat("PyG Data", (".pt",), read_graph=_checked(_pyg)),
    FileFormat("scipy sparse matrix", (".npz",), read_graph=_checked(_npz)),
    FileFormat("Matrix Market", (".mtx",), read_graph=_checked(_mtx)),
)
