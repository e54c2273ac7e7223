"""Graphs of networkx, PyTorch Geometric and scipy, as objects and files; nothing is unpickled."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from subgnn.data.formats.format import FileFormat, ReadOptions, likely_title, naming_options
from subgnn.data.formats.tables import check_unpacked
from subgnn.data.formats.text import read_bytes
from subgnn.data.graph import Graph, Repeated
from subgnn.data.strings import NodeNames, Strings
from subgnn.errors import DataError, MissingExtra, extra_package
from subgnn.parallel.progress import ignore
from subgnn.storage.files import parse_json

if TYPE_CHECKING:
    import networkx as nx
    import scipy.sparse as sp
    from torch_geometric.data import Data

_NETWORKX = (".graphml", ".graphml.gz", ".json")
_NAMES = ("name", "label", "symbol", "gene_symbol", "shared name")
"""Attributes that may hold the names of nodes: igraph and Cytoscape number the nodes, and name them there."""


def from_networkx(graph: nx.Graph[Any], *, weight: str | None = None, repeated: Repeated | None = None) -> Graph:
    """A networkx graph; nodes other than 0..N-1 are numbered in its order and keep their names."""
    nodes = list(graph)
    place = {node: i for i, node in enumerate(nodes)}
    edges = list(graph.edges() if weight is None else graph.edges(data=weight))  # None where it is missing
    tails, heads = (np.fromiter((place[edge[end]] for edge in edges), np.int64, len(edges)) for end in (0, 1))
    weights = None
    if weight is not None:
        try:
            weights = np.array([edge[2] for edge in edges], np.float64)
        except (TypeError, ValueError):
            what = f"the attribute '{weight}' is not a number everywhere"
            raise DataError(what, where="edges", hint="numbers are accepted") from None
        if np.isnan(weights).any():
            first = int(np.argmax(np.isnan(weights)))
            where = f"edge {nodes[tails[first]]} - {nodes[heads[first]]}"
            hint = "give every edge a weight, or pass weight=None"
            raise DataError(f"no attribute '{weight}'", where=where, hint=hint)
    texts, count, directed = list(map(str, nodes)), len(nodes), graph.is_directed()
    names = None if texts == list(map(str, range(count))) else NodeNames.of(texts)
    more = {"names": names, "directed": directed, "repeated": repeated}
    return Graph.from_edges(tails, heads, num_nodes=count, weights=weights, **more)


def networkx_weight(graph: nx.Graph[Any], on_note: Callable[[str], None]) -> str | None:
    """The edge attribute with a likely title of weights, if every edge has a finite number; a note says so."""
    edges = [data for _, _, data in graph.edges(data=True)]
    title = likely_title(list(dict.fromkeys(str(key) for data in edges for key in data)), "weight")
    if title is None:
        return None
    if all(isinstance(value, int | float) and math.isfinite(value) for value in (data.get(title) for data in edges)):
        on_note(f"edge weights from the attribute '{title}'")
        return title
    on_note(f"the attribute '{title}' is not used: it is not a finite number at every edge")
    return None


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
    weights = coo.data if weighted else None
    return Graph.from_edges(*coo.coords, num_nodes=int(coo.shape[0]), weights=weights, directed=directed)


def to_scipy(graph: Graph) -> sp.csr_array:
    """The adjacency matrix: weights where there are any, else ones."""
    import scipy.sparse as sp

    values = np.ones(len(graph.neighbors), np.float32) if graph.weights is None else graph.weights
    return sp.csr_array((values, graph.neighbors, graph.offsets), shape=(graph.num_nodes, graph.num_nodes))


def from_pyg(data: Data, *, directed: bool = False, repeated: Repeated | None = None) -> Graph:
    """A PyTorch Geometric ``Data``: ``edge_index``, one-dimensional ``edge_weight``, features ``x``, ``node_names``.

    ``edge_type`` has numbers, called as ``edge_type_names`` says if it is there, and ``edge_time`` numbers.
    """
    if data.edge_index is None:
        raise DataError("no edge_index", where="Data", hint="a homogeneous graph with edge_index is accepted")
    tensors = [data.get(name) for name in ("edge_index", "edge_type", "edge_weight", "x", "edge_time")]
    arrays: list[Any] = [None if one is None else one.detach().cpu().numpy().copy() for one in tensors]
    edges, types, weights, features, times = arrays
    names, called = data.get("node_names"), data.get("edge_type_names")
    if types is not None and called is not None:
        if types.dtype.kind not in "iu" or not 0 <= types.min(initial=0) <= types.max(initial=0) < len(called):
            hint = f"whole numbers from 0 to {len(called) - 1}, as there are {len(called)} names"
            raise DataError(f"numbers of type {types.dtype}", where="Data.edge_type", hint=hint)
        types = np.array([str(name) for name in called])[types]
    node_names, more = None if names is None else NodeNames.of(map(str, names)), {"types": types, "times": times}
    known = {"num_nodes": data.num_nodes, "names": node_names, "directed": directed, "repeated": repeated}
    return Graph.from_edges(edges[0], edges[1], weights=weights, features=features, **known, **more)


def to_pyg(graph: Graph) -> Data:
    """A PyTorch Geometric ``Data``, with undirected edges in both directions; ``edge_type_names`` name the types."""
    with extra_package("torch_geometric", extra="pyg", feature="PyG Data"):
        import torch
        from torch_geometric.data import Data
    parts = graph.layers or (graph,)
    rows = np.arange(graph.num_nodes, dtype=np.int64)
    tails = np.concatenate([np.repeat(rows, np.diff(part.offsets)) for part in parts])
    heads = np.concatenate([part.neighbors for part in parts]).astype(np.int64)
    data = Data(edge_index=torch.from_numpy(np.stack([tails, heads])), num_nodes=graph.num_nodes)
    for name in ("weight", "time"):
        arrays = [array for part in parts if (array := getattr(part, f"{name}s")) is not None]
        if arrays:
            data[f"edge_{name}"] = torch.from_numpy(np.concatenate(arrays))
    if graph.types:
        codes = np.repeat(np.arange(len(parts)), [len(part.neighbors) for part in parts])
        data.edge_type, data.edge_type_names = torch.from_numpy(codes), list(graph.types)
    if graph.features is not None:
        data.x = torch.from_numpy(np.array(graph.features))
    if graph.names is not None:
        data.node_names = list(graph.names.primary)
    return data


def graph_from_object(value: Any, on_note: Callable[[str], None] = ignore) -> Graph | None:
    """The graph that an object of a known library is, without weights it does not state; None for any other object."""
    readers: tuple[tuple[tuple[str, ...], Callable[[Any], Graph], Callable[[Any], object]], ...] = (
        (("adjacency", "is_multigraph"), from_networkx, lambda graph: networkx_weight(graph, ignore)),
        (("edge_index", "num_nodes"), from_pyg, lambda data: None),
        (("tocoo", "nnz"), from_scipy, lambda matrix: not np.isin(matrix.tocoo().data, (0, 1)).all()),
    )
    if isinstance(value, Graph):
        return value
    for names, read, weighted in readers:
        if all(hasattr(value, name) for name in names):
            if weighted(value):
                on_note(f"the weights of edges are not used; {read.__name__} keeps them on request")
            return read(value)
    return None


def _networkx_file(path: Path, options: ReadOptions) -> Graph:
    with extra_package("networkx", extra="formats", feature="this file format"):
        import networkx as nx
    given: nx.Graph[Any]
    if path.suffix == ".json":
        hint, what = "networkx.node_link_data writes such a file", "this cannot be read as .json"
        content = parse_json(path.read_bytes(), str(path), hint, what=what)
        if not isinstance(content, dict):
            raise DataError(f"a JSON {type(content).__name__}", hint="an object with nodes and edges is accepted")
        given = nx.node_link_graph(content, edges="links" if "links" in content else "edges")
    else:
        text = read_bytes(path)
        if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
            what = "it declares a document type or entities"
            raise DataError(what, hint="remove the declaration: GraphML needs none, and entities can fill memory")
        given = nx.read_graphml(BytesIO(text))
    # A networkx graph states itself whether it is directed.
    if options.directed and not given.is_directed():
        raise DataError("the graph in the file is undirected", hint="leave --directed out")
    weight = options.columns.get("weight") or networkx_weight(given, options.on_note)
    graph = from_networkx(given, weight=weight, repeated=options.repeated)
    others = {key: value for _, _, data in given.edges(data=True) for key, value in data.items() if key != weight}
    others.pop(likely_title(list(map(str, others)), "weight"), None)  # which has a note already
    if others:
        numbers = [key for key, value in others.items() if isinstance(value, int | float) and weight is None]
        use = f" (use {naming_options(numbers[:1], ['weight'])})" if numbers else ""
        options.on_note(f"ignored edge attributes: {', '.join(map(str, others))}{use}")
    for title in _NAMES:
        names = [str(value).strip() for _, value in given.nodes(data=title, default="")]
        if all(names) and len(set(names)) == len(names) and names != [str(node) for node in given.nodes]:
            ids = {} if graph.names is None else {"id": graph.names.primary}
            return replace(graph, names=NodeNames({"name": Strings.of(names), **ids}))
    return graph


def _pyg(path: Path, options: ReadOptions) -> Graph:
    import torch

    with extra_package("torch_geometric", extra="pyg", feature="a PyG file"):
        from torch_geometric.data import Data
        from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import GlobalStorage
    check_unpacked(path)
    known = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    with torch.serialization.safe_globals(known), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of another protocol, before the file is refused
        data = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(data, Data):
        what = f"this holds a {type(data).__name__}"
        raise DataError(what, where=str(path), hint="one torch_geometric Data is accepted")
    return from_pyg(data, directed=options.directed, repeated=options.repeated)


def _checked(read: Callable[[Path, ReadOptions], Graph]) -> Callable[[Path, ReadOptions], Graph]:
    """A reader whose errors, whatever they are, name the file; pickled objects are refused."""

    def read_checked(path: Path, options: ReadOptions) -> Graph:
        if not path.is_file():
            raise DataError("no such file", where=str(path), hint="check the path")
        try:
            return read(path, replace(options, on_note=lambda note: options.on_note(f"{path}: {note}")))
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
    FileFormat(lambda path: path.name.endswith(_NETWORKX), read_graph=_checked(_networkx_file)),
    FileFormat(lambda path: path.name.endswith(".pt"), read_graph=_checked(_pyg)),
)
