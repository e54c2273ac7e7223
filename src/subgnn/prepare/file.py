"""Prepared subgraphs as a file: arrays in the safetensors layout, the key they belong to, and a checksum of all of it.

The checksum is the SHA-256 of the whole file with zeros in the checksum's own place, so no byte of it can change
unnoticed. Arrays come back equal bit for bit, of the same type, and frozen where they were. They stay in the file,
which is mapped into memory, so that training reads the rows of its batches.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.channels.anchors import NodeAnchors, OwnAnchors, PatchAnchors, SharedAnchors
from subgnn.channels.similarity import Nearness
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.errors import DataError
from subgnn.kernels import Components
from subgnn.prepare.measure import Frame, Prepared, SubchannelInputs
from subgnn.ragged import Ragged
from subgnn.storage.files import atomic_write
from subgnn.storage.safetensors import Arrays, Format, header_bytes, read_arrays, storable

_PREPARED = Format(
    name="subgnn-prepared",
    version=1,
    noun="prepared file",
    make="subgnn prepare writes one",
    again="prepare again",
)
_EMPTY = "0" * 64
_BLOCK = 2**24


def encode(prepared: Prepared, key: str) -> list[bytes | memoryview]:
    """Prepared subgraphs as the parts of a file.

    Args:
        key: text that says what the content belongs to; whoever reads the file must give the same.
    """
    arrays, tree = _pack(prepared)
    frozen = [name for name, array in arrays.items() if not array.flags.writeable]
    content = json.dumps({"tree": tree, "frozen": frozen}, separators=(",", ":"))
    metadata = {"checksum": _EMPTY, "format": _PREPARED.name, "version": str(_PREPARED.version)}
    header = header_bytes(arrays, metadata | {"key": key, "content": content})
    data = [np.ascontiguousarray(array).data for array in arrays.values()]
    digest = hashlib.sha256(header)
    for part in data:
        digest.update(part)
    return [header.replace(_EMPTY.encode(), digest.hexdigest().encode(), 1), *data]


def _pack(prepared: Prepared) -> tuple[Arrays, dict[str, Any]]:
    """The arrays, each once, and a description of what stands where."""
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
    return storable(arrays, "prepared"), tree


def write_prepared(path: Path, parts: list[bytes | memoryview]) -> None:
    """Write what :func:`encode` gave; the file appears whole, and on the disk, or not at all."""
    with atomic_write(path, overwrite=True) as temporary, temporary.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


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
        FileNotFoundError: where there is no such file.
        DataError: where it cannot be read, is damaged, or belongs to another key.
    """
    try:
        whole = _mapped(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise DataError(f"it cannot be read ({error.strerror or error})", where=str(path)) from None
    metadata, arrays = read_arrays(whole, _PREPARED, str(path))
    if _checksum(whole) != metadata.get("checksum"):
        raise DataError("its content does not match its checksum", where=str(path))
    if metadata.get("key") != key:
        raise DataError("it belongs to other content", where=str(path))
    content = json.loads(metadata["content"])
    for name in content["frozen"]:
        arrays[name].flags.writeable = False
    return _unpack(content["tree"], arrays, channels, settings, seed, graph_hash)


def _mapped(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file, read when they are looked at; what is written to them does not go to the file."""
    if path.stat().st_size == 0:
        return np.empty(0, np.uint8)
    return np.memmap(path, np.uint8, mode="c").view(np.ndarray)


def _checksum(whole: NDArray[np.uint8]) -> str:
    """SHA-256 of a file's bytes, with zeros in the place of the checksum, which stands first in the header."""
    mark = b'"checksum":"'
    head = whole[: 8 + 256].tobytes()
    begin = head.find(mark) + len(mark)
    digest = hashlib.sha256(head[:begin] + _EMPTY.encode())
    for at in range(begin + len(_EMPTY), len(whole), _BLOCK):
        digest.update(whole[at : at + _BLOCK].data)
    return digest.hexdigest()


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
        near, own = entry["nearness"], entry["own"]
        return SubchannelInputs(
            Nearness(arrays[near["distance"]], arrays[near["reached"]]),
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
