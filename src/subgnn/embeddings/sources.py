"""Node vectors: random, pretrained, from an untrained GIN or from a file; and features of the graph.

A run needs rows for the nodes of its subgraphs and anchors (:func:`node_vectors`). Random rows are drawn on demand.
Pretrained and given ones are rows of a table of all N nodes (:func:`source_vectors`), which is copied into the run's
folder (:func:`save_run_vectors`), so that the run can predict subgraphs with other nodes, wherever it is.

Files of embeddings:

``.safetensors``                one array ``vectors`` (N x dim, float32); graph hash, settings, checksum as metadata
``.npy``                        one row for each node, in the order of ids
``.txt .vec .emb .w2v [.gz]``   one node in each line, by name or id, and its numbers; a first line of two numbers, as
                                word2vec writes it, is skipped, and so are words that are not nodes
"""

import hashlib
import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from subgnn.config.settings import EmbeddingSettings, Recipe
from subgnn.data.formats.text import read_lines
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.data.strings import find_node, is_id
from subgnn.errors import DataError, UserError, excerpt
from subgnn.kernels.draws import normal_rows
from subgnn.parallel.memory import share
from subgnn.parallel.progress import OnEpoch, ignore
from subgnn.rng import stream, stream_key
from subgnn.storage.arrays import Format, Parts, encode_arrays, read_arrays, read_npy, write_parts
from subgnn.task import Standard

PRETRAINED = ("gin", "graphsaint")
UNTRAINED = "gin-untrained"
RUN_FILE = "embeddings.safetensors"
"""The copy of a table in the folder of a run; copies of further tables have a number (:func:`run_file`)."""
Vectors = NDArray[np.float32]
Tables = dict[str, Vectors]
"""Tables of node embeddings (N, dim), by their hash."""
_NUMBERS_AT_A_TIME = 2**20  # in double precision
_COLUMNS = 32  # hidden units of an untrained GIN that are computed at a time
_STORED = Format("subgnn-embeddings", "file of embeddings", "make one with subgnn pretrain", "pretrain again")
_TEXT = (".txt", ".vec", ".emb", ".w2v")
_SHOWN = 3
_MAX_DIM = 65_536  # as embeddings.dim has it


def run_file(i: int) -> str:
    """The file name of a run's table by its number: ``embeddings.safetensors``, ``embeddings-1.safetensors``..."""
    return f"embeddings-{i}.safetensors" if i else RUN_FILE


def node_vectors(
    settings: EmbeddingSettings, nodes: NDArray[np.int32], *, num_nodes: int, seed: int, table: Vectors | None = None
) -> Vectors:
    """Embeddings (n, dim) of nodes: rows of ``table``, or random ones, a function of the seed and the node."""
    if settings.source == "random":
        return normal_rows(stream_key(seed, "embeddings/random"), nodes, settings.dim) * np.float32(settings.scale)
    if table is None or len(table) != num_nodes:
        what, hint = "the table of node embeddings is missing", "pretrain or give the file again"
        raise DataError(what, where=settings.source, hint=hint)
    return np.array(table[nodes], np.float32)


def moved_vectors(
    settings: EmbeddingSettings,
    match: NodeMatch,
    *,
    seed: int,
    table: Vectors | None,
    known: tuple[NDArray[Any], Vectors] | None = None,
) -> Vectors:
    """Embeddings of all nodes of another graph, by the table and the known, learned ones of the graph before."""
    size = 8 * max(match.num_old, match.graph.num_nodes) * settings.dim
    if size > share(0.5):
        what = f"vectors of {match.graph.num_nodes:,} nodes x {settings.dim} numbers take {size / 1e9:,.1f} GB"
        raise UserError(what, where="--graph", hint="raise --memory, or train again on this graph")
    nodes = np.arange(match.num_old, dtype=np.int32)
    rows = node_vectors(settings, nodes, num_nodes=match.num_old, seed=seed, table=table)
    if known is not None:
        match.rows(known[0])  # which refuses nodes that are not there
        rows[known[0]] = known[1]
    return match.vectors(rows)


def check_source(recipe: Recipe) -> None:
    """Refuse a missing file or impossible settings of pretraining, before any work."""
    settings = recipe.embeddings
    if settings.source in PRETRAINED:
        from subgnn.embeddings.pretrain import check_settings

        check_settings(settings.source, settings.dim, recipe.pretrain)
    elif settings.source not in ("random", UNTRAINED):
        require_file(Path(settings.source))


def source_vectors(
    recipe: Recipe, graph: Graph, *, device: str = "auto", cache: bool = True, on_epoch: OnEpoch = ignore
) -> Vectors | None:
    """The table of node embeddings (N, dim) of a recipe, pretrained ones scaled; None if they are random."""
    settings = recipe.embeddings
    if settings.source == "random":
        return None
    if settings.source in PRETRAINED:
        from subgnn.embeddings.pretrain import pretrained_vectors

        vectors = pretrained_vectors(recipe, graph, device=device, cache=cache, on_epoch=on_epoch)
        size = float(np.sqrt(np.mean(np.square(vectors, dtype=np.float64))))
        return vectors * np.float32(settings.scale / size) if size > 0 else vectors
    if settings.source == UNTRAINED:
        return untrained_gin(graph, dim=settings.dim, hidden=recipe.pretrain.hidden, seed=recipe.pretrain.seed)
    vectors = read_vectors(Path(settings.source), graph)
    if vectors.shape[1] != settings.dim:
        what = f"the embeddings have the shape {vectors.shape}, but {(graph.num_nodes, settings.dim)} is needed"
        hint = f"the width is embeddings.dim: --set embeddings.dim={vectors.shape[1]}"
        raise DataError(what, where=settings.source, hint=hint)
    return vectors


def untrained_gin(graph: Graph, *, dim: int, hidden: int, seed: int) -> Vectors:
    r"""A GIN of two layers at its initial weights: the "GIN embeddings" (N, dim) of the paper's authors.

    .. math:: X = (I + A)\, \mathrm{relu}\big((I + A) W_1 + b_1\big) W_2 + b_2

    Entries of W and b are uniform in ±1/sqrt(fan-in), which is N in the first layer: nodes have one-hot features. In
    the authors' code link prediction never reaches the weights (a tensor is detached), so their stored vectors are
    these. They grow with the degree of a node and of its neighbours.

    *Differs from the authors' code:* A is symmetric; theirs has each edge one way, as the file lists it.
    """
    n, draws = graph.num_nodes, stream(seed, "embeddings/untrained_gin")
    near = scipy.sparse.csr_array((np.ones(len(graph.neighbors), np.float32), graph.neighbors, graph.offsets), (n, n))
    first, second = 1 / np.sqrt(max(n, 1)), 1 / np.sqrt(hidden)
    vectors = np.zeros((n, dim), np.float32)
    for begin in range(0, hidden, _COLUMNS):
        width = min(_COLUMNS, hidden - begin)
        weights = draws.uniform(-first, first, (n, width)).astype(np.float32)
        states = np.maximum(weights + near @ weights + draws.uniform(-first, first, width).astype(np.float32), 0)
        vectors += (states + near @ states) @ draws.uniform(-second, second, (width, dim)).astype(np.float32)
    return vectors + draws.uniform(-second, second, dim).astype(np.float32)


def save_run_vectors(tables: Iterable[Vectors], graph: Graph, run: Path) -> None:
    """Copy tables, each once, into a run's folder."""
    for i, table in enumerate({vectors_hash(table): table for table in tables}.values()):
        write_vectors(run / run_file(i), table, {}, graph_hash=graph.content_hash, overwrite=True)


def load_run_vectors(run: Path, needed: Collection[str]) -> Tables:
    """The tables in a run's folder, by the hashes that are needed."""
    copies = [run / run_file(i) for i in range(len(needed)) if (run / run_file(i)).is_file()]
    found = {vectors_hash(table): table for table, _ in map(read_stored, copies)}
    if not set(needed) <= found.keys():
        hint = f"copy {RUN_FILE} from the folder where it was trained, or train again"
        raise DataError("the run's folder does not have its node embeddings", where=str(run), hint=hint)
    return {expected: found[expected] for expected in needed}


def feature_rows(graph: Graph, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
    """f: the features (n, F) of the given nodes."""
    require_features(graph)
    return np.asarray(graph.features)[nodes].astype(np.float64)


def feature_standard(graph: Graph) -> Standard:
    """The mean and deviation of each feature over all nodes of the graph."""
    require_features(graph)
    width = np.asarray(graph.features).shape[1]
    rows = max(1, _NUMBERS_AT_A_TIME // width)
    parts = [np.arange(i, min(i + rows, graph.num_nodes)) for i in range(0, graph.num_nodes, rows)]
    mean = sum((feature_rows(graph, part).sum(axis=0) for part in parts), np.zeros(width)) / graph.num_nodes
    squares = sum((((feature_rows(graph, part) - mean) ** 2).sum(axis=0) for part in parts), np.zeros(width))
    deviation = np.sqrt(squares / graph.num_nodes)
    return Standard(mean, np.where(deviation > 0, deviation, 1.0))


def require_features(graph: Graph) -> None:
    """Refuse a graph without node features."""
    if graph.features is None or not graph.features.shape[1]:
        hint = 'add features.npy (one row of numbers per node) to the dataset, or set embeddings.features="none"'
        raise DataError("the graph has no node features", where="embeddings.features", hint=hint)


def vectors_hash(vectors: Vectors) -> str:
    """SHA-256 of the shape and the numbers."""
    digest = hashlib.sha256(str(vectors.shape).encode())
    digest.update(np.ascontiguousarray(vectors, np.float32).data)
    return digest.hexdigest()


def encode_vectors(vectors: Vectors, about: dict[str, Any], *, graph_hash: str) -> Parts:
    """The parts of a .safetensors file of embeddings; ``about`` says how they were computed, in plain values."""
    metadata = {"graph_hash": graph_hash, "about": json.dumps(about)}
    return encode_arrays({"vectors": vectors.astype("<f4", copy=False)}, _STORED, metadata=metadata)


def write_vectors(
    path: Path, vectors: Vectors, about: dict[str, Any], *, graph_hash: str, overwrite: bool = False
) -> None:
    """Write embeddings as .safetensors, atomically."""
    write_parts(path, encode_vectors(vectors, about, graph_hash=graph_hash), overwrite=overwrite, sync=False)


def read_stored(path: Path) -> tuple[Vectors, dict[str, str]]:
    """The vectors of a .safetensors file that :func:`write_vectors` wrote, and its metadata; verified."""
    file = read_arrays(path, _STORED)
    if not isinstance(file.metadata.get("graph_hash"), str):
        raise DataError("it does not name its graph", where=str(path), hint=f"the file is damaged; {_STORED.again}")
    return file.array("vectors", np.float32, (None, None)), file.metadata


def require_file(path: Path) -> str:
    """The suffix of a file of embeddings, without that of gzip; refuses an unknown one and a missing file."""
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    accepted = (".safetensors", ".npy", *_TEXT)
    if suffix not in accepted:
        hint = f"accepted: random, gin, graphsaint, {', '.join(accepted)}"
        raise DataError(f"unknown kind of embeddings '{path}'", where="embeddings.source", hint=hint)
    if not path.is_file():
        known = "random, gin, graphsaint, gin-untrained"
        hint = f"embeddings.source is {known}, or a file, written by subgnn pretrain or by you"
        raise DataError("no such file", where=str(path), hint=hint)
    return suffix


def read_vectors(path: Path, graph: Graph) -> Vectors:
    """The embeddings (N, dim) of all nodes of a graph; refuses a file that does not fit it."""
    suffix = require_file(path)
    if suffix == ".safetensors":
        vectors, metadata = read_stored(path)
        if metadata["graph_hash"] != graph.content_hash:
            named = ascii(metadata["graph_hash"][:12])[1:-1]
            what = f"these are embeddings of a different graph ({named}, not {graph.content_hash[:12]})"
            raise DataError(what, where=str(path), hint="pretrain on this dataset")
    elif suffix == ".npy":
        array = read_npy(path)
        if array.ndim != 2:
            raise DataError(f"it has the shape {array.shape}", where=str(path), hint="accepted: (nodes, dim)")
        with np.errstate(over="ignore"):  # values too large for 32 bits become infinite, and are refused as such
            vectors = np.asarray(array, np.float32)
    else:
        vectors = _read_text(path, graph)
    if len(vectors) != graph.num_nodes:
        what = f"it has {len(vectors):,} rows, but the graph has {graph.num_nodes:,} nodes"
        raise DataError(what, where=str(path), hint="give one row per node, in the order of ids")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        what, hint = f"the vector of node {bad[0]} is not finite", "fill or drop missing values"
        raise DataError(what, where=str(path), hint=hint)
    return vectors


def _read_text(path: Path, graph: Graph) -> Vectors:
    vectors: Vectors | None = None
    seen = np.zeros(graph.num_nodes, np.bool_)
    for number, line in read_lines(path):
        fields = line.split()
        if number == 1 and len(fields) == 2 and all(map(is_id, fields)):
            continue
        dim = vectors.shape[1] if vectors is not None else len(fields) - 1
        if dim > _MAX_DIM:
            raise DataError(f"it has {dim:,} numbers", where=f"{path}:{number}", hint=f"accepted: at most {_MAX_DIM:,}")
        if vectors is None:
            vectors = np.zeros((graph.num_nodes, max(dim, 0)), np.float32)
        node = find_node(" ".join(fields[: len(fields) - dim]), graph.num_nodes, graph.names)
        if node is None or node < 0:
            continue  # a word that is not a node, such as word2vec's end of sentence
        try:
            vectors[node] = fields[len(fields) - dim :]
        except ValueError:
            what = f"found {len(fields)} fields, starting with {excerpt(line)}"
            raise DataError(what, where=f"{path}:{number}", hint=f"a node and {dim} numbers are needed") from None
        if seen[node]:
            raise DataError(f"node {fields[0]} is repeated", where=f"{path}:{number}", hint="give one vector per node")
        seen[node] = True
    missing = np.flatnonzero(~seen)
    if vectors is None or len(missing):
        named = [graph.names.written(int(v)) if graph.names is not None else str(v) for v in missing[:_SHOWN]]
        what = f"{len(missing):,} of {graph.num_nodes:,} nodes have no vector: {', '.join(named)}"
        what += ", ..." * (len(missing) > _SHOWN)
        hint = "every node needs a line that starts with its name, or its id if it has none"
        raise DataError(what, where=str(path), hint=hint)
    return vectors
