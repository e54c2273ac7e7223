"""Graphs and datasets of other libraries, as objects and as files: networkx, PyTorch Geometric, scipy, DGL, igraph.

A library is imported only where it is used; an object is recognised by its attributes. Nothing is unpickled.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.formats.format import FileFormat, ReadOptions, likely_title, naming_options
from subgnn.data.formats.tables import check_unpacked
from subgnn.data.formats.text import read_bytes
from subgnn.data.graph import Graph, Repeated
from subgnn.data.strings import NodeNames, Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet, encode_labels
from subgnn.data.values import plausible_nodes
from subgnn.errors import DataError, MissingExtra, choices, extra_package
from subgnn.parallel.progress import ignore
from subgnn.ragged import Ragged
from subgnn.storage.files import parse_json
from subgnn.task import TaskName, task_of

if TYPE_CHECKING:
    import networkx as nx
    import scipy.sparse as sp
    from torch_geometric.data import Data

_NAMES = ("name", "label", "symbol", "gene_symbol", "shared name")
"""Attributes that may hold the names of nodes: igraph and Cytoscape number the nodes, and name them there."""


def from_networkx(graph: nx.Graph[Any], *, weight: str | None = None, repeated: Repeated | None = None) -> Graph:
    """A networkx graph; nodes other than 0..N-1 are numbered in its order and keep their names.

    Args:
        weight: the edge attribute to keep as weight.
        repeated: what becomes of the weights of parallel edges, as in :meth:`~subgnn.data.graph.Graph.from_edges`.
    """
    rows = dict(graph.adjacency())
    nodes, several = list(rows), graph.is_multigraph()
    tails = np.repeat(np.arange(len(rows)), np.fromiter(map(len, rows.values()), np.int64, len(rows)))
    ends = list(chain.from_iterable(rows.values()))
    heads = np.fromiter(map({node: i for i, node in enumerate(nodes)}.__getitem__, ends), np.int64, len(ends))
    edges: Any = chain.from_iterable(map(methodcaller("values"), rows.values()))
    if several:
        if not graph.is_directed():  # parallel edges are repeated, but not once more from their other end
            once = tails <= heads
            edges = (edge for edge, kept in zip(edges, once.tolist(), strict=True) if kept)
            tails, heads = tails[once], heads[once]
        edges = list(edges)
        counts = np.fromiter(map(len, edges), np.int64, len(edges))
        tails, heads = np.repeat(tails, counts), np.repeat(heads, counts)
        edges = chain.from_iterable(map(methodcaller("values"), edges))
    weights = None
    if weight is not None:
        try:
            weights = np.array(list(map(methodcaller("get", weight), edges)), np.float64)  # NaN where it is missing
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
    values = [data.get(title) for data in edges]
    if all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        on_note(f"edge weights from the attribute '{title}'")
        return title
    on_note(f"the attribute '{title}' is not used: it is not a finite number at every edge")
    return None


def has_weights(matrix: sp.sparray | sp.spmatrix, on_note: Callable[[str], None]) -> bool:
    """Whether the values of a matrix are weights, that is finite numbers other than 0 and 1; a note says so."""
    import scipy.sparse as sp

    values = sp.coo_array(matrix).data
    if values.dtype.kind not in "fiu" or np.isin(values, (0, 1)).all():
        return False
    finite = bool(np.isfinite(values).all())
    on_note("edge weights from the values of the matrix" if finite else "the values of the matrix are not all finite")
    return finite


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

    ``edge_type`` has numbers, called as ``edge_type_names`` says or by the number, as ``HeteroData.to_homogeneous``
    makes them, and ``edge_time`` numbers.
    """
    if data.edge_index is None:
        raise DataError("no edge_index", where="Data", hint="a homogeneous graph with edge_index is accepted")
    edges, names = _array(data.edge_index), data.get("node_names")
    types, called = _array(data.get("edge_type")), data.get("edge_type_names")
    if types is not None and called is not None:
        if types.dtype.kind not in "iu" or not 0 <= types.min(initial=0) <= types.max(initial=0) < len(called):
            hint = f"whole numbers from 0 to {len(called) - 1}, as there are {len(called)} names"
            raise DataError(f"numbers of type {types.dtype}", where="Data.edge_type", hint=hint)
        types = np.array([str(name) for name in called])[types]
    weights, features, times = (_array(data.get(name)) for name in ("edge_weight", "x", "edge_time"))
    node_names, more = None if names is None else NodeNames.of(map(str, names)), {"types": types, "times": times}
    known = {"num_nodes": data.num_nodes, "names": node_names, "directed": directed, "repeated": repeated}
    return Graph.from_edges(edges[0], edges[1], weights=weights, features=features, **known, **more)


def to_pyg(graph: Graph) -> Data:
    """A PyTorch Geometric ``Data``; an undirected edge is there in both directions, as is usual in PyG.

    With types, edges are those of each type, ``edge_type`` is the place of theirs in ``edge_type_names``.
    """
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


def dataset_from_pyg(
    data: Data, *, name: str = "pyg", members: str = "subgraph_index", labels: str = "y", directed: bool = False
) -> Dataset:
    """A graph and its subgraphs from one PyTorch Geometric ``Data``.

    Besides the graph (:func:`from_pyg`) it has an index of memberships, and for each subgraph a label and, optionally,
    its split and name: ``train_mask``, ``val_mask``, ``test_mask`` and ``subgraph_names``.

    Args:
        members: the attribute with subgraphs and their nodes, both numbered from 0.
        labels: the attribute with labels: whole numbers are classes, called as ``class_names`` says or by the number;
            a matrix of 0 and 1 has a column for each label; floats are values to regress on.

    Shapes:
        members: (2, memberships). labels: (n,) or (n, classes). masks: (n,).
    """
    graph, where = from_pyg(data, directed=directed), f"Data.{members}"
    index = _array(data.get(members))
    if index is None or index.ndim != 2 or len(index) != 2 or index.dtype.kind not in "iu" or not index.size:
        what = "no such attribute" if index is None else f"type {index.dtype} and shape {index.shape}"
        raise DataError(what, where=where, hint="(2, memberships) integers are accepted: subgraphs and their nodes")
    if index.min() < 0 or index[1].max() >= graph.num_nodes:
        what = f"node {index[1].max()} in a graph of {graph.num_nodes} nodes" if index.min() >= 0 else "a negative id"
        raise DataError(what, where=where, hint="subgraphs and nodes are numbered from 0")
    present, owner = np.unique(index[0], return_inverse=True)
    if present[-1] != len(present) - 1:
        missing = int(np.argmax(present != np.arange(len(present))))
        raise DataError(f"subgraph {missing} has no nodes", where=where, hint="number subgraphs without gaps")
    pairs = np.unique(np.stack([owner.ravel(), index[1].astype(np.int64)], axis=1), axis=0)
    nodes = Ragged.from_lengths(pairs[:, 1].astype(np.int32), np.bincount(pairs[:, 0]))
    masks = {split: _array(data.get(f"{split}_mask")) for split in SPLITS}
    splits = None
    if any(mask is not None for mask in masks.values()):
        for split, mask in masks.items():
            if mask is None or mask.shape != (len(nodes),):
                what = "missing" if mask is None else f"shape {mask.shape} for {len(nodes)} subgraphs"
                raise DataError(what, where=f"Data.{split}_mask", hint="a mask of subgraphs is needed for each split")
        stacked = np.stack([mask.astype(bool) for mask in masks.values() if mask is not None])
        if (stacked.sum(axis=0) != 1).any():
            subgraph = int(np.argmax(stacked.sum(axis=0) != 1))
            hint = "each belongs to train, val or test"
            raise DataError(f"subgraph {subgraph} is in no split, or in two", where="Data.train_mask", hint=hint)
        splits = stacked.argmax(axis=0).astype(np.int8)
    task, targets, classes = _pyg_labels(_array(data.get(labels)), data.get("class_names"), len(nodes), labels)
    names = data.get("subgraph_names")
    called = None if names is None else Strings.of(map(str, names))
    return Dataset(name, graph, SubgraphSet(nodes, task, targets, classes, splits, called))


def _pyg_labels(
    y: NDArray[Any] | None, names: Sequence[str] | None, count: int, attribute: str
) -> tuple[TaskName, NDArray[Any] | None, tuple[str, ...]]:
    """Task, targets and classes of a tensor of labels."""
    where = f"Data.{attribute}"
    if y is None:
        return "unlabelled", None, ()
    if y.ndim not in (1, 2) or len(y) != count:
        raise DataError(f"shape {y.shape} for {count} subgraphs", where=where, hint="one label per subgraph is needed")
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim == 2:
        if not np.isin(y, (0, 1)).all():
            raise DataError(
                "labels other than 0 and 1", where=where, hint="a matrix has one column of 0 and 1 per label"
            )
        classes = _class_names(names, y.shape[1], where)
        return "multi-label", y.astype(np.uint8), classes
    if y.dtype.kind == "f":
        return "regression", encode_labels(y.tolist(), "regression")[1], ()
    if names is None:
        return encode_labels(y.tolist())
    classes = _class_names(names, int(y.max()) + 1, where)
    if y.min() < 0:
        raise DataError(f"label {y.min()}", where=where, hint=f"accepted: 0..{len(classes) - 1}, as in class_names")
    return "binary" if len(classes) == 2 else "multi-class", y.astype(np.int32), classes


def _class_names(names: Sequence[str] | None, least: int, where: str) -> tuple[str, ...]:
    classes = tuple(map(str, range(least) if names is None else names))
    if len(classes) < least or len(set(classes)) < len(classes):
        raise DataError(f"{len(set(classes))} class_names for {least} classes", where=where, hint="name each once")
    return classes


def dataset_to_pyg(dataset: Dataset) -> Data:
    """A PyTorch Geometric ``Data`` that :func:`dataset_from_pyg` reads."""
    import torch

    data, subgraphs = to_pyg(dataset.graph), dataset.subgraphs
    members = np.stack([subgraphs.nodes.row_ids, subgraphs.nodes.values]).astype(np.int64)
    data.subgraph_index = torch.from_numpy(members)
    if subgraphs.targets is not None:
        kind = np.float64 if task_of(subgraphs.task).real else np.int64
        data.y = torch.from_numpy(subgraphs.targets.astype(kind))
        if subgraphs.classes:
            data.class_names = list(subgraphs.classes)
    if subgraphs.splits is not None:
        for i, split in enumerate(SPLITS):
            data[f"{split}_mask"] = torch.from_numpy(subgraphs.splits == i)
    if subgraphs.names is not None:
        data.subgraph_names = list(subgraphs.names)
    return data


def from_dgl(graph: Any, *, weight: str | None = None, features: str = "feat", directed: bool = False) -> Graph:
    """A homogeneous DGL graph.

    Args:
        weight: the entry of ``edata`` to keep as weight.
        features: the entry of ``ndata`` with node features, if it is there.
        directed: keep directions; DGL writes an undirected edge as two.
    """
    if not graph.is_homogeneous:
        raise DataError("the nodes or edges have several types", where="DGL graph", hint="see dgl.to_homogeneous")
    if weight is not None and weight not in graph.edata:
        raise DataError(f"no edata '{weight}'", where="DGL graph", hint=choices(weight, list(graph.edata)))
    tails, heads = map(_array, graph.edges())
    weights = None if weight is None else _array(graph.edata[weight])
    found, count = _array(graph.ndata[features]) if features in graph.ndata else None, graph.num_nodes()
    return Graph.from_edges(tails, heads, num_nodes=count, weights=weights, features=found, directed=directed)


def from_igraph(graph: Any, *, weight: str | None = None) -> Graph:
    """An igraph graph; its vertex attribute ``name`` names the nodes, and ``weight`` is an edge attribute to keep."""
    if weight is not None and weight not in graph.es.attributes():
        hint = choices(weight, graph.es.attributes())
        raise DataError(f"no edge attribute '{weight}'", where="igraph graph", hint=hint)
    tails, heads = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2).T
    weights = None if weight is None else np.array(graph.es[weight], np.float64)
    names = NodeNames.of(map(str, graph.vs["name"])) if "name" in graph.vs.attributes() else None
    count, directed = graph.vcount(), graph.is_directed()
    return Graph.from_edges(tails, heads, num_nodes=count, weights=weights, names=names, directed=directed)


def graph_from_object(value: Any, on_note: Callable[[str], None] = ignore) -> Graph | None:
    """The graph that an object of a known library is, without weights it does not state; None for any other object."""
    readers: tuple[tuple[tuple[str, ...], Callable[[Any], Graph], Callable[[Any], object]], ...] = (
        (("adjacency", "is_multigraph"), from_networkx, lambda graph: networkx_weight(graph, ignore)),
        (("edge_index", "num_nodes"), from_pyg, lambda data: None),
        (("get_edgelist", "vcount"), from_igraph, lambda graph: likely_title(graph.es.attributes(), "weight")),
        (("ndata", "edges"), from_dgl, lambda graph: likely_title(list(graph.edata), "weight")),
        (("tocoo", "nnz"), from_scipy, lambda matrix: has_weights(matrix, ignore)),
    )
    if isinstance(value, Graph):
        return value
    for names, read, weighted in readers:
        if all(hasattr(value, name) for name in names):
            if weighted(value):
                on_note(f"the weights of edges are not used; {read.__name__} keeps them on request")
            return read(value)
    return None


def _array(tensor: Any) -> Any:
    """A copy of a tensor as an array; None as it is."""
    return None if tensor is None else tensor.detach().cpu().numpy().copy()


def _from_networkx(given: Any, options: ReadOptions) -> Graph:
    """A graph with nodes named by an attribute that names each one, where the file has one; ids come second."""
    # A networkx graph states itself whether it is directed.
    if options.directed and not given.is_directed():
        raise DataError("the graph in the file is undirected", hint="leave --directed out")
    weight = options.columns.weight or networkx_weight(given, options.on_note)
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


def _networkx_file(path: Path, options: ReadOptions) -> Graph:
    """GraphML, GML, or node-link JSON."""
    with extra_package("networkx", extra="formats", feature="this file format"):
        import networkx as nx
    if path.suffix == ".gml":
        return _from_networkx(nx.read_gml(path), options)
    if path.suffix == ".json":
        hint, what = "networkx.node_link_data writes such a file", "this cannot be read as .json"
        content = parse_json(path.read_bytes(), str(path), hint, what=what)
        if not isinstance(content, dict):
            raise DataError(f"a JSON {type(content).__name__}", hint="an object with nodes and edges is accepted")
        edges = "links" if "links" in content else "edges"
        return _from_networkx(nx.node_link_graph(content, edges=edges), options)
    text = read_bytes(path)
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        what = "it declares a document type or entities"
        raise DataError(what, hint="remove the declaration: GraphML needs none, and entities can fill memory")
    return _from_networkx(nx.read_graphml(BytesIO(text)), options)


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


def _from_scipy(matrix: Any, options: ReadOptions) -> Graph:
    most = plausible_nodes(matrix.nnz if hasattr(matrix, "nnz") else matrix.size)
    if max(matrix.shape) > most:
        what = f"a matrix of shape {matrix.shape} with few entries"
        raise DataError(what, hint=f"at most {most:,} rows for this many; number the nodes without large gaps")
    if options.repeated is not None:
        raise DataError("a matrix has each edge once", where="--repeated", hint="leave it out")
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
        raise ValueError("it has a value that is not a number")
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
    FileFormat("GraphML", (".graphml", ".graphml.gz"), read_graph=_checked(_networkx_file)),
    FileFormat("GML", (".gml",), read_graph=_checked(_networkx_file)),
    FileFormat("node-link JSON of networkx", (".json",), read_graph=_checked(_networkx_file)),
    FileFormat("PyG Data", (".pt",), read_graph=_checked(_pyg)),
    FileFormat("scipy sparse matrix", (".npz",), read_graph=_checked(_npz)),
    FileFormat("Matrix Market", (".mtx",), read_graph=_checked(_mtx)),
)
