"""Graphs in the files of other libraries, by suffix: GraphML, GML, node-link JSON, PyG .pt, scipy .npz and .mtx."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from subgnn.data.formats.interop import from_networkx, from_pyg, from_scipy
from subgnn.data.graph import Graph
from subgnn.errors import DataError, MissingExtra


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise MissingExtra("networkx", extra="networkx", feature="this file format") from None
    return networkx


def _graphml(path: Path) -> Graph:
    return from_networkx(_networkx().read_graphml(path))


def _gml(path: Path) -> Graph:
    return from_networkx(_networkx().read_gml(path))


def _node_link(path: Path) -> Graph:
    content = json.loads(path.read_text(encoding="utf-8"))
    edges = "links" if "links" in content else "edges"
    return from_networkx(_networkx().node_link_graph(content, edges=edges))


def _pyg(path: Path) -> Graph:
    import torch

    try:
        from torch_geometric.data import Data
        from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import GlobalStorage
    except ImportError:
        raise MissingExtra("torch_geometric", extra="pyg", feature="a PyG file") from None
    with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):
        data = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(data, Data):
        raise DataError(
            f"this holds a {type(data).__name__}", where=str(path), hint="one torch_geometric Data is accepted"
        )
    return from_pyg(data)


def _npz(path: Path) -> Graph:
    from scipy import sparse

    return from_scipy(sparse.load_npz(path))


def _mtx(path: Path) -> Graph:
    from scipy import io

    return from_scipy(io.mmread(path))


READERS: dict[str, Callable[[Path], Graph]] = {
    ".graphml": _graphml,
    ".gml": _gml,
    ".json": _node_link,
    ".pt": _pyg,
    ".npz": _npz,
    ".mtx": _mtx,
}


def read_graph_file(path: Path) -> Graph:
    """Read a graph by the suffix of its file.

    Raises:
        DataError: for a missing or unreadable file; pickled objects are refused.
    """
    if not path.is_file():
        raise DataError("no such file", where=str(path), hint="check the path")
    try:
        return READERS[path.suffix](path)
    except (DataError, MissingExtra):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"this cannot be read as {path.suffix} ({reason})", where=str(path)) from error
