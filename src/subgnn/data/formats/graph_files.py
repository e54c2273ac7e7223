"""Files of graphs that other libraries write: networkx, PyTorch Geometric, scipy.

Nothing is unpickled. The other library is imported where it is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

from subgnn.data.formats.format import FileFormat, ReadOptions
from subgnn.data.formats.objects import from_networkx, from_pyg, from_scipy, has_weights, networkx_weight
from subgnn.data.formats.tables import check_unpacked
from subgnn.data.formats.text import read_bytes
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, Strings
from subgnn.data.values import plausible_nodes
from subgnn.errors import DataError, MissingExtra, extra_package
from subgnn.storage.files import parse_json

_NAMES = ("name", "label", "symbol", "gene_symbol", "shared name")
"""Attributes that may hold the names of nodes: igraph and Cytoscape number the nodes, and name them there."""


def _networkx() -> Any:
    with extra_package("networkx", extra="networkx", feature="this file format"):
        import networkx
    return networkx


def _from_networkx(given: Any, options: ReadOptions) -> Graph:
    """A graph with nodes named by an attribute that names each one, where the file has one; ids come second."""
    # A networkx graph states itself whether it is directed.
    if options.directed and not given.is_directed():
        raise DataError("the graph in the file is undirected", hint="leave --directed out")
    weight = options.columns.weight or networkx_weight(given, options.on_note)
    graph = from_networkx(given, weight=weight)
    for title in _NAMES:
        names = [str(value).strip() for _, value in given.nodes(data=title, default="")]
        if all(names) and len(set(names)) == len(names) and names != [str(node) for node in given.nodes]:
            ids = {} if graph.names is None else {"id": graph.names.primary}
            return replace(graph, names=NodeNames({"name": Strings.of(names), **ids}))
    return graph


def _graphml(path: Path, options: ReadOptions) -> Graph:
    text = read_bytes(path)
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        what = "it declares a document type or entities"
        raise DataError(what, hint="remove the declaration: GraphML needs none, and entities can fill memory")
    return _from_networkx(_networkx().read_graphml(BytesIO(text)), options)


def _node_link(path: Path, options: ReadOptions) -> Graph:
    hint, what = "networkx.node_link_data writes such a file", "this cannot be read as .json"
    content = parse_json(path.read_bytes(), str(path), hint, what=what)
    if not isinstance(content, dict):
        raise DataError(f"a JSON {type(content).__name__}", hint="an object with nodes and edges is accepted")
    edges = "links" if "links" in content else "edges"
    return _from_networkx(_networkx().node_link_graph(content, edges=edges), options)


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
    return from_pyg(data, directed=options.directed)


def _from_scipy(matrix: Any, options: ReadOptions) -> Graph:
    most = plausible_nodes(matrix.nnz if hasattr(matrix, "nnz") else matrix.size)
    if max(matrix.shape) > most:
        what = f"a matrix of shape {matrix.shape} with few entries"
        raise DataError(what, hint=f"at most {most:,} rows for this many; number the nodes without large gaps")
    weighted = options.columns.weight is not None or has_weights(matrix, options.on_note)
    return from_scipy(matrix, directed=options.directed, weighted=weighted)


def _npz(path: Path, options: ReadOptions) -> Graph:
    from scipy import sparse

    check_unpacked(path)
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
    FileFormat("GraphML", (".graphml", ".graphml.gz"), read_graph=_checked(_graphml)),
    FileFormat("GML", (".gml",), read_graph=_checked(lambda p, given: _from_networkx(_networkx().read_gml(p), given))),
    FileFormat("node-link JSON of networkx", (".json",), read_graph=_checked(_node_link)),
    FileFormat("PyG Data", (".pt",), read_graph=_checked(_pyg)),
    FileFormat("scipy sparse matrix", (".npz",), read_graph=_checked(_npz)),
    FileFormat("Matrix Market", (".mtx",), read_graph=_checked(_mtx)),
)
