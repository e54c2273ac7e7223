"""Bundles as bytes: their headers, contents and arrays, to be changed."""

import json
import tempfile
from pathlib import Path

import numpy as np

from subgnn import write_bundle


def as_bytes(dataset):
    """A dataset as the bytes of a bundle."""
    with tempfile.TemporaryDirectory() as place:
        write_bundle(dataset, Path(place) / "x.subgnn")
        return (Path(place) / "x.subgnn").read_bytes()


def header_of(content):
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), 8 + length


def with_header(content, change):
    """The same arrays behind a changed header."""
    header, begin = header_of(content)
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + content[begin:]


def with_content(content, **changes):
    """The same arrays behind changed metadata of ours."""

    def change(header):
        inner = json.loads(header["__metadata__"]["content"])
        inner.update(changes)
        header["__metadata__"]["content"] = json.dumps({k: v for k, v in inner.items() if v is not ...})

    return with_header(content, change)


def arrays_of(content):
    """Writable views of the arrays in the bytes of a bundle."""
    header, begin = header_of(content)
    del header["__metadata__"]
    types = {"I64": "<i8", "F64": "<f8", "I32": "<i4", "F32": "<f4", "I8": "i1", "U8": "u1"}
    spans = {name: [begin + place for place in entry["data_offsets"]] for name, entry in header.items()}
    return {
        name: np.frombuffer(memoryview(content)[slice(*spans[name])], types[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }
