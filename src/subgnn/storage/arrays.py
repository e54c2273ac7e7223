"""Arrays in one file: the safetensors layout, a checksum of the whole file, and bounds before anything is read.

A file is eight bytes with the length of a JSON header; the header, which has the name, type, shape and place of each
array, and metadata, text to text; then the arrays, widest types first so that each is aligned.

The checksum is the SHA-256 of the file with zeros in the checksum's place, which comes first in the header. Our own
code, not the safetensors package: arrays can stay in the file (memory maps), and it is checked before memory is
allocated for it.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError
from subgnn.storage.files import atomic_write, parse_json, read_errors

TYPES = {"I64": "<i8", "F64": "<f8", "I32": "<i4", "F32": "<f4", "F16": "<f2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"}
_TYPE_NAMES = {np.dtype(numpy_name): name for name, numpy_name in TYPES.items()}
_ALIGN = 64
_MAX_HEADER = 100_000_000
_BLOCK = 2**24
_ZEROS = "0" * 64
_START = b'{"__metadata__":{"checksum":"'

Arrays = dict[str, NDArray[Any]]
Parts = list[bytes | memoryview]


class Damaged(DataError):
    """A file of an unexpected kind, or one that was changed or truncated after it was written."""


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: the name and version in its metadata, and the words of its messages."""

    name: str
    noun: str
    make: str  # how one is made, for a file of another kind
    again: str  # what to do about a damaged one
    version: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class ArrayFile:
    """Metadata and arrays of a file; the arrays are views of its bytes."""

    kind: Format
    where: str
    metadata: dict[str, Any]
    arrays: Arrays
    data: NDArray[np.uint8]
    status: os.stat_result

    def content(self) -> Any:
        text = self.metadata.get("content")
        what = f"the {self.kind.noun} is incomplete or malformed"
        return parse_json(text if isinstance(text, str) else "", self.where, self.kind.again, what=what)

    def array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """An array of a type and a shape, where None is any length; refuses a file without it."""
        found = self.arrays.get(name, np.empty(0))
        fits = len(found.shape) == len(shape) and all(n in (m, None) for m, n in zip(found.shape, shape, strict=True))
        if found.dtype != dtype or not fits:
            what = f"its {name} are of type {found.dtype} and of the shape {found.shape}"
            raise DataError(what, where=self.where, hint=f"the file is damaged; {self.kind.again}")
        return found

    def verify(self) -> None:
        """Raise :class:`Damaged` unless the content matches its checksum."""
        begin = 8 + len(_START)
        digest = hashlib.sha256(self.data[:begin].tobytes() + _ZEROS.encode())
        for at in range(begin + len(_ZEROS), len(self.data), _BLOCK):
            digest.update(self.data[at : at + _BLOCK].data)
        if self.data[8:begin].tobytes() != _START or digest.hexdigest() != self.metadata.get("checksum"):
            what, hint = "the content does not match its checksum", f"the file is damaged; {self.kind.again}"
            raise Damaged(what, where=self.where, hint=hint)


def encode_arrays(
    arrays: Mapping[str, Any], kind: Format, content: Any = None, metadata: Mapping[str, str] | None = None
) -> Parts:
    """The parts of a file: its header, with ``content`` as JSON and further texts, and the bytes of each array."""
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype not in _TYPE_NAMES:
            raise DataError(f"{name} has type {array.dtype}", where=kind.noun, hint=f"accepted: {', '.join(TYPES)}")
    plain = dict(sorted(plain.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])))
    texts = {"checksum": _ZEROS, "format": kind.name, "version": str(kind.version)} | dict(metadata or {})
    if content is not None:
        texts["content"] = json.dumps(content)
    header: dict[str, Any] = {"__metadata__": texts}
    place = 0
    for name, array in plain.items():
        span = [place, place + array.nbytes]
        header[name] = {"dtype": _TYPE_NAMES[array.dtype], "shape": list(array.shape), "data_offsets": span}
        place += array.nbytes
    text = json.dumps(header, ensure_ascii=True, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGN)
    head = len(text).to_bytes(8, "little") + text
    parts = [np.ascontiguousarray(array).data for array in plain.values()]
    digest = hashlib.sha256(head)
    for part in parts:
        digest.update(part)
    return [head.replace(_ZEROS.encode(), digest.hexdigest().encode(), 1), *parts]


def write_parts(path: Path, parts: Parts, *, overwrite: bool = False, sync: bool = True) -> None:
    """Write what :func:`encode_arrays` returned, atomically; ``sync`` survives even a power failure."""
    with atomic_write(path, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        for part in parts:
            file.write(part)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def read_arrays(path: Path, kind: Format, *, mapped: Literal["r", "c"] | None = None, verify: bool = True) -> ArrayFile:
    """Open a file, unless it is :class:`Damaged`; arrays may stay in it, read-only (``r``) or as a copy (``c``)."""
    with read_errors(path), path.open("rb") as file:
        status = os.fstat(file.fileno())
        if mapped is None or status.st_size == 0:
            data = np.frombuffer(file.read(), np.uint8)
        else:
            data = np.memmap(file, np.uint8, mode=mapped).view(np.ndarray)
    where, length = str(path), int.from_bytes(data[:8].tobytes(), "little")
    foreign = Damaged(f"this is not a subgnn {kind.noun}", where=where, hint=kind.make)
    if len(data) < 8 or not 2 <= length <= _MAX_HEADER:
        raise foreign
    if 8 + length > len(data):
        hint = f"was it copied whole? {kind.again}"
        raise Damaged(f"the {kind.noun} ends within its header", where=where, hint=hint)
    try:
        header: dict[str, Any] = json.loads(data[8 : 8 + length].tobytes().decode())
        metadata = header["__metadata__"]
        if metadata["format"] != kind.name:
            raise foreign
    except (ValueError, KeyError, TypeError, RecursionError):
        raise foreign from None
    if metadata.get("version") != str(kind.version):
        hint = f"this release reads version {kind.version}; {kind.again}"
        raise DataError(f"a {kind.noun} of version {metadata.get('version')}", where=where, hint=hint)
    content = data[8 + length :]
    del header["__metadata__"]
    arrays = {name: _array(name, entry, content, kind, where) for name, entry in header.items()}
    spans = sorted(entry["data_offsets"] for entry in header.values())
    if [0, *(end for _, end in spans)] != [*(begin for begin, _ in spans), len(content)]:
        what = f"the arrays of the {kind.noun} do not fill the {len(content):,} bytes after its header"
        raise Damaged(what, where=where, hint=f"the file is damaged; {kind.again}")
    found = ArrayFile(kind, where, metadata, arrays, data, status)
    if verify:
        found.verify()
    return found


def _array(name: str, entry: Any, data: NDArray[np.uint8], kind: Format, where: str) -> NDArray[Any]:
    try:
        dtype = np.dtype(TYPES[entry["dtype"]])
        shape = tuple(int(extent) for extent in entry["shape"])
        begin, end = (int(place) for place in entry["data_offsets"])
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if min(shape, default=0) < 0 or begin < 0 or end - begin != size:
            raise ValueError
    except (KeyError, ValueError, TypeError, OverflowError):
        raise Damaged(f"the header misdescribes {name}", where=where, hint=kind.again) from None
    if end > len(data):
        what = f"the {kind.noun} ends within {name} ({len(data):,} bytes of {end:,})"
        raise Damaged(what, where=where, hint=f"was it copied whole? {kind.again}")
    # Compiled code needs aligned numbers; in a file whose header has an odd length, this is a copy.
    return np.require(data[begin:end].view(dtype), requirements="A").reshape(shape)


def save_state(state: dict[str, Any], path: Path, kind: Format) -> None:
    """Write nested tensors or arrays, numbers, texts, lists, tuples and dictionaries, atomically.

    Tensors are the arrays of the file, named by their path (``optimizer.state.0.exp_avg``). The rest is its content:
    ``{"tensor": name}``, ``{"tuple": [...]}`` and ``{"dict": [[key, value], ...]}`` stand for what JSON does not have.
    """
    import torch

    arrays: Arrays = {}

    def encode(value: Any, name: str) -> Any:
        if isinstance(value, torch.Tensor | np.ndarray):
            name = name if name not in arrays else f"{name}#{len(arrays)}"
            arrays[name] = torch.as_tensor(value).detach().cpu().numpy()
            return {"tensor": name}
        if isinstance(value, dict):
            return {"dict": [[key, encode(inner, f"{name}.{key}".lstrip("."))] for key, inner in value.items()]}
        if isinstance(value, list | tuple):
            inner = [encode(one, f"{name}.{i}") for i, one in enumerate(value)]
            return inner if isinstance(value, list) else {"tuple": inner}
        return value

    write_parts(path, encode_arrays(arrays, kind, encode(state, "")), overwrite=True)


def load_state(path: Path, kind: Format) -> dict[str, Any]:
    """Read a file that :func:`save_state` wrote."""
    import torch

    file = read_arrays(path, kind)

    def decode(value: Any) -> Any:
        if isinstance(value, list):
            return [decode(one) for one in value]
        if not isinstance(value, dict):
            return value
        ((what, inner),) = value.items()
        if what == "dict":
            return {key: decode(one) for key, one in inner}
        return tuple(decode(inner)) if what == "tuple" else torch.from_numpy(np.array(file.arrays[inner]))

    try:
        state = decode(file.content())
    except (LookupError, TypeError, ValueError):
        state = None
    if not isinstance(state, dict):
        raise Damaged(f"the {kind.noun} is incomplete or malformed", where=str(path), hint=kind.again)
    return state


def read_npy(path: Path, what: str = "an array") -> NDArray[Any]:
    """An .npy file of numbers, mapped into memory; a file that is shorter or longer than its header says is refused."""
    where, hint = str(path), "write it with numpy.save"
    try:
        with np.errstate(over="ignore"):  # of a shape without end, which is then refused
            array = np.lib.format.open_memmap(path, mode="r")
        if path.stat().st_size != array.offset + array.nbytes:
            raise ValueError
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=where) from None
    except Exception:  # of any kind, from a damaged header
        what = "this is not an .npy array of numbers, or it is damaged"
        raise DataError(what, where=where, hint=f"was it copied whole? {hint}") from None
    if array.dtype.kind not in "fiub":
        raise DataError(f"{what} of type {array.dtype}", where=where, hint="numbers are accepted")
    return array


def write_npy(path: Path, chunks: Iterable[NDArray[np.float32]]) -> None:
    """Write vectors, some at a time."""
    header: dict[str, Any] = {"descr": "<f4", "fortran_order": False, "shape": (0, 0)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for vectors in chunks:
            file.write(np.ascontiguousarray(vectors, "<f4").data)
            header["shape"] = header["shape"][0] + len(vectors), vectors.shape[1]
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, header)  # in which NumPy leaves room for any number of rows
