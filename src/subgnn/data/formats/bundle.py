"""A dataset as one binary file that opens by memory map, in milliseconds whatever its size.

The file is in the safetensors layout (:mod:`subgnn.data.formats.safetensors`), so other tools can read its arrays.
Opening checks the header against the length of the file and the ends of the arrays against each other, and in a file of
at most 64 MiB also every row and node id; :func:`verify_bundle` reads all of any file and compares checksums, as
``subgnn data check`` does.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.formats.safetensors import Format, read_arrays, storable, write_arrays
from subgnn.data.formats.text import appearing
from subgnn.data.graph import Dropped, Graph
from subgnn.data.strings import NodeNames, Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet, Task, label_card
from subgnn.errors import DataError
from subgnn.ragged import Ragged

SUFFIX = ".subgnn"
_LOOKED_THROUGH = 64 * 2**20
_PIECE = 2**20
_AGAIN = "convert the dataset again"
_BUNDLE = Format(
    name="subgnn-bundle",
    version=1,
    noun="bundle",
    make="make one with subgnn data convert DIR --out FILE",
    again=_AGAIN,
)


def is_bundle(path: Path) -> bool:
    """Whether a file has the beginnings of a bundle."""
    try:
        with path.open("rb") as file:
            head = file.read(8 + 256)
    except OSError:
        return False
    return path.suffix == SUFFIX or _BUNDLE.name.encode() in head


def write_bundle(dataset: Dataset, path: Path, *, overwrite: bool = False) -> None:
    """Write a dataset as a bundle; it appears whole or not at all."""
    arrays = storable(_arrays(dataset), "bundle")
    with appearing(path, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        write_arrays(file, arrays, _metadata(dataset, arrays))


def _arrays(dataset: Dataset) -> dict[str, NDArray[Any]]:
    graph, subgraphs = dataset.graph, dataset.subgraphs
    arrays: dict[str, NDArray[Any] | None] = {
        "graph.offsets": graph.offsets,
        "graph.neighbors": graph.neighbors,
        "graph.weights": graph.weights,
        "graph.features": graph.features,
        "subgraphs.offsets": subgraphs.nodes.offsets,
        "subgraphs.nodes": subgraphs.nodes.values,
        "subgraphs.targets": subgraphs.targets,
        "subgraphs.splits": subgraphs.splits,
    }
    texts = {f"names.{i}": column for i, column in enumerate(graph.names.columns.values())} if graph.names else {}
    texts |= {name: column for name, column in _texts(subgraphs).items() if column is not None}
    for name, column in texts.items():
        arrays[name + ".bytes"], arrays[name + ".offsets"] = column.rows.values, column.rows.offsets
    return {name: array for name, array in arrays.items() if array is not None}


def _texts(subgraphs: SubgraphSet) -> dict[str, Strings | None]:
    return {"subgraphs.names": subgraphs.names, "subgraphs.groups": subgraphs.groups}


def _content(dataset: Dataset) -> dict[str, Any]:
    graph, names = dataset.graph, dataset.graph.names
    return {
        "name": dataset.name,
        "card": dataset.card | label_card(dataset.subgraphs),
        "directed": graph.directed,
        "dropped": [graph.dropped.self_loops, graph.dropped.duplicates],
        "graph_hash": graph.content_hash,
        "columns": list(names.columns) if names else [],
        "primary": names.primary_column if names else "",
        "task": dataset.subgraphs.task,
        "classes": list(dataset.subgraphs.classes),
    }


def pack_dataset(dataset: Dataset) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays of a dataset by name, and what is no array, for a file that holds a dataset among other things."""
    return _arrays(dataset), _content(dataset)


def unpack_dataset(arrays: dict[str, NDArray[Any]], content: dict[str, Any], where: str) -> Dataset:
    """What :func:`pack_dataset` packed, with all checks of a bundle."""
    dataset = _unpacked(arrays, content, where)
    _look_through(dataset, where)
    return dataset


def _metadata(dataset: Dataset, arrays: dict[str, NDArray[Any]]) -> dict[str, str]:
    """Safetensors metadata: text to text."""
    content = json.dumps(_content(dataset))
    return {
        "format": _BUNDLE.name,
        "version": str(_BUNDLE.version),
        "content": content,
        "checksum": _checksum(content, arrays),
    }


def _checksum(content: str, arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(content.encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def read_bundle(path: Path) -> Dataset:
    """Open a bundle; of a large one nothing but its header is read until an array is used."""
    dataset, _, _ = _open(path)
    if path.stat().st_size <= _LOOKED_THROUGH:
        _look_through(dataset, str(path))
    return dataset


def verify_bundle(path: Path) -> None:
    """Read all of a bundle and raise :class:`DataError` unless it is as it was written."""
    dataset, arrays, metadata = _open(path)
    if _checksum(metadata["content"], arrays) != metadata.get("checksum"):
        raise DataError(
            "the content does not match its checksum", where=str(path), hint=f"the file is damaged; {_AGAIN}"
        )
    _look_through(dataset, str(path))


def _look_through(dataset: Dataset, where: str) -> None:
    """Check what compiled code trusts: rows, node ids, classes and splits."""
    graph, subgraphs = dataset.graph, dataset.subgraphs
    n = graph.num_nodes
    for rows in _ragged_parts(dataset):
        if not _rises(rows.offsets):
            raise DataError("the rows of the bundle overlap", where=where, hint=f"the file is damaged; {_AGAIN}")
    limits: list[tuple[str, NDArray[Any] | None, int]] = [
        ("a node that is not in the graph", graph.neighbors, n),
        ("a node that is not in the graph", subgraphs.nodes.values, n),
        ("a split that is none", subgraphs.splits, len(SPLITS)),
    ]
    if subgraphs.task in ("binary", "multi-class"):
        limits.append(("a class that has no name", subgraphs.targets, subgraphs.num_classes))
    for what, values, limit in limits:
        if values is not None and len(values) and not 0 <= int(values.min()) <= int(values.max()) < limit:
            raise DataError(f"the bundle holds {what}", where=where, hint=f"the file is damaged; {_AGAIN}")


def _rises(offsets: NDArray[np.int64]) -> bool:
    """Whether no row ends before it begins; looked at in pieces, which keeps the differences of a large graph small."""
    pieces = (offsets[begin : begin + _PIECE + 1] for begin in range(0, len(offsets), _PIECE))
    return all(bool((piece[1:] >= piece[:-1]).all()) for piece in pieces)


def _open(path: Path) -> tuple[Dataset, dict[str, NDArray[Any]], dict[str, Any]]:
    metadata, arrays = read_arrays(_map(path), _BUNDLE, str(path))
    return _unpacked(arrays, metadata.get("content"), str(path)), arrays, metadata


def _unpacked(arrays: dict[str, NDArray[Any]], content: Any, where: str) -> Dataset:
    try:
        dataset = _dataset(arrays, content if isinstance(content, dict) else json.loads(content))
        fits = _fits(dataset)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError, OverflowError, DataError):
        raise DataError("the bundle lacks a part, or has one of a wrong kind", where=where, hint=_AGAIN) from None
    if not fits:
        raise DataError("the parts of the bundle do not fit together", where=where, hint=_AGAIN)
    return dataset


def _map(path: Path) -> NDArray[np.uint8]:
    try:
        return np.memmap(path, np.uint8, mode="r").view(np.ndarray)
    except FileNotFoundError:
        raise DataError("no such file", where=str(path), hint="check the path") from None
    except (ValueError, OSError) as error:
        raise DataError(
            "this cannot be read as a bundle", where=str(path), hint=f"is it an empty file? {_AGAIN}"
        ) from error


def _dataset(arrays: dict[str, NDArray[Any]], content: dict[str, Any]) -> Dataset:
    def strings(name: str) -> Strings:
        return Strings(Ragged(arrays[name + ".bytes"], arrays[name + ".offsets"]))

    columns = {title: strings(f"names.{i}") for i, title in enumerate(content["columns"])}
    graph = Graph(
        offsets=arrays["graph.offsets"],
        neighbors=arrays["graph.neighbors"],
        weights=arrays.get("graph.weights"),
        features=arrays.get("graph.features"),
        names=NodeNames(columns, content["primary"]) if columns else None,
        directed=bool(content["directed"]),
        dropped=Dropped(*(int(count) for count in content["dropped"])),
        known_hash=str(content["graph_hash"]),
    )
    subgraphs = SubgraphSet(
        nodes=Ragged(arrays["subgraphs.nodes"], arrays["subgraphs.offsets"]),
        task=cast(Task, content["task"]),
        targets=arrays.get("subgraphs.targets"),
        classes=tuple(str(c) for c in content["classes"]),
        splits=arrays.get("subgraphs.splits"),
        names=strings("subgraphs.names") if "subgraphs.names.bytes" in arrays else None,
        groups=strings("subgraphs.groups") if "subgraphs.groups.bytes" in arrays else None,
    )
    return Dataset(name=str(content["name"]), graph=graph, subgraphs=subgraphs, card=dict(content["card"]))


def _fits(dataset: Dataset) -> bool:
    """Whether types and lengths agree, as far as the ends of the arrays tell."""
    graph, subgraphs = dataset.graph, dataset.subgraphs
    n, count, classes = graph.num_nodes, len(subgraphs), subgraphs.num_classes
    ragged = _ragged_parts(dataset)
    kinds = {
        "unlabelled": subgraphs.targets is None,
        "regression": _is_array(subgraphs.targets, np.float64, 1) and classes == 0,
        "multi-label": _is_array(subgraphs.targets, np.uint8, 2) and _width(subgraphs.targets) == classes,
        "binary": _is_array(subgraphs.targets, np.int32, 1) and classes == 2,
        "multi-class": _is_array(subgraphs.targets, np.int32, 1) and classes != 2,
    }
    return (
        kinds[subgraphs.task]
        and (subgraphs.splits is None or _is_array(subgraphs.splits, np.int8, 1))
        and all(r.offsets.dtype == np.int64 and r.offsets.ndim == r.values.ndim == 1 for r in ragged)
        and all(len(r.offsets) > 0 and r.offsets[0] == 0 and r.offsets[-1] == len(r.values) for r in ragged)
        and graph.neighbors.dtype == subgraphs.nodes.values.dtype == np.int32
        and (graph.weights is None or len(graph.weights) == len(graph.neighbors))
        and (graph.features is None or (graph.features.ndim == 2 and len(graph.features) == n))
        and (graph.names is None or len(graph.names) == n)
        and all(a is None or len(a) == count for a in (subgraphs.targets, subgraphs.splits))
        and all(column is None or len(column) == count for column in _texts(subgraphs).values())
    )


def _is_array(array: NDArray[Any] | None, dtype: Any, ndim: int) -> bool:
    return array is not None and array.dtype == dtype and array.ndim == ndim


def _width(array: NDArray[Any] | None) -> int:
    return 0 if array is None else int(array.shape[-1])


def _ragged_parts(dataset: Dataset) -> list[Ragged]:
    graph, subgraphs = dataset.graph, dataset.subgraphs
    parts = [Ragged(graph.neighbors, graph.offsets), subgraphs.nodes]
    parts += [column.rows for column in graph.names.columns.values()] if graph.names else []
    return parts + [column.rows for column in _texts(subgraphs).values() if column]
