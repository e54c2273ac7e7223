"""Bundles: a dataset as one file of arrays that opens by memory map, and is verified when it is first opened."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.formats.format import FileFormat
from subgnn.data.graph import Dropped, Graph
from subgnn.data.strings import NodeNames, Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet, label_card, with_absent
from subgnn.data.values import MAX_TYPES, check_features
from subgnn.errors import DataError
from subgnn.kernels.build_csr import check_neighbors, first_bad_set
from subgnn.ragged import Ragged
from subgnn.storage.arrays import ArrayFile, Format, encode_arrays, read_arrays, write_parts
from subgnn.storage.cache import cache_limit, cache_path, store, touch
from subgnn.storage.files import json_digest
from subgnn.task import TaskName, task_of

SUFFIX = ".subgnn"
_LARGE = 64 * 2**20
_PIECE = 2**20
_AGAIN = "convert the dataset again"
_DAMAGED = f"the file is damaged; {_AGAIN}"
_OF_EDGES, _TEXTS = ("offsets", "neighbors", "weights", "times"), ("names", "groups")
_VERDICT, _CHECKS = "verified", 1  # the kind of file in the cache; to be raised when more is checked
_BUNDLE = Format("subgnn-bundle", "bundle", make="make one with subgnn data convert DIR --out FILE", again=_AGAIN)


def is_bundle(path: Path) -> bool:
    """Whether a file begins as a bundle does, or has its suffix."""
    try:
        with path.open("rb") as file:
            head = file.read(8 + 256)
    except OSError:
        return False
    return path.suffix == SUFFIX or _BUNDLE.name.encode() in head


def write_bundle(dataset: Dataset, path: Path, *, overwrite: bool = False) -> None:
    """Write a dataset as a bundle, atomically."""
    arrays, content = pack_dataset(dataset)
    write_parts(path, encode_arrays(arrays, _BUNDLE, content), overwrite=overwrite, sync=False)


def pack_dataset(dataset: Dataset) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays of a dataset by name, and the rest of it as JSON takes it."""
    graph, subgraphs, names = dataset.graph, dataset.subgraphs, dataset.graph.names
    arrays: dict[str, NDArray[Any] | None] = {
        **{f"graph.{name}": getattr(graph, name) for name in (*_OF_EDGES, "features")},
        **{f"layers.{i}.{name}": getattr(one, name) for i, one in enumerate(graph.layers) for name in _OF_EDGES},
        "subgraphs.offsets": subgraphs.nodes.offsets,
        "subgraphs.nodes": subgraphs.nodes.values,
        **{f"subgraphs.{name}": getattr(subgraphs, name) for name in ("targets", "splits", "times")},
    }
    if subgraphs.absent is not None:
        arrays |= {"absent.nodes": subgraphs.absent.values, "absent.offsets": subgraphs.absent.offsets}
    texts = {f"names.{i}": column for i, column in enumerate(names.columns.values())} if names else {}
    texts |= {f"subgraphs.{name}": getattr(subgraphs, name) for name in _TEXTS}
    for name, column in texts.items():
        if column is not None:
            arrays[name + ".bytes"], arrays[name + ".offsets"] = column.rows.values, column.rows.offsets
    content = {
        "name": dataset.name,
        "card": dataset.card | label_card(subgraphs),
        "directed": graph.directed,
        "dropped": [graph.dropped.self_loops, graph.dropped.duplicates],
        "graph_hash": graph.compute_hash(),
        "names_hash": "" if names is None else names.compute_hash(),
        "columns": list(names.columns) if names else [],
        "primary": names.primary_column if names else "",
        "task": subgraphs.task,
        "classes": list(subgraphs.classes),
    } | ({"types": list(graph.types)} if graph.types else {})
    return {name: array for name, array in arrays.items() if array is not None}, content


def unpack_dataset(arrays: dict[str, NDArray[Any]], content: dict[str, Any], where: str, *, again: str) -> Dataset:
    """The dataset that :func:`pack_dataset` packed, with all checks of a bundle but that of the checksum."""
    try:
        dataset = _build(arrays, content, where)
        _check_structure(dataset, where)
        _check_hashes(dataset.graph, where)
    except DataError as error:
        raise DataError(error.what, where=where, hint=again) from None
    return dataset


def read_bundle(path: Path, *, check: Literal["once", "always", "never"] = "once") -> Dataset:
    """Open a bundle, whose arrays stay in the file; by default verified unless the cache says that it was."""
    file = read_arrays(path, _BUNDLE, mapped="r", verify=False)
    if check == "never":
        return _build(file.arrays, file.content(), file.where)
    if check == "always" or file.status.st_size <= _LARGE or cache_limit() == 0:
        return _verified(file)
    identity = _identity(file.status)
    verdict = cache_path(_VERDICT, json_digest({"checks": _CHECKS, **identity}))
    with suppress(OSError, ValueError, RecursionError), verdict.open("rb") as remembered:
        if json.loads(remembered.read(1024)) == identity:
            touch(verdict)
            return _build(file.arrays, file.content(), file.where)
    dataset = _verified(file)
    if _identity(path.stat()) == identity:
        store(verdict, [json.dumps(identity).encode()])
    return dataset


def _identity(status: os.stat_result) -> dict[str, int]:
    """Values that change with a file; the time of its last change of any kind cannot be set by hand."""
    return {name: getattr(status, f"st_{name}") for name in ("dev", "ino", "size", "mtime_ns", "ctime_ns")}


def _verified(file: ArrayFile) -> Dataset:
    dataset = _build(file.arrays, file.content(), file.where)
    with ThreadPoolExecutor(1) as beside:
        hashed = beside.submit(_check_hashes, dataset.graph, file.where)
        file.verify()
        hashed.result()
    _check_structure(dataset, file.where)
    return dataset


def _check_hashes(graph: Graph, where: str) -> None:
    names = graph.names
    if graph.compute_hash() != graph.known_hash or (names is not None and names.compute_hash() != names.known_hash):
        raise DataError("the graph does not match its hash in the header", where=where, hint=_DAMAGED)


def _check_structure(dataset: Dataset, where: str) -> None:
    if (problem := next(_problems(dataset), None)) is not None:
        raise DataError(problem, where=where, hint=_DAMAGED)
    if dataset.graph.features is not None:
        check_features(dataset.graph.features, dataset.graph.num_nodes, where=where)


def _problems(dataset: Dataset) -> Iterator[str]:
    """Problems of a dataset's structure; a check may rely on those before it."""
    graph, subgraphs, last = dataset.graph, dataset.subgraphs, dataset.graph.num_nodes - 1
    offsets = (part.offsets for parts in _ragged_parts(dataset) for part in parts)
    if not all(bool((piece[1:] >= piece[:-1]).all()) for array in offsets for piece in _pieces(array)):
        yield "the rows of an array overlap"
    for one in (graph, *graph.layers):
        node, symmetric = check_neighbors(Ragged(one.neighbors, one.offsets), one.weights)
        if node is not None:
            yield f"the neighbours of node {node} are not a sorted set of other nodes from 0 to {last}"
        if not graph.directed and not symmetric:
            yield "an undirected edge is missing at one of its ends, or has a different weight there"
        if not (_all_finite(one.weights) and _all_finite(one.times)):
            yield "a weight or a time of an edge is not finite"
    if subgraphs.absent is not None and first_bad_set(subgraphs.absent, graph.num_nodes) is not None:
        yield f"the absent nodes of a subgraph are not a sorted set of nodes from 0 to {last}"
    subgraph = first_bad_set(subgraphs.nodes, graph.num_nodes)
    if subgraph is not None or not subgraphs.nodes.lengths.all():
        subgraph = int(np.argmin(subgraphs.nodes.lengths)) if subgraph is None else subgraph
        yield f"the nodes of subgraph {subgraph} are not a sorted set of nodes from 0 to {last}"
    if not _all_finite(subgraphs.times):
        yield "a time of a subgraph is not finite"
    task, targets, classes = task_of(subgraphs.task), subgraphs.targets, subgraphs.classes
    fits = _all_finite(targets) if task.real else _below(targets, 2 if task.several else len(classes))
    if not fits or not _below(subgraphs.splits, len(SPLITS)) or len(set(classes)) < len(classes):
        yield "a label or a split is unknown"


def _below(values: NDArray[Any] | None, limit: int) -> bool:
    return values is None or values.size == 0 or 0 <= int(values.min()) <= int(values.max()) < limit


def _all_finite(values: NDArray[Any] | None) -> bool:
    return values is None or all(bool(np.isfinite(piece).all()) for piece in _pieces(values))


def _pieces(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Parts of an array that overlap by one value, so that little memory is needed for a large one."""
    return (values[begin : begin + _PIECE + 1] for begin in range(0, len(values), _PIECE))


def _build(arrays: dict[str, NDArray[Any]], content: dict[str, Any], where: str) -> Dataset:
    """A dataset from its arrays and the rest of it, whose types and lengths agree as far as their ends tell."""
    try:
        dataset = _assemble(arrays, content)
        fits = _fits(dataset)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError, OverflowError, DataError):
        raise DataError("the dataset is incomplete or malformed", where=where, hint=_AGAIN) from None
    if not fits:
        raise DataError("the parts of the dataset do not fit together", where=where, hint=_AGAIN)
    return dataset


def _assemble(arrays: dict[str, NDArray[Any]], content: dict[str, Any]) -> Dataset:
    def strings(name: str) -> Strings:
        return Strings(Ragged(arrays[name + ".bytes"], arrays[name + ".offsets"]))

    columns = {title: strings(f"names.{i}") for i, title in enumerate(content["columns"])}
    directed, types = bool(content["directed"]), tuple(str(name) for name in content.get("types", ()))

    def edges(name: str) -> Graph:
        offsets, neighbors = arrays[f"{name}.offsets"], arrays[f"{name}.neighbors"]
        weights, times = arrays.get(f"{name}.weights"), arrays.get(f"{name}.times")
        return Graph(offsets, neighbors, weights, times=times, directed=directed)

    graph = replace(
        edges("graph"),
        features=arrays.get("graph.features"),
        names=NodeNames(columns, content["primary"], known_hash=str(content["names_hash"])) if columns else None,
        dropped=Dropped(*(int(count) for count in content["dropped"])),
        known_hash=str(content["graph_hash"]),
        types=types,
        layers=tuple(edges(f"layers.{i}") for i in range(len(types))),
    )
    columns_of_sets: dict[str, Any] = {name: arrays.get(f"subgraphs.{name}") for name in ("targets", "splits", "times")}
    for name in _TEXTS:
        if f"subgraphs.{name}.bytes" in arrays:
            columns_of_sets[name] = strings(f"subgraphs.{name}")
    nodes, classes = Ragged(arrays["subgraphs.nodes"], arrays["subgraphs.offsets"]), map(str, content["classes"])
    if "absent.nodes" in arrays:
        nodes = with_absent(nodes, Ragged(arrays["absent.nodes"], arrays["absent.offsets"]))
    subgraphs = SubgraphSet(nodes, cast(TaskName, content["task"]), classes=tuple(classes), **columns_of_sets)
    return Dataset(name=str(content["name"]), graph=graph, subgraphs=subgraphs, card=dict(content["card"]))


def _fits(dataset: Dataset) -> bool:
    graph, subgraphs, targets = dataset.graph, dataset.subgraphs, dataset.subgraphs.targets
    n, count, classes, (rows, texts) = graph.num_nodes, len(subgraphs), subgraphs.num_classes, _ragged_parts(dataset)
    kinds = {
        "unlabelled": True,
        "regression": _is_array(targets, np.float64) and classes == 0,
        "multi-label": _is_array(targets, np.uint8, ndim=2) and targets is not None and targets.shape[1] == classes,
        "binary": _is_array(targets, np.int32) and classes == 2,
        "multi-class": _is_array(targets, np.int32) and classes != 2,
    }
    columns = (targets, subgraphs.splits, subgraphs.times, subgraphs.names, subgraphs.groups, subgraphs.absent)
    return (
        kinds[subgraphs.task]
        and (targets is None) == (subgraphs.task == "unlabelled")
        and all(r.offsets.dtype == np.int64 and r.offsets.ndim == r.values.ndim == 1 for r in rows + texts)
        and all(len(r.offsets) > 0 and r.offsets[0] == 0 and r.offsets[-1] == len(r.values) for r in rows + texts)
        and all(r.values.dtype == np.int32 for r in rows)
        and all(text.values.dtype == np.uint8 for text in texts)
        and all(
            one.num_nodes == n
            and _is_array(one.weights, np.float32)
            and _is_array(one.times, np.int64, np.float64)
            and all(array is None or len(array) == len(one.neighbors) for array in (one.weights, one.times))
            for one in (graph, *graph.layers)
        )
        and len(set(graph.types)) == len(graph.types) <= MAX_TYPES
        and (graph.features is None or (graph.features.ndim == 2 and len(graph.features) == n))
        and (graph.names is None or len(graph.names) == n)
        and _is_array(subgraphs.splits, np.int8)
        and _is_array(subgraphs.times, np.int64, np.float64)
        and all(column is None or len(column) == count for column in columns)
    )


def _is_array(array: NDArray[Any] | None, *types: type, ndim: int = 1) -> bool:
    return array is None or (array.dtype in types and array.ndim == ndim)


def _ragged_parts(dataset: Dataset) -> tuple[list[Ragged], list[Ragged]]:
    """Rows of the graph, of the graphs of one type and of the subgraphs; and those of text."""
    graph, subgraphs = dataset.graph, dataset.subgraphs
    texts = [*(graph.names.columns.values() if graph.names else ()), subgraphs.names, subgraphs.groups]
    rows = [*(Ragged(one.neighbors, one.offsets) for one in (graph, *graph.layers)), subgraphs.nodes]
    rows += [] if subgraphs.absent is None else [subgraphs.absent]
    return rows, [column.rows for column in texts if column is not None]


BUNDLE = FileFormat(
    is_bundle, read_dataset=lambda path, options, _: read_bundle(path, check="always" if options.verify else "once")
)
