"""Nested tensors and plain values in a file of ``torch.save``, with a checksum: the state that resuming needs.

Only tensors, text, numbers, lists, tuples and dictionaries are read, and memory is bounded by the size of the file: its
records are not compressed, none is larger than the file, the pickled part names no constructors but those of tensors,
and no tensor has more numbers than its record.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import pickletools
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch

from subgnn.errors import DataError
from subgnn.storage.files import atomic_write

CHECKSUM = "checksum"
_MAX_OPCODES = 1_000_000
_STORAGES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
_CONSTRUCTORS = {
    "torch._utils _rebuild_tensor_v2",
    "collections OrderedDict",
    *(f"torch {name}Storage" for name in _STORAGES),
}
_OTHER_CONSTRUCTORS = {"STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4"}
_ERRORS = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    zlib.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Damaged(DataError):
    """A file that was not written by :func:`save`, or was changed since."""

    def __init__(self, path: Path, why: str = "") -> None:
        what = "this is not a saved state, or a damaged one" + (f" ({why})" if why else "")
        super().__init__(what, where=str(path), hint="train again")


def save(value: dict[str, Any], path: Path) -> None:
    """Write tensors and plain values, atomically."""
    signed = {**value, CHECKSUM: _checksum_of(value)}
    with atomic_write(path, overwrite=True) as temporary, temporary.open("wb") as file:
        try:
            torch.save(signed, file)
        except RuntimeError as error:
            # PyTorch's writer hides the error of the disk behind one of its own.
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            file.flush()
            raise
        file.flush()
        os.fsync(file.fileno())


def load(path: Path) -> dict[str, Any]:
    """Read a file that :func:`save` wrote; anything but tensors and plain values is refused.

    The checksum is compared, and returned with the rest under :data:`CHECKSUM`.

    Raises:
        Damaged: if the file was not written by :func:`save`, or was changed since.
    """
    try:
        opcodes = _check_records(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
        _check_values(content, max_values=opcodes, max_bytes=path.stat().st_size)
        if not isinstance(content, dict):
            raise ValueError("no dictionary")
        if content.get(CHECKSUM) != _checksum_of(content):
            raise Damaged(path, "its content does not match its checksum")
        return content
    except FileNotFoundError:
        raise DataError("no such file", where=str(path), hint="is this the folder of a run?") from None
    except PermissionError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=str(path)) from None
    except _ERRORS:
        raise Damaged(path) from None


def _check_records(path: Path) -> int:
    """Check the archive before PyTorch reads it, which compares no checksums and decompresses anything.

    Returns:
        The number of opcodes of the pickled part, an upper bound of the number of values.
    """
    with zipfile.ZipFile(path) as archive:
        records = archive.infolist()
        if any(record.compress_type != zipfile.ZIP_STORED for record in records):
            raise ValueError("a packed record")
        if sum(record.file_size for record in records) > path.stat().st_size:
            raise ValueError("records larger than the file")
        if len({record.filename for record in records}) < len(records) or archive.testzip() is not None:
            raise ValueError("two records of one name, or one that does not match its checksum")
        pickled = [record for record in records if record.filename.endswith("data.pkl")]
        if len(pickled) != 1:
            raise ValueError("no pickled part, or several")
        text = archive.read(pickled[0])
    count = 0
    for opcode, argument, _ in pickletools.genops(text):
        count += 1
        unknown = opcode.name == "GLOBAL" and argument not in _CONSTRUCTORS
        if unknown or opcode.name in _OTHER_CONSTRUCTORS or count > _MAX_OPCODES:
            raise ValueError("more than tensors and plain values")
    return count


def _check_values(content: Any, *, max_values: int, max_bytes: int) -> None:
    """Check that there are only plain values and tensors, and no more of them than the file has bytes for."""
    waiting, seen, size = [content], 0, 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if isinstance(value, dict):
            if not all(isinstance(key, (str, int)) for key in value):
                raise ValueError("a key that is neither text nor a number")
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif isinstance(value, torch.Tensor):
            shown = math.prod(value.shape) * value.element_size()
            size += shown
            if value.layout != torch.strided or value.is_quantized or value.device.type != "cpu":
                raise ValueError("a tensor that is not dense")
            if shown > value.untyped_storage().nbytes() or size > max_bytes:
                raise ValueError("tensors larger than the file")
        elif value is not None and not isinstance(value, (str, int, float)):
            raise TypeError(type(value).__name__)
        if seen + len(waiting) > max_values:
            raise ValueError("more values than the file has")


def _checksum_of(content: dict[str, Any]) -> str:
    """SHA-256 of types, lengths and bytes of everything but the checksum itself."""
    digest = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            digest.update(f"tensor {value.dtype} {tuple(value.shape)}:".encode())
            flat = value.detach().cpu().reshape(-1)
            # An empty tensor, or one of a single number, may have any stride, and then cannot be seen as bytes.
            if flat.stride(0) != 1:
                flat = torch.empty(flat.shape, dtype=flat.dtype).copy_(flat)
            digest.update(flat.view(torch.uint8).numpy().data)
        elif isinstance(value, dict):
            digest.update(f"dict {len(value)}:".encode())
            for key, inner in value.items():
                add(key)
                add(inner)
        elif isinstance(value, (list, tuple)):
            digest.update(f"{type(value).__name__} {len(value)}:".encode())
            for inner in value:
                add(inner)
        else:
            text = value if isinstance(value, str) else repr(value)
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(f"{type(value).__name__} {len(encoded)}:".encode() + encoded)

    add({key: value for key, value in content.items() if key != CHECKSUM})
    return digest.hexdigest()
