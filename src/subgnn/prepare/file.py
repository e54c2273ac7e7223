"""Prepared subgraphs as a file of arrays (:mod:`subgnn.storage.arrays`), with the key they belong to.

Arrays come back equal bit for bit, of the same type, and read-only where they were. They stay in the file, which is
mapped into memory, so that training reads the rows of its batches.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from subgnn.channels.channel import Distances, NodeAnchors, OwnAnchors, PatchAnchors, SharedAnchors, Similarities
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.errors import DataError
from subgnn.kernels import Components
from subgnn.prepare.measure import Frame, Prepared, SubchannelInputs
from subgnn.ragged import Ragged
from subgnn.storage.arrays import Arrays, Format, Parts, encode_arrays, read_arrays

_PREPARED = Format(
    name="subgnn-prepared",
    version=1,
    noun="prepared file",
    make="subgnn prepare writes one",
    again="prepare again",
)
LAYOUT = 2
"""Raised when arrays are arranged in another way, so that files written before are made again."""


def encode(prepared: Prepared, key: str) -> Parts:
    """Prepared subgraphs as the parts of a file.

    Args:
        key: text that says what the content belongs to; reading it needs the same.
    """
    arrays, tree = _pack(prepared)
    frozen = [name for name, array in arrays.items() if not array.flags.writeable]
    content = json.dumps({"tree": tree, "frozen": frozen}, separators=(",", ":"))
    return encode_arrays(arrays, _PREPARED, {"key": key, "content": content})


def _pack(prepared: Prepared) -> tuple[Arrays, dict[str, Any]]:
    """The arrays, each once, and a tree that names the array in each place."""
    arrays: Arrays = {}
    names: dict[int, str] = {}

    def pack(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            if id(value) not in names:
                names[id(value)] = f"array.{len(names)}"
                arrays[names[id(value)]] = value
            return names[id(value)]
        if isinstance(value, list):
            return [pack(item) for item in value]
        if is_dataclass(value):
            return {field.name: pack(getattr(value, field.name)) for field in fields(value)}
        return value

    tree = {
        "components": pack(prepared.components),
        "shared": pack(prepared.frame.shared),
        "inputs": pack(prepared.inputs),
    }
    return arrays, tree


def read_prepared(
    path: Path,
    *,
    key: str,
    channels: tuple[ChannelSettings, ...],
    settings: PrepareSettings,
    seed: int,
    graph_hash: str,
) -> Prepared:
    """Read prepared subgraphs.

    Raises:
        DataError: if the file cannot be read, is damaged, or belongs to another key.
    """
    file = read_arrays(path, _PREPARED, mapped="c")
    file.verify()
    if file.metadata.get("key") != key:
        raise DataError("it belongs to other content", where=str(path))
    content, arrays = json.loads(file.metadata["content"]), file.arrays
    for name in content["frozen"]:
        arrays[name].flags.writeable = False
    return _unpack(content["tree"], arrays, channels, settings, seed, graph_hash)


def _unpack(
    tree: dict[str, Any],
    arrays: Arrays,
    channels: tuple[ChannelSettings, ...],
    settings: PrepareSettings,
    seed: int,
    graph_hash: str,
) -> Prepared:
    def ragged(entry: dict[str, str]) -> Ragged:
        return Ragged(arrays[entry["values"]], arrays[entry["offsets"]])

    def shared(entry: dict[str, Any] | None) -> SharedAnchors | None:
        if entry is None:
            return None
        if "nodes" in entry:
            return NodeAnchors(arrays[entry["nodes"]])
        return PatchAnchors(ragged(entry["patches"]), ragged(entry["walks"]))

    def inputs(entry: dict[str, Any]) -> SubchannelInputs:
        measured = {name: arrays[array] for name, array in entry["measured"].items()}
        own = entry["own"]
        return SubchannelInputs(
            Similarities(**measured) if "similarity" in measured else Distances(**measured),
            None if own is None else OwnAnchors(arrays[own["nodes"]], arrays[own["present"]]),
        )

    components = tree["components"]
    anchors = [[shared(entry) for entry in layer] for layer in tree["shared"]]
    return Prepared(
        frame=Frame(channels, settings, anchors, seed),
        graph_hash=graph_hash,
        components=Components(
            ragged(components["nodes"]), arrays[components["subgraph"]], arrays[components["counts"]]
        ),
        inputs=[[inputs(entry) for entry in layer] for layer in tree["inputs"]],
    )
