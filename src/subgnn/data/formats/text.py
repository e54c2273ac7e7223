"""Text files, plain or gzipped, with bounds on what they unpack to."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError, excerpt

MOST_TIMES = 100
_FREE = 64 * 2**20
_BLOCK = 2**20


def unpacked_limit(size: int) -> int:
    """How many bytes a compressed file of this size may unpack to.

    Text of graphs unpacks to three to twenty times its size; what unpacks to a thousand times was made to fill memory.
    """
    return _FREE + MOST_TIMES * size


def too_much_unpacked(limit: int, where: str) -> DataError:
    """The error for a compressed file that unpacks to more than it may."""
    what = f"it unpacks to more than {limit:,} bytes, {_FREE >> 20} MiB and {MOST_TIMES} times its size"
    return DataError(what, where=where, hint="unpack it by hand if you trust it")


class _Bounded(io.RawIOBase):
    """An unpacking file that ends in an error where it has unpacked more than it may."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path = file, path
        self._limit = unpacked_limit(path.stat().st_size)
        self._unpacked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        got = int(self._file.readinto(buffer))  # type: ignore[attr-defined]
        self._unpacked += got
        if self._unpacked > self._limit:
            raise too_much_unpacked(self._limit, str(self._path))
        return got

    def close(self) -> None:
        self._file.close()
        super().close()


def open_gzip(path: Path, raw: IO[bytes] | None = None) -> IO[bytes]:
    """A gzip file, unpacked as it is read; one that unpacks to more than :func:`unpacked_limit` is an error.

    Args:
        raw: the file, where it is open already.
    """
    file = gzip.GzipFile(path, "rb") if raw is None else gzip.GzipFile(fileobj=raw)
    return cast("IO[bytes]", io.BufferedReader(_Bounded(cast("IO[bytes]", file), path), _BLOCK))


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of ``names`` that is in the folder, as it is or with .gz."""
    for name in names:
        for candidate in (folder / name, folder / (name + ".gz")):
            if candidate.is_file():
                return candidate
    return None


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked where its name ends in .gz."""
    with _reading(path):
        if path.suffix != ".gz":
            return path.read_bytes()
        if path.stat().st_size == 0:
            raise EOFError
        with open_gzip(path) as file:
            return b"".join(iter(lambda: file.read(_BLOCK), b""))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What can go wrong with a file, in words."""
    try:
        yield
    except FileNotFoundError:
        raise DataError("no such file", where=str(path), hint="check the path") from None
    except IsADirectoryError:
        raise DataError("this is a folder, not a file", where=str(path)) from None
    except EOFError:
        raise DataError(
            "the gzip file ends too early", where=str(path), hint="was the download complete? fetch it again"
        ) from None
    except (gzip.BadGzipFile, zlib.error):
        raise DataError(
            "this is no gzip file, or a damaged one", where=str(path), hint="fetch it again, or drop the .gz"
        ) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=str(path)) from None


def read_chunks(path: Path, size: int) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """The content of a file, unpacked where its name ends in .gz, in pieces that end where lines do.

    Args:
        size: bytes of a piece; one with a longer line is longer.

    Yields:
        A piece, which lasts until the next is asked for, and how many bytes of the file have been read.
    """
    with _reading(path), path.open("rb") as raw:
        packed = path.suffix == ".gz"
        if packed and path.stat().st_size == 0:
            raise EOFError
        file = open_gzip(path, raw) if packed else raw
        buffer, kept = bytearray(size), 0
        while True:
            got = file.readinto(memoryview(buffer)[kept:])  # type: ignore[attr-defined]
            whole = kept + got if got == 0 else buffer.rfind(b"\n", kept, kept + got) + 1
            if whole:
                yield np.frombuffer(buffer, np.uint8, whole), raw.tell()
            if got == 0:
                return
            rest, kept = bytes(memoryview(buffer)[whole : kept + got]), kept + got - whole
            if 2 * kept > len(buffer):
                buffer = bytearray(2 * len(buffer))
            buffer[:kept] = rest


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines, from 1, without their ends; blank ones are passed over."""
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"this is not UTF-8 text ({excerpt(data[error.start : error.start + 4])})"
        raise DataError(what, where=f"{path}:{line}", hint="save the file as UTF-8") from None
    return ((number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def stream_lines(path: Path) -> Iterator[tuple[int, str]]:
    """As :func:`read_lines`, but a line at a time, for files of any length; plain or gzipped."""
    try:
        raw = open_gzip(path) if path.suffix == ".gz" else path.open("rb")
        with io.TextIOWrapper(raw, encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except FileNotFoundError:
        raise DataError("no such file", where=str(path), hint="check the path") from None
    except UnicodeDecodeError:
        raise DataError("this is not UTF-8 text", where=str(path), hint="save the file as UTF-8") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise DataError("this is no gzip file, or a damaged one", where=str(path), hint="fetch it again") from None
    except IsADirectoryError:
        raise DataError("this is a folder, not a file", where=str(path)) from None
