"""Atomic writes of files and folders, and removal of what killed processes left behind."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from subgnn.errors import DataError
from subgnn.parallel.locks import close_lock, host_name, open_lock

_LONGEST_NAME = 100
_LOCK_NAME = re.compile(r"\.(?P<name>.+)\.(?P<host>[A-Za-z0-9-]+)\.\d+\.[0-9a-f]{8}\.lock", re.DOTALL)


@contextmanager
def atomic_write(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Write a file or a folder under a temporary name beside ``path``, and rename it to ``path`` once it is complete.

    Temporary files of processes that were killed while they wrote ``path`` are removed.

    Yields:
        The temporary path.

    Raises:
        DataError: if ``path`` exists, is not an empty folder, and ``overwrite`` is off; or if it cannot be written.
    """
    remove_leftovers(path.parent, path.name)
    refuse_existing(path, overwrite=overwrite)
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
                refuse_existing(path, overwrite=overwrite)
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
    """Create a temporary folder beside ``path``, and remove it at the end of the block.

    The folder of a process that was killed is removed when the next process starts.
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
    """Create a folder in the system's temporary directory; it is removed as that of :func:`scratch_folder`."""
    return _own_folder(Path(tempfile.gettempdir()) / name)


STANDARD_STREAM = Path("-")
"""The standard input or output, in place of a file."""


@contextmanager
def input_file(path: Path) -> Iterator[Path]:
    """The path of a file to read; of ``-``, that of a temporary file with the standard input."""
    if path != STANDARD_STREAM:
        yield path
        return
    with temporary_folder("subgnn-input") as folder:
        copied = folder / "standard input"
        with copied.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield copied
        except DataError as error:
            where = error.where.replace(str(copied), copied.name)
            raise DataError(error.what, where=where, hint=error.hint) from None


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
    """A prefix for temporary names beside ``path``, and a lock that shows that this process is alive.

    Names are ``.NAME.HOST.PID.RANDOM`` and a suffix. The lock is created before the temporary file and removed after.
    """
    name = os.fsencode(path.name)[:_LONGEST_NAME].decode("utf-8", "ignore")
    file = None
    with suppress(OSError):  # without locks, leftovers are not removed
        while file is None:  # another process may be inspecting this very name; then try another one
            sibling = path.parent / f".{name}.{host_name()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
            file = open_lock(Path(f"{sibling}.lock"))
    try:
        yield str(sibling)
    finally:
        if file is not None:
            close_lock(file, Path(f"{sibling}.lock"))


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files of killed processes of this machine from a folder.

    Whether a process is alive is known from its lock, never from its number. If it was killed while it replaced a
    folder, the old folder is restored.

    Args:
        name: only leftovers of this file or folder; by default of any.
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
    """Remove the files that belong to the lock of a dead process."""
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
    """Hard-link a file to a path that does not exist; False if that fails, as for a folder."""
    try:
        os.link(file, path, follow_symlinks=False)
    except OSError:
        return False
    return True


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Raise :class:`DataError` if ``path`` exists and may not be replaced; an empty folder may."""
    taken = path.exists() and not (path.is_dir() and not any(path.iterdir()))
    if taken and not overwrite:
        raise DataError("exists already", where=str(path), hint="choose another place, or pass --force to replace it")


def _unwritable(path: Path, error: OSError) -> DataError:
    hint = "make room there, or choose another place" if error.errno == errno.ENOSPC else ""
    return DataError(f"cannot be written ({error.strerror or error})", where=str(path), hint=hint)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
