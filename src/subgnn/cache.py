"""Where what was computed once is kept: files named by their content's key, in bounded space.

``FOLDER/KIND/KEY.KIND``: a key is 64 hexadecimal digits. Nothing else in the folder is ever touched. A file is used by
whoever finds it, which renews its time; when there is no room for a new one, those unused for longest go.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from subgnn.errors import UserError, excerpt

LIMIT = 20 * 10**9
KINDS = ("prepared",)
_STALE_SECONDS = 24 * 3600
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def cache_folder() -> Path:
    """``SUBGNN_CACHE`` where it is set, else ``subgnn`` in the user's cache folder."""
    given = os.environ.get("SUBGNN_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "subgnn"


def cache_limit() -> int:
    """``SUBGNN_CACHE_LIMIT`` in bytes, where it is set, else 20 GB; 0 keeps nothing.

    Raises:
        UserError: where it is no size.
    """
    given = os.environ.get("SUBGNN_CACHE_LIMIT")
    if not given:
        return LIMIT
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([KMGT]?B?)\s*", given, re.IGNORECASE)
    unit = found[2].upper() if found else ""
    scale = _UNITS.get(unit, _UNITS.get(unit + "B"))
    if found is None or scale is None:
        hint = "accepted: a number with KB, MB, GB or TB, as 5GB; 0 keeps nothing"
        raise UserError(f"{excerpt(given)} is no size", where="SUBGNN_CACHE_LIMIT", hint=hint)
    return int(float(found[1]) * scale)


def cache_path(kind: str, key: str) -> Path:
    """Where the content of a key is, or would be."""
    return cache_folder() / kind / f"{key}.{kind}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the cache; ``used`` is when it was, in seconds since 1970."""

    path: Path
    size: int
    used: float


def cache_entries() -> list[Entry]:
    """What is kept, unused for longest first."""
    found = []
    for kind in KINDS:
        with suppress(OSError):
            for item in os.scandir(cache_folder() / kind):
                # Another process may take it away meanwhile.
                with suppress(OSError):
                    if re.fullmatch(rf"[0-9a-f]{{64}}\.{kind}", item.name) and item.is_file(follow_symlinks=False):
                        status = item.stat(follow_symlinks=False)
                        found.append(Entry(Path(item.path), status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: (entry.used, entry.path))


def touch(path: Path) -> None:
    """Note that a file was used; in a folder that cannot be written nothing is noted."""
    with suppress(OSError):
        os.utime(path)


def make_room(size: int, limit: int, *, replaces: Path | None = None) -> None:
    """Remove the files unused for longest until ``size`` bytes more fit, and what killed processes left behind.

    Args:
        replaces: the file whose place the new one takes; it does not count.
    """
    entries = [entry for entry in cache_entries() if entry.path != replaces]
    total = size + sum(entry.size for entry in entries)
    for entry in entries:
        if total <= limit:
            break
        with suppress(OSError):
            entry.path.unlink()
        total -= entry.size
    _remove_stale()


def _remove_stale() -> None:
    """Remove temporary files that nobody has written to for a day: their writers are gone."""
    for kind in KINDS:
        for path in (cache_folder() / kind).glob(f".*.{kind}.*.part"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    path.unlink()
