"""What a run keeps: settings, class names, anchors, the graph's hash and the weights; no pickled code."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.anchors import NodeAnchors, PatchAnchors, SharedAnchors
from subgnn.config import Recipe, parse_recipe
from subgnn.data.formats.text import appearing
from subgnn.data.subgraphs import Task
from subgnn.errors import DataError
from subgnn.ragged import Ragged
from subgnn.topology import Standard

_FORMAT, _VERSION = "subgnn-run", 1


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A trained network and all that is needed to ask it about new subgraphs.

    ``standards`` holds what statistics were standardised with: component, subgraph and target, where there are any.
    ``vectors_hash`` is that of the table of node embeddings the run started from; empty for random ones.
    """

    recipe: Recipe
    seed: int
    task: Task
    classes: tuple[str, ...]
    graph_hash: str
    table_nodes: NDArray[np.int32]
    shared: list[list[SharedAnchors | None]]
    weights: dict[str, torch.Tensor]
    standards: dict[str, Standard]
    vectors_hash: str = ""


def save(value: Any, path: Path) -> None:
    """Write tensors and plain values; the file appears whole or not at all."""
    with appearing(path, overwrite=True) as temporary:
        torch.save(value, temporary)


def load(path: Path) -> Any:
    """Read what :func:`save` wrote; anything but tensors and plain values is refused."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise DataError("no such file", where=str(path), hint="is this the folder of a run?") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, OSError):
        raise DataError("this is no checkpoint, or a damaged one", where=str(path), hint="train again") from None


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint."""
    save(
        {
            "format": _FORMAT,
            "version": _VERSION,
            "recipe": json.dumps(asdict(checkpoint.recipe)),
            "seed": checkpoint.seed,
            "task": checkpoint.task,
            "classes": list(checkpoint.classes),
            "graph_hash": checkpoint.graph_hash,
            "table_nodes": torch.from_numpy(np.array(checkpoint.table_nodes)),
            "shared": [[_pack(anchors) for anchors in layer] for layer in checkpoint.shared],
            "weights": checkpoint.weights,
            "standards": {
                name: [torch.from_numpy(np.array(s.mean)), torch.from_numpy(np.array(s.deviation))]
                for name, s in checkpoint.standards.items()
            },
            "vectors_hash": checkpoint.vectors_hash,
        },
        path,
    )


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint."""
    content = load(path)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataError("this is no checkpoint of a run", where=str(path), hint="train again")
    if content.get("version") != _VERSION:
        what = f"a checkpoint of version {content.get('version')}"
        raise DataError(what, where=str(path), hint=f"this release reads version {_VERSION}; train again")
    return Checkpoint(
        recipe=parse_recipe(json.loads(content["recipe"]), str(path)),
        seed=content["seed"],
        task=cast(Task, content["task"]),
        classes=tuple(content["classes"]),
        graph_hash=content["graph_hash"],
        table_nodes=content["table_nodes"].numpy(),
        shared=[[_unpack(anchors) for anchors in layer] for layer in content["shared"]],
        weights=content["weights"],
        standards={name: Standard(a.numpy(), b.numpy()) for name, (a, b) in content["standards"].items()},
        vectors_hash=content.get("vectors_hash", ""),
    )


def _pack(anchors: SharedAnchors | None) -> list[torch.Tensor]:
    if anchors is None:
        return []
    if isinstance(anchors, NodeAnchors):
        return [torch.from_numpy(np.array(anchors.nodes))]
    arrays = (anchors.patches.values, anchors.patches.offsets, anchors.walks.values, anchors.walks.offsets)
    return [torch.from_numpy(np.array(array)) for array in arrays]


def _unpack(tensors: list[torch.Tensor]) -> SharedAnchors | None:
    arrays = [tensor.numpy() for tensor in tensors]
    if not arrays:
        return None
    if len(arrays) == 1:
        return NodeAnchors(arrays[0])
    return PatchAnchors(Ragged(arrays[0], arrays[1]), Ragged(arrays[2], arrays[3]))
