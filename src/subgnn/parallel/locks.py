"""Exclusive locks: one writer for a folder, and proof that the writer of a temporary file is alive.

The locks are the system's (``flock``), on separate files, and are released when the process ends, in whatever way. Over
NFS they work between machines if the file system is mounted with locks; without, :func:`locked_folder` warns and
continues. The filelock package leaves its files behind, and without locks those of a killed process stay locked.
"""

import errno
import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from subgnn.errors import DataError, warn

LOCK = ".lock"
"""The file in a folder that is locked while the folder is written."""
_UNSUPPORTED = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)
_held: ContextVar[frozenset[str]] = ContextVar("held", default=frozenset())


def open_lock(path: Path, *, create: bool = True) -> int | None:
    """Lock a file without waiting; the descriptor holds the lock until it is closed, None if another process has it."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    while True:
        try:
            file = os.open(path, flags, 0o666)
        except FileNotFoundError:
            if create:
                raise
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The former holder may have removed the file after it was opened here; then this locks nothing.
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        except BlockingIOError:
            os.close(file)
            return None
        except FileNotFoundError:
            pass
        except OSError:
            os.close(file)
            raise
        os.close(file)


def close_lock(file: int | None, path: Path) -> None:
    """Remove a locked file and release the lock, if there is one."""
    if file is not None:
        with suppress(OSError):
            path.unlink()
        os.close(file)


@contextmanager
def wait_for_lock(path: Path) -> Iterator[None]:
    """Lock a path until the end of the block, after its holder has released it; without locks, do not wait."""
    lock = path.with_name(f"{path.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
        yield
    finally:
        os.close(file)  # its file stays: others may be waiting for it


@contextmanager
def locked_folder(folder: Path, *, what: str = "run") -> Iterator[None]:
    """Lock a folder of ``what`` for writing until the end of the block, unless a block around it has done so."""
    key = os.path.realpath(folder)
    if key in _held.get():
        yield
        return
    lock = folder / LOCK
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    file = _take(lock, where=folder, doing=f"writing this {what}")
    token = _held.set(_held.get() | {key})
    try:
        yield
    finally:
        close_lock(file, lock)
        _held.reset(token)
        with suppress(OSError):
            for path in new:
                path.rmdir()  # unless something was written there


def names_in(folder: Path) -> list[str] | None:
    """The names in a folder that other processes may change; none if there is no folder, None if it is not a folder."""
    try:
        with os.scandir(folder) as found:
            return [item.name for item in found]
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        return None


def remove(path: Path) -> None:
    """Remove a file, or a folder with what is in it, as far as possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


@contextmanager
def locked_file(path: Path, *, doing: str) -> Iterator[None]:
    """Lock a file for writing until the end of the block; the message says what its holder is doing."""
    lock = path.with_name(f"{path.name}.lock")
    file = _take(lock, where=path, doing=doing)
    try:
        yield
    finally:
        close_lock(file, lock)


def _take(lock: Path, *, where: Path, doing: str) -> int | None:
    """Lock a file and write process and machine into it; None if the file system has no locks."""
    try:
        while True:
            lock.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another process that was refused removed the empty folder
                file = open_lock(lock)
                break
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            what = f"the file system has no locks ({error.strerror}); make sure that no other process is {doing}"
            warn(f"{where}: {what}")
            return None
        what = f"cannot be written ({error.strerror or error})"
        raise DataError(what, where=str(where), hint="choose a writable location") from error
    if file is None:
        holder = ""
        with suppress(OSError, ValueError):
            pid, host = lock.read_text(encoding="utf-8", errors="replace").split()
            holder = f" (pid {pid[:20]} on host {host[:100]})"
        hint = "wait until it has finished, or choose another place"
        raise DataError(f"another process{holder} is {doing}", where=str(where), hint=hint)
    with suppress(OSError):  # a full disk is reported by the next write
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()} {host_name()}\n".encode(), 0)
    return file


def host_name() -> str:
    """The name of this machine, for use in file names."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "-") else "-" for c in socket.gethostname())[:40] or "-"
