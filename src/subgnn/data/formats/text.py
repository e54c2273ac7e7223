"""Text files, plain or gzipped, and files that appear whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import DataError, excerpt
from subgnn.parallel.locks import close_lock, host_name, open_lock

_LONGEST_NAME = 100
_LOCK_NAME = re.compile(r"\.(?P<name>.+)\.(?P<host>[A-Za-z0-9-]+)\.\d+\.[0-9a-f]{8}\.lock", re.DOTALL)

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


@contextmanager
def appearing(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary sibling to write to, a file or a folder, that takes the place of ``path`` once it is whole.

    What processes left here that were killed while they wrote ``path`` is removed.

    Raises:
        DataError: where something is at ``path`` already and ``overwrite`` is off; an empty folder is nothing.
    """
    remove_leftovers(path.parent, path.name)
    refuse_taken(path, overwrite=overwrite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    with _own_sibling(path) as sibling:
        temporary, aside = Path(f"{sibling}.part"), Path(f"{sibling}.old")
        try:
            yield temporary
            if path.exists() and (path.is_dir() or temporary.is_dir()):
                path.rename(aside)
            if overwrite or not _link(temporary, path):
                refuse_taken(path, overwrite=overwrite)
                temporary.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from error
        finally:
            if aside.exists() and not path.exists():
                aside.rename(path)
            for leftover in (temporary, aside):
                _remove(leftover)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A folder beside ``path`` for what is needed while it is made; gone afterwards, whatever happens.

    What a process left that was killed meanwhile goes when the next one begins.
    """
    new = [parent for parent in path.parents if not parent.exists()]
    try:
        with _own_folder(path) as folder:
            yield folder
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(OSError):
            for parent in new:
                parent.rmdir()


def temporary_folder(name: str) -> AbstractContextManager[Path]:
    """A folder in the system's place for temporary files; it goes as that of :func:`scratch_folder` does."""
    return _own_folder(Path(tempfile.gettempdir()) / name)


@contextmanager
def _own_folder(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, path.name)
    with _own_sibling(path) as sibling:
        folder = Path(f"{sibling}.scratch")
        try:
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            _remove(folder)


@contextmanager
def _own_sibling(path: Path) -> Iterator[str]:
    """The beginning of names beside ``path`` that are this process's own, and a lock that says that it lives.

    They are ``.NAME.HOST.PID.RANDOM`` and a suffix. The lock is made before what it stands for, and removed after it.
    """
    name = os.fsencode(path.name)[:_LONGEST_NAME].decode("utf-8", "ignore")
    file = None
    with suppress(OSError):  # without locks, what is left stays
        while file is None:  # of a name that somebody else looks at just now, another is taken
            sibling = path.parent / f".{name}.{host_name()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
            file = open_lock(Path(f"{sibling}.lock"))
    try:
        yield str(sibling)
    finally:
        if file is not None:
            close_lock(file, Path(f"{sibling}.lock"))


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what processes of this machine left in a folder that were killed while they wrote; nobody else's.

    Whether a process lives is told by its lock, never by its number. Where it was killed while it put a new folder in
    the place of an old one, the old one is put back.

    Args:
        name: of the file or folder they wrote; by default any.
    """
    wanted = None if name is None else os.fsencode(name)[:_LONGEST_NAME].decode("utf-8", "ignore")
    with suppress(OSError):
        found = [_LOCK_NAME.fullmatch(item.name) for item in os.scandir(folder) if item.name.endswith(".lock")]
        for match in found:
            if match is None or match["host"] != host_name() or wanted not in (None, match["name"]):
                continue
            lock = folder / match.string
            with suppress(OSError):
                file = open_lock(lock, create=False)
                if file is not None:
                    _clear_up(folder, match)
                    close_lock(file, lock)


def _clear_up(folder: Path, match: re.Match[str]) -> None:
    """Remove what stands beside a lock whose holder is gone."""
    sibling = folder / match.string.removesuffix(".lock")
    aside, path = Path(f"{sibling}.old"), folder / match["name"]
    if os.path.lexists(aside) and len(os.fsencode(path.name)) < _LONGEST_NAME:
        if os.path.lexists(path):
            _remove(aside)
        else:
            aside.rename(path)
    for suffix in (".part", ".scratch"):
        _remove(Path(f"{sibling}{suffix}"))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _link(file: Path, path: Path) -> bool:
    """Give a file a second name, which nobody has taken meanwhile; False where that cannot be, as of a folder."""
    try:
        os.link(file, path, follow_symlinks=False)
    except OSError:
        return False
    return True


def refuse_taken(path: Path, *, overwrite: bool) -> None:
    """Raise :class:`DataError` where something is at ``path`` already and may not be replaced."""
    taken = path.exists() and not (path.is_dir() and not any(path.iterdir()))
    if taken and not overwrite:
        raise DataError("exists already", where=str(path), hint="choose another place, or pass --force to replace it")


def _unwritable(path: Path, error: OSError) -> DataError:
    hint = "make room there, or choose another place" if error.errno == errno.ENOSPC else ""
    return DataError(f"cannot be written ({error.strerror or error})", where=str(path), hint=hint)
