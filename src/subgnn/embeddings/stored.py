"""Files of node embeddings: those of this package, NumPy's, and the text format of word2vec.

``.safetensors``                one array ``vectors`` (N x dim, float32); graph hash, settings, checksum as metadata
``.npy``                        one row for each node, in the order of ids
``.txt .vec .emb .w2v [.gz]``   one node in each line, by name or id, and its numbers; a first line of two numbers, as
                                word2vec writes it, is skipped, and so are words that are not nodes
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats.text import read_lines
from subgnn.data.formats.vectors import read_npy
from subgnn.data.graph import Graph
from subgnn.data.strings import find_node, is_id
from subgnn.errors import DataError, excerpt
from subgnn.storage.arrays import Format, Parts, encode_arrays, read_arrays, write_parts

_STORED = Format(
    name="subgnn-embeddings",
    noun="file of embeddings",
    make="make one with subgnn pretrain",
    again="pretrain again",
)
_TEXT = (".txt", ".vec", ".emb", ".w2v")
_SHOWN = 3
_MAX_DIM = 65_536  # as embeddings.dim has it


def vectors_hash(vectors: NDArray[np.float32]) -> str:
    """SHA-256 of the shape and the numbers."""
    digest = hashlib.sha256(str(vectors.shape).encode())
    digest.update(np.ascontiguousarray(vectors, np.float32).data)
    return digest.hexdigest()


def encode_vectors(vectors: NDArray[np.float32], about: dict[str, Any], *, graph_hash: str) -> Parts:
    """The parts of a .safetensors file of embeddings; ``about`` says how they were computed, in plain values."""
    metadata = {"graph_hash": graph_hash, "about": json.dumps(about)}
    return encode_arrays({"vectors": vectors.astype("<f4", copy=False)}, _STORED, metadata=metadata)


def write_vectors(
    path: Path, vectors: NDArray[np.float32], about: dict[str, Any], *, graph_hash: str, overwrite: bool = False
) -> None:
    """Write embeddings as .safetensors, atomically."""
    write_parts(path, encode_vectors(vectors, about, graph_hash=graph_hash), overwrite=overwrite, sync=False)


def read_stored(path: Path) -> tuple[NDArray[np.float32], dict[str, str]]:
    """The vectors of a .safetensors file that :func:`write_vectors` wrote, and its metadata; verified."""
    file = read_arrays(path, _STORED)
    vectors = file.arrays.get("vectors")
    typed = vectors is not None and vectors.dtype == np.float32 and vectors.ndim == 2
    if vectors is None or not typed or not isinstance(file.metadata.get("graph_hash"), str):
        raise DataError("it holds no vectors of a graph", where=str(path), hint=f"the file is damaged; {_STORED.again}")
    return vectors, file.metadata


def require_file(path: Path) -> str:
    """The suffix of a file of embeddings, without that of gzip; refuses an unknown one and a missing file."""
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    accepted = (".safetensors", ".npy", *_TEXT)
    if suffix not in accepted:
        hint = f"random, gin, graphsaint, {', '.join(accepted)}"
        raise DataError(f"unknown kind of embeddings '{path}'", where="embeddings.source", hint=hint)
    if not path.is_file():
        known = "random, gin, graphsaint, gin-untrained"
        hint = f"embeddings.source is {known}, or a file that subgnn pretrain wrote or you did"
        raise DataError("no such file", where=str(path), hint=hint)
    return suffix


def read_vectors(path: Path, graph: Graph) -> NDArray[np.float32]:
    """The embeddings (N, dim) of all nodes of a graph; refuses a file that does not fit it."""
    suffix = require_file(path)
    if suffix == ".safetensors":
        vectors, metadata = read_stored(path)
        if metadata["graph_hash"] != graph.content_hash:
            named = ascii(metadata["graph_hash"][:12])[1:-1]
            what = f"embeddings of another graph ({named}, not {graph.content_hash[:12]})"
            raise DataError(what, where=str(path), hint="pretrain on this dataset")
    elif suffix == ".npy":
        vectors = _read_npy(path)
    else:
        vectors = _read_text(path, graph)
    if len(vectors) != graph.num_nodes:
        what = f"{len(vectors):,} rows, but the graph has {graph.num_nodes:,} nodes"
        raise DataError(what, where=str(path), hint="one row a node, in the order of ids")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise DataError(
            f"the vector of node {bad[0]} is not finite", where=str(path), hint="fill or drop missing values"
        )
    return vectors


def _read_npy(path: Path) -> NDArray[np.float32]:
    array = read_npy(path)
    if array.ndim != 2:
        raise DataError(f"an array of shape {array.shape}", where=str(path), hint="accepted: (nodes, dim)")
    with np.errstate(over="ignore"):  # values too large for 32 bits become infinite, and are refused as such
        return np.asarray(array, np.float32)


def _read_text(path: Path, graph: Graph) -> NDArray[np.float32]:
    vectors: NDArray[np.float32] | None = None
    seen = np.zeros(graph.num_nodes, np.bool_)
    for number, line in read_lines(path):
        fields = line.split()
        if number == 1 and len(fields) == 2 and all(map(is_id, fields)):
            continue
        dim = vectors.shape[1] if vectors is not None else len(fields) - 1
        if dim > _MAX_DIM:
            raise DataError(f"{dim:,} numbers", where=f"{path}:{number}", hint=f"at most {_MAX_DIM:,} a node")
        if vectors is None:
            vectors = np.zeros((graph.num_nodes, max(dim, 0)), np.float32)
        node = find_node(" ".join(fields[: len(fields) - dim]), graph.num_nodes, graph.names)
        if node is None or node < 0:
            continue  # a word that is not a node, such as word2vec's end of sentence
        try:
            vectors[node] = fields[len(fields) - dim :]
        except ValueError:
            what = f"{len(fields)} fields, from {excerpt(line)}"
            raise DataError(what, where=f"{path}:{number}", hint=f"a node and {dim} numbers are needed") from None
        if seen[node]:
            raise DataError(f"node {fields[0]} again", where=f"{path}:{number}", hint="a node has one vector")
        seen[node] = True
    missing = np.flatnonzero(~seen)
    if vectors is None or len(missing):
        named = [graph.names.written(int(v)) if graph.names is not None else str(v) for v in missing[:_SHOWN]]
        what = f"{len(missing):,} of {graph.num_nodes:,} nodes have no vector: {', '.join(named)}"
        what += ", ..." if len(missing) > _SHOWN else ""
        raise DataError(
            what, where=str(path), hint="every node needs a line, by its name, or by its id where it has none"
        )
    return vectors
