"""A checkpoint as named arrays and plain values, and back; nothing is pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.anchors import NodeAnchors, PatchAnchors, SharedAnchors
from subgnn.config import ChannelSettings, Recipe
from subgnn.data.subgraphs import TASKS, Task
from subgnn.errors import DataError
from subgnn.ragged import Ragged
from subgnn.settings_file import parse_recipe
from subgnn.topology import Standard
from subgnn.training.checkpoint import Checkpoint

Arrays = dict[str, NDArray[Any]]
_BASELINE = "baseline."
_PATCHES = ("patches.values", "patches.offsets", "walks.values", "walks.offsets")


def pack(checkpoint: Checkpoint) -> tuple[Arrays, dict[str, Any]]:
    """Arrays by name, and what is no array, as JSON takes it."""
    arrays: Arrays = {
        "table_nodes": checkpoint.table_nodes,
        # As int64, which the layout knows.
        "component_keys": checkpoint.component_keys.view(np.int64),
    }
    arrays |= {f"weights.{name}": value.numpy() for name, value in checkpoint.weights.items()}
    for name, standard in checkpoint.standards.items():
        arrays[f"standards.{name}.mean"], arrays[f"standards.{name}.deviation"] = standard.mean, standard.deviation
    draws = [checkpoint.shared, *checkpoint.redrawn]
    for d, draw in enumerate(draws):
        for layer, row in enumerate(draw):
            for channel, anchors in enumerate(row):
                arrays |= _pack_anchors(f"anchors.{d}.{layer}.{channel}.", anchors)
    content = {
        "recipe": asdict(checkpoint.recipe),
        "seed": checkpoint.seed,
        "task": checkpoint.task,
        "classes": list(checkpoint.classes),
        "graph_hash": checkpoint.graph_hash,
        "vectors_hash": checkpoint.vectors_hash,
        "draws": len(draws),
        "layers": len(checkpoint.shared),
        "baseline": None,
    }
    if checkpoint.baseline is not None:
        of_baseline, content["baseline"] = pack(checkpoint.baseline)
        arrays |= {_BASELINE + name: array for name, array in of_baseline.items()}
    return arrays, content


def _pack_anchors(prefix: str, anchors: SharedAnchors | None) -> Arrays:
    if anchors is None:
        return {}
    if isinstance(anchors, NodeAnchors):
        return {prefix + "nodes": anchors.nodes}
    parts = (anchors.patches.values, anchors.patches.offsets, anchors.walks.values, anchors.walks.offsets)
    return {prefix + name: part for name, part in zip(_PATCHES, parts, strict=True)}


def unpack(arrays: Mapping[str, NDArray[Any]], content: Mapping[str, Any], where: str) -> Checkpoint:
    """What :func:`pack` packed.

    Raises:
        DataError, KeyError, TypeError, ValueError: where it is not that.
    """
    recipe = parse_recipe(content["recipe"], where)
    if content["task"] not in TASKS:
        raise ValueError(content["task"])
    layers, draws = int(content["layers"]), int(content["draws"])
    if layers not in (0, recipe.model.layers) or not 1 <= draws <= max(1, recipe.prepare.draws):
        raise ValueError("layers or draws")
    shared = [
        [
            [_unpack_anchors(arrays, f"anchors.{d}.{layer}.{c}.", channel) for c, channel in enumerate(recipe.channels)]
            for layer in range(layers)
        ]
        for d in range(draws)
    ]
    names = {name.split(".")[1] for name in arrays if name.startswith("standards.")}
    return Checkpoint(
        recipe=recipe,
        seed=int(content["seed"]),
        task=cast(Task, content["task"]),
        classes=tuple(str(name) for name in content["classes"]),
        graph_hash=str(content["graph_hash"]),
        table_nodes=_typed(arrays["table_nodes"], np.int32),
        shared=shared[0],
        redrawn=shared[1:],
        component_keys=_typed(arrays["component_keys"], np.int64).view(np.uint64),
        weights={
            name.removeprefix("weights."): torch.from_numpy(np.array(array))
            for name, array in arrays.items()
            if name.startswith("weights.")
        },
        standards={
            name: Standard(arrays[f"standards.{name}.mean"], arrays[f"standards.{name}.deviation"]) for name in names
        },
        vectors_hash=str(content["vectors_hash"]),
        baseline=_unpack_baseline(arrays, content, recipe, where),
    )


def _unpack_baseline(
    arrays: Mapping[str, NDArray[Any]], content: Mapping[str, Any], recipe: Recipe, where: str
) -> Checkpoint | None:
    """The baseline that a network corrects, where it does; a baseline has none itself."""
    expected = recipe.model.baseline if recipe.method == "subgnn" else "none"
    packed = content["baseline"]
    if (packed is None) != (expected == "none"):
        raise ValueError("baseline")
    if packed is None:
        return None
    if packed["recipe"]["method"] != expected or packed["task"] != content["task"]:
        raise ValueError("baseline")
    own = {name.removeprefix(_BASELINE): array for name, array in arrays.items() if name.startswith(_BASELINE)}
    return unpack(own, packed, where)


def _unpack_anchors(arrays: Mapping[str, NDArray[Any]], prefix: str, channel: ChannelSettings) -> SharedAnchors | None:
    if not channel.shared:
        return None
    if channel.kind == "position":
        anchors = NodeAnchors(_typed(arrays[prefix + "nodes"], np.int32))
        if len(anchors.nodes) != channel.num_anchors:
            raise ValueError(prefix)
        return anchors
    values = [arrays[prefix + name] for name in _PATCHES]
    rows = [Ragged(_typed(v, np.int32), _typed(o, np.int64)) for v, o in (values[:2], values[2:])]
    for some in rows:
        some.validate(prefix)
    if len(rows[0]) != channel.num_anchors or not len(rows[1]) or len(rows[1]) % channel.num_anchors:
        raise ValueError(prefix)
    return PatchAnchors(rows[0], rows[1])


def _typed(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    if array.dtype != dtype or array.ndim != 1:
        raise TypeError(f"{array.dtype}, {array.ndim} dimensions")
    return array


def check_nodes(checkpoint: Checkpoint, num_nodes: int, where: str) -> None:
    """Raise :class:`DataError` where a checkpoint speaks of nodes that the graph has not: compiled code trusts them."""
    parts = [checkpoint.table_nodes]
    for draw in (checkpoint.shared, *checkpoint.redrawn):
        for anchors in (anchors for row in draw for anchors in row):
            if isinstance(anchors, NodeAnchors):
                parts.append(anchors.nodes)
            elif isinstance(anchors, PatchAnchors):
                parts += [anchors.patches.values, anchors.walks.values]
    for nodes in parts:
        if len(nodes) and not 0 <= int(nodes.min()) <= int(nodes.max()) < num_nodes:
            raise DataError("it holds a node that is not in the graph", where=where, hint="export the run again")
    if len(checkpoint.table_nodes) > 1 and bool((np.diff(checkpoint.table_nodes) <= 0).any()):
        raise DataError("the nodes of its table are not in order", where=where, hint="export the run again")
