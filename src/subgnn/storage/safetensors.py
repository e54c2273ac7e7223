"""Arrays in one file, in the safetensors layout, so that other tools can read them.

Eight bytes with the length of a JSON header; the header, which has the name, type, shape and place of each array, and
metadata, text to text; then the arrays, widest types first so that each is aligned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError

TYPES = {
    "I64": "<i8",
    "F64": "<f8",
    "I32": "<i4",
    "F32": "<f4",
    "F16": "<f2",
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}
_TYPE_NAMES = {np.dtype(numpy_name): name for name, numpy_name in TYPES.items()}
_ALIGN = 64
_MAX_HEADER = 100_000_000

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Format:
    """What a file of ours calls itself: its metadata carry name and version.

    Args:
        noun: what people call such a file.
        make: how one is made, for who gives another file.
        again: what to do about a damaged one.
    """

    name: str
    version: int
    noun: str
    make: str
    again: str


def storable(arrays: Mapping[str, Any], where: str) -> Arrays:
    """Plain arrays of types that the layout knows, in the order they are written in."""
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype not in _TYPE_NAMES:
            raise DataError(f"{name} has type {array.dtype}", where=where, hint=f"accepted: {', '.join(TYPES)}")
    return dict(sorted(plain.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])))


def header_bytes(arrays: Arrays, metadata: Mapping[str, str]) -> bytes:
    """The length of the header and the header, padded so that the arrays begin aligned."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    place = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _TYPE_NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGN)
    return len(text).to_bytes(8, "little") + text


def write_arrays(file: IO[bytes], arrays: Arrays, metadata: Mapping[str, str]) -> None:
    """Write header and arrays, as :func:`storable` gave them."""
    file.write(header_bytes(arrays, metadata))
    for array in arrays.values():
        file.write(np.ascontiguousarray(array).data)


def read_arrays(whole: NDArray[np.uint8], kind: Format, where: str) -> tuple[dict[str, Any], Arrays]:
    """Metadata and arrays of the bytes of a file; the arrays are views of them, and fill the file.

    Raises:
        DataError: where the file is another one, of another version, or does not hold what its header says.
    """
    header, data = _read_header(whole, kind, where)
    metadata = header.pop("__metadata__")
    arrays = {name: _array(name, entry, data, kind, where) for name, entry in header.items()}
    spans = sorted(entry["data_offsets"] for entry in header.values())
    if [0, *(end for _, end in spans)] != [*(begin for begin, _ in spans), len(data)]:
        what = f"the arrays of the {kind.noun} do not fill the {len(data):,} bytes behind its header"
        raise DataError(what, where=where, hint=f"the file is damaged; {kind.again}")
    return metadata, arrays


def _read_header(whole: NDArray[np.uint8], kind: Format, where: str) -> tuple[dict[str, Any], NDArray[np.uint8]]:
    foreign = DataError(f"this is no subgnn {kind.noun}", where=where, hint=kind.make)
    length = int.from_bytes(whole[:8].tobytes(), "little")
    if len(whole) < 8 or not 2 <= length <= _MAX_HEADER:
        raise foreign
    if 8 + length > len(whole):
        what = f"the {kind.noun} ends within its header"
        raise DataError(what, where=where, hint=f"was it copied whole? {kind.again}")
    try:
        header = json.loads(whole[8 : 8 + length].tobytes().decode())
        metadata = header["__metadata__"]
        if metadata["format"] != kind.name:
            raise foreign
    except (ValueError, KeyError, TypeError, RecursionError):
        raise foreign from None
    if metadata.get("version") != str(kind.version):
        hint = f"this release reads version {kind.version}; {kind.again}"
        raise DataError(f"a {kind.noun} of version {metadata.get('version')}", where=where, hint=hint)
    return cast("dict[str, Any]", header), whole[8 + length :]


def _array(name: str, entry: Any, data: NDArray[np.uint8], kind: Format, where: str) -> NDArray[Any]:
    try:
        dtype = np.dtype(TYPES[entry["dtype"]])
        shape = tuple(int(extent) for extent in entry["shape"])
        begin, end = (int(place) for place in entry["data_offsets"])
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if min(shape, default=0) < 0 or begin < 0 or end - begin != size:
            raise ValueError
    except (KeyError, ValueError, TypeError, OverflowError):
        raise DataError(f"the header misdescribes {name}", where=where, hint=kind.again) from None
    if end > len(data):
        what = f"the {kind.noun} ends within {name} ({len(data):,} bytes of {end:,})"
        raise DataError(what, where=where, hint=f"was it copied whole? {kind.again}")
    # Kernels want numbers at whole places of memory; where the header is of an odd length, this is a copy.
    return np.require(data[begin:end].view(dtype), requirements="A").reshape(shape)
