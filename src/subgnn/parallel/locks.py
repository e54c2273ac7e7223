"""Exclusive locks: one writer for a folder, and a sign that the writer of a temporary file still lives.

The locks are the system's (``flock``), on files of their own: they end with the process, however that ends. A process
that is started with the descriptor of a lock shares it. Over NFS they hold between machines where the file system was
mounted with locks; where there are none, :func:`locked_folder` says so and goes on.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from subgnn.errors import DataError, DataWarning

LOCK = ".lock"
"""The file in a folder that is locked while the folder is written."""
_UNSUPPORTED = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)
_held: ContextVar[frozenset[str]] = ContextVar("held", default=frozenset())


def open_lock(path: Path, *, create: bool = True) -> int | None:
    """Lock a file without waiting.

    Returns:
        The open descriptor, whose end is the lock's; None where another process or thread holds the lock, or where
        there is no such file and it is not to be made.

    Raises:
        OSError: where the file cannot be opened, or the file system has no locks.
    """
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
            # The holder before may have removed the file after it was opened here; then this locks nothing.
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


def close_lock(file: int, path: Path) -> None:
    """Remove a file that is locked, and end the lock."""
    with suppress(OSError):
        path.unlink()
    os.close(file)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Try to lock a path, without waiting, until the end of the block; the lock is on ``path`` with ``.lock`` behind.

    Yields:
        Whether it is locked; it is not where another holds the lock, or there can be none.
    """
    lock = path.with_name(f"{path.name}.lock")
    file = None
    with suppress(OSError):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = open_lock(lock)
    try:
        yield file is not None
    finally:
        if file is not None:
            close_lock(file, lock)


@contextmanager
def locked_folder(folder: Path, *, what: str = "run") -> Iterator[int | None]:
    """Be the only one who writes a folder, until the end of the block; it is made where it is missing.

    A block within a block of the same folder does nothing.

    Args:
        what: what the folder holds, for the message.

    Yields:
        The descriptor of the lock, for processes that are to share it; None where there is none.

    Raises:
        DataError: where another process writes it, or nobody can.
    """
    key = os.path.realpath(folder)
    if key in _held.get():
        yield None
        return
    lock = folder / LOCK
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    file = _take(lock, where=folder, doing=f"writing this {what}")
    token = _held.set(_held.get() | {key})
    try:
        yield file
    finally:
        _held.reset(token)
        if file is not None:
            close_lock(file, lock)
        with suppress(OSError):
            for path in new:
                path.rmdir()  # unless something was written there


def names_in(folder: Path) -> list[str] | None:
    """The names in a folder that other processes may make or remove: it is looked at once.

    Returns:
        The names; none where nothing is there, None where something else is.
    """
    try:
        with os.scandir(folder) as found:
            return [item.name for item in found]
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        return None


def clear_locked(folder: Path) -> None:
    """Remove what a folder holds that is locked; the lock stays, and so no other process takes the folder meanwhile."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            with suppress(OSError):
                path.unlink()


@contextmanager
def shared_lock(folder: Path) -> Iterator[None]:
    """Write a folder whose lock is held by the process that started this one."""
    token = _held.set(_held.get() | {os.path.realpath(folder)})
    try:
        yield
    finally:
        _held.reset(token)


@contextmanager
def locked_file(path: Path, *, doing: str) -> Iterator[None]:
    """Be the only one who makes a file, until the end of the block; the lock is beside it.

    Args:
        doing: what another process is doing, for the message.

    Raises:
        DataError: where another process does, or nobody can.
    """
    lock = path.with_name(f"{path.name}.lock")
    file = _take(lock, where=path, doing=doing)
    try:
        yield
    finally:
        if file is not None:
            close_lock(file, lock)


def _take(lock: Path, *, where: Path, doing: str) -> int | None:
    """Lock a file, and write there who did; None where the file system has no locks."""
    try:
        while True:
            lock.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another process was refused the folder, and removed it while empty
                file = open_lock(lock)
                break
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            text = f"{where}: the file system has no locks ({error.strerror}); see that no other process is {doing}"
            warnings.warn(text, DataWarning, stacklevel=5)
            return None
        hint = "choose a place that can be written"
        raise DataError(f"cannot be written ({error.strerror or error})", where=str(where), hint=hint) from error
    if file is None:
        hint = "wait until it has ended, or choose another place"
        raise DataError(f"another process{_holder(lock)} is {doing}", where=str(where), hint=hint)
    with suppress(OSError):  # a full disk is told of by what is written next
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()} {host_name()}\n".encode(), 0)
    return file


def _holder(lock: Path) -> str:
    """Who holds a lock, as it has written there."""
    try:
        pid, host = lock.read_text(encoding="utf-8", errors="replace").split()
    except (OSError, ValueError):
        return ""
    return f" (pid {pid[:20]} on host {host[:100]})"


def host_name() -> str:
    """This machine's name as a part of a file name."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "-") else "-" for c in socket.gethostname())[:40] or "-"
