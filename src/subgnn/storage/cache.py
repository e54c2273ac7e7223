"""The cache: files of results under a key of their inputs; those unused for longest make room for new ones."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from subgnn.errors import DataError, warn
from subgnn.parallel.memory import parse_size
from subgnn.storage.arrays import ArrayFile, Arrays, Format, Parts, encode_arrays, read_arrays, write_parts
from subgnn.storage.files import remove_leftovers

Result = TypeVar("Result")
LIMIT = 20 * 10**9
KINDS = {
    "prepared": ("prepared",),
    "embeddings": ("safetensors", "state.safetensors"),
    "diffusions": ("safetensors",),
    "hops": ("safetensors",),
    "cores": ("safetensors",),
    "completion": ("safetensors",),
    "subgraph_vectors": ("safetensors",),
    "verified": ("json",),
}
"""The suffixes of each kind of file; the first is that of results, others of unfinished work."""


def cache_folder() -> Path:
    """``SUBGNN_CACHE`` if it is set, else ``subgnn`` in the user's cache folder."""
    given, usual = os.environ.get("SUBGNN_CACHE"), os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(usual) / "subgnn"


def cache_limit() -> int:
    """``SUBGNN_CACHE_LIMIT`` in bytes, where it is set, else 20 GB; 0 keeps nothing."""
    given = os.environ.get("SUBGNN_CACHE_LIMIT")
    return parse_size(given, "SUBGNN_CACHE_LIMIT", hint="0 keeps nothing") if given else LIMIT


def cache_path(kind: str, key: str) -> Path:
    """The path of the file with a key."""
    return cache_folder() / kind / f"{key}.{KINDS[kind][0]}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the cache; ``used`` is the time of its last use, in seconds since 1970."""

    path: Path
    size: int
    used: float


def cache_entries() -> list[Entry]:
    """All files of the cache, those unused for longest first."""
    found = []
    for kind, suffixes in KINDS.items():
        ours = re.compile(rf"[0-9a-f]{{64}}\.({'|'.join(map(re.escape, suffixes))})")
        with suppress(OSError):
            for item in os.scandir(cache_folder() / kind):
                # Another process may remove it meanwhile.
                with suppress(OSError):
                    if ours.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                        status = item.stat(follow_symlinks=False)
                        found.append(Entry(Path(item.path), status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: (entry.used, entry.path))


def touch(path: Path) -> None:
    """Renew the time of a file, if its folder can be written."""
    with suppress(OSError):
        os.utime(path)


def cached(
    path: Path,
    kind: Format,
    *,
    compute: Callable[[], Result],
    arrays: Callable[[Result], Arrays],
    read: Callable[[ArrayFile], Result],
    mapped: Literal["c"] | None = None,
) -> Result:
    """A result from the cache, or computed and stored there, as ``arrays``; ``read`` takes it from a file."""
    if cache_limit() == 0:
        return compute()
    found = lookup(path, lambda: read(read_arrays(path, kind, mapped=mapped)))
    if found is None:
        found = compute()
        store(path, encode_arrays(arrays(found), kind))
    return found


def lookup(path: Path, read: Callable[[], Result]) -> Result | None:
    """A result from the cache; None if there is none, or a damaged one, which a warning reports."""
    if not path.exists():
        return None
    try:
        found = read()
    except DataError as error:
        warn(f"{path}: damaged and ignored ({error.what}); the result is computed again and the file is replaced")
        return None
    touch(path)
    return found


def make_room(size: int, limit: int, *, replaces: Path | None = None) -> None:
    """Remove the files unused for longest until ``size`` more bytes fit, and leftovers of killed processes."""
    entries = [entry for entry in cache_entries() if entry.path != replaces]
    total = size + sum(entry.size for entry in entries)
    for entry in entries:
        if total <= limit:
            break
        with suppress(OSError):
            entry.path.unlink()
        total -= entry.size
    for kind in KINDS:
        remove_leftovers(cache_folder() / kind)


def store(path: Path, parts: Parts) -> bool:
    """Make room for a file of the cache and write it; if that fails, warn and return False."""
    limit, size = cache_limit(), sum(memoryview(part).nbytes for part in parts)
    if size > limit:
        warn(f"{path}: not cached: {size / 1e6:,.0f} MB is more than SUBGNN_CACHE_LIMIT ({limit / 1e6:,.0f} MB)")
        return False
    try:
        make_room(size, limit, replaces=path)
        write_parts(path, parts, overwrite=True, sync=False)
    except (DataError, OSError) as error:
        what = error.what if isinstance(error, DataError) else f"cannot be written ({error.strerror or error})"
        warn(f"{path}: {what}; continuing without the cache; set SUBGNN_CACHE to another folder")
        return False
    return True
