"""A run as one file: all that predicts, and with the graph in it nothing else is needed.

The file is in the safetensors layout (:mod:`subgnn.storage.safetensors`): a JSON header, then arrays as they lie
in memory. Nothing in it is pickled, packed or named like a file, so there is no code to run, nothing to unpack beyond
its own length and no path to follow. A checksum over all of it is compared at reading, and what compiled code trusts is
checked: node ids, the order of rows, the graph's hash.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.formats.bundle import pack_dataset, unpack_dataset
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError
from subgnn.inference.subgraph_files import open_whole
from subgnn.models.checkpoint import WRONG, broken, pack, unpack
from subgnn.models.spec import Checkpoint
from subgnn.prepare.measure import seen_hash
from subgnn.storage.files import atomic_write
from subgnn.storage.safetensors import Arrays, Format, read_arrays, storable, write_arrays
from subgnn.versions import versions

_EXPORT = Format(
    name="subgnn-export",
    version=1,
    noun="exported run",
    make="make one with subgnn export RUN --out FILE",
    again="export the run again",
)
_NOUN = "the exported run"
_PLACES = ("run", "source")  # of results: where the run was made, which means nothing elsewhere


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """What an exported run holds.

    Shapes:
        vectors: (N, d) node embeddings it started from, unless they are random. reference: (draws, width), the mean
        vector of the training split, or None.
    """

    checkpoint: Checkpoint
    results: dict[str, Any]
    graph: Graph | None
    vectors: NDArray[np.float32] | None
    reference: NDArray[np.float32] | None


def export_run(
    run: Path, out: Path, *, data: Path | None = None, with_graph: bool = False, overwrite: bool = False
) -> dict[str, Any]:
    """Write a finished run as one file.

    Args:
        data: the dataset; by default where the run read it.
        with_graph: put the graph into the file, with the names of its nodes; subgraphs stay out.

    Returns:
        Its size in bytes, the graph's hash and whether the graph is in it.
    """
    whole = open_whole(run, data)
    predictor = whole.predictor
    packed, content = pack(predictor.checkpoint)
    arrays = {f"checkpoint.{name}": array for name, array in packed.items()}
    if predictor.vectors is not None:
        arrays["vectors"] = predictor.vectors
    reference, background = whole.reference, whole.background()
    if reference is None and background is not None and len(background):
        reference = predictor.mean_vectors(background)
    if reference is not None:
        arrays["reference"] = reference
    about: dict[str, Any] = {
        "checkpoint": content,
        "results": {name: value for name, value in whole.results.items() if name not in _PLACES},
        "versions": versions(),
        "graph": None,
    }
    if with_graph:
        graph = predictor.graph
        if predictor.checkpoint.spec.prepare.directed and graph.oriented is not None:
            graph = graph.oriented  # the undirected graph follows from it, but not the other way round
        alone = SubgraphSet.from_lists([], num_nodes=graph.num_nodes)
        of_graph, about["graph"] = pack_dataset(Dataset(str(whole.results.get("dataset", "")), graph, alone))
        arrays |= {f"graph.{name}": array for name, array in of_graph.items()}
    _write(out, arrays, about, overwrite=overwrite)
    return {
        "bytes": out.stat().st_size,
        "graph_hash": predictor.checkpoint.spec.graph_hash,
        "with_graph": with_graph,
    }


def _write(out: Path, arrays: Arrays, about: dict[str, Any], *, overwrite: bool) -> None:
    plain = storable(arrays, "export")
    content = json.dumps(about)
    metadata = {
        "format": _EXPORT.name,
        "version": str(_EXPORT.version),
        "content": content,
        "checksum": _checksum(content, plain),
    }
    with atomic_write(out, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        write_arrays(file, plain, metadata)


def _checksum(content: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(content.encode())
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].dtype.str}{arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def read_export(path: Path) -> Exported:
    """Read an exported run, with suspicion.

    Raises:
        DataError: where it is no exported run, damaged, or does not hold together.
    """
    where = str(path)
    try:
        whole = np.frombuffer(path.read_bytes(), np.uint8)
    except FileNotFoundError:
        raise DataError("no such file", where=where, hint="check the path") from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=where) from None
    metadata, arrays = read_arrays(whole, _EXPORT, where)
    known = ("vectors", "reference")
    unknown = [n for n in arrays if n not in known and not n.startswith(("checkpoint.", "graph."))]
    try:
        text = metadata["content"]
        if _checksum(text, arrays) != metadata["checksum"]:
            what = "the content does not match its checksum"
            raise DataError(what, where=where, hint=f"the file is damaged; {_EXPORT.again}")
        if unknown:
            raise ValueError(f"unknown part {unknown[0]!r}")
        content = json.loads(text)
        packed = content["checkpoint"]
        graph = None
        if content["graph"] is not None:
            of_graph = _under(arrays, "graph.")
            graph = unpack_dataset(of_graph, content["graph"], where, again=_EXPORT.again).graph.undirected()
        results = dict(content["results"])
    except WRONG as error:
        raise broken(_NOUN, error, where=where, again=_EXPORT.again) from None
    own = _under(arrays, "checkpoint.")
    checkpoint = unpack(own, packed, where=where, noun=_NOUN, again=_EXPORT.again)
    if graph is not None and seen_hash(graph, checkpoint.spec.prepare) != checkpoint.spec.graph_hash:
        raise DataError("its graph is not the one the run was trained on", where=where, hint=_EXPORT.again)
    return Exported(checkpoint, results, graph, arrays.get("vectors"), arrays.get("reference"))


def _under(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
