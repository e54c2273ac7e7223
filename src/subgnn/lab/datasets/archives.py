"""Unpack a dataset from an untrusted .zip or .tar.gz.

Only files that a dataset folder may hold are written, under their own names, into one folder. An archive with a link,
or with a path that leads out of the folder, is refused.
"""

from __future__ import annotations

import errno
import gzip
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, cast

from subgnn.data.formats.folder import (
    AUTHORS_SUBGRAPHS,
    CARD,
    EDGES,
    FEATURES,
    NODES,
    SUBGRAPH_NAMES,
    SUBGRAPHS,
)
from subgnn.data.formats.text import unpacked_limit
from subgnn.errors import DataError, excerpt

_TEXTS = (EDGES, SUBGRAPHS, AUTHORS_SUBGRAPHS, NODES, SUBGRAPH_NAMES)
_KNOWN = {*_TEXTS, *(name + ".gz" for name in _TEXTS), FEATURES, CARD}
_MAX_FILES = 10_000
_MAX_UNPACKED = 8 * 2**30
_BLOCK = 2**20
_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    NotImplementedError,
)
_REFUSED = "the archive is refused; unpack what you trust by hand"


@dataclass(frozen=True, slots=True)
class _Member:
    path: PurePosixPath
    size: int
    open: Callable[[], IO[bytes]]


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The files of an archive that were not unpacked, and its dataset folders."""

    left_out: tuple[str, ...]
    datasets: tuple[str, ...]


def unpack_dataset(
    archive: Path, folder: Path, *, wanted: str, known: Collection[str] = (), max_bytes: int = _MAX_UNPACKED
) -> Unpacked:
    """Write the files of one dataset of an archive into ``folder``, which must exist.

    Args:
        wanted: the folder to unpack where the archive holds several datasets.
        known: names of other datasets: a single folder of such a name is not taken for the wanted one.
        max_bytes: limit for all files, unpacked; :func:`~subgnn.data.formats.text.unpacked_limit` holds as well.
    """
    with _members(archive) as members:
        datasets: dict[PurePosixPath, list[_Member]] = {}
        for member in members:
            if member.path.name in _KNOWN:
                datasets.setdefault(member.path.parent, []).append(member)
        datasets = {path: files for path, files in datasets.items() if _is_dataset(files)}
        chosen = datasets[_choose(datasets, archive, wanted, known)]
        _write_all(chosen, folder, archive, max_bytes)
        left = tuple(str(member.path) for member in members if member not in chosen)
    return Unpacked(left, tuple(str(path) for path in datasets))


def _is_dataset(files: list[_Member]) -> bool:
    names = {member.path.name.removesuffix(".gz") for member in files}
    return EDGES in names and bool(names & {SUBGRAPHS, AUTHORS_SUBGRAPHS})


def _choose(datasets: Collection[PurePosixPath], archive: Path, wanted: str, known: Collection[str]) -> PurePosixPath:
    called = {path: path.name.lower().replace("-", "_") for path in datasets}
    named = [path for path, name in called.items() if name == wanted]
    if len(named) == 1:
        return named[0]
    if len(datasets) == 1 and not named and not set(called.values()) & set(known):
        return next(iter(datasets))
    what = f"it contains no dataset ({EDGES} beside {SUBGRAPHS} or {AUTHORS_SUBGRAPHS})"
    if datasets:
        shown = ", ".join(excerpt(str(path)) for path in sorted(datasets)[:8])
        what = f"it holds {shown}, but {len(named) or 'none'} of them {'are' if named else 'is'} {wanted}"
    raise DataError(what, where=str(archive), hint="is this the right archive?")


def _write_all(members: list[_Member], folder: Path, archive: Path, max_bytes: int) -> None:
    """Write files; the sum of their sizes, and of what gzipped ones unpack to, is limited."""
    limit = min(max_bytes, unpacked_limit(archive.stat().st_size))
    what = f"the files of the dataset unpack to more than {limit:,} bytes"
    too_much = DataError(what, where=str(archive), hint="is this the right archive?")
    left = limit - sum(member.size for member in members)
    if left < 0:
        raise too_much
    for member in members:
        target, expected = folder / member.path.name, member.size
        with member.open() as source, target.open("wb") as file:
            while expected >= 0 and (block := source.read(min(_BLOCK, expected + 1))):
                expected -= len(block)
                file.write(block if expected >= 0 else b"")
        if expected:
            what = f"{excerpt(str(member.path))} does not have the length that the archive declares"
            raise DataError(what, where=str(archive), hint="the archive is damaged")
        if target.suffix == ".gz":
            with gzip.open(target) as inner:
                while left >= 0 and (block := inner.read(_BLOCK)):
                    left -= len(block)
        if left < 0:
            for written in members:
                (folder / written.path.name).unlink(missing_ok=True)
            raise too_much


class LimitedTar:
    """The file that a tar archive is read from; at most ``limit`` bytes of it are unpacked."""

    def __init__(self, file: IO[bytes], limit: int, where: str) -> None:
        self._file, self._limit, self._where = file, limit, where

    def read(self, size: int = -1) -> bytes:
        """Read as from a file; tarfile reads a header as a whole, whatever its size."""
        if not 0 <= size <= 16 * _BLOCK:
            raise DataError("a header is too large", where=self._where, hint=_REFUSED)
        self._check(self._file.tell())
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek as in a file."""
        self._check(offset)
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The position in the file."""
        return self._file.tell()

    def _check(self, place: int) -> None:
        if place > self._limit:
            raise DataError(f"unpacks to more than {self._limit:,} bytes", where=self._where, hint=_REFUSED)


@contextmanager
def _members(archive: Path) -> Iterator[list[_Member]]:
    """The files of a .zip or .tar.gz; whatever is wrong with it is a :class:`DataError`."""
    with archive.open("rb") as file:
        begin = file.read(64)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                yield list(_zip_members(packed, archive))
        elif begin.startswith(b"\x1f\x8b"):
            with gzip.open(archive, "rb") as raw:
                bounded = LimitedTar(cast("IO[bytes]", raw), unpacked_limit(archive.stat().st_size), str(archive))
                with tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r:") as tar:
                    members = list(_tar_members(tar, archive))
                    while bounded.read(_BLOCK):
                        pass  # to the end of the file, which holds its checksum
                    yield members
        else:
            what = f"this is not a .zip or .tar.gz: it begins with {excerpt(begin)}"
            raise DataError(what, where=str(archive), hint="does the address lead to a web page instead of the file?")
    except _DAMAGE as error:
        raise DataError(f"the archive is damaged ({error})", where=str(archive), hint="fetch it again") from None
    except OSError as error:
        # A position outside the file; other errors are about the disk.
        if error.errno != errno.EINVAL:
            raise
        raise DataError("the archive is damaged", where=str(archive), hint="fetch it again") from None


def _zip_members(packed: zipfile.ZipFile, archive: Path) -> Iterator[_Member]:
    seen: set[PurePosixPath] = set()
    for info in packed.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        path = _safe_path(info.filename, archive, seen, plain=kind in (0, stat.S_IFREG, stat.S_IFDIR))
        if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            what = f"{excerpt(info.filename)} is encrypted, or compressed with an unsupported method"
            raise DataError(what, where=str(archive), hint="unpack it by hand")
        if not info.filename.endswith(("/", "\\")):
            yield _Member(path, info.file_size, partial(packed.open, info))


def _tar_members(tar: tarfile.TarFile, archive: Path) -> Iterator[_Member]:
    seen: set[PurePosixPath] = set()
    for info in tar:
        path = _safe_path(info.name, archive, seen, plain=info.isdir() or info.isreg())
        if info.isreg():
            yield _Member(path, info.size, partial(cast("Callable[..., IO[bytes]]", tar.extractfile), info))


def _safe_path(name: str, archive: Path, seen: set[PurePosixPath], *, plain: bool) -> PurePosixPath:
    """The path of an entry, which may not lead elsewhere, be there twice, or be anything but a file or a folder."""
    path = PurePosixPath(name.replace("\\", "/"))
    # The archive of a shared folder may have an entry "/" for the folder itself.
    absolute = path.is_absolute() and len(path.parts) > 1
    if absolute or ".." in path.parts or ":" in name.split("/")[0]:
        raise DataError(f"{excerpt(name)} leads out of the folder", where=str(archive), hint=_REFUSED)
    if path in seen:
        raise DataError(f"{excerpt(name)} occurs twice", where=str(archive), hint=_REFUSED)
    if not plain:
        raise DataError(f"{excerpt(name)} is a link or a device", where=str(archive), hint=_REFUSED)
    seen.add(path)
    if len(seen) > _MAX_FILES:
        raise DataError(f"more than {_MAX_FILES:,} files", where=str(archive), hint="is this the right archive?")
    return path
