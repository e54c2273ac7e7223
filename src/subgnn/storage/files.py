"""Files: written atomically, and JSON and TOML read within bounds, as parsers recurse, and are slow on long keys."""

import errno
import hashlib
import json
import math
import os
import re
import shutil
import sys
import tempfile
import tomllib
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from subgnn.errors import DataError, UserError
from subgnn.parallel.locks import close_lock, host_name, open_lock, remove

MAX_TOML = 2**20
MAX_JSON = 64 * 2**20
MAX_DEPTH = 32
_LONG_KEY = re.compile(rf"""(?<![\w-])((?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_DEPTH + 1}}}""")
_LONGEST_NAME = 100
_LOCK_NAME = re.compile(r"\.(?P<name>.+)\.(?P<host>[A-Za-z0-9-]+)\.\d+\.[0-9a-f]{8}\.lock", re.DOTALL)


@contextmanager
def atomic_write(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Write a file or folder under a temporary name, and rename it to ``path``, which only ``overwrite`` replaces."""
    remove_leftovers(path.parent, path.name)
    refuse_existing(path, overwrite=overwrite)
    with _write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _own_sibling(path) as sibling, _write_errors(path):
        temporary, aside = Path(f"{sibling}.part"), Path(f"{sibling}.old")
        try:
            yield temporary
            if path.exists() and (path.is_dir() or temporary.is_dir()):
                path.rename(aside)
            linked = False
            if not overwrite:  # a link fails where the path exists, and for a folder
                with suppress(OSError):
                    os.link(temporary, path, follow_symlinks=False)
                    linked = True
            if not linked:
                refuse_existing(path, overwrite=overwrite)
                temporary.replace(path)
        finally:
            if aside.exists() and not path.exists():
                aside.rename(path)
            for leftover in (temporary, aside):
                remove(leftover)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside ``path`` for the block; the next process removes that of a killed one."""
    new = [parent for parent in path.parents if not parent.exists()]
    try:
        with _write_errors(path), _own_folder(path) as folder:
            yield folder
    finally:
        with suppress(OSError):
            for parent in new:
                parent.rmdir()


def temporary_folder(name: str) -> AbstractContextManager[Path]:
    """Create a folder in the system's temporary directory; it is removed like that of :func:`scratch_folder`."""
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
            raise DataError(error.what, where=error.where.replace(str(copied), copied.name), hint=error.hint) from None


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
            remove(folder)


@contextmanager
def _own_sibling(path: Path) -> Iterator[str]:
    """A prefix ``.NAME.HOST.PID.RANDOM`` beside ``path``, and a lock that shows that this process is alive."""
    name = os.fsencode(path.name)[:_LONGEST_NAME].decode("utf-8", "ignore")
    file = None
    with suppress(OSError):  # without locks, leftovers are not removed
        while file is None:  # another process may be inspecting this very name; then try another one
            sibling = path.parent / f".{name}.{host_name()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
            file = open_lock(Path(f"{sibling}.lock"))
    try:
        yield str(sibling)
    finally:
        close_lock(file, Path(f"{sibling}.lock"))


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files of killed processes of this machine from a folder: all, or those of one name.

    Locks tell whether a process is alive. If it was killed while it replaced a folder, the old one is restored.
    """
    wanted = None if name is None else os.fsencode(name)[:_LONGEST_NAME].decode("utf-8", "ignore")
    with suppress(OSError):
        for match in [_LOCK_NAME.fullmatch(item.name) for item in os.scandir(folder) if item.name.endswith(".lock")]:
            if match is None or match["host"] != host_name() or wanted not in (None, match["name"]):
                continue
            lock = folder / match.string
            with suppress(OSError):
                file = open_lock(lock, create=False)
                if file is None:
                    continue
                sibling, path = match.string.removesuffix(".lock"), folder / match["name"]
                aside = folder / f"{sibling}.old"
                if os.path.lexists(aside) and len(os.fsencode(path.name)) < _LONGEST_NAME:
                    remove(aside) if os.path.lexists(path) else aside.rename(path)
                for suffix in (".part", ".scratch"):
                    remove(folder / f"{sibling}{suffix}")
                close_lock(file, lock)


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Raise :class:`DataError` if ``path`` exists and may not be replaced, as an empty folder may, or has no place."""
    above = next(one for one in path.absolute().parents if one.exists())
    if not (above.is_dir() and os.access(above, os.W_OK)):
        what = f"cannot be written ({above} is not a folder that you may write to)"
        raise DataError(what, where=str(path), hint="choose another place")
    if not overwrite and path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise DataError("exists already", where=str(path), hint="choose another place, or pass --force to replace it")


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "make room there, or choose another place" if error.errno == errno.ENOSPC else ""
        raise DataError(f"cannot be written ({error.strerror or error})", where=str(path), hint=hint) from error


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Raise errors of the system as errors of the file."""
    try:
        yield
    except FileNotFoundError:
        raise DataError("no such file", where=str(path), hint="check the path") from None
    except IsADirectoryError:
        raise DataError("this is a folder, not a file", where=str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", where=str(path)) from None


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of a file; an error if it has more than ``limit`` bytes or cannot be read."""
    with read_errors(path), path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise DataError(f"more than {limit:,} bytes", where=str(path), hint="is this the right file?")
    return content


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """The content of TOML text; an error if it is not valid, or nested too deep."""
    try:
        value = None if _LONG_KEY.search(text) else tomllib.loads(text)
    except RecursionError:
        value = None
    except ValueError as error:
        raise UserError(f"this is not valid TOML ({error})", where=where) from None
    if value is None or any(map(_is_deep, value.values())):
        what = f"tables, lists or dotted keys are nested more than {MAX_DEPTH} deep"
        raise UserError(what, where=where, hint="is this the right file?")
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        parts = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list))
        level = [inner for part in parts for inner in part]
    return any(isinstance(item, dict | list) for item in level)


def parse_json(
    text: str | bytes, where: str, hint: str, *, what: str = "this is not valid JSON", numbers: type[str] | None = None
) -> Any:
    """The value of JSON text; an error if it is invalid or nested too deep. With ``numbers=str``, these stay text."""
    try:
        plain = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value = json.loads(plain, parse_int=numbers, parse_float=numbers)
    except (ValueError, RecursionError):
        raise DataError(what, where=where, hint=hint) from None
    if _is_deep(value):
        raise DataError(f"nested more than {MAX_DEPTH} deep", where=where, hint=hint)
    return value


def finite(value: Any) -> Any:
    """The same value with None for numbers that JSON does not have: infinite and undefined ones."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_json(path: Path, hint: str) -> Any:
    """The value of a JSON file."""
    return parse_json(read_bounded(path, MAX_JSON), str(path), hint, what="this is not valid JSON, or it is damaged")


def write_json(value: Any, path: Path) -> None:
    """Write JSON, atomically."""
    with atomic_write(path, overwrite=True) as temporary:
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        # Halves of characters, which paths may have, are escaped as JSON does.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def json_digest(value: Any) -> str:
    """The SHA-256 of a value as JSON, whatever the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
